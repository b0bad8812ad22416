// DeepSeek-V2 (2024) and V3 (2024), and models built like them (R1, Kimi K2, GLM 4.7 Flash): latent
// attention, and routed experts beside a shared one, chosen in groups with a bias. Kimi Linear
// (Moonshot AI 2025) has delta nets in three layers of four, and no rope.
#include <cmath>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

constexpr size_t kGlmFlashVocabulary = 154880;
constexpr uint64_t kMaxLatentLength = 1u << 12;  // real files have 512

// Attention on latent vectors. Of a head's key n numbers are shared by all heads.
void SetLatent(const Keys& keys, size_t n, LayerPlan& layer) {
  layer.latent_length = keys.Count("attention.kv_lora_rank", kMaxLatentLength);
  layer.head_key_length = keys.Count("attention.key_length_mla", kMaxStateHeads);
  layer.head_value_length = keys.Count("attention.value_length_mla", kMaxStateHeads);
  layer.n_kv_heads = 1;
  layer.key_length = layer.latent_length + n;
  layer.value_length = layer.latent_length;
  layer.values_in_keys = true;
}

void CheckHeadKey(const Keys& keys, size_t n, const LayerPlan& layer) {
  if (layer.head_key_length > n) return;
  keys.Fail("rope.dimension_count", "expected less than a head's ", layer.head_key_length,
            ", found ", n);
}

void DeepSeek2(const Keys& keys, Config& config) {
  RopeConfig& rope = config.ropes[0];
  const bool absorbed = keys.Has("attention.key_length_mla");
  const double scale = keys.PositiveUnlessZero("attention.scale", 0);
  double growth = 1;  // of the attention scale for contexts beyond the trained one
  const double multiplier = std::exchange(rope.log_multiplier, 0);
  if (rope.scaling == RopeScaling::kYarn && rope.factor > 1 && scale == 0) {
    growth += 0.1 * (multiplier > 0 ? 10 * multiplier : 1) * std::log(rope.factor);
    rope.log_multiplier = multiplier > 0 ? 1 : 0;  // then cosines and sines do not grow
  }
  if (rope.attention_factor != 1 && scale == 0) {  // unknown whether the scale includes it
    keys.Fail("rope.scaling.attn_factor", "expected 1, found ", rope.attention_factor);
  }
  const size_t query_rank = keys.UintOr("attention.q_lora_rank", 0, kMaxLength);
  SetSharedExperts(SharedCount(keys, 1), config);
  for (LayerPlan& layer : config.layers) {
    layer.mixer = Mixer::kLatentAttention;
    layer.query_rank = query_rank;
    if (absorbed) {
      SetLatent(keys, rope.n_dims, layer);
    } else {
      layer.latent_length = keys.Count("attention.kv_lora_rank", kMaxLatentLength);
      layer.head_key_length = layer.key_length;
      layer.head_value_length = layer.value_length;
      layer.n_kv_heads = layer.n_heads;
    }
    CheckHeadKey(keys, rope.n_dims, layer);
    layer.rope_offset = layer.key_length - rope.n_dims;
    const double usual = growth * growth / std::sqrt(static_cast<double>(layer.head_key_length));
    layer.attention_scale = static_cast<float>(scale != 0 ? scale : usual);
  }
  // GLM 4.7 Flash was first published without a key for its gate.
  const size_t n_blocks = config.n_layers();
  if ((n_blocks == 47 || n_blocks == 48) && config.vocab_size == kGlmFlashVocabulary) {
    config.router.gate = kernels::Router::Gate::kSigmoid;
  }
  ReadRouter(keys, config);
  SetAttentionTemperature(keys, config);
  SkipNextn(keys, config);
}

void KimiLinear(const Keys& keys, Config& config) {
  const size_t n_shared = config.ropes[0].n_dims;  // of a head's key
  RecurrentPlan delta;
  delta.n_taps = keys.Count("ssm.conv_kernel", kernels::kMaxTaps);
  delta.key_length = delta.value_length = delta.rank = keys.Count("kda.head_dim", kMaxStateLength);
  delta.decay_by_channel = true;
  const std::vector<size_t> n_heads =
      keys.PerLayer("attention.head_count", config.n_layers(), 1, kMaxStateHeads);
  for (size_t i = 0; i < config.n_layers(); ++i) {
    LayerPlan& layer = config.layers[i];
    layer.rope = LayerPlan::kNoRope;
    if (layer.mixer == Mixer::kDeltaNet) {
      delta.n_key_heads = delta.n_value_heads = delta.n_beta = n_heads[i];
      delta.n_alpha = delta.width();
      delta.channels = 3 * delta.width();
      SetMixer(Mixer::kDeltaNet, delta, layer);
      continue;
    }
    layer.mixer = Mixer::kLatentAttention;
    SetLatent(keys, n_shared, layer);
    CheckHeadKey(keys, n_shared, layer);
    layer.rope_offset = layer.latent_length;
    layer.attention_scale = 1 / std::sqrt(static_cast<float>(layer.head_key_length));
  }
  // Where all layers are delta nets, these have no effect.
  keys.Ignore("attention.key_length", "attention.value_length", "attention.kv_lora_rank",
              "attention.key_length_mla", "attention.value_length_mla");
  SetSharedExperts(SharedCount(keys, 0), config);
  keys.Count("expert_gating_func", 2);
  ReadRouter(keys, config);
  config.router.normed = true;
}

constexpr Architecture kDeepSeekRows[] = {
    {.name = "deepseek2",
     .rope_pairs = kernels::RopePairs::kAdjacent,
     .router = kernels::Router{.normed = false},
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .refine = DeepSeek2},
    {.name = "kimi-linear",
     .traits = {.output = OutputMatrix::kOwn},
     .without_heads = Mixer::kDeltaNet,
     .router = kernels::Router{},
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .refine = KimiLinear},
};

}  // namespace

std::span<const Architecture> DeepSeekLineage() { return kDeepSeekRows; }

}  // namespace engine
