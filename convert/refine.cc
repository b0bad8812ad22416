#include "convert/refine.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "gguf/error.h"

namespace convert {
namespace {

// The scale of attention that GGUF's definition of Gemma has: by the head's length, and in the
// largest model by another one.
void CheckGemmaScale(const Draft& draft, uint64_t n_layers_of_largest) {
  const Fields& config = draft.config;
  const bool largest = draft.n_layers() == n_layers_of_largest;
  const auto expected = static_cast<double>(
      largest ? config.Count("hidden_size") / draft.shapes.n_heads : draft.head_dim());
  const double found = config.NumberOr("query_pre_attn_scalar", expected);
  if (found != expected) {
    config.Fail("query_pre_attn_scalar", "expected " + std::to_string(expected) +
                                             " for a model of so many layers, found " +
                                             std::to_string(found));
  }
}

// Windows that GGUF's architecture does not have: published files go without them, too.
void LeaveOutWindow(Draft& draft) {
  draft.notes.push_back("config.json names a sliding_window, which files of architecture " +
                        draft.architecture + " do not have: longer texts see all of themselves");
}

}  // namespace

std::vector<bool> LayersOfType(const Draft& draft, std::string_view type) {
  std::vector<bool> of_type;
  for (const std::string& name : draft.config.Texts("layer_types")) of_type.push_back(name == type);
  if (!of_type.empty() && of_type.size() != draft.n_layers()) {
    draft.config.Fail("layer_types", "expected " + std::to_string(draft.n_layers()) +
                                         " names, one for each layer, found " +
                                         std::to_string(of_type.size()));
  }
  return of_type;
}

void ExpectPeriod(const Draft& draft, size_t period) {
  const std::vector<bool> full = LayersOfType(draft, "full_attention");
  for (size_t i = 0; i < full.size(); ++i) {
    if (full[i] == (i % period == period - 1)) continue;
    draft.config.Fail("layer_types",
                      "expected full_attention in the last of every " + std::to_string(period) +
                          " layers, found something else in layer " + std::to_string(i));
  }
}

void Llama(Draft& draft) {
  if (draft.config.Has("sliding_window")) LeaveOutWindow(draft);
}

void Qwen(Draft& draft) {
  if (draft.config.BoolOr("use_sliding_window", false)) LeaveOutWindow(draft);
}

void SmolLm3(Draft& draft) {
  const std::vector<double> turned = draft.config.Numbers("no_rope_layers");  // 0: has none
  for (size_t i = 0; i < turned.size(); ++i) {
    if ((turned[i] == 0) == (i % 4 == 3)) continue;
    draft.config.Fail("no_rope_layers", "expected 0 for every fourth layer alone");
  }
  if (draft.config.UintOr("no_rope_layer_interval", 4) != 4) {
    draft.config.Fail("no_rope_layer_interval", "expected 4");
  }
}

void Mistral3(Draft& draft) {
  const Fields rope = draft.rope();
  if (rope.Has("mscale_all_dim")) {
    const double all = rope.Number("mscale_all_dim");
    if (rope.NumberOr("mscale", all) != all) rope.Fail("mscale", "expected as mscale_all_dim");
    draft.Float("rope.scaling.yarn_log_multiplier", all);
  }
  if (rope.Has("llama_4_scaling_beta")) {
    draft.Float("attention.temperature_scale", rope.Number("llama_4_scaling_beta"));
  }
}

void Gemma2(Draft& draft) {
  CheckGemmaScale(draft, 46);
  ExpectPeriod(draft, 2);
}

// What Hugging Face's library takes where config.json says nothing, as it does for the models that
// see images.
Fields Gemma3Defaults(const Fields& config) {
  return {config.file(), Json{{"num_attention_heads", 8},
                              {"num_key_value_heads", 4},
                              {"head_dim", 256},
                              {"vocab_size", 262208},
                              {"max_position_embeddings", 131072},
                              {"rms_norm_eps", 1e-6},
                              {"rope_theta", 1e6}}};
}

void Gemma3(Draft& draft) {
  const Fields& config = draft.config;
  CheckGemmaScale(draft, 62);
  const Fields local = config.Object("rope_parameters").Object("sliding_attention");
  const double base = config.NumberOr("rope_local_base_freq", local.NumberOr("rope_theta", 10000));
  if (base != 10000) draft.Float("rope.freq_base_swa", base);
  const uint64_t period =
      config.UintOr("sliding_window_pattern", config.UintOr("_sliding_window_pattern", 6));
  if (period != 6) draft.Uint("attention.sliding_window_pattern", period);
  ExpectPeriod(draft, period == 0 ? draft.n_layers() + 1 : period);
}

void GptOss(Draft& draft) {
  ExpectPeriod(draft, 2);
  if (draft.config.NumberOr("swiglu_limit", 7) != 7) {
    draft.config.Fail("swiglu_limit", "expected 7");
  }
}

void BitNet(Draft& draft) {
  const std::string activation = draft.config.TextOr("hidden_act", "relu2");
  if (activation == "relu2") {
    draft.Text("hidden_activation", activation);
    draft.notes.push_back(
        "its activation is relu2, as the key bitnet.hidden_activation says: "
        "programs that do not know that key compute something else");
  } else if (activation != "silu") {
    draft.config.Fail("hidden_act",
                      "expected relu2 or silu, found " + gguf::Quoted(activation, 40));
  }
  if (!draft.config.BoolOr("tie_word_embeddings", false) &&
      draft.folder.tensors().contains("lm_head.weight")) {
    draft.config.Fail("tie_word_embeddings", "expected true in a model of architecture bitnet");
  }
}

// OLMo 3 has a window in three layers of four, OLMo 2 none.
void Olmo2(Draft& draft) {
  ExpectPeriod(draft, draft.config.Has("sliding_window") ? 4 : 1);
  const std::vector<bool> local = LayersOfType(draft, "sliding_attention");
  if (!local.empty()) draft.PerLayer("attention.sliding_window_pattern", local);
}

// The base of its rope is stretched once and for all.
void Hunyuan(Draft& draft) {
  const Fields rope = draft.rope();
  const std::string type = rope.TextOr("rope_type", rope.TextOr("type", "default"));
  if (!rope.Has("alpha") || type != "dynamic") return;
  const auto length = static_cast<double>(draft.head_dim());
  const double base =
      draft.rope_theta(10000) * std::pow(rope.Number("alpha"), length / (length - 2));
  draft.Float("rope.freq_base", base);
  draft.Text("rope.scaling.type", "none");
  draft.Float("rope.scaling.factor", 1);
}

// Only the large one has windows, in three layers of four.
void Exaone4(Draft& draft) {
  const bool has_window = draft.config.UintOr("sliding_window", 0) > 0;
  if (has_window != (draft.n_layers() == 64)) {
    draft.config.Fail("sliding_window", "expected one in the model of 64 layers and in no other");
  }
  ExpectPeriod(draft, has_window ? 4 : 1);
  const std::vector<bool> local = LayersOfType(draft, "sliding_attention");
  if (has_window && !local.empty()) draft.PerLayer("attention.sliding_window_pattern", local);
}

}  // namespace convert
