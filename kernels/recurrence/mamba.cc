// Mamba, see recurrence.h: every number of a channel's state has its own decay, so most of the work
// is exponentials. The states of neighbouring channels are neighbours, as are their rates of decay
// in files; a vector has numbers of one channel.
#include <algorithm>

#include "kernels/recurrence/recurrence.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrence/mamba.cc"
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

// Channels of a block, whose states stay in the first-level cache through all tokens.
constexpr size_t kChannels = 64;
// How many tokens ahead inputs, and the memory for outputs, are prefetched: a token's channels are
// far from the next token's.
constexpr size_t kAhead = 2;
constexpr size_t kLine = 16;  // floats

// A channel and a token: state = exp(step * a) * state + push * b; returns state . c.
HWY_INLINE float ScanOne(const float* a, float step, float push, const float* b, const float* c,
                         size_t length, float* state) {
  const D d;
  const V steps = hn::Set(d, step), pushes = hn::Set(d, push);
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    const V decay = Exp(d, hn::Mul(steps, hn::LoadU(d, a + i)));
    const V s = hn::MulAdd(decay, hn::LoadU(d, state + i), hn::Mul(pushes, hn::LoadU(d, b + i)));
    hn::StoreU(s, d, state + i);
    sum = hn::MulAdd(s, hn::LoadU(d, c + i), sum);
  }
  if (const size_t n = length - i; n > 0) {
    const V decay = Exp(d, hn::Mul(steps, hn::LoadN(d, a + i, n)));
    const V s =
        hn::MulAdd(decay, hn::LoadN(d, state + i, n), hn::Mul(pushes, hn::LoadN(d, b + i, n)));
    hn::StoreN(s, d, state + i, n);
    sum = hn::MulAdd(s, hn::LoadN(d, c + i, n), sum);
  }
  return hn::ReduceSum(d, sum);
}

// Processes the n channels from `first` on, at most kChannels.
void ScanBlock(const Mamba& net, float* state, const float* u, const float* dt, const float* bc,
               size_t n_tokens, float* out, size_t first, size_t n) {
  const D d;
  const size_t length = net.state_length;
  alignas(64) float steps[kChannels];
  for (size_t t = 0; t < n_tokens; ++t) {
    const size_t at = t * net.n_channels + first;
    const float* const b = bc + t * 2 * length;
    if (t + kAhead < n_tokens) {
      const size_t next = at + kAhead * net.n_channels;
      for (size_t i = 0; i < n; i += kLine) {
        __builtin_prefetch(u + next + i);
        __builtin_prefetch(dt + next + i);
        __builtin_prefetch(out + next + i);
      }
    }
    for (size_t i = 0; i < n; i += kLanes) {
      hn::Store(Softplus(d, hn::LoadN(d, dt + at + i, std::min(kLanes, n - i))), d, steps + i);
    }
    for (size_t i = 0; i < n; ++i) {
      const size_t c = first + i;
      const float y = ScanOne(net.a + c * length, steps[i], steps[i] * u[at + i], b, b + length,
                              length, state + c * length);
      out[at + i] = net.d[c] * u[at + i] + y;
    }
  }
}

void ScanChannels(const Mamba& net, float* state, const float* u, const float* dt, const float* bc,
                  size_t n_tokens, float* out, size_t begin, size_t end) {
  for (size_t first = begin; first < end; first += kChannels) {
    ScanBlock(net, state, u, dt, bc, n_tokens, out, first, std::min(kChannels, end - first));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(ScanChannels);

void SelectiveScan(ThreadPool& pool, const Mamba& net, float* state, const float* u,
                   const float* dt, const float* bc, size_t n_tokens, float* out) {
  constexpr size_t kGrain = 64;  // channels
  pool.For(net.n_channels, kGrain, [&](size_t begin, size_t end, size_t /*thread*/) {
    HWY_DYNAMIC_DISPATCH(ScanChannels)(net, state, u, dt, bc, n_tokens, out, begin, end);
  });
}

}  // namespace kernels
#endif  // HWY_ONCE
