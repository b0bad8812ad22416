// The loop around every product of weight rows with an input vector, for any weight type.
// Included once per instruction set by the gemv_*.cc files.
//
// A type is a struct, say Q4_0, that knows how to multiply one STEP: a few blocks that fill whole
// vectors. The loop takes kRows<Type> rows at a time, so that what depends on the input alone
// (activations in the order that the type's unpacking produces, their scales) is loaded once for
// all of them, and prepared once for all rows of the call:
//
//   for each step:   inputs[step] = Type::Load(input, position)
//   for kRows rows at a time:
//     for each step:   for each row:   Type::Step(bytes of the row, inputs[step], sums of the row)
//   out = sum over the lanes of the sums
//
// What such a struct has (README.md tells what else a new type needs):
//   kStepWeights, kStepBytes    a step. Rows need not be a multiple of it: the last, partial step
//   is
//                               padded with zero bytes (value 0) by the loop.
//   struct Input                vectors of activations for one step
//   static Input Load(const ActivationRow& x, size_t i)
//                               i is the index of the step's first weight. q, scales and sums may
//                               be read up to the next multiple of 512.
//   static void Step(const uint8_t* w, const Input& in, Sums& sums)
//                               must read nothing outside of [w, w + kStepBytes): w may be the end
//                               of the file's mapping.
// Types that look weights up in memory by indices which they have to compute, besides:
//   kIndices                    so many for a step
//   static void Look(const uint8_t* w, uint16_t* index)
//                               stores those of a step, up to kLookAhead steps before
//   static void Step(w, index, in, sums)
//                               is called for it.
#if defined(PRONK_KERNELS_GEMV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_GEMV_INL_H_
#undef PRONK_KERNELS_GEMV_INL_H_
#else
#define PRONK_KERNELS_GEMV_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/cache_control.h"
#include "kernels/gemv.h"
#include "kernels/groups16-inl.h"
#include "kernels/groups32-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Rows that share the loads of an input. They are not neighbours: a range of rows is cut in so many
// parts, and one row of each is computed at a time, so that memory is read in as many long streams.
// With neighbouring rows each stream would jump after every row, and what prefetches lines, in the
// CPU as in this code, would start anew: measured on Zen 4 with rows of 1152 bytes, half the speed.
// One stream alone reads up to a fifth slower than four. Types that fill the bandwidth of two
// threads with two streams each do so better than with four (README.md) and say so with a kStreams.
constexpr size_t kMostRows = 4;
template <class Type>
constexpr size_t kRows = [] {
  if constexpr (requires { Type::kStreams; }) return Type::kStreams;
  return kMostRows;
}();

// How far ahead of the arithmetic each stream is prefetched. Measured: 768 is 7% slower, 3072 4%.
constexpr size_t kPrefetchBytes = 1536;

// A load from what a vector has just stored waits until it arrives in the cache. So indices are
// stored for as many steps at a time. Measured on Zen 4 for 32 look-ups: 23 cycles, 24 if they are
// stored one step ahead, 58 if just before.
constexpr size_t kLookAhead = 8;
template <class Type>
constexpr size_t kIndices = [] {
  if constexpr (requires { Type::kIndices; }) return Type::kIndices;
  return size_t{0};
}();
template <class Type>
struct Indices {
  alignas(64) uint16_t of_step[kLookAhead][kIndices<Type>];
};
struct NoIndices {};
template <class Type>
using IndicesOf = std::conditional_t<kIndices<Type> != 0, Indices<Type>, NoIndices>;

// Rows are whole blocks: where a step is one block, there is no partial step.
template <class Type>
constexpr bool kHasTail = [] {
  if constexpr (Type::kReadsFloats) {
    return true;
  } else {
    return Type::kStepWeights != Type::Block::kWeights;
  }
}();

// Floats are read as the caller has them; the quantized form is padded anyway.
template <class Type>
HWY_INLINE ActivationRow PadInput(const ActivationRow& x, size_t begin, size_t end, float* padded) {
  ActivationRow tail = x;
  if constexpr (Type::kReadsFloats) {
    std::fill_n(std::copy(x.x + begin, x.x + end, padded), Type::kStepWeights - (end - begin),
                0.0f);
    tail.x = padded - begin;
  }
  return tail;
}

// The inputs of quantized types, put in order once for all rows of a call: that takes as long as
// the product with a row or two. Longer rows are walked through in parts, whose inputs are prepared
// anew for each kRows rows.
template <class Type>
struct PreparedInputs {
  static constexpr size_t kSteps = 16384 / Type::kStepWeights;
  typename Type::Input inputs[kSteps];
  size_t first = SIZE_MAX;  // the step that inputs[0] belongs to

  HWY_NOINLINE void Prepare(const ActivationRow& x, size_t begin, size_t end) {
    if (first == begin) return;
    first = begin;
    for (size_t s = begin; s < end; ++s) {
      inputs[s - begin] = Type::Load(x, s * Type::kStepWeights);
    }
  }
};
// Floats need no order.
struct NoInputs {
  static constexpr size_t kSteps = SIZE_MAX;
  void Prepare(const ActivationRow&, size_t, size_t) {}
};
template <class Type>
using InputsOf = std::conditional_t<Type::kReadsFloats, NoInputs, PreparedInputs<Type>>;

// Stores the indices of kLookAhead steps, or those that are left, of all rows.
template <class Type, size_t kRows>
HWY_NOINLINE void LookAhead(const std::array<const uint8_t*, kRows>& rows, size_t step,
                            size_t n_steps, Indices<Type> (&indices)[kRows]) {
  const size_t n = std::min(n_steps - step, kLookAhead);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t s = 0; s < n; ++s) {
      Type::Look(rows[r] + (step + s) * Type::kStepBytes, indices[r].of_step[s]);
    }
  }
}

template <class Type, size_t kRows>
HWY_INLINE void DotRows(const std::array<const uint8_t*, kRows>& rows, size_t row_bytes,
                        size_t cols, const ActivationRow& x, InputsOf<Type>& prepared,
                        float* HWY_RESTRICT out) {
  constexpr size_t kStepBytes = Type::kStepBytes;
  Sums sums[kRows];
  for (Sums& s : sums) s = {hn::Zero(DF()), hn::Zero(DF()), hn::Zero(D8())};
  IndicesOf<Type> indices[kRows];
  const auto multiply = [&](size_t s, const auto& in) HWY_ATTR {
    const size_t byte = s * kStepBytes;
    HWY_UNROLL(kMostRows)
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t line = 0; line < kStepBytes; line += 64) {
        hwy::Prefetch(rows[r] + byte + kPrefetchBytes + line);
      }
      if constexpr (kIndices<Type> != 0) {
        Type::Step(rows[r] + byte, indices[r].of_step[s % kLookAhead], in, sums[r]);
      } else {
        Type::Step(rows[r] + byte, in, sums[r]);
      }
    }
  };
  const size_t n_steps = cols / Type::kStepWeights;
  for (size_t first = 0; first < n_steps;) {
    const size_t last = first + std::min(n_steps - first, prepared.kSteps);
    prepared.Prepare(x, first, last);
    for (size_t s = first; s < last; ++s) {
      if constexpr (kIndices<Type> != 0) {
        if (s % kLookAhead == 0) LookAhead<Type>(rows, s, n_steps, indices);
      }
      if constexpr (Type::kReadsFloats) {
        multiply(s, Type::Load(x, s * Type::kStepWeights));
      } else {
        multiply(s, prepared.inputs[s - first]);
      }
    }
    first = last;
  }
  if constexpr (kHasTail<Type>) {
    const size_t whole = n_steps * kStepBytes;
    const size_t i = n_steps * Type::kStepWeights;
    if (i < cols) {
      alignas(64) uint8_t tail[kStepBytes] = {};
      alignas(64) float padded[Type::kReadsFloats ? Type::kStepWeights : 1];
      const ActivationRow padded_x = PadInput<Type>(x, i, cols, padded);
      const auto in = Type::Load(padded_x, i);
      HWY_UNROLL(kMostRows)
      for (size_t r = 0; r < kRows; ++r) {
        std::memcpy(tail, rows[r] + whole, row_bytes - whole);
        Type::Step(tail, in, sums[r]);
      }
    }
  }
  HWY_UNROLL(kMostRows)
  for (size_t r = 0; r < kRows; ++r) {
    out[r] = hn::ReduceSum(DF(), hn::Add(sums[r].a, sums[r].b)) + hn::ReduceSum(D8(), sums[r].mins);
  }
}

template <class Type>
HWY_NOINLINE void MultiplyRows(const Matrix& w, size_t begin, size_t end, const ActivationRow& x,
                               float* HWY_RESTRICT out) {
  const size_t row_bytes = w.row_bytes();
  const uint8_t* const data = reinterpret_cast<const uint8_t*>(w.data);
  constexpr size_t n = kRows<Type>;
  const size_t part = (end - begin + n - 1) / n;
  // What the steps do not ask for: the beginning of each stream. Measured: 2 to 4%.
  for (size_t line = 0; line < kPrefetchBytes; line += 64) {
    for (size_t r = 0; r < n; ++r) {
      hwy::Prefetch(data + std::min(begin + r * part, end - 1) * row_bytes + line);
    }
  }
  InputsOf<Type> prepared;
  // Where parts are not full, the last row stands in for what is missing: a row's result comes from
  // the same code everywhere.
  for (size_t i = 0; i < part; ++i) {
    std::array<const uint8_t*, n> rows;
    for (size_t r = 0; r < n; ++r) {
      rows[r] = data + std::min(begin + r * part + i, end - 1) * row_bytes;
    }
    float dots[n];
    DotRows<Type>(rows, row_bytes, w.cols, x, prepared, dots);
    for (size_t r = 0; r < n && r * part + i < end - begin; ++r) out[r * part + i] = dots[r];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_GEMV_INL_H_
