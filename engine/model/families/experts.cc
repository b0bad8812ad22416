// Families of which every model has experts: OLMoE (Muennighoff et al. 2024), ERNIE 4.5 (Baidu
// 2025), Ling 2 (bailingmoe2; Ant Group 2025), GLM-4.5 (GLM et al. 2025), Hunyuan A13B (Tencent
// 2025), MiniMax-M2 (2025), dots.llm1 (Xiaohongshu 2025), K-EXAONE (LG AI Research 2025), Trinity
// (afmoe; Arcee 2025), MiMo-V2 (Xiaomi 2025), Laguna (Poolside 2026), Step 3.5 (StepFun 2026).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/model/families/families.h"

namespace engine {
namespace {

using kernels::Activation;
using kernels::Router;
using enum kernels::RopePairs;

void Ernie45Moe(const Keys& keys, Config& config) {
  ReadGroups(keys, config);
  keys.Ignore("expert_shared_count", "interleave_moe_layer_step");
}

// Experts by the keys, and shared ones.
void ByKeys(const Keys& keys, Config& config) {
  ReadRouter(keys, config);
  SetSharedExperts(SharedCount(keys, 0), config);
  SkipNextn(keys, config);
}

void Glm4Moe(const Keys& keys, Config& config) {
  if (keys.Has("rope.dimension_sections")) {
    config.ropes[0].sections = ReadSections(keys);
    config.ropes[0].sections_in_turn = false;
  }
  ByKeys(keys, config);
}

void HunyuanMoe(const Keys& keys, Config& config) {
  ReadGroups(keys, config);
  SetSharedExperts(1, config);
  keys.Ignore("expert_shared_count");
}

void MiniMaxM2(const Keys& keys, Config& config) {
  keys.Count("expert_gating_func", 2);
  ReadRouter(keys, config);
  config.router.normed = true;
  config.router.scale = 1;
}

void ExaoneMoe(const Keys& keys, Config& config) {
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow), 4, config);
  RotateInWindowsOnly(config);
  keys.Ignore("rope.freq_base_swa", "expert_shared_count");
  ReadRouter(keys, config);
  SetSharedExperts(1, config);
  SkipNextn(keys, config);
}

void AfMoe(const Keys& keys, Config& config) {
  ScaleEmbeddings(config);
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow), 4, config);
  SetLocalBase(keys, config.ropes[0], config.ropes[0].base, config);
  LeaveOutFourthRope(config);
  ByKeys(keys, config);
}

// The rope of layers with a window: not stretched, and the length that the file has for them.
RopeConfig LocalRope(const Keys& keys, const Config& config) {
  RopeConfig local = Unscaled(config.ropes[0]);
  local.attention_factor = 1;
  local.divided = false;
  local.n_dims = keys.CountOr("rope.dimension_count_swa", local.n_dims, kMaxStateLength);
  return local;
}

void MiMo2(const Keys& keys, Config& config) {
  SetListedWindows(keys, config);
  SetLocalBase(keys, LocalRope(keys, config), 10000, config);
  config.attention_scale = static_cast<float>(keys.PositiveUnlessZero("attention.value_scale", 1));
  ReadGroups(keys, config);
  keys.Ignore("expert_shared_count");
  SkipNextn(keys, config);
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
  const size_t n_shared = SharedCount(keys, 1);
  ReadRouter(keys, config);
  SetSharedExperts(has_width ? 1 : n_shared, config);
}

// Limits of SwiGLU, one for each layer; 0: none.
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

// Layers without a window rotate half of what the others do.
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
  keys.Ignore("expert_shared_count", "leading_dense_block_count");
  ReadRouter(keys, config);
  SkipNextn(keys, config);
}

constexpr Router kSoftmax{}, kSigmoid{.gate = Router::Gate::kSigmoid};
constexpr Router kByKeys{.normed = false},
    kSigmoidByKeys{.gate = Router::Gate::kSigmoid, .normed = false};

constexpr Architecture kExpertsRows[] = {
    {.name = "olmoe",
     .traits = {.qk_norm = QkNorm::kAllBeforeRope, .output = OutputMatrix::kOwn},
     .router = kByKeys,
     .refine = ReadRouter},
    {.name = "flex-olmo",
     .traits = {.norms = kPostNorms,
                .qk_norm = QkNorm::kAllBeforeRope,
                .output = OutputMatrix::kOwn},
     .router = kByKeys,
     .refine = ReadRouter},
    {.name = "ernie4_5-moe",
     .rope_pairs = kAdjacent,
     .router = kSoftmax,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .refine = Ernie45Moe},
    {.name = "bailingmoe2",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOwn},
     .router = kByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .refine = ByKeys},
    {.name = "glm4moe",
     .traits = {.norms = kFfnNormIsPostAttention,
                .qk_norm = QkNorm::kHeadBeforeRope,
                .qk_norm_optional = true},
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .refine = Glm4Moe},
    {.name = "hunyuan-moe",
     .traits = {.qk_norm = QkNorm::kHeadAfterRope},
     .router = kSoftmax,
     .refine = HunyuanMoe},
    {.name = "minimax-m2",
     .traits = {.qk_norm = QkNorm::kAllBeforeRope, .output = OutputMatrix::kOwn},
     .router = kSigmoid,
     .router_bias = Presence::kRequired,
     .refine = MiniMaxM2},
    {.name = "dots1",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOwn},
     .router = kByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .refine = ByKeys},
    {.name = "exaone-moe",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOwn},
     .router = kByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .refine = ExaoneMoe},
    {.name = "afmoe",
     .traits = {.norms = kSandwichNorms,
                .qk_norm = QkNorm::kHeadBeforeRope,
                .attention_gate = AttentionGate::kOwn},
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .refine = AfMoe},
    {.name = "mimo2",
     .traits = {.sinks = Presence::kOptional,
                .output = OutputMatrix::kOwn,
                .nextn_before_norm = true},
     .router = kSigmoid,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kWithoutRouter,
     .refine = MiMo2},
    {.name = "laguna",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope,
                .attention_gate = AttentionGate::kOwn,
                .gate_activation = Activation::kSoftplus},
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .refine = Laguna},
    {.name = "step35",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope,
                .qk_norm_optional = true,
                .activation = Activation::kLimitedSilu,
                .attention_gate = AttentionGate::kOwnIfThere,
                .output = OutputMatrix::kOwn,
                .nextn_before_norm = true},
     .router = kSigmoidByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kWithoutRouter,
     .refine = Step35},
};

}  // namespace

std::span<const Architecture> ExpertsLineage() { return kExpertsRows; }

}  // namespace engine
