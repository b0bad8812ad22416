// DeepSeek-V2 (2024) and V3 (2024), and models built like them (R1, Kimi K2, GLM 4.7 Flash): latent
// attention, and routed experts beside a shared one, chosen in groups with a bias.
#include <cmath>
#include <string>

#include "engine/model/families/families.h"

namespace engine {
namespace {

constexpr size_t kGlmFlashVocabulary = 154880;
constexpr uint64_t kMaxLatentLength = 1u << 12;  // real files have 512

void DeepSeek2(const Keys& keys, Config& config) {
  RopeConfig& rope = config.ropes[0];
  const bool absorbed = keys.Has("attention.key_length_mla");
  const size_t latent_length = keys.Count("attention.kv_lora_rank", kMaxLatentLength);
  double growth = 1;  // of the attention scale for contexts beyond the trained one
  if (rope.scaling == RopeScaling::kYarn && rope.factor > 1) {
    const double multiplier = keys.PositiveUnlessZero("rope.scaling.yarn_log_multiplier", 0);
    growth += 0.1 * (multiplier > 0 ? 10 * multiplier : 1) * std::log(rope.factor);
    rope.log_multiplier = multiplier > 0 ? 1 : 0;  // then cosines and sines do not grow
  }
  if (rope.attention_factor != 1) {  // unknown whether the scale includes it
    keys.Fail("rope.scaling.attn_factor",
              "expected 1, found " + std::to_string(rope.attention_factor));
  }
  const size_t query_rank = keys.UintOr("attention.q_lora_rank", 0, kMaxLength);
  SetSharedExperts(SharedCount(keys, 1), config);
  for (LayerPlan& layer : config.layers) {
    layer.mixer = Mixer::kLatentAttention;
    layer.latent_length = latent_length;
    layer.query_rank = query_rank;
    layer.head_key_length =
        absorbed ? keys.Count("attention.key_length_mla", kMaxStateHeads) : layer.key_length;
    layer.head_value_length =
        absorbed ? keys.Count("attention.value_length_mla", kMaxStateHeads) : layer.value_length;
    if (layer.head_key_length <= rope.n_dims) {
      keys.Fail("rope.dimension_count", "expected less than a head's " +
                                            std::to_string(layer.head_key_length) +
                                            Found(rope.n_dims));
    }
    if (absorbed) {
      layer.n_kv_heads = 1;
      layer.key_length = latent_length + rope.n_dims;
      layer.value_length = latent_length;
      layer.values_in_keys = true;
    } else {
      layer.n_kv_heads = layer.n_heads;
    }
    layer.rope_offset = layer.key_length - rope.n_dims;
    layer.attention_scale =
        static_cast<float>(growth * growth / std::sqrt(static_cast<double>(layer.head_key_length)));
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

constexpr Architecture kDeepSeekRows[] = {
    {.name = "deepseek2",
     .rope_pairs = kernels::RopePairs::kAdjacent,
     .router = kernels::Router{.normed = false},
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .refine = DeepSeek2},
};

}  // namespace

std::span<const Architecture> DeepSeekLineage() { return kDeepSeekRows; }

}  // namespace engine
