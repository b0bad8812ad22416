// Gated delta nets and Mamba-2, see recurrence.h: the steps before the recurrence itself
// (recurrence-inl.h), and how threads divide the work.
#include "kernels/recurrence/recurrence.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrence/recurrence.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/ops/activation-inl.h"
#include "kernels/recurrence/head.h"
#include "kernels/recurrence/recurrence-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// x *= scale / sqrt(|x|^2 + kUnitEps)
void MakeUnit(float* x, size_t n, float scale) {
  const D d;
  V sums = hn::Zero(d);
  for (size_t i = 0; i < n; i += kLanes) {
    const V v = hn::LoadN(d, x + i, std::min(kLanes, n - i));
    sums = hn::MulAdd(v, v, sums);
  }
  const float length = std::sqrt(hn::ReduceSum(d, sums) + kUnitEps);
  const V factor = hn::Set(d, scale / length);
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t count = std::min(kLanes, n - i);
    hn::StoreN(hn::Mul(hn::LoadN(d, x + i, count), factor), d, x + i, count);
  }
}

// alpha = exp(softplus(alpha + bias) * a), or as `lowest` says (DeltaNet).
void MakeDecays(float* alpha, const float* bias, float a, float lowest, size_t n) {
  const D d;
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t count = std::min(kLanes, n - i);
    const V x = hn::Add(hn::LoadN(d, alpha + i, count), hn::LoadN(d, bias + i, count));
    const V rate = hn::Set(d, a);
    const V log = lowest != 0 ? TimesSigmoid(d, hn::Set(d, lowest), hn::Mul(x, rate))
                              : hn::Mul(Softplus(d, x), rate);
    hn::StoreN(Exp(d, log), d, alpha + i, count);
  }
}

void WalkDelta(const RecurrentHead& head, size_t begin, size_t end) {
  Walk<Rule::kDelta>(head, begin, end);
}

void WalkDeltaByChannel(const RecurrentHead& head, size_t begin, size_t end) {
  Walk<Rule::kDeltaByChannel>(head, begin, end);
}

void WalkMamba(const RecurrentHead& head, size_t begin, size_t end) {
  Walk<Rule::kAdd>(head, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {
namespace {

HWY_EXPORT(MakeUnit);
HWY_EXPORT(MakeDecays);
HWY_EXPORT(WalkDelta);
HWY_EXPORT(WalkDeltaByChannel);
HWY_EXPORT(WalkMamba);

float Softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// Columns of a head's state that a thread takes at a time: a whole block of the widest vectors.
constexpr size_t kColumnsAtATime = 64;

// Calls walk(head, begin, end) for all columns of all heads.
template <class HeadOf, class Walk>
void ForUnits(ThreadPool& pool, size_t n_heads, size_t n_columns, const HeadOf& head_of,
              const Walk& walk) {
  const size_t n_ranges = (n_columns + kColumnsAtATime - 1) / kColumnsAtATime;  // ranges of a head
  pool.For(n_heads * n_ranges, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t i = begin; i < end; ++i) {
      const size_t column = i % n_ranges * kColumnsAtATime;
      walk(head_of(i / n_ranges), column, std::min(column + kColumnsAtATime, n_columns));
    }
  });
}

}  // namespace

void GatedDeltaNet(ThreadPool& pool, const DeltaNet& net, float* state, float* qkv, float* alpha,
                   float* beta, size_t n_tokens, float* out) {
  const size_t n = net.length, n_heads = net.n_value_heads;
  const size_t stride = (2 * net.n_key_heads + n_heads) * n;
  // Computes gates, and unit keys and queries, once for each token and head, not for each range of
  // columns.
  pool.For(n_tokens * n_heads, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    const float root = std::sqrt(static_cast<float>(n));
    for (size_t i = begin; i < end; ++i) {
      const size_t head = i % n_heads;
      if (net.decay_by_channel) {
        HWY_DYNAMIC_DISPATCH(MakeDecays)
        (alpha + i * n, net.dt_bias + head * n, net.a[head], net.lowest, n);
      } else {
        alpha[i] = Softplus(alpha[i] + net.dt_bias[head]);
      }
      beta[i] = 1 / (1 + std::exp(-beta[i]));
      if (head >= net.n_key_heads) continue;
      float* const q = qkv + i / n_heads * stride + head * n;
      HWY_DYNAMIC_DISPATCH(MakeUnit)(q, n, 1 / root);
      HWY_DYNAMIC_DISPATCH(MakeUnit)(q + net.n_key_heads * n, n, 1);
    }
  });
  const auto head_of = [&](size_t j) {
    const float* const query = qkv + net.KeyHead(j) * n;
    return RecurrentHead{
        .key = query + net.n_key_heads * n,
        .query = query,
        .value = qkv + (2 * net.n_key_heads + j) * n,
        .stride = stride,
        .dt = alpha + j,
        .scale = beta + j,
        .gate_stride = n_heads,
        .a = net.a[j],
        .decays = net.decay_by_channel ? alpha + j * n : nullptr,
        .decay_stride = n_heads * n,
        .skip = 0,
        .state = state + j * n * n,
        .out = out + j * n,
        .out_stride = n_heads * n,
        .n_keys = n,
        .n_columns = n,
        .n_tokens = n_tokens,
    };
  };
  ForUnits(pool, n_heads, n, head_of,
           net.decay_by_channel ? HWY_DYNAMIC_POINTER(WalkDeltaByChannel)
                                : HWY_DYNAMIC_POINTER(WalkDelta));
}

void SelectiveScan(ThreadPool& pool, const Mamba2& net, float* state, const float* ubc, float* dt,
                   size_t n_tokens, float* out) {
  const size_t n_values = net.n_heads * net.head_length;
  const size_t n_keys = net.n_groups * net.state_length;
  pool.For(n_tokens * net.n_heads, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    if (net.dt_bias == nullptr) return std::fill(dt + begin, dt + end, 1.0f);
    for (size_t i = begin; i < end; ++i) dt[i] = Softplus(dt[i] + net.dt_bias[i % net.n_heads]);
  });
  const auto head_of = [&](size_t j) {
    const size_t group = j / (net.n_heads / net.n_groups);
    const float* const b = ubc + n_values + group * net.state_length;
    return RecurrentHead{
        .key = b,
        .query = b + n_keys,
        .value = ubc + j * net.head_length,
        .stride = n_values + 2 * n_keys,
        .dt = dt + j,
        .scale = dt + j,
        .gate_stride = net.n_heads,
        .a = net.a[j],
        .decays = nullptr,
        .decay_stride = 0,
        .skip = net.d != nullptr ? net.d[j] : 0,
        .state = state + j * net.state_length * net.head_length,
        .out = out + j * net.head_length,
        .out_stride = n_values,
        .n_keys = net.state_length,
        .n_columns = net.head_length,
        .n_tokens = n_tokens,
    };
  };
  ForUnits(pool, net.n_heads, net.head_length, head_of, HWY_DYNAMIC_POINTER(WalkMamba));
}

}  // namespace kernels
#endif  // HWY_ONCE
