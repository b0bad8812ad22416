// Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024) as models of their own; Falcon-Mamba (TII
// 2024), a Mamba with norms inside; Jamba (AI21 2024), which has attention without rope in some
// layers and experts in others; Falcon-H1 (TII 2025), which has Mamba-2 beside attention.

#include "engine/model/families/families.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

void MambaLayers(const Keys& keys, Config& config) {
  RecurrentPlan mamba;
  mamba.n_taps = keys.Count("ssm.conv_kernel", kernels::kMaxTaps);
  mamba.channels = mamba.n_value_heads = keys.Count("ssm.inner_size", kMaxLength);
  mamba.n_key_heads = mamba.value_length = 1;
  mamba.key_length = keys.Count("ssm.state_size", kMaxStateLength);
  mamba.rank = keys.Count("ssm.time_step_rank", kMaxLength);
  mamba.n_alpha = mamba.channels;
  mamba.n_beta = 2 * mamba.key_length;
  mamba.normed = keys.BoolOr("ssm.dt_b_c_rms", false) || config.ssm_norms == Presence::kRequired;
  mamba.norm_eps = static_cast<float>(keys.PositiveOr("ssm.dt_b_c_rms_epsilon", config.norm_eps));
  for (LayerPlan& layer : config.layers) {
    layer.rope = LayerPlan::kNoRope;
    if (layer.mixer == Mixer::kMamba) SetMixer(Mixer::kMamba, mamba, layer);
  }
}

void FalconH1(const Keys& keys, Config& config) {
  for (LayerPlan& layer : config.layers) {
    layer.beside = Mixer::kMamba2;
    layer.recurrent = ReadMamba2(keys);
  }
  config.ropes[0].divided = false;
  keys.Ignore("attention.scale");
}

constexpr Architecture kMambaRows[] = {
    {.name = "mamba",
     .traits = {.ssm_norms = Presence::kNone},
     .without_heads = Mixer::kMamba,
     .refine = MambaLayers},
    {.name = "mamba2", .without_heads = Mixer::kMamba2, .refine = SetMamba2},
    {.name = "jamba",
     .without_heads = Mixer::kMamba,
     .router = kernels::Router{.normed = false},
     .dense_layers = DenseLayers::kWithoutRouter,
     .refine = MambaLayers},
    {.name = "falcon-h1", .traits = {.ssm_norms = Presence::kOptional}, .refine = FalconH1},
};

}  // namespace

std::span<const Architecture> MambaLineage() { return kMambaRows; }

}  // namespace engine
