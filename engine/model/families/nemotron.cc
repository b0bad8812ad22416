// Nemotron-H (NVIDIA 2025, arXiv 2504.03624): each layer is one thing, Mamba-2, attention without
// rope or a feed-forward network with squared ReLU; Nemotron 3 has experts there.

#include "engine/model/families/families.h"

namespace engine {
namespace {

using kernels::Router;

void NemotronH(const Keys& keys, Config& config) {
  SetMamba2(keys, config);
  for (LayerPlan& layer : config.layers) layer.rope = LayerPlan::kNoRope;
  if (config.n_experts_used == 0) return;
  keys.Ignore("expert_shared_count");  // their width is the sum of all
  ReadRouter(keys, config);
  config.expert_width = keys.UintOr("moe_latent_size", 0, kMaxLength);
}

constexpr Traits kNemotronTraits = {.activation = kernels::Activation::kReluSquared};

constexpr Architecture kNemotronRows[] = {
    {.name = "nemotron_h",
     .traits = kNemotronTraits,
     .without_heads = Mixer::kNone,
     .refine = NemotronH},
    {.name = "nemotron_h_moe",
     .traits = kNemotronTraits,
     .without_heads = Mixer::kNone,
     .router = Router{.gate = Router::Gate::kSigmoid, .normed = false},
     .router_bias = Presence::kRequired,
     .refine = NemotronH},
};

}  // namespace

std::span<const Architecture> NemotronLineage() { return kNemotronRows; }

}  // namespace engine
