// Llama (Touvron et al. 2023): pre-norm, rope on pairs of neighbours, SwiGLU, grouped-query
// attention. Mistral 7B (Jiang et al. 2023), Mixtral (Jiang et al. 2024, with experts) and many
// others are published as "llama". SmolLM3 (Hugging Face 2025) and Ministral 3 (Mistral AI 2025)
// change the position encoding.

#include "engine/model/families/families.h"

namespace engine {
namespace {

using enum kernels::RopePairs;

// Mistral 7B v0.1 was trained with a window of 4096 in all layers.
void Llama(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  for (LayerPlan& layer : config.layers) layer.window = window;
}

// Every fourth layer lacks rope (Yang et al. 2025, "RoPE to NoPE and back again").
void SmolLm3(const Keys&, Config& config) {
  for (size_t i = 3; i < config.layers.size(); i += 4) config.layers[i].rope = LayerPlan::kNoRope;
}

void Mistral3(const Keys& keys, Config& config) {
  RopeConfig& rope = config.ropes[0];
  rope.beta_fast = keys.PositiveOr("rope.scaling.yarn_beta_fast", rope.beta_fast);
  rope.beta_slow = keys.PositiveOr("rope.scaling.yarn_beta_slow", rope.beta_slow);
  rope.log_multiplier = keys.PositiveUnlessZero("rope.scaling.yarn_log_multiplier", 0);
  SetAttentionTemperature(keys, config);
}

constexpr Architecture kLlamaRows[] = {
    {.name = "llama", .rope_pairs = kAdjacent, .router = kernels::Router{}, .refine = Llama},
    {.name = "smollm3", .rope_pairs = kAdjacent, .refine = SmolLm3},
    {.name = "mistral3", .rope_pairs = kAdjacent, .refine = Mistral3},
};

}  // namespace

std::span<const Architecture> LlamaLineage() { return kLlamaRows; }

}  // namespace engine
