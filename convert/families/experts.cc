// Families of which every model has experts.
#include <algorithm>
#include <string>

#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

constexpr std::string_view kPlainExperts = R"({"norm_topk_prob": false})";
constexpr std::string_view kNormedExperts = R"({"norm_topk_prob": true})";

constexpr std::string_view kSolarDefaults =
    R"({"norm_topk_prob": true, "num_key_value_heads": 8, "head_dim": 128})";

constexpr TensorRule kHy3[] = {
    {".mlp.router.gate", ".ffn_gate_inp"},
    {".mlp.shared_mlp.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_mlp.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_mlp.down_proj", ".ffn_down_shexp"},
};
constexpr KeyRule kHy3Keys[] = {{"router_scaling_factor", "expert_weights_scale", kFloat}};
constexpr std::string_view kHy3Defaults = R"({"router_scaling_factor": 2.826,
    "num_key_value_heads": 8, "head_dim": 128, "num_shared_experts": 1})";

constexpr TensorRule kErnieMoe[] = {
    {".mlp.moe_statics.e_score_correction_bias", ".exp_probs_b.bias", kVector},
};
constexpr UsualValue kErnieMoeUsual[] = {{"moe_layer_interval", 1}};

constexpr TensorRule kBailing[] = {
    {"model.word_embeddings", "token_embd"},      {".attention.query_key_value", ".attn_qkv"},
    {".attention.dense", ".attn_output"},         {".attention.query_layernorm", ".attn_q_norm"},
    {".attention.key_layernorm", ".attn_k_norm"}, {".mlp.gate.expert_bias", ".exp_probs_b.bias"},
};

constexpr KeyRule kMiniMaxKeys[] = {
    {"rotary_dim", "rope.dimension_count"},
    {"intermediate_size", "expert_feed_forward_length"},
};
constexpr UsualValue kMiniMaxUsual[] = {{"use_qk_norm", 1}};

constexpr std::string_view kExaoneMoeDefaults =
    R"({"norm_topk_prob": true, "routed_scaling_factor": 2.5})";
constexpr KeyRule kExaoneMoeKeys[] = {
    {"sliding_window", "attention.sliding_window"},
    {"first_last_k_dense_replace", "leading_dense_block_count"},
};

constexpr TensorRule kAfMoe[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".pre_mlp_layernorm", ".ffn_norm"},
    {".post_mlp_layernorm", ".post_ffw_norm"},
    {".self_attn.gate_proj", ".attn_gate"},
    {".mlp.router.gate", ".ffn_gate_inp"},
    {".mlp.expert_bias", ".exp_probs_b.bias"},
};
constexpr UsualValue kAfMoeUsual[] = {
    {"mup_enabled", 1}, {"global_attn_every_n_layers", 4}, {"route_norm", 1}};

constexpr TensorRule kLaguna[] = {
    {".self_attn.g_proj", ".attn_gate"},
    {".mlp.experts.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mlp.shared_expert.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_expert.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_expert.down_proj", ".ffn_down_shexp"},
};
constexpr UsualValue kLagunaUsual[] = {{"moe_router_logit_softcapping", 0},
                                       {"moe_apply_router_weight_on_input", 0}};

constexpr TensorRule kMiMo2[] = {
    {".self_attn.attention_sink_bias", ".attn_sinks.weight"},
};
constexpr UsualValue kMiMo2Usual[] = {{"norm_topk_prob", 1}, {"routed_scaling_factor", 1}};
constexpr KeyRule kMiMo2Keys[] = {
    {"layernorm_epsilon", "attention.layer_norm_rms_epsilon", kFloat},
    {"v_head_dim", "attention.value_length"},
    {"attention_value_scale", "attention.value_scale", kFloat},
    {"sliding_window", "attention.sliding_window"},
};

constexpr TensorRule kStep35[] = {
    {".self_attn.g_proj", ".attn_gate"},
    {".moe.gate", ".ffn_gate_inp"},
    {".moe.router_bias", ".exp_probs_b.bias"},
    {".moe.gate_proj", ".ffn_gate_exps"},
    {".moe.up_proj", ".ffn_up_exps"},
    {".moe.down_proj", ".ffn_down_exps"},
    {".share_expert.gate_proj", ".ffn_gate_shexp"},
    {".share_expert.up_proj", ".ffn_up_shexp"},
    {".share_expert.down_proj", ".ffn_down_shexp"},
};

void ErnieMoe(OutModel& model) {
  const Fields& config = model.config;
  const double last = config.NumberOr("moe_layer_end_index", -1);
  if (last != -1 && last != static_cast<double>(model.n_layers()) - 1)
    config.Fail("moe_layer_end_index", "expected the last layer, or -1");
  model.Uint("interleave_moe_layer_step", 1);
  model.Uint("expert_shared_feed_forward_length",
             config.UintOr("moe_num_shared_experts", 0) * config.Count("moe_intermediate_size"));
}

void BySigmoid(OutModel& model) { AddGating(true, model); }

void Bailing(OutModel& model) {
  AddNextn(model);
  BySigmoid(model);
}

// GLM-4.5 without leading dense layers.
void SolarOpen(OutModel& model) {
  BySigmoid(model);
  model.Uint("leading_dense_block_count", model.config.UintOr("first_k_dense_replace", 0));
}

void ExaoneMoe(OutModel& model) {
  const Fields& config = model.config;
  AddNextn(model);
  ExpectPeriod(model, 4);
  AddLeadingDense(model);
  BySigmoid(model);
  model.Uint("expert_shared_feed_forward_length",
             config.CountOr("num_shared_experts", 1) * config.Count("moe_intermediate_size"));
}

void AfMoe(OutModel& model) {
  model.Bool("expert_weights_norm", true);
  ExpectPeriod(model, 4);
  BySigmoid(model);
}

void Hy3(OutModel& model) {
  if (model.config.IsList("mlp_layer_types")) {
    AddLeadingDense(model);
  } else {
    model.Uint("leading_dense_block_count", 1);
  }
  model.Bool("expert_weights_norm", true);
  BySigmoid(model);
}

// Layers with windows have their own rope. The first of every four has none.
void Laguna(OutModel& model) {
  const Fields& config = model.config;
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  const bool slides = std::ranges::count(local, true) > 0;
  if (slides) {
    ExpectPeriod(model, 4, true);
    const Fields rope = config.Object("rope_parameters").Object("sliding_attention");
    const auto length = static_cast<double>(model.head_dim());
    model.Uint("attention.sliding_window", config.Count("sliding_window"));
    model.Float("rope.freq_base_swa", rope.NumberOr("rope_theta", 10000));
    model.Uint("rope.dimension_count_swa",
               static_cast<uint64_t>(length * rope.ShareOr("partial_rotary_factor", 1)));
  }
  if (config.IsList("num_attention_heads_per_layer")) {
    model.PerLayer("attention.head_count",
                   WholeNumbers(config, "num_attention_heads_per_layer", model.n_layers()));
  }
  AddLeadingDense(model);
  model.Bool("expert_weights_norm", true);
  BySigmoid(model);
}

void MiMo2(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (local.empty()) {
    for (const int32_t slides : WholeNumbers(config, "hybrid_layer_pattern", model.n_layers()))
      local.push_back(slides != 0);
  }
  model.Without("leading_dense_block_count");  // readers see it by the tensors
  AddLeadingDense(model);
  model.Float("rope.freq_base_swa", LocalBase(config, "swa_rope_theta"));
  // A token sees as many before it, and itself.
  if (config.Has("sliding_window_size"))
    model.Uint("attention.sliding_window", config.Count("sliding_window_size") + 1);
  AddNextn(model);
  local.resize(local.size() + model.n_nextn, true);
  model.PerLayer("attention.sliding_window_pattern", local);
  AddByLayer("attention.head_count_kv", local,
             config.CountOr("swa_num_key_value_heads", 2 * model.shapes.n_kv_heads),
             model.shapes.n_kv_heads, model);
  for (const std::string key : {"head_dim", "v_head_dim", "num_attention_heads"}) {
    if (config.CountOr("swa_" + key, config.Count(key)) == config.Count(key)) continue;
    config.Fail("swa_" + key, "expected as ", key);
  }
  BySigmoid(model);
}

// Layers without a window rotate half of a head, and may have other numbers of heads.
void Step35(OutModel& model) {
  const Fields& config = model.config;
  const Fields others = config.Object("attention_other_setting");
  const uint64_t n_heads = config.Count("num_attention_heads");
  AddNextn(model);
  const size_t n = model.n_layers() + model.n_nextn;
  model.shapes.n_kv_heads = config.Count("num_attention_groups");
  std::vector<bool> local;
  for (const std::string& type : config.Texts("layer_types")) {
    local.push_back(type == "sliding_attention");
  }
  if (local.size() < model.n_layers()) config.Fail("layer_types", "expected one for each layer");
  local.resize(n);  // those of blocks that predict further tokens may be missing
  model.PerLayer("attention.sliding_window_pattern", local);
  AddByLayer("attention.head_count", local, others.CountOr("num_attention_heads", n_heads), n_heads,
             model);
  AddByLayer("attention.head_count_kv", local,
             others.CountOr("num_attention_groups", model.shapes.n_kv_heads),
             model.shapes.n_kv_heads, model);
  const std::vector<double> bases = config.Numbers("rope_theta");
  const auto first = std::ranges::find(local, true) - local.begin();
  if (bases.size() > static_cast<size_t>(first)) {
    model.Float("rope.freq_base_swa", bases[static_cast<size_t>(first)]);
  }
  model.rotary_part = 0.5;
  model.n_rope_freqs = model.head_dim() / 2;
  model.Uint("rope.dimension_count", model.head_dim());
  for (const auto& [hf, gguf] : {std::pair("swiglu_limits", "swiglu_clamp_exp"),
                                 std::pair("swiglu_limits_shared", "swiglu_clamp_shexp")}) {
    if (!config.IsList(hf)) continue;
    const std::vector<double> found = config.Numbers(hf);
    std::vector<float> limits(found.begin(), found.end());
    limits.resize(n);
    model.PerLayer(gguf, limits);
  }
  BySigmoid(model);
}

constexpr Family kExpertsRows[] = {
    {.name = "olmoe",
     .hf = {"OlmoeForCausalLM"},
     .keys = {kExpertSizes, kExpertKeys},
     .defaults = kPlainExperts},
    {.name = "flex-olmo",
     .hf = {"FlexOlmoForCausalLM"},
     .tensors = {kPostNorms},
     .keys = {kExpertSizes, kExpertKeys},
     .rope_theta = 5e5,
     .defaults = kPlainExperts},
    {.name = "ernie4_5-moe",
     .hf = {"Ernie4_5_MoeForCausalLM", "Ernie4_5_MoEForCausalLM"},
     .tensors = {kErnieMoe, kSharedExperts},
     .keys = {kExpertSizes, kExpertKeys},
     .usual = kErnieMoeUsual,
     .refine = ErnieMoe,
     .rope_theta = 5e5},
    {.name = "bailingmoe2",
     .hf = {"BailingMoeV2ForCausalLM"},
     .tensors = {kBailing, kSharedExperts, kNextn},
     .keys = {kExpertSizes, kExpertKeys},
     .refine = Bailing,
     .rotary_part = 0.5},
    {.name = "glm4moe",
     .hf = {"Glm4MoeForCausalLM"},
     .tensors = {kFfnNormIsPostAttention, kSharedExperts, kNextn},
     .keys = {kExpertSizes, kExpertKeys},
     .refine = Bailing,
     .rotary_part = 0.5,
     .defaults = kNormedExperts},
    {.name = "glm4moe",
     .hf = {"SolarOpenForCausalLM"},
     .tensors = {kFfnNormIsPostAttention, kSharedExperts},
     .keys = {kExpertSizes, kExpertKeys},
     .refine = SolarOpen,
     .rope_theta = 1e6,
     .defaults = kSolarDefaults},
    {.name = "minimax-m2",
     .hf = {"MiniMaxM2ForCausalLM"},
     .tensors = {kBlockSparse, kSharedExperts},
     .keys = {kMiniMaxKeys, kExpertSizes, kExpertKeys},
     .usual = kMiniMaxUsual,
     .refine = BySigmoid,
     .rope_theta = 5e6},
    {.name = "dots1",
     .hf = {"Dots1ForCausalLM"},
     .tensors = {kSharedExperts},
     .keys = {kExpertSizes, kExpertKeys},
     .refine = BySigmoid},
    {.name = "dots1",  // which has all that Hy3 has
     .hf = {"HYV3ForCausalLM"},
     .tensors = {kHy3, kSharedExperts},
     .keys = {kHy3Keys, kExpertSizes, kExpertKeys},
     .refine = Hy3,
     .rope_theta = 11158840,
     .defaults = kHy3Defaults},
    {.name = "exaone-moe",
     .hf = {"ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"},
     .tensors = {kSharedExperts, kNextn},
     .keys = {kExaoneMoeKeys, kExpertSizes, kExpertKeys},
     .refine = ExaoneMoe,
     .defaults = kExaoneMoeDefaults},
    {.name = "afmoe",
     .hf = {"AfmoeForCausalLM"},
     .tensors = {kAfMoe, kSharedExperts},
     .keys = {kWindowKeys, kExpertSizes, kExpertKeys},
     .usual = kAfMoeUsual,
     .refine = AfMoe,
     .defaults = R"({"mup_enabled": false})"},
    {.name = "laguna",
     .hf = {"LagunaForCausalLM"},
     .tensors = {kLaguna, kSharedExperts},
     .keys = {kExpertSizes, kExpertKeys},
     .usual = kLagunaUsual,
     .refine = Laguna,
     .says_rope = true},
    {.name = "mimo2",
     .hf = {"MiMoV2FlashForCausalLM"},
     .tensors = {kMiMo2, kSharedExperts, kNextn},
     .keys = {kMiMo2Keys, kExpertSizes, kExpertKeys},
     .usual = kMiMo2Usual,
     .refine = MiMo2},
    {.name = "step35",
     .hf = {"Step3p5ForCausalLM"},
     .norms_plus_one = true,
     .tensors = {kStep35, kNextn},
     .keys = {kWindowKeys, kExpertSizes, kExpertKeys},
     .refine = Step35},
};

}  // namespace

std::span<const Family> ExpertsLineage() { return kExpertsRows; }

}  // namespace convert
