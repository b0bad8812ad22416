// Rounds activations to int8 and f16, see rounding.h.
#include "kernels/ops/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/rounding.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A batch does not fit in the caches: 512 tokens of 6912 numbers are 14 MB. Without prefetching,
// rounding takes 1.5 times as long.
constexpr size_t kPrefetchBytes = 2048;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Numbers are multiples of scale, residuals of scale / kResidualUnits: a residual is at most half
// of scale.
constexpr float kResidualUnits = 254;

template <bool kResiduals>
HWY_INLINE void RoundBlocks(const float* HWY_RESTRICT x, size_t n, const Rounded& out,
                            const Rounded& residuals) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di32;
  const hn::Rebind<int8_t, decltype(df)> di8;
  constexpr size_t kLanes = hn::MaxLanes(df);
  for (size_t block = 0; block < n / kActivationBlock; ++block) {
    const float* const in = x + block * kActivationBlock;
    auto max = hn::Zero(di32);  // compared as integers, so that a NaN is above every number
    for (size_t line = 0; line < kActivationBlock * sizeof(float); line += 64) {
      __builtin_prefetch(reinterpret_cast<const uint8_t*>(in) + kPrefetchBytes + line);
    }
    for (size_t i = 0; i < kActivationBlock; i += kLanes) {
      max = hn::Max(max, hn::BitCast(di32, hn::Abs(hn::LoadU(df, in + i))));
    }
    const float max_abs = std::bit_cast<float>(hn::ReduceMax(di32, max));
    const float scale = std::isfinite(max_abs) ? max_abs / 127.0f : kNaN;
    out.scales[block] = scale;
    if constexpr (kResiduals) residuals.scales[block] = scale / kResidualUnits;
    // Below 3.7e-37 the quotient would overflow. With some margin, such a block becomes zero.
    const auto inverse = hn::Set(df, max_abs >= 1.2e-36f ? 127.0f / max_abs : 0.0f);
    for (size_t half = 0; half < 2; ++half) {
      auto sum = hn::Zero(di32), residual_sum = hn::Zero(di32);
      for (size_t i = half * 16; i < half * 16 + 16; i += kLanes) {
        const auto steps = hn::Mul(hn::LoadU(df, in + i), inverse);
        const auto rounded = hn::NearestInt(steps);
        sum = hn::Add(sum, rounded);
        hn::StoreU(hn::DemoteTo(di8, rounded), di8, out.q + block * kActivationBlock + i);
        if constexpr (kResiduals) {
          const auto residual =
              hn::NearestInt(hn::Mul(hn::Sub(steps, hn::ConvertTo(df, rounded)),  //
                                     hn::Set(df, kResidualUnits)));
          residual_sum = hn::Add(residual_sum, residual);
          hn::StoreU(hn::DemoteTo(di8, residual), di8, residuals.q + block * kActivationBlock + i);
        }
      }
      out.sums[2 * block + half] = static_cast<int16_t>(hn::ReduceSum(di32, sum));
      if constexpr (kResiduals) {
        residuals.sums[2 * block + half] = static_cast<int16_t>(hn::ReduceSum(di32, residual_sum));
      }
    }
  }
}

void RoundT(const float* x, size_t n, const Rounded& out) {
  RoundBlocks</*kResiduals=*/false>(x, n, out, {});
}
void RoundWithResidualT(const float* x, size_t n, const Rounded& out, const Rounded& residuals) {
  RoundBlocks</*kResiduals=*/true>(x, n, out, residuals);
}

void ToF16(const float* HWY_RESTRICT x, size_t n, uint16_t* HWY_RESTRICT out) {
  const hn::CappedTag<float, 16> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  constexpr size_t kLanes = hn::MaxLanes(d);
  hwy::float16_t* const to = reinterpret_cast<hwy::float16_t*>(out);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, x + i)), dh, to + i);
  }
  if (i < n) hn::StoreN(hn::DemoteTo(dh, hn::LoadN(d, x + i, n - i)), dh, to + i, n - i);
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RoundT);
HWY_EXPORT(RoundWithResidualT);
HWY_EXPORT(ToF16);

void RoundActivations(const float* x, size_t n, int8_t* q, float* scales, int16_t* sums) {
  HWY_DYNAMIC_DISPATCH(RoundT)(x, n, {q, scales, sums});
}

void RoundWithResidual(const float* x, size_t n, const Rounded& numbers, const Rounded& residuals) {
  HWY_DYNAMIC_DISPATCH(RoundWithResidualT)(x, n, numbers, residuals);
}

void RoundToF16(const float* x, size_t n, uint16_t* out) { HWY_DYNAMIC_DISPATCH(ToF16)(x, n, out); }

namespace {

size_t Padded(size_t cols) { return (cols + kActivationPad - 1) / kActivationPad * kActivationPad; }

}  // namespace

RoundedRows::RoundedRows(size_t max_rows, size_t max_cols)
    : q_(max_rows * Padded(max_cols)),
      scales_(max_rows * (Padded(max_cols) / kActivationBlock)),
      sums_(max_rows * (Padded(max_cols) / 16)) {}

size_t RoundedRows::BytesFor(size_t max_rows, size_t max_cols) {
  const size_t padded = Padded(max_cols);
  return max_rows * (padded * sizeof(int8_t) + padded / kActivationBlock * sizeof(float) +
                     padded / 16 * sizeof(int16_t));
}

Rounded RoundedRows::At(size_t row, size_t begin) {
  const size_t at = row * Padded(cols_) + begin;
  return {q_.get() + at, scales_.get() + at / kActivationBlock, sums_.get() + at / 16};
}

void RoundedRows::Pad(size_t row) {
  const Rounded end = At(row, cols_);
  const size_t n = Padded(cols_) - cols_;
  std::fill_n(end.q, n, int8_t{0});
  std::fill_n(end.scales, n / kActivationBlock, 0.0f);
  std::fill_n(end.sums, n / 16, int16_t{0});
}

void RoundedRows::Round(size_t row, size_t begin, size_t end, const float* x) {
  const Rounded part = At(row, begin);
  RoundActivations(x + begin, end - begin, part.q, part.scales, part.sums);
  if (end >= cols_) Pad(row);
}

void RoundedRows::RoundWithResidual(size_t row, const float* x, RoundedRows& residuals) {
  kernels::RoundWithResidual(x, cols_, At(row, 0), residuals.At(row, 0));
  Pad(row);
  residuals.Pad(row);
}

void RoundedRows::RoundAll(ThreadPool& pool, const float* x, size_t n_rows) {
  const auto round = [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t r = begin; r < end; ++r) Round(r, 0, cols_, x + r * cols_);
  };
  // One vector takes less time than a barrier, so it is not split.
  if (n_rows == 1) return round(0, 1, 0);
  pool.For(n_rows, 1, round);
}

ActivationRow RoundedRows::row(size_t row, const float* x) const {
  const size_t padded = Padded(cols_);
  return {x, q_.get() + row * padded, scales_.get() + row * (padded / kActivationBlock),
          sums_.get() + row * (padded / 16)};
}

}  // namespace kernels
#endif  // HWY_ONCE
