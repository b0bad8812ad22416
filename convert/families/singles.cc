// Lineages with one converted architecture each: Phi-3, gpt-oss, OLMo 2 and 3, GLM-4, BitNet, ERNIE
// 4.5, Hunyuan dense, EXAONE 4. engine/model/families/singles.cc explains the arithmetic.
#include <cmath>
#include <string>

#include "convert/families/families.h"
#include "gguf/error.h"

namespace convert {
namespace {

using enum Order;

constexpr TensorRule kPhi3[] = {
    {".self_attn.qkv_proj", ".attn_qkv"},
    {".mlp.gate_up_proj", ".ffn_up"},
};
constexpr KeyRule kPhi3Keys[] = {
    {"sliding_window", "attention.sliding_window"},
    {"original_max_position_embeddings", "rope.scaling.original_context_length"},
};

constexpr TensorRule kGptOss[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".self_attn.sinks", ".attn_sinks.weight"},
    {".mlp.router", ".ffn_gate_inp"},
    {".mlp.experts.gate_up_proj_blocks", ".ffn_gate_exps.weight", kEven},
    {".mlp.experts.gate_up_proj_blocks", ".ffn_up_exps.weight", kOdd},
    {".mlp.experts.down_proj_blocks", ".ffn_down_exps.weight"},
    {".mlp.experts.gate_up_proj", ".ffn_gate_exps.weight", kEvenTransposed},
    {".mlp.experts.gate_up_proj", ".ffn_up_exps.weight", kOddTransposed},
    {".mlp.experts.down_proj", ".ffn_down_exps.weight", kTransposed},
    {".mlp.experts.gate_up_proj_bias", ".ffn_gate_exps.bias", kEven},
    {".mlp.experts.gate_up_proj_bias", ".ffn_up_exps.bias", kOdd},
    {".mlp.experts.down_proj_bias", ".ffn_down_exps.bias"},
};
constexpr KeyRule kGptOssKeys[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"intermediate_size", "expert_feed_forward_length"},
    {"sliding_window", "attention.sliding_window"},
};

constexpr TensorRule kGlm4[] = {
    {".post_self_attn_layernorm", ".post_attention_norm"},
    {".post_mlp_layernorm", ".post_ffw_norm"},
    {".mlp.gate_up_proj", ".ffn_up"},
};
constexpr TensorRule kBitNet[] = {
    {".self_attn.attn_sub_norm", ".attn_sub_norm"},
    {".mlp.ffn_sub_norm", ".ffn_sub_norm"},
    // The same under older names.
    {".self_attn.inner_attn_ln", ".attn_sub_norm"},
    {".mlp.ffn_layernorm", ".ffn_sub_norm"},
};
constexpr TensorRule kHunyuan[] = {
    {".self_attn.query_layernorm", ".attn_q_norm"},
    {".self_attn.key_layernorm", ".attn_k_norm"},
};

void GptOss(OutModel& model) {
  ExpectPeriod(model, 2);
  if (model.config.NumberOr("swiglu_limit", 7) != 7) {
    model.config.Fail("swiglu_limit", "expected 7");
  }
}

// OLMo 3 has a window in three of four layers, OLMo 2 has none.
void Olmo2(OutModel& model) {
  ExpectPeriod(model, model.config.Has("sliding_window") ? 4 : 1);
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (!local.empty()) model.PerLayer("attention.sliding_window_pattern", local);
}

void BitNet(OutModel& model) {
  const std::string activation = model.config.TextOr("hidden_act", "relu2");
  if (activation == "relu2") {
    model.Text("hidden_activation", activation);
    model.notes.push_back(
        "its activation is relu2, as the key bitnet.hidden_activation says: "
        "programs that do not know that key compute something else");
  } else if (activation != "silu") {
    model.config.Fail("hidden_act",
                      "expected relu2 or silu, found " + gguf::Quoted(activation, 40));
  }
  if (!model.config.BoolOr("tie_word_embeddings", false) &&
      model.folder.tensors().contains("lm_head.weight")) {
    model.config.Fail("tie_word_embeddings", "expected true in a model of architecture bitnet");
  }
}

// Its rope's alpha becomes a larger base.
void Hunyuan(OutModel& model) {
  const Fields rope = model.rope();
  const std::string type = rope.TextOr("rope_type", rope.TextOr("type", "default"));
  if (!rope.Has("alpha") || type != "dynamic") return;
  const auto length = static_cast<double>(model.head_dim());
  const double base =
      model.rope_theta(10000) * std::pow(rope.Number("alpha"), length / (length - 2));
  model.Float("rope.freq_base", base);
  model.Text("rope.scaling.type", "none");
  model.Float("rope.scaling.factor", 1);
}

// Only the large model has windows, in three of four layers.
void Exaone4(OutModel& model) {
  const bool has_window = model.config.UintOr("sliding_window", 0) > 0;
  if (has_window != (model.n_layers() == 64)) {
    model.config.Fail("sliding_window", "expected one in the model of 64 layers and in no other");
  }
  ExpectPeriod(model, has_window ? 4 : 1);
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (has_window && !local.empty()) model.PerLayer("attention.sliding_window_pattern", local);
}

constexpr Family kSingleRows[] = {
    {.name = "phi3", .hf = {"Phi3ForCausalLM"}, .tensors = {kPhi3}, .keys = {kPhi3Keys}},
    {.name = "gpt-oss",
     .hf = {"GptOssForCausalLM"},
     .tensors = {kGptOss},
     .keys = {kGptOssKeys},
     .refine = GptOss},
    {.name = "olmo2",
     .hf = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"},
     .tensors = {kPostNorms},
     .keys = {kWindowKeys},
     .refine = Olmo2},
    {.name = "glm4", .hf = {"Glm4ForCausalLM"}, .tensors = {kGlm4}},
    {.name = "bitnet",
     .hf = {"BitNetForCausalLM", "BitnetForCausalLM"},
     .activation = "",  // one of two
     .tensors = {kBitNet},
     .refine = BitNet},
    {.name = "ernie4_5", .hf = {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"}},
    {.name = "hunyuan-dense",
     .hf = {"HunYuanDenseV1ForCausalLM"},
     .tensors = {kHunyuan},
     .refine = Hunyuan},
    {.name = "exaone4",
     .hf = {"Exaone4ForCausalLM"},
     .tensors = {kPostNorms},
     .keys = {kWindowKeys},
     .refine = Exaone4},
};

}  // namespace

std::span<const Family> SingleLineages() { return kSingleRows; }

}  // namespace convert
