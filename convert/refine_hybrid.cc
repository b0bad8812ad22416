// Families whose layers are not all plain attention, see refine.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "convert/refine.h"
#include "gguf/error.h"

namespace convert {
namespace {

// Keys and values where a layer is attention, none where it is something else.
void AddHeads(const std::vector<bool>& is_attention, Draft& draft) {
  const auto n_kv_heads = static_cast<int32_t>(draft.shapes.n_kv_heads);
  std::vector<int32_t> heads;
  heads.reserve(is_attention.size());
  for (const bool attends : is_attention) heads.push_back(attends ? n_kv_heads : 0);
  draft.PerLayer("attention.head_count_kv", heads);
}

std::vector<int32_t> WholeNumbers(const Fields& config, std::string_view key, size_t n) {
  std::vector<int32_t> whole;
  for (const double number : config.Numbers(key)) {
    if (!(number >= 0 && number <= INT32_MAX && number == std::floor(number))) break;
    whole.push_back(static_cast<int32_t>(number));
  }
  if (whole.size() != n || config.Numbers(key).size() != n) {
    config.Fail(key, "expected " + std::to_string(n) + " whole numbers from 0 on");
  }
  return whole;
}

// What both of these Gemmas name for layers with windows and without.
void AddGemmaLayers(Draft& draft) {
  const Fields& config = draft.config;
  const std::vector<bool> local = LayersOfType(draft, "sliding_attention");
  if (local.empty()) config.Fail("layer_types", "expected a name for each layer");
  draft.PerLayer("attention.sliding_window_pattern", local);
  const Fields rope = config.Object("rope_parameters").Object("sliding_attention");
  draft.Float("rope.freq_base_swa",
              config.NumberOr("rope_local_base_freq", rope.NumberOr("rope_theta", 10000)));
  if (config.IsList("intermediate_size")) {
    draft.PerLayer("feed_forward_length", WholeNumbers(config, "intermediate_size", local.size()));
  }
}

// One block behind the layers. Not every config.json says that it is there.
void AddNextn(Draft& draft) {
  if (!draft.folder.tensors().contains("mtp.fc.weight")) return;
  if (draft.config.UintOr("mtp_num_hidden_layers", 1) != 1) return;
  draft.n_nextn = 1;
  draft.Uint("nextn_predict_layers", draft.n_nextn);
  draft.Uint("block_count", draft.n_layers() + draft.n_nextn);
}

}  // namespace

void Lfm2(Draft& draft) {
  const Fields& config = draft.config;
  std::vector<bool> attends = LayersOfType(draft, "full_attention");
  if (attends.empty()) {
    attends.resize(draft.n_layers());
    for (const double i : config.Numbers("full_attn_idxs")) {
      if (i >= 0 && i < static_cast<double>(attends.size())) attends[static_cast<size_t>(i)] = true;
    }
  }
  AddHeads(attends, draft);
  // config.json has the width before it is rounded; the matrix is what it is.
  draft.Uint("feed_forward_length",
             draft.Need("model.layers.0.feed_forward.w1.weight").shape.at(0));
  if (draft.architecture != "lfm2moe") return;
  if (!config.BoolOr("norm_topk_prob", true)) config.Fail("norm_topk_prob", "expected true");
  draft.Uint("expert_gating_func", 2);  // sigmoid
}

void DeltaNet(Draft& draft) {
  AddNextn(draft);
  const Fields& config = draft.config;
  Shapes& shapes = draft.shapes;
  shapes.n_key_heads = config.Count("linear_num_key_heads");
  shapes.n_value_heads = config.Count("linear_num_value_heads");
  shapes.state = config.Count("linear_key_head_dim");
  if (config.Count("linear_value_head_dim") != shapes.state) {
    config.Fail("linear_value_head_dim", "expected as linear_key_head_dim");
  }
  if (shapes.n_value_heads % shapes.n_key_heads != 0) {
    config.Fail("linear_num_value_heads", "expected a multiple of linear_num_key_heads");
  }
  draft.Uint("ssm.inner_size", shapes.n_value_heads * shapes.state);
  const uint64_t interval = config.CountOr("full_attention_interval", 4);
  draft.Uint("full_attention_interval", interval);
  ExpectPeriod(draft, interval);
  if (draft.architecture == "qwen35moe") draft.Without("feed_forward_length");
  if (draft.architecture == "qwen3next") return;
  std::vector<int32_t> sections = WholeNumbers(draft.rope(), "mrope_section", 3);
  sections.push_back(0);
  draft.PerLayer("rope.dimension_sections", sections);
}

void Gemma3n(Draft& draft) {
  const Fields& config = draft.config;
  AddGemmaLayers(draft);
  // Which share of a gate's numbers is dropped, as standard deviations above their mean.
  constexpr float kOf95Percent = 1.6448536f;
  std::vector<float> scales;
  for (const double share : config.Numbers("activation_sparsity_pattern")) {
    if (share != 0 && share != 0.95) {
      config.Fail("activation_sparsity_pattern", "expected 0 or 0.95 for each layer");
    }
    scales.push_back(share == 0 ? -std::numeric_limits<float>::infinity() : kOf95Percent);
  }
  if (!scales.empty()) draft.PerLayer("activation_sparsity_scale", scales);
  // Ids behind the text's are those of images and sounds.
  if (config.Has("vocab_size_per_layer_input")) {
    draft.n_tokens = config.Count("vocab_size_per_layer_input");
  }
}

void Gemma4(Draft& draft) {
  const Fields& config = draft.config;
  const std::vector<bool> local = LayersOfType(draft, "sliding_attention");
  const uint64_t length = config.Count("head_dim");
  const uint64_t full_length = config.CountOr("global_head_dim", length);
  draft.Uint("attention.key_length_swa", length);
  draft.Uint("attention.value_length_swa", length);
  draft.Uint("rope.dimension_count_swa", length);
  draft.Uint("attention.key_length", full_length);
  draft.Uint("attention.value_length", full_length);
  draft.Uint("rope.dimension_count", full_length);
  if (config.BoolOr("attention_k_eq_v", false) && config.Has("num_global_key_value_heads")) {
    std::vector<int32_t> heads;
    heads.reserve(local.size());
    for (const bool slides : local) {
      heads.push_back(static_cast<int32_t>(slides ? draft.shapes.n_kv_heads
                                                  : config.Count("num_global_key_value_heads")));
    }
    draft.PerLayer("attention.head_count_kv", heads);
  }
  const uint64_t n_shared = config.UintOr("num_kv_shared_layers", 0);
  if (config.BoolOr("use_double_wide_mlp", false)) {
    const uint64_t width = config.Count("intermediate_size");
    std::vector<int32_t> widths;
    for (size_t i = 0; i < local.size(); ++i) {
      widths.push_back(static_cast<int32_t>(i + n_shared >= local.size() ? 2 * width : width));
    }
    draft.PerLayer("feed_forward_length", widths);
  }
  draft.Uint("attention.shared_kv_layers", n_shared);
  draft.Uint("embedding_length_per_layer_input", config.UintOr("hidden_size_per_layer_input", 0));
  AddGemmaLayers(draft);
  // In layers that see all, only the first pairs turn: the others by 1e30 times less.
  const double part = draft.rope().NumberOr("partial_rotary_factor", 1);
  if (!(part > 0 && part <= 1)) draft.rope().Fail("partial_rotary_factor", "expected 0 to 1");
  const auto n_turned =
      static_cast<size_t>(std::floor(part * static_cast<double>(full_length) / 2));
  std::vector<float> divisors(full_length / 2, 1e30f);
  std::fill_n(divisors.begin(), n_turned, 1.0f);
  draft.Computed("rope_freqs.weight", std::move(divisors));
  draft.Without("rope.scaling.type");
}

void DeepSeek2(Draft& draft) {
  const Fields& config = draft.config;
  const uint64_t turned = config.Count("qk_rope_head_dim"), latent = config.Count("kv_lora_rank");
  draft.shapes.head_plain = config.Count("qk_nope_head_dim");
  draft.shapes.head_value = config.Count("v_head_dim");
  draft.Uint("rope.dimension_count", turned);
  draft.Uint("attention.head_count_kv", 1);
  draft.Uint("attention.key_length", latent + turned);
  draft.Uint("attention.value_length", latent);
  draft.Uint("attention.key_length_mla", draft.shapes.head_plain + turned);
  draft.Uint("attention.value_length_mla", draft.shapes.head_value);
  // Where the key is missing, what only experts chosen by sigmoid have tells.
  const bool biased = std::ranges::any_of(draft.folder.tensors(), [](const auto& tensor) {
    return tensor.first.ends_with(".e_score_correction_bias");
  });
  const std::string scoring = config.TextOr("scoring_func", biased ? "sigmoid" : "softmax");
  if (scoring != "softmax" && scoring != "sigmoid") {
    config.Fail("scoring_func", "expected softmax or sigmoid, found " + gguf::Quoted(scoring, 40));
  }
  draft.Uint("expert_gating_func", scoring == "sigmoid" ? 2 : 1);
  const uint64_t n_groups = config.CountOr("n_group", 1);
  if (n_groups > 1) {
    if (scoring == "softmax") {
      draft.notes.push_back(
          "groups of experts are chosen by their two best experts, as all readers "
          "of such files do; the original takes the best one alone");
    }
    draft.Uint("expert_group_count", n_groups);
    draft.Uint("expert_group_used_count", config.Count("topk_group"));
  }
  const Fields rope = draft.rope();
  const double all = rope.NumberOr("mscale_all_dim", 0);
  if (all == 0) return;
  if (rope.NumberOr("mscale", all) != all) rope.Fail("mscale", "expected as mscale_all_dim");
  draft.Float("rope.scaling.yarn_log_multiplier", 0.1 * all);
}

void GraniteHybrid(Draft& draft) {
  const Fields& config = draft.config;
  const std::vector<bool> attends = LayersOfType(draft, "attention");
  if (attends.empty()) config.Fail("layer_types", "expected a name for each layer");
  AddHeads(attends, draft);
  draft.shapes.n_groups = config.CountOr("mamba_n_groups", 1);
  draft.Uint("ssm.inner_size", config.CountOr("mamba_expand", 2) * config.Count("hidden_size"));
  const std::string positions = config.TextOr("position_embedding_type", "rope");
  draft.Bool("rope.scaling.finetuned", positions == "rope");
  if (config.UintOr("num_local_experts", 0) > 0) return;
  draft.Uint("feed_forward_length", config.Count("shared_intermediate_size"));
  for (const char* const key :
       {"expert_count", "expert_used_count", "expert_shared_feed_forward_length"}) {
    draft.Without(key);
  }
}

void NemotronH(Draft& draft) {
  const Fields& config = draft.config;
  const std::string pattern = config.Text("hybrid_override_pattern");
  if (pattern.size() != draft.n_layers()) {
    config.Fail("hybrid_override_pattern",
                "expected a letter for each of " + std::to_string(draft.n_layers()) + " layers");
  }
  const bool experts = draft.architecture == "nemotron_h_moe";
  const char network = experts ? 'E' : '-';
  const auto width =
      static_cast<int32_t>(config.Count(experts ? "moe_intermediate_size" : "intermediate_size"));
  std::vector<bool> attends;
  std::vector<int32_t> widths;
  for (const char kind : pattern) {
    if (kind != 'M' && kind != '*' && kind != network) {
      config.Fail("hybrid_override_pattern", "expected M, * and " + std::string(1, network) +
                                                 ", found " + gguf::Quoted(std::string(1, kind)));
    }
    attends.push_back(kind == '*');
    widths.push_back(kind == network ? width : 0);
  }
  AddHeads(attends, draft);
  draft.PerLayer("feed_forward_length", widths);
  draft.shapes.n_groups = config.CountOr("n_groups", 1);
  draft.Uint("ssm.inner_size", config.Count("mamba_num_heads") * config.Count("mamba_head_dim"));
  draft.Float("attention.layer_norm_epsilon",
              config.NumberOr("layer_norm_epsilon", config.NumberOr("norm_eps", 1e-5)));
  draft.Bool("rope.scaling.finetuned", false);
}

}  // namespace convert
