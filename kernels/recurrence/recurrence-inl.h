// The recurrence of gated delta nets and Mamba-2: every token scales a head's state S down, adds an
// outer product and reads it. Included once per instruction set by recurrence.cc.
//
//   S = decay * S + key change^T      change = scale * value, or with the delta rule
//   out = S^T query                   change = scale * (value - decay * S^T key), with S as it was
//
// where decay is one number, or one for each row of S.
//
// Columns of S are independent, so a block of them goes through all tokens alone and stays in the
// first-level cache meanwhile. The delta rule reads S twice for each token, but the second read
// happens while S is updated for the token before: each number of S is loaded and stored once for
// each token, and takes four operations (three without the delta rule). Two operations a cycle are
// the limit: a head of 128 x 128 takes 2700 cycles a token with AVX-512 (limit 2048) and 4900 with
// AVX2 (4096), Mamba-2's of 128 x 64 880 (768) and 1850 (1536). Zen 5, 512 tokens; 2300 and 4500
// when all numbers come from a near cache.
//
// Every sum is a separate chain in the order of keys, so no token's bits depend on the other tokens
// of its batch.

#include <cmath>
#include <cstddef>

#include "hwy/highway.h"
#include "kernels/recurrence/head.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// A block of columns. Of 16 registers the sums of both reads take eight and changes four, which
// leaves four; the eight chains hide the latency of the additions.
constexpr size_t kBlockVectors = 4;
constexpr size_t kBlockColumns = kBlockVectors * kLanes;
// A state of up to this many keys is copied, so that a block is contiguous (at most 32 KB): the
// rows of a matrix would compete for a part of the cache's sets.
constexpr size_t kKeptKeys = 128;

// kVectors vectors of columns or, if not kWhole, one vector with n columns.
template <size_t kVectors, bool kWhole>
struct Columns {
  V of[kVectors];

  HWY_INLINE void SetZero() {
    for (V& v : of) v = hn::Zero(D());
  }
  HWY_INLINE void Load(const float* p, size_t n) {
    const D d;
    for (size_t i = 0; i < kVectors; ++i) {
      of[i] = kWhole ? hn::LoadU(d, p + i * kLanes) : hn::LoadN(d, p, n);
    }
  }
  HWY_INLINE void Store(float* p, size_t n) const {
    const D d;
    for (size_t i = 0; i < kVectors; ++i) {
      if constexpr (kWhole) {
        hn::StoreU(of[i], d, p + i * kLanes);
      } else {
        hn::StoreN(of[i], d, p, n);
      }
    }
  }
  HWY_INLINE void AddScaled(V factor, const Columns& x) {
    for (size_t i = 0; i < kVectors; ++i) of[i] = hn::MulAdd(factor, x.of[i], of[i]);
  }
  HWY_INLINE void Scale(V factor) {
    for (V& v : of) v = hn::Mul(v, factor);
  }
};

// How a token changes S besides scaling it: it adds its value or, with the delta rule, the
// difference.
enum class Rule { kAdd, kDelta, kDeltaByChannel };

// Number i of a key that reads S before S decays: if rows have their own decay, times the row's
// decay.
template <Rule rule>
HWY_INLINE V ReadKey(const float* key, const float* decays, size_t i) {
  const V k = hn::Set(D(), key[i]);
  return rule == Rule::kDeltaByChannel ? hn::Mul(k, hn::Set(D(), decays[i])) : k;
}

// The rows of a block of S.
struct StateRows {
  float* first;
  size_t stride;
};

// Outputs are far apart, and a store that waits for its line delays all later stores, including the
// state's: without this a delta net takes 5 to 10% longer.
HWY_INLINE void PrefetchFloats(const float* p, size_t n) {
  constexpr size_t kLine = 16;
  for (size_t i = 0; i < n; i += kLine) __builtin_prefetch(p + i);
}

// The first read of a batch, sum = S^T key, which copies S on the way.
template <Rule rule, class C>
HWY_INLINE C Read(const StateRows& from, const StateRows& to, const RecurrentHead& head, size_t n) {
  C sum;
  sum.SetZero();
  for (size_t i = 0; i < head.n_keys; ++i) {
    C s;
    s.Load(from.first + i * from.stride, n);
    s.Store(to.first + i * to.stride, n);
    sum.AddScaled(ReadKey<rule>(head.key, head.decays, i), s);
  }
  return sum;
}

// S = decay * S + key change^T, out = S^T query, and where kReadNext next = S^T next key, for token
// t.
template <Rule rule, bool kReadNext, class C>
HWY_INLINE void Update(const StateRows& from, const StateRows& to, const RecurrentHead& head,
                       size_t t, size_t n, float decay, const C& change, C& out, C& next) {
  const float* const key = head.key + t * head.stride;
  const float* const query = head.query + t * head.stride;
  const float* decays = nullptr;
  if constexpr (rule == Rule::kDeltaByChannel) decays = head.decays + t * head.decay_stride;
  const float* const next_key = key + head.stride;  // read only where kReadNext
  const float* const next_decays = decays + (rule == Rule::kDeltaByChannel ? head.decay_stride : 0);
  const D d;
  const V factor = hn::Set(d, decay);
  C sum, next_sum;
  sum.SetZero();
  next_sum.SetZero();
  for (size_t i = 0; i < head.n_keys; ++i) {
    C s;
    s.Load(from.first + i * from.stride, n);
    s.Scale(rule == Rule::kDeltaByChannel ? hn::Set(d, decays[i]) : factor);
    s.AddScaled(hn::Set(d, key[i]), change);
    s.Store(to.first + i * to.stride, n);
    sum.AddScaled(hn::Set(d, query[i]), s);
    if constexpr (kReadNext) next_sum.AddScaled(ReadKey<rule>(next_key, next_decays, i), s);
  }
  out = sum;
  next = next_sum;
}

// Processes all tokens with the n columns from `column` on, as one C.
template <Rule rule, size_t kVectors, bool kWhole>
HWY_INLINE void WalkColumns(const RecurrentHead& head, size_t column, size_t n,
                            float* HWY_RESTRICT kept) {
  using C = Columns<kVectors, kWhole>;
  constexpr bool kDelta = rule != Rule::kAdd, kByChannel = rule == Rule::kDeltaByChannel;
  const D d;
  const StateRows state = {head.state + column, head.n_columns};
  const StateRows cached = head.n_keys <= kKeptKeys ? StateRows{kept, kVectors * kLanes} : state;
  StateRows from = state;
  C read;  // S^T key, S as the token before left it, or as decayed since
  read.SetZero();
  if constexpr (kDelta) {
    read = Read<rule, C>(state, cached, head, n);
    from = cached;
  }
  for (size_t t = 0; t < head.n_tokens; ++t) {
    const size_t gate = t * head.gate_stride;
    if (t + 2 < head.n_tokens) PrefetchFloats(head.out + (t + 2) * head.out_stride + column, n);
    const float decay = kByChannel ? 1 : std::exp(head.dt[gate] * head.a);
    C value, out;
    value.Load(head.value + t * head.stride + column, n);
    C change = value;
    if constexpr (kDelta) change.AddScaled(hn::Set(d, -decay), read);
    change.Scale(hn::Set(d, head.scale[gate]));
    if (t + 1 < head.n_tokens) {
      Update<rule, kDelta>(from, cached, head, t, n, decay, change, out, read);
    } else {
      Update<rule, false>(from, state, head, t, n, decay, change, out, read);
    }
    if constexpr (!kDelta) out.AddScaled(hn::Set(d, head.skip), value);
    out.Store(head.out + t * head.out_stride + column, n);
    from = cached;
  }
}

// Processes columns [begin, end) of a head.
template <Rule rule>
HWY_INLINE void Walk(const RecurrentHead& head, size_t begin, size_t end) {
  alignas(64) float kept[kKeptKeys * kBlockColumns];
  size_t column = begin;
  for (; column + kBlockColumns <= end; column += kBlockColumns) {
    WalkColumns<rule, kBlockVectors, true>(head, column, kBlockColumns, kept);
  }
  for (; column + kLanes <= end; column += kLanes) {
    WalkColumns<rule, 1, true>(head, column, kLanes, kept);
  }
  if (column < end) WalkColumns<rule, 1, false>(head, column, end - column, kept);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();
