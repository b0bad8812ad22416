// The recurrence of recurrent layers: see Pass::Recur.
#include <algorithm>
#include <array>

#include "engine/pass/pass.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

// A recurrence's input in the scratch buffers, and where the state keeps it: n_tokens rows of
// `width` floats.
struct KeptInput {
  float* scratch;
  float* kept;
  size_t width;
};

std::array<KeptInput, 3> KeptInputs(const LayerPlan& plan, Scratch& s,
                                    const SequenceState::Recurrent& state) {
  const RecurrentPlan& r = plan.recurrent;
  const bool has_beta = plan.mixer == Mixer::kDeltaNet;
  return {{{s.conv_in.get(), state.conv_in, r.channels},
           {s.alpha.get(), state.alpha, r.n_value_heads},
           {s.beta.get(), state.beta, has_beta ? r.n_value_heads : 0}}};
}

}  // namespace

void Pass::Recur(const LayerPlan& plan, const LayerWeights& w,
                 const SequenceState::Recurrent& state) {
  const RecurrentPlan& r = plan.recurrent;
  Scratch& s = scratch_;
  if (state.before != nullptr) {
    const size_t n_state = r.history_floats() + r.state_floats();
    Step("keep", n_state * sizeof(float), {}, [&] {
      team_.For(n_state, /*grain=*/1024, [&](size_t begin, size_t end, size_t) {
        std::copy(state.history + begin, state.history + end, state.before + begin);
      });
      for (const KeptInput& input : KeptInputs(plan, s, state)) {
        std::copy_n(input.scratch, n_tokens_ * input.width, input.kept);
      }
    });
  }

  const bool conv_alone = plan.mixer == Mixer::kShortConv;
  float* const out = s.attended.get();
  float* const conv_out = conv_alone ? out : s.conv_out.get();
  const kernels::CausalConv conv = {
      .taps = w.conv,
      .bias = w.conv_bias,
      .n_taps = r.n_taps,
      .n_channels = r.channels,
      .silu = !conv_alone,
  };
  Step("convolution", (r.n_taps * r.channels + r.history_floats()) * sizeof(float), {}, [&] {
    kernels::Convolve(team_, conv, state.history, s.conv_in.get(), n_tokens_, conv_out);
  });
  const size_t state_bytes = r.state_floats() * sizeof(float);
  if (plan.mixer == Mixer::kDeltaNet) {
    const kernels::DeltaNet net = {
        .n_key_heads = r.n_key_heads,
        .n_value_heads = r.n_value_heads,
        .length = r.key_length,
        .tiled_key_heads = config_.tiled_key_heads,
        .norm_eps = config_.norm_eps,
        .dt_bias = w.ssm_dt_bias,
        .a = w.ssm_a,
    };
    Step("delta net", state_bytes, {}, [&] {
      kernels::GatedDeltaNet(team_, net, state.matrices, conv_out, s.alpha.get(), s.beta.get(),
                             n_tokens_, out);
    });
  } else if (plan.mixer == Mixer::kMamba2) {
    const kernels::Mamba2 net = {
        .n_groups = r.n_key_heads,
        .n_heads = r.n_value_heads,
        .state_length = r.key_length,
        .head_length = r.value_length,
        .dt_bias = w.ssm_dt_bias,
        .a = w.ssm_a,
        .d = w.ssm_d,
    };
    Step("mamba", state_bytes, {}, [&] {
      kernels::SelectiveScan(team_, net, state.matrices, conv_out, s.alpha.get(), n_tokens_, out);
    });
  }
}

void Pass::Replay(const LayerPlan& plan, const LayerWeights& w,
                  const SequenceState::Recurrent& state) {
  for (const KeptInput& input : KeptInputs(plan, scratch_, state)) {
    std::copy_n(input.kept, n_tokens_ * input.width, input.scratch);
  }
  Recur(plan, w, state);
}

}  // namespace engine
