// Causal convolutions over time, see recurrence.h.
//
// A thread processes a block of channels for all tokens. It transposes their taps first, so that a
// vector has the same tap of neighbouring channels.
#include <algorithm>

#include "kernels/recurrence/recurrence.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrence/causal_conv.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/ops/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// Channels of a block. Its taps and the inputs of an output stay in the first-level cache.
constexpr size_t kChannels = 256;
// How many tokens ahead inputs, and the memory for outputs, are prefetched, since a token's
// channels are far from the next token's. Four taps and silu of 16 of 8192 channels take 30 cycles
// instead of 62, and 38 instead of 80 with AVX2 (Zen 5, 512 tokens; arithmetic alone is 21 and 34).
constexpr size_t kAhead = 2;
constexpr size_t kLine = 16;  // floats

struct Taps {
  alignas(64) float of[kMaxTaps][kChannels];  // in the order of the inputs, oldest first
};

void Transpose(const float* taps, size_t n_taps, size_t n, Taps& out) {
  const D d;
  size_t c = 0;
  if (n_taps == 4) {  // nearly all models
    for (; c + kLanes <= n; c += kLanes) {
      V t0, t1, t2, t3;
      hn::LoadInterleaved4(d, taps + c * 4, t0, t1, t2, t3);
      hn::Store(t0, d, out.of[0] + c);
      hn::Store(t1, d, out.of[1] + c);
      hn::Store(t2, d, out.of[2] + c);
      hn::Store(t3, d, out.of[3] + c);
    }
  }
  for (; c < n; ++c) {
    for (size_t i = 0; i < n_taps; ++i) out.of[i][c] = taps[c * n_taps + i];
  }
}

// The output of the n channels from c on, n at most kLanes.
template <bool kWhole>
HWY_INLINE void ConvolveLanes(const CausalConv& conv, const Taps& taps, const float* const* inputs,
                              const float* bias, size_t c, size_t n, float* out) {
  const D d;
  const auto load = [&](const float* p)
                        HWY_ATTR { return kWhole ? hn::LoadU(d, p + c) : hn::LoadN(d, p + c, n); };
  V sum = bias != nullptr ? load(bias) : hn::Zero(d);
  for (size_t i = 0; i < conv.n_taps; ++i) {
    sum = hn::MulAdd(hn::Load(d, taps.of[i] + c), load(inputs[i]), sum);
  }
  if (conv.silu) sum = TimesSigmoid(d, sum, sum);
  if constexpr (kWhole) {
    hn::StoreU(sum, d, out + c);
  } else {
    hn::StoreN(sum, d, out + c, n);
  }
}

void ConvolveBlock(const CausalConv& conv, float* history, const float* in, size_t n_tokens,
                   float* out, size_t first, size_t n) {
  const size_t stride = conv.stride != 0 ? conv.stride : conv.n_channels;
  const size_t n_before = conv.n_taps - 1;
  // Input number `row`: history, then the batch.
  const auto input = [&](size_t row) -> const float* {
    return first + (row < n_before ? history + row * stride : in + (row - n_before) * stride);
  };
  Taps taps;
  Transpose(conv.taps + first * conv.n_taps, conv.n_taps, n, taps);
  const float* const bias = conv.bias != nullptr ? conv.bias + first : nullptr;
  for (size_t t = 0; t < n_tokens; ++t) {
    if (t + kAhead < n_tokens) {
      const size_t next = (t + kAhead) * stride + first;
      for (size_t c = 0; c < n; c += kLine) {
        __builtin_prefetch(in + next + c);
        __builtin_prefetch(out + next + c);
      }
    }
    const float* inputs[kMaxTaps];
    for (size_t i = 0; i < conv.n_taps; ++i) inputs[i] = input(t + i);
    float* const to = out + t * stride + first;
    size_t c = 0;
    for (; c + kLanes <= n; c += kLanes) {
      ConvolveLanes<true>(conv, taps, inputs, bias, c, kLanes, to);
    }
    if (c < n) ConvolveLanes<false>(conv, taps, inputs, bias, c, n - c, to);
  }
  // Short batches move older inputs forward; no input is overwritten before it is read.
  for (size_t i = 0; i < n_before; ++i) {
    std::copy_n(input(n_tokens + i), n, history + i * stride + first);
  }
}

void ConvolveChannels(const CausalConv& conv, float* history, const float* in, size_t n_tokens,
                      float* out, size_t begin, size_t end) {
  for (size_t first = begin; first < end; first += kChannels) {
    ConvolveBlock(conv, history, in, n_tokens, out, first, std::min(kChannels, end - first));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(ConvolveChannels);

void Convolve(ThreadPool& pool, const CausalConv& conv, float* history, const float* in,
              size_t n_tokens, float* out) {
  constexpr size_t kGrain = 64;  // channels
  pool.For(conv.n_channels, kGrain, [&](size_t begin, size_t end, size_t /*thread*/) {
    HWY_DYNAMIC_DISPATCH(ConvolveChannels)(conv, history, in, n_tokens, out, begin, end);
  });
}

}  // namespace kernels
#endif  // HWY_ONCE
