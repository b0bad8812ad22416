// LFM2 (Liquid AI 2025): most layers are gated short convolutions, the others attention. Its
// experts are chosen by sigmoids with a bias, as DeepSeek-V3's are.

#include "engine/model/families/families.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

void Lfm2(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  RecurrentPlan conv;
  conv.n_taps = keys.Count("shortconv.l_cache", kernels::kMaxTaps);
  conv.channels = config.embedding_length;
  for (LayerPlan& layer : config.layers) {
    if (layer.mixer == Mixer::kShortConv) {
      SetMixer(Mixer::kShortConv, conv, layer);
    } else {
      layer.window = window;
    }
  }
}

void Lfm2Moe(const Keys& keys, Config& config) {
  Lfm2(keys, config);
  keys.Count("expert_gating_func", 2);
  ReadRouter(keys, config);
}

constexpr Traits kLfm2Traits = {.norms = {.output = "token_embd_norm"},
                                .qk_norm = QkNorm::kHeadBeforeRope};

constexpr Architecture kLfm2Rows[] = {
    {.name = "lfm2", .traits = kLfm2Traits, .without_heads = Mixer::kShortConv, .refine = Lfm2},
    {.name = "lfm2moe",
     .traits = kLfm2Traits,
     .without_heads = Mixer::kShortConv,
     .router = kernels::Router{},
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .refine = Lfm2Moe},
};

}  // namespace

std::span<const Architecture> Lfm2Lineage() { return kLfm2Rows; }

}  // namespace engine
