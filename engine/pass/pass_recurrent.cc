// The recurrence of recurrent layers: see Pass::Convolve and Pass::Recur.
#include <algorithm>
#include <array>

#include "engine/pass/pass.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

// The inputs that are kept for Undo(): the convolution's input, then the recurrence's inputs.
std::array<KeptInput, 3> KeptInputs(const RecurrentPlan& r, Scratch& s,
                                    const SequenceState::Recurrent& state) {
  return {{{s.conv_in, state.conv_in, r.channels},
           {s.alpha, state.alpha, r.n_alpha},
           {s.beta, state.beta, r.n_beta}}};
}

}  // namespace

void Pass::Keep(const float* state, size_t n, float* before, std::span<const KeptInput> inputs) {
  RunOperation("keep", n * sizeof(float), [&] {
    pool_.For(n, /*grain=*/1024, [&](size_t begin, size_t end, size_t) {
      std::copy(state + begin, state + end, before + begin);
    });
    for (const KeptInput& input : inputs) {
      std::copy_n(input.scratch, n_tokens_ * input.width, input.kept);
    }
  });
}

void Pass::Convolve(const LayerView& layer) {
  const LayerWeights& w = layer.w;
  const RecurrentPlan& r = layer.plan.recurrent;
  const bool alone = layer.plan.recurrence() == Mixer::kShortConv;
  const size_t n_parts = w.conv[1] != nullptr ? w.conv.size() : 1;
  ForEachSequence([&](const SequenceSlice& sequence, size_t t, size_t n_tokens) {
    const SequenceState::Recurrent state = sequence.state.recurrent(layer.index);
    if (state.before != nullptr) {
      const auto inputs = KeptInputs(r, scratch_, state);
      Keep(state.history, r.history_floats(), state.before, std::span(inputs).first(1));
    }
    const float* const in = scratch_.conv_in + t * r.channels;
    float* const out = (alone ? scratch_.attended : scratch_.conv_out) + t * r.channels;
    RunOperation("convolution", (r.n_taps * r.channels + r.history_floats()) * sizeof(float), [&] {
      for (size_t part = 0; part < n_parts; ++part) {
        const size_t n = r.channels / n_parts, first = part * n;
        const kernels::CausalConv conv = {
            .taps = w.conv[part],
            .bias = w.conv_bias,
            .n_taps = r.n_taps,
            .n_channels = n,
            .silu = !alone,
            .stride = r.channels,
        };
        kernels::Convolve(pool_, conv, state.history + first, in + first, n_tokens, out + first);
      }
    });
  });
}

void Pass::Recur(const LayerView& layer) {
  const LayerWeights& w = layer.w;
  const RecurrentPlan& r = layer.plan.recurrent;
  const Mixer mixer = layer.plan.recurrence();
  const bool fades = mixer == Mixer::kLightning;
  const char* const kind = mixer == Mixer::kDeltaNet ? "delta net" : fades ? "lightning" : "mamba";
  ForEachSequence([&](const SequenceSlice& sequence, size_t t, size_t n) {
    const SequenceState::Recurrent state = sequence.state.recurrent(layer.index);
    if (state.before != nullptr) {
      const auto inputs = KeptInputs(r, scratch_, state);
      Keep(state.matrices, r.state_floats(), state.before + r.history_floats(),
           std::span(inputs).subspan(1));
    }
    float *const in = scratch_.conv_out + t * r.channels, *const matrices = state.matrices;
    float *const alpha = scratch_.alpha + t * r.n_alpha, *const beta = scratch_.beta + t * r.n_beta;
    float* const out = scratch_.attended + t * r.width();
    RunOperation(kind, r.state_floats() * sizeof(float), [&] {
      if (mixer == Mixer::kDeltaNet) {
        const kernels::DeltaNet net = {
            .n_key_heads = r.n_key_heads,
            .n_value_heads = r.n_value_heads,
            .length = r.key_length,
            .tiled_key_heads = config_.tiled_key_heads,
            .dt_bias = w.ssm_dt_bias,
            .a = w.ssm_a,
            .decay_by_channel = r.decay_by_channel,
            .lowest = r.lowest_decay,
        };
        kernels::GatedDeltaNet(pool_, net, matrices, in, alpha, beta, n, out);
      } else if (mixer == Mixer::kMamba) {
        const kernels::Mamba net = {
            .n_channels = r.channels, .state_length = r.key_length, .a = w.ssm_a, .d = w.ssm_d};
        kernels::SelectiveScan(pool_, net, matrices, in, alpha, beta, n, out);
      } else {
        const kernels::Mamba2 net = {
            .n_groups = r.n_key_heads,
            .n_heads = r.n_value_heads,
            .state_length = r.key_length,
            .head_length = r.value_length,
            .dt_bias = w.ssm_dt_bias,
            .a = fades ? r.rates.data() : w.ssm_a,
            .d = w.ssm_d,
        };
        kernels::SelectiveScan(pool_, net, matrices, in, alpha, n, out);
      }
    });
  });
}

void Pass::Replay(const LayerView& layer) {
  const SequenceState::Recurrent state = sequences_[0].state.recurrent(layer.index);
  for (const KeptInput& input : KeptInputs(layer.plan.recurrent, scratch_, state)) {
    std::copy_n(input.kept, n_tokens_ * input.width, input.scratch);
  }
  Convolve(layer);
  if (layer.plan.recurrence() != Mixer::kShortConv) Recur(layer);
}

}  // namespace engine
