// Granite (IBM, 2024 and 2025): llama with four scales (of embeddings, attention, block outputs,
// logits; after Yang et al. 2022, "Tensor Programs V"), dense or with experts. Granite 4 ("hybrid")
// has Mamba-2 (Dao and Gu 2024) in most layers, and attention without rope in the others.

#include "engine/model/families/families.h"

namespace engine {
namespace {

using enum kernels::RopePairs;
using kernels::Router;

// The four scales, and whether queries and keys rotate.
void SetGraniteScales(const Keys& keys, Config& config) {
  config.embedding_scale = static_cast<float>(keys.PositiveUnlessZero("embedding_scale", 1));
  config.residual_scale = static_cast<float>(keys.PositiveUnlessZero("residual_scale", 1));
  config.logit_scale = static_cast<float>(1 / keys.PositiveUnlessZero("logit_scale", 1));
  const auto scale = static_cast<float>(keys.PositiveUnlessZero("attention.scale", 0));
  if (scale != 0) SetAttentionScale(scale, config);
  if (!keys.BoolOr("rope.scaling.finetuned", true)) {
    for (LayerPlan& layer : config.layers) layer.rope = LayerPlan::kNoRope;
  }
}

void Granite(const Keys& keys, Config& config) {
  keys.Positive("logit_scale");  // required
  SetGraniteScales(keys, config);
}

void GraniteHybrid(const Keys& keys, Config& config) {
  SetMamba2(keys, config);
  SetGraniteScales(keys, config);
  keys.Ignore("expert_shared_count");  // their width is the sum of all
  if (config.n_experts_used > 0) {
    const size_t expert_length = keys.Count("feed_forward_length", kMaxLength);
    for (LayerPlan& layer : config.layers) layer.expert_length = expert_length;
  }
}

constexpr Architecture kGraniteRows[] = {
    {.name = "granite", .rope_pairs = kAdjacent, .refine = Granite},
    {.name = "granitemoe", .rope_pairs = kAdjacent, .router = Router{}, .refine = Granite},
    {.name = "granitehybrid",
     .rope_pairs = kAdjacent,
     .without_heads = Mixer::kMamba2,
     .router = Router{},
     .refine = GraniteHybrid},
};

}  // namespace

std::span<const Architecture> GraniteLineage() { return kGraniteRows; }

}  // namespace engine
