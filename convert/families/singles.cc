// Lineages with one converted architecture each: Phi-3, gpt-oss, OLMo 2 and 3, GLM-4, BitNet, ERNIE
// 4.5, Hunyuan, Seed-OSS, Command R7B and A, Apertus, EXAONE 4.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

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
    {"intermediate_size", "expert_feed_forward_length"},
    {"sliding_window", "attention.sliding_window"},
};

constexpr UsualValue kGptOssUsual[] = {{"swiglu_limit", 7}, {"swiglu_alpha", 1.702}};

constexpr TensorRule kGlm4[] = {
    {".post_self_attn_layernorm", ".post_attention_norm"},
    {".post_mlp_layernorm", ".post_ffw_norm"},
    {".mlp.gate_up_proj", ".ffn_up"},
};
constexpr std::string_view kGlmDefaults =
    R"({"num_key_value_heads": 2, "head_dim": 128, "rms_norm_eps": 1.5625e-07})";

constexpr TensorRule kExaone[] = {
    {"model.wte", "token_embd"},
    {"model.ln_f", "output_norm"},
    {".ln_1", ".attn_norm"},
    {".ln_2", ".ffn_norm"},
    {".attn.attention.q_proj", ".attn_q"},
    {".attn.attention.k_proj", ".attn_k"},
    {".attn.attention.v_proj", ".attn_v"},
    {".attn.attention.out_proj", ".attn_output"},
    {".mlp.c_fc_0", ".ffn_gate"},
    {".mlp.c_fc_1", ".ffn_up"},
    {".mlp.c_proj", ".ffn_down"},
    {"model.rotary.inv_freq", ""},
    {".attn.attention.rotary.inv_freq", ""},
};
constexpr KeyRule kExaoneKeys[] = {
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", KeyKind::kFloat},
};
constexpr std::pair<std::string_view, std::string_view> kExaoneNames[] = {
    {"num_layers", "num_hidden_layers"}};

// It rotates by negative angles, which is the same with the halves of heads exchanged.
void NanoChat(OutModel& model) { model.shapes.head = model.head_dim(); }

constexpr TensorRule kNanoChat[] = {
    {".self_attn.q_proj", ".attn_q", kOtherHalfFirst},
    {".self_attn.k_proj", ".attn_k", kOtherHalfFirst},
    {".mlp.fc1", ".ffn_up"},
    {".mlp.fc2", ".ffn_down"},
};
constexpr KeyRule kNanoChatKeys[] = {
    {"final_logit_softcapping", "final_logit_softcapping", KeyKind::kFloat},
};
constexpr std::string_view kNanoChatDefaults =
    R"({"rms_norm_eps": 1e-6, "final_logit_softcapping": 15.0})";

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
    {".mlp.gate.wg", ".ffn_gate_inp"},
    {".mlp.shared_mlp.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_mlp.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_mlp.down_proj", ".ffn_down_shexp"},
};
constexpr UsualValue kHunyuanUsual[] = {{"use_cla", 0}};

constexpr KeyRule kCohere2Keys[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", KeyKind::kFloat},
    {"logit_scale", "logit_scale", KeyKind::kFloat},
    {"sliding_window", "attention.sliding_window"},
};
constexpr UsualValue kCohere2Usual[] = {
    {"use_qk_norm", 0}, {"use_parallel_block", 1}, {"use_gated_activation", 1}, {"rotary_pct", 1}};

constexpr TensorRule kApertus[] = {
    {".attention_layernorm", ".attn_norm"}, {".feedforward_layernorm", ".ffn_norm"},
    {".mlp.act_fn.alpha_n", kInKeys},       {".mlp.act_fn.alpha_p", kInKeys},
    {".mlp.act_fn.beta", kInKeys},          {".mlp.act_fn.eps", kInKeys},
};

void GptOss(OutModel& model) {
  model.yarn_truncates = false;
  AddWindows(2, model);
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
    model.config.Fail("hidden_act", "expected relu2 or silu, found ", gguf::Quoted(activation, 40));
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
  const double base = model.rope_theta() * std::pow(rope.Number("alpha"), length / (length - 2));
  model.Float("rope.freq_base", base);
  model.Text("rope.scaling.type", "none");
  model.Float("rope.scaling.factor", 1);
}

// A number, or a list that has it for each layer.
uint64_t SameInAll(const Fields& config, std::string_view key) {
  const std::vector<double> found = config.Numbers(key);
  const bool same = std::ranges::adjacent_find(found, std::ranges::not_equal_to()) == found.end();
  if (found.empty() || !same || !(found[0] >= 0 && found[0] <= UINT16_MAX)) {
    config.Fail(key, "expected a number up to 65535, the same one for all layers");
  }
  return static_cast<uint64_t>(found[0]);
}

void HunyuanMoe(OutModel& model) {
  const Fields& config = model.config;
  Hunyuan(model);
  const uint64_t n_shared = SameInAll(config, "num_shared_expert");
  model.Uint("expert_used_count", SameInAll(config, "moe_topk"));
  const char* const width =
      config.Has("moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size";
  model.Uint("expert_feed_forward_length", SameInAll(config, width));
  model.Uint("expert_shared_count", n_shared);
  model.Uint("expert_shared_feed_forward_length", n_shared * config.Count("intermediate_size"));
}

void Cohere2(OutModel& model) {
  const uint64_t period = model.config.CountOr("sliding_window_pattern", 4);
  model.Uint("attention.sliding_window_pattern", period);
  ExpectPeriod(model, period);
}

// The activation's parameters become keys without the architecture's name.
void Apertus(OutModel& model) {
  for (const char* const name : {"alpha_n", "alpha_p", "beta", "eps"}) {
    std::vector<float> values;
    for (uint64_t i = 0; i < model.n_layers(); ++i) {
      const SafeTensor& tensor =
          model.Need("model.layers." + std::to_string(i) + ".mlp.act_fn." + name);
      if (tensor.elements != 1 || !tensor.is_weights()) {
        tensor.Fail("expected a number, found ", tensor.dtype, " ", ShapeText(tensor.shape));
      }
      values.push_back(NumberAt(tensor, 0));
    }
    model.keys.AddArray("xielu." + std::string(name), std::span<const float>(values));
  }
}

// Only the large model has windows, in three of four layers, by what readers assume.
void Exaone4(OutModel& model) {
  const bool has_window = model.config.UintOr("sliding_window", 0) > 0;
  if (!has_window && model.n_layers() == 64)
    model.config.Fail("sliding_window", "expected one in a model of 64 layers");
  if (!has_window) return ExpectPeriod(model, 1);
  if (model.n_layers() != 64) {
    if (LayersOfType(model, "full_attention").empty())
      model.config.Fail("layer_types", "expected a name for each layer");
    return AddWindowsAsList(model);
  }
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (!local.empty()) model.PerLayer("attention.sliding_window_pattern", local);
}

void Phi3(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t context = config.Count("max_position_embeddings");
  if (config.UintOr("sliding_window", 0) > 0 && config.Count("sliding_window") < context)
    AddWindowsAsList(model);
}

constexpr Family kSingleRows[] = {
    {.name = "phi3",
     .hf = {"Phi3ForCausalLM"},
     .tensors = {kPhi3},
     .keys = {kPhi3Keys},
     .refine = Phi3},
    {.name = "chatglm",
     .hf = {"GlmForCausalLM"},
     .tensors = {kGlm4},
     .rotary_part = 0.5,
     .defaults = kGlmDefaults},
    {.name = "exaone",
     .hf = {"ExaoneForCausalLM"},
     .tensors = {kExaone},
     .keys = {kExaoneKeys},
     .rope_theta = 5e5,
     .renamed = kExaoneNames},
    {.name = "nanochat",
     .hf = {"NanoChatForCausalLM"},
     .activation = "relu2",
     .tensors = {kNanoChat},
     .keys = {kNanoChatKeys},
     .refine = NanoChat,
     .defaults = kNanoChatDefaults},
    {.name = "gpt-oss",
     .hf = {"GptOssForCausalLM"},
     .tensors = {kGptOss, kFfnNormIsPostAttention},
     .keys = {kGptOssKeys, kExpertSizes, kExpertKeys},
     .usual = kGptOssUsual,
     .refine = GptOss,
     .says_rope = true,
     .rope_theta = 150000},
    {.name = "olmo2",
     .hf = {"Olmo2ForCausalLM"},
     .tensors = {kPostNorms},
     .keys = {kWindowKeys},
     .refine = Olmo2},
    {.name = "olmo2",
     .hf = {"Olmo3ForCausalLM"},
     .tensors = {kPostNorms},
     .keys = {kWindowKeys},
     .refine = Olmo2,
     .rope_theta = 5e5},
    {.name = "glm4", .hf = {"Glm4ForCausalLM"}, .tensors = {kGlm4}, .rotary_part = 0.5},
    {.name = "bitnet",
     .hf = {"BitNetForCausalLM", "BitnetForCausalLM"},
     .activation = "",  // one of two
     .tensors = {kBitNet},
     .refine = BitNet,
     .rope_theta = 5e5},
    {.name = "ernie4_5", .hf = {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"}, .rope_theta = 5e5},
    {.name = "hunyuan-dense",
     .hf = {"HunYuanDenseV1ForCausalLM"},
     .tensors = {kHunyuan},
     .refine = Hunyuan},
    {.name = "hunyuan-moe",
     .hf = {"HunYuanMoEV1ForCausalLM"},
     .tensors = {kHunyuan},
     .keys = {kExpertSizes, kExpertKeys},
     .usual = kHunyuanUsual,
     .refine = HunyuanMoe},
    {.name = "seed_oss", .hf = {"SeedOssForCausalLM"}, .tensors = {kFfnNormIsPostAttention}},
    {.name = "cohere2",
     .hf = {"Cohere2ForCausalLM"},
     .keys = {kCohere2Keys},
     .usual = kCohere2Usual,
     .refine = Cohere2},
    {.name = "apertus",
     .hf = {"ApertusForCausalLM"},
     .activation = "xielu",
     .tensors = {kApertus},
     .refine = Apertus,
     .says_rope = true,
     .rope_theta = 12e6},
    {.name = "exaone4",
     .hf = {"Exaone4ForCausalLM"},
     .tensors = {kPostNorms},
     .keys = {kWindowKeys},
     .refine = Exaone4},
};

}  // namespace

std::span<const Family> SingleLineages() { return kSingleRows; }

}  // namespace convert
