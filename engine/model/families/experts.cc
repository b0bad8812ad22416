// Families whose models all have experts: OLMoE (Muennighoff et al. 2024), ERNIE 4.5 (Baidu 2025),
// Ling 2 (bailingmoe2; Ant Group 2025), GLM-4.5 (GLM et al. 2025), MiniMax-M2 (2025), dots.llm1
// (Xiaohongshu 2025), K-EXAONE (LG AI Research 2025), Trinity (afmoe; Arcee 2025), MiMo-V2 (Xiaomi
// 2025), Laguna (Poolside 2026), Step 3.5 (StepFun 2026).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"

namespace engine {
namespace {

using enum kernels::RopePairs;
using enum Order;

// ---- What a file means.

void Ernie45Moe(const Keys& keys, Config&) { keys.Ignore("interleave_moe_layer_step"); }

void Glm4Moe(const Keys& keys, Config& config) {
  if (keys.Has("rope.dimension_sections")) {
    config.ropes[0].sections = ReadSections(keys);
    config.ropes[0].sections_in_turn = false;
  }
}

void ExaoneMoe(const Keys&, Config& config) { SetSharedExperts(1, config); }

// The RoPE of layers with a window: not stretched, with the length that the file has for them.
RopeConfig LocalRope(const Keys& keys, const Config& config) {
  RopeConfig local = Unscaled(config.ropes[0]);
  local.uses_divisors = false;
  local.n_dims = keys.CountOr("rope.dimension_count_swa", local.n_dims, kMaxStateLength);
  return local;
}

void MiMo2(const Keys& keys, Config& config) {
  SetListedWindows(keys, config);
  SetLocalBase(keys, LocalRope(keys, config), 10000, config);
  config.attention_output_scale =
      static_cast<float>(keys.PositiveUnlessZero("attention.value_scale", 1));
}

// The first layer of every period sees all keys.
void Laguna(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  const size_t period = keys.NumberUnlessArray("attention.sliding_window_pattern", 4, kMaxLength);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].window = period != 0 && i % period == 0 ? 0 : window;
  }
  SetLocalBase(keys, LocalRope(keys, config), config.ropes[0].base, config);
  const bool has_width = keys.UintOr("expert_shared_feed_forward_length", 0, kMaxLength) != 0;
  const size_t n_shared = keys.UintOr("expert_shared_count", 1, kMaxStateHeads);
  SetSharedExperts(has_width ? 1 : n_shared, config);
}

// Limits of SwiGLU, one for each layer; 0: no limit.
std::vector<float> ReadLimits(const Keys& keys, const std::string& key, size_t n) {
  std::vector<float> limits(n, INFINITY);
  if (!keys.Has(key)) return limits;
  const std::vector<double> found = keys.Numbers(key, n);
  for (size_t i = 0; i < n; ++i) {
    if (!(found[i] >= 0)) keys.Fail(key, "expected numbers from 0, found ", found[i]);
    if (found[i] > 0) limits[i] = static_cast<float>(found[i]);
  }
  return limits;
}

// Layers without a window rotate half as many numbers as layers with one.
void Step35(const Keys& keys, Config& config) {
  const size_t n = config.n_layers();
  SetListedWindows(keys, config);
  const RopeConfig local = LocalRope(keys, config);
  config.n_rope_freqs = std::max(config.layers[0].key_length, config.ropes[0].n_dims) / 2;
  config.ropes[0].n_dims /= 2;
  SetLocalBase(keys, local, 10000, config);
  const auto experts = ReadLimits(keys, "swiglu_clamp_exp", n);
  const auto others = ReadLimits(keys, "swiglu_clamp_shexp", n);
  for (size_t i = 0; i < n; ++i) {
    config.layers[i].expert_limit = experts[i];
    config.layers[i].ffn_limit = others[i];
  }
  keys.Ignore("leading_dense_block_count");
}

// ---- What a folder means.

constexpr KeyValue kPlainExperts[] = {{"norm_topk_prob", 0}};
constexpr KeyValue kNormedExperts[] = {{"norm_topk_prob", 1}};
constexpr KeyValue kSolarDefaults[] = {
    {"norm_topk_prob", 1}, {"num_key_value_heads", 8}, {"head_dim", 128}};
constexpr KeyValue kHy3Defaults[] = {{"router_scaling_factor", 2.826},
                                     {"num_key_value_heads", 8},
                                     {"head_dim", 128},
                                     {"num_shared_experts", 1}};
constexpr KeyValue kExaoneMoeDefaults[] = {
    {"norm_topk_prob", 1}, {"routed_scaling_factor", 2.5}, {"num_shared_experts", 1}};
constexpr KeyValue kAfMoeDefaults[] = {{"mup_enabled", 0}, {"route_norm", 1}};
constexpr KeyValue kErnieMoeOnly[] = {{"moe_layer_interval", 1}};
constexpr KeyValue kMiniMaxOnly[] = {{"use_qk_norm", 1}};
constexpr KeyValue kAfMoeOnly[] = {
    {"mup_enabled", 1}, {"global_attn_every_n_layers", 4}, {"route_norm", 1}};
constexpr KeyValue kLagunaOnly[] = {{"moe_router_logit_softcapping", 0},
                                    {"moe_apply_router_weight_on_input", 0}};
constexpr KeyValue kMiMo2Defaults[] = {{"attention_value_scale", 0.707}};
constexpr KeyValue kMiMo2Only[] = {{"norm_topk_prob", 1}, {"routed_scaling_factor", 1}};

constexpr TensorRule kHy3[] = {
    {".mlp.router.gate", ".ffn_gate_inp"},
    {".mlp.shared_mlp.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_mlp.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_mlp.down_proj", ".ffn_down_shexp"},
};

constexpr TensorRule kErnieMoe[] = {
    {".mlp.moe_statics.e_score_correction_bias", ".exp_probs_b.bias", kVector},
};

constexpr TensorRule kBailing[] = {
    {"model.word_embeddings", "token_embd"},      {".attention.query_key_value", ".attn_qkv"},
    {".attention.dense", ".attn_output"},         {".attention.query_layernorm", ".attn_q_norm"},
    {".attention.key_layernorm", ".attn_k_norm"}, {".mlp.gate.expert_bias", ".exp_probs_b.bias"},
};

constexpr KeyRule kMiniMaxKeys[] = {
    {"rotary_dim", "rope.dimension_count"},
    {"intermediate_size", "expert_feed_forward_length"},
};

constexpr KeyRule kExaoneMoeKeys[] = {
    {"first_last_k_dense_replace", "leading_dense_block_count"},
};

constexpr TensorRule kAfMoe[] = {
    {".pre_mlp_layernorm", ".ffn_norm"},       {".post_mlp_layernorm", ".post_ffw_norm"},
    {".self_attn.gate_proj", ".attn_gate"},    {".mlp.router.gate", ".ffn_gate_inp"},
    {".mlp.expert_bias", ".exp_probs_b.bias"},
};

constexpr TensorRule kLaguna[] = {
    {".self_attn.g_proj", ".attn_gate"},
    {".mlp.experts.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mlp.shared_expert.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_expert.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_expert.down_proj", ".ffn_down_shexp"},
};

constexpr TensorRule kMiMo2[] = {
    {".self_attn.attention_sink_bias", ".attn_sinks.weight"},
};

constexpr KeyRule kMiMo2Keys[] = {
    {"v_head_dim", "attention.value_length"},
    {"attention_value_scale", "attention.value_scale", KeyKind::kFloat},
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

void Ernie45Moe(OutModel& model) {
  const Fields& config = model.config;
  const double last = config.NumberOr("moe_layer_end_index", -1);
  if (last != -1 && last != static_cast<double>(model.n_layers()) - 1)
    config.Fail("moe_layer_end_index", "expected the last layer, or -1");
  model.Uint("interleave_moe_layer_step", 1);
  model.Uint("expert_shared_feed_forward_length",
             config.UintOr("moe_num_shared_experts", 0) * config.Count("moe_intermediate_size"));
}

// GLM-4.5 without leading dense layers.
void SolarOpen(OutModel& model) {
  model.Uint("leading_dense_block_count", model.config.UintOr("first_k_dense_replace", 0));
}

void ExaoneMoe(OutModel& model) {
  const Fields& config = model.config;
  model.Uint("expert_shared_feed_forward_length",
             config.CountOr("num_shared_experts", 1) * config.Count("moe_intermediate_size"));
}

void Hy3(OutModel& model) {
  if (!model.config.IsList("mlp_layer_types")) model.Uint("leading_dense_block_count", 1);
  model.Bool("expert_weights_norm", true);
}

// Layers with windows have their own RoPE. The first of every four has no window.
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
  model.Bool("expert_weights_norm", true);
}

void MiMo2(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (local.empty()) {
    for (const int32_t slides : WholeNumbers(config, "hybrid_layer_pattern", model.n_layers()))
      local.push_back(slides != 0);
  }
  model.Without("leading_dense_block_count");  // readers see the number by the tensors
  AddLeadingDense(model);
  model.Float("rope.freq_base_swa", LocalBase(config, "swa_rope_theta"));
  // The published files have both, with one value; transformers reads the first.
  const char* const window =
      config.Has("sliding_window") ? "sliding_window" : "sliding_window_size";
  if (config.Has(window)) model.Uint("attention.sliding_window", config.Count(window));
  local.resize(local.size() + model.n_nextn, true);
  model.PerLayer("attention.sliding_window_pattern", local);
  AddByLayer("attention.head_count_kv", local,
             config.CountOr("swa_num_key_value_heads", 2 * model.shapes.n_kv_heads),
             model.shapes.n_kv_heads, model);
  for (const std::string key : {"head_dim", "v_head_dim", "num_attention_heads"}) {
    if (config.CountOr("swa_" + key, config.Count(key)) == config.Count(key)) continue;
    config.Fail("swa_" + key, "expected as ", key);
  }
}

// Layers without a window rotate half of a head, and may have other numbers of heads.
void Step35(OutModel& model) {
  const Fields& config = model.config;
  const Fields others = config.Object("attention_other_setting");
  const uint64_t n_heads = config.Count("num_attention_heads");
  const size_t n = model.n_layers() + model.n_nextn;
  model.Uint("attention.sliding_window", config.Count("sliding_window"));
  model.shapes.n_kv_heads = config.Count("num_attention_groups");
  std::vector<bool> local;
  for (const std::string& type : config.Texts("layer_types")) {
    local.push_back(type == "sliding_attention");
  }
  if (local.size() < model.n_layers()) config.Fail("layer_types", "expected one for each layer");
  local.resize(n);  // blocks that predict further tokens may lack a value
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
}

constexpr HfClass kGlm4MoeClasses[] = {{.names = {"SolarOpenForCausalLM"},
                                        .chooses_by_sigmoid = true,
                                        .rope_theta = 1e6,
                                        .defaults = kSolarDefaults,
                                        .add_keys = SolarOpen}};
// It adds nothing to dots.llm1.
constexpr HfClass kHy3Class[] = {{.names = {"HYV3ForCausalLM"},
                                  .chooses_by_sigmoid = true,
                                  .rope_theta = 11158840,
                                  .tensors = {kHy3},
                                  .defaults = kHy3Defaults,
                                  .add_keys = Hy3}};

constexpr Family kExpertsRows[] = {
    {.name = "olmoe",
     .traits = {.qk_norm = QkNorm::kAllBeforeRope, .output = OutputMatrix::kOutputTensor},
     .router = kByKeys,
     .hf = {.names = {"OlmoeForCausalLM"}, .defaults = kPlainExperts}},
    {.name = "flex-olmo",
     .traits = {.norms = kPostNorms,
                .qk_norm = QkNorm::kAllBeforeRope,
                .output = OutputMatrix::kOutputTensor},
     .router = kByKeys,
     .hf = {.names = {"FlexOlmoForCausalLM"}, .rope_theta = 5e5, .defaults = kPlainExperts}},
    {.name = "ernie4_5-moe",
     .rope_pairs = kAdjacent,
     .router = kSoftmax,
     .router_keys = false,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .complete_config = Ernie45Moe,
     .hf = {.names = {"Ernie4_5_MoeForCausalLM", "Ernie4_5_MoEForCausalLM"},
            .rope_theta = 5e5,
            .tensors = {kErnieMoe},
            .only = kErnieMoeOnly,
            .add_keys = Ernie45Moe}},
    {.name = "bailingmoe2",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOutputTensor},
     .nextn = true,
     .router = kByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .n_shared_experts = 0,
     .hf = {.names = {"BailingMoeV2ForCausalLM"},
            .chooses_by_sigmoid = true,
            .rotary_part = 0.5,
            .tensors = {kBailing}}},
    {.name = "glm4moe",
     .traits = {.norms = kFfnNormIsPostAttention,
                .qk_norm = QkNorm::kHeadBeforeRope,
                .qk_norm_optional = true},
     .nextn = true,
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .n_shared_experts = 0,
     .complete_config = Glm4Moe,
     .hf = {.names = {"Glm4MoeForCausalLM"},
            .chooses_by_sigmoid = true,
            .rotary_part = 0.5,
            .defaults = kNormedExperts},
     .others = kGlm4MoeClasses},
    {.name = "minimax-m2",
     .traits = {.qk_norm = QkNorm::kAllBeforeRope, .output = OutputMatrix::kOutputTensor},
     .router = kSigmoid,
     .router_keys = false,
     .router_bias = Presence::kRequired,
     .hf = {.names = {"MiniMaxM2ForCausalLM"},
            .chooses_by_sigmoid = true,
            .rope_theta = 5e6,
            .keys = {kMiniMaxKeys},
            .only = kMiniMaxOnly}},
    {.name = "dots1",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOutputTensor},
     .nextn = true,
     .router = kByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .n_shared_experts = 0,
     .hf = {.names = {"Dots1ForCausalLM"}, .chooses_by_sigmoid = true},
     .others = kHy3Class},
    {.name = "exaone-moe",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOutputTensor},
     .windows = {Windows::When::kAlways, 4, Windows::Rope::kOnlyThere},
     .nextn = true,
     .router = kByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .complete_config = ExaoneMoe,
     .hf = {.names = {"ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"},
            .chooses_by_sigmoid = true,
            .keys = {kExaoneMoeKeys},
            .defaults = kExaoneMoeDefaults,
            .add_keys = ExaoneMoe}},
    {.name = "afmoe",
     .traits = {.norms = kSandwichNorms,
                .qk_norm = QkNorm::kHeadBeforeRope,
                .attention_gate = AttentionGate::kSeparateMatrix},
     .scales_embeddings = true,
     .windows = {Windows::When::kAlways, 4, Windows::Rope::kOnlyThere},
     .nextn = true,
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .n_shared_experts = 0,
     .hf = {.names = {"AfmoeForCausalLM"},
            .chooses_by_sigmoid = true,
            .tensors = {kAfMoe},
            .only = kAfMoeOnly,
            .defaults = kAfMoeDefaults}},
    {.name = "mimo2",
     .traits = {.sinks = Presence::kOptional,
                .output = OutputMatrix::kOutputTensor,
                .nextn_before_norm = true},
     .nextn = true,
     .router = kSigmoid,
     .router_keys = false,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kWithoutRouter,
     .complete_config = MiMo2,
     .hf = {.names = {"MiMoV2FlashForCausalLM"},
            .chooses_by_sigmoid = true,
            .rope_theta = 5e6,
            .rotary_part = 0.334,
            .tensors = {kMiMo2},
            .keys = {kMiMo2Keys},
            .only = kMiMo2Only,
            .defaults = kMiMo2Defaults,
            .add_keys = MiMo2}},
    {.name = "laguna",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope,
                .attention_gate = AttentionGate::kSeparateMatrix,
                .gate_activation = kernels::Activation::kSoftplus},
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .complete_config = Laguna,
     .hf = {.names = {"LagunaForCausalLM"},
            .chooses_by_sigmoid = true,
            .says_rope = true,
            .tensors = {kLaguna},
            .only = kLagunaOnly,
            .add_keys = Laguna}},
    {.name = "step35",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope,
                .qk_norm_optional = true,
                .activation = kernels::Activation::kLimitedSilu,
                .attention_gate = AttentionGate::kSeparateMatrixIfPresent,
                .output = OutputMatrix::kOutputTensor,
                .nextn_before_norm = true},
     .nextn = true,
     .router = kSigmoidByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kWithoutRouter,
     .complete_config = Step35,
     .hf = {.names = {"Step3p5ForCausalLM"},
            .norms_plus_one = true,
            .chooses_by_sigmoid = true,
            .tensors = {kStep35},
            .add_keys = Step35}},
};

}  // namespace

std::span<const Family> ExpertsLineage() { return kExpertsRows; }

}  // namespace engine
