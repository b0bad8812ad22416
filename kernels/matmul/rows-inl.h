// The loop around every product of weight rows with 1 to kRowTokens vectors of activations, for any
// weight type. Included once per instruction set by the files of the types.
//
// A type is a struct, say Q4_0, that knows how to unpack a STEP, a few blocks that fill whole
// vectors, and how to multiply what it unpacked. The loop takes kRows<Type> rows at a time, and
// everything that it unpacks it multiplies with all tokens:
//
//   for each step, for each token:   inputs[step][token] = Type::Load(activations, position)
//   for kRows rows at a time:
//     for each step:
//       for each row:     unpacked = Type::Unpack(bytes of the row)                    in registers
//         for each token: Type::Multiply(unpacked, inputs[step][token], sums[token][row])
//   out = sum over the lanes of the sums
//
// So a token's sums are made in the same order, and have the same bits, whether it is alone or in
// company. What such a struct has (README.md tells what else a new type needs):
//   Block                       a block, with its kWeights
//   kReadsFloats                whether x is floats, or q and scales
//   kStepWeights, kStepBytes    a step
//   struct Input                vectors of activations for one step, 4 bytes per weight at most
//   static Input Load(const ActivationRow& x, size_t i)
//                               i is the index of the step's first weight. q, scales and sums may
//                               be read up to the next multiple of 512.
//   struct Unpacked             vectors of codes and scales
//   static Unpacked Unpack(const uint8_t* w)
//                               must read nothing outside of [w, w + kStepBytes): w may be the end
//                               of the file's mapping.
//   static void Multiply(const Unpacked& w, const Input& in, Sums& sums)
// Where another way to the same numbers is faster with several tokens, besides:
//   static Unpacked UnpackForSeveral(const uint8_t* w)
// or with one (its result need not be Unpacked; Multiply takes it, too):
//   static ... UnpackForOne(const uint8_t* w)
// or with one and all rows at a time:
//   template <size_t n>
//   static void MultiplyAllRows(const uint8_t* const (&w)[n], const Input& in, Sums (&sums)[n])
// Types whose step is more than a block, so that the last step of a row may be a partial one,
// besides:
//   static Unpacked Keep(const Unpacked& w, size_t n)
//                               the same with a value of 0, or any finite one, for each weight from
//                               the n-th on, n a multiple of a block: what belongs to the next row.
//                               (The inputs are 0 there, but 0 * NaN is not.)
// Types that look weights up in memory by indices which they have to compute, besides:
//   kIndices                    so many for a step
//   static void Look(const uint8_t* w, uint16_t* index)
//                               stores those of a step, up to kLookAhead steps before
//   static Unpacked Unpack(w, index), UnpackForOne(w, index = nullptr)
//                               are called for it.
#if defined(PRONK_KERNELS_MATMUL_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_MATMUL_ROWS_INL_H_
#undef PRONK_KERNELS_MATMUL_ROWS_INL_H_
#else
#define PRONK_KERNELS_MATMUL_ROWS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "hwy/cache_control.h"
#include "kernels/matmul/registry.h"
#include "kernels/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Rows that are computed at a time. They are not neighbours: a range of rows is cut in so many
// parts, and one row of each is computed at a time, so that memory is read in as many long streams.
// With neighbouring rows each stream would jump after every row, and what prefetches lines, in the
// CPU as in this code, would start anew: measured on Zen 4 with rows of 1152 bytes, half the speed.
// One stream alone reads up to a fifth slower than four. Types that fill the bandwidth of two
// threads with two streams each do so better than with four (NOTEBOOK.md) and say so with a
// kStreams.
constexpr size_t kMaxRows = 4;
template <class Type>
constexpr size_t kRows = [] {
  if constexpr (requires { Type::kStreams; }) return Type::kStreams;
  return kMaxRows;
}();

// Of these so many are unpacked before they are multiplied, so that a token's vectors are loaded
// once for all of them: what fits in 32 registers beside the rest. With 16 only one fits.
template <class Type>
constexpr size_t kTogether = [] {
  size_t n = kRows<Type>;
  while (n > 1 && (hn::MaxLanes(DF()) < 16 || n * sizeof(typename Type::Unpacked) > 28 * 64))
    n /= 2;
  return n;
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

template <class Type>
constexpr bool kUnpacksForSeveral = requires(const uint8_t* w) {
  Type::UnpackForSeveral(w);
};
template <class Type>
constexpr bool kUnpacksForOne = requires(const uint8_t* w) {
  Type::UnpackForOne(w);
};
template <class Type, size_t n>
constexpr bool kMultipliesAllRows = requires(const uint8_t* const (&w)[n],
                                             const typename Type::Input& in, Sums (&sums)[n]) {
  Type::MultiplyAllRows(w, in, sums);
};
template <class Type>
constexpr bool kPartialSteps = Type::kStepWeights > Type::Block::kWeights;

// Stores the indices of kLookAhead steps, or those that are left, of all rows.
template <class Type, size_t n_rows>
HWY_NOINLINE void LookAhead(const std::array<const uint8_t*, n_rows>& rows, size_t step,
                            size_t n_steps, Indices<Type> (&indices)[n_rows]) {
  const size_t n = std::min(n_steps - step, kLookAhead);
  for (size_t r = 0; r < n_rows; ++r) {
    for (size_t s = 0; s < n; ++s) {
      Type::Look(rows[r] + (step + s) * Type::kStepBytes, indices[r].of_step[s]);
    }
  }
}

// Puts the inputs in order, once for all rows of a call: that takes as long as the product with a
// row or two. Returns [step][token], in scratch, with a last, padded step where cols is not a
// multiple of one. (The quantized form of activations is padded anyway; floats are not.)
template <class Type>
HWY_NOINLINE const typename Type::Input* PrepareInputs(std::span<const ActivationRow> x,
                                                       size_t cols, std::span<std::byte> scratch) {
  using Input = typename Type::Input;
  static_assert(sizeof(Input) <= Type::kStepWeights * sizeof(float) && Type::kStepWeights <= 512);
  Input* const inputs = reinterpret_cast<Input*>(scratch.data());
  const size_t n_steps = (cols + Type::kStepWeights - 1) / Type::kStepWeights;
  if constexpr (Type::kReadsFloats) {
    float* padded = reinterpret_cast<float*>(inputs + n_steps * x.size());
    for (size_t s = 0; s < n_steps; ++s) {
      const size_t i = s * Type::kStepWeights, n = std::min(Type::kStepWeights, cols - i);
      for (size_t t = 0; t < x.size(); ++t) {
        inputs[s * x.size() + t] = {x[t].x + i};
        if (n == Type::kStepWeights) continue;
        inputs[s * x.size() + t] = {padded};
        std::fill_n(std::copy_n(x[t].x + i, n, padded), Type::kStepWeights - n, 0.0f);
        padded += Type::kStepWeights;
      }
    }
  } else {
    for (size_t s = 0; s < n_steps; ++s) {
      for (size_t t = 0; t < x.size(); ++t) {
        inputs[s * x.size() + t] = Type::Load(x[t], s * Type::kStepWeights);
      }
    }
  }
  return inputs;
}

// The number of tokens: known to the compiler where it is one, which keeps that one's sums in
// registers.
using OneToken = std::integral_constant<size_t, 1>;
template <class Tokens>
constexpr size_t kMax = std::is_same_v<Tokens, OneToken> ? 1 : kRowTokens;

// sums[token][row] += unpacked step of each row * the token's.
template <class Type, size_t n_rows, class Tokens, class Unpack>
HWY_INLINE void MultiplyStep(Unpack unpack, const typename Type::Input* HWY_RESTRICT inputs,
                             Tokens n_tokens, Sums (&sums)[kMax<Tokens>][n_rows]) {
  if constexpr (kMax<Tokens> == 1) {
    HWY_UNROLL(4)
    for (size_t r = 0; r < n_rows; ++r) Type::Multiply(unpack(r), inputs[0], sums[0][r]);
  } else {
    constexpr size_t n = kTogether<Type>;
    HWY_UNROLL(4)
    for (size_t first = 0; first < n_rows; first += n) {
      typename Type::Unpacked unpacked[n];
      HWY_UNROLL(4)
      for (size_t r = 0; r < n; ++r) unpacked[r] = unpack(first + r);
      for (size_t t = 0; t < n_tokens; ++t) {
        HWY_UNROLL(4)
        for (size_t r = 0; r < n; ++r) Type::Multiply(unpacked[r], inputs[t], sums[t][first + r]);
      }
    }
  }
}

// The sums over the lanes, in four lanes ...
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> Fold(const Sums& sums) {
  const D8 d8;
  const hn::FixedTag<float, 4> d4;
#if PRONK_WIDE
  const V8 eight =
      hn::Add(hn::Add(hn::LowerHalf(d8, sums.a), hn::UpperHalf(d8, sums.a)), sums.mins);
#else
  const V8 eight = hn::Add(hn::ResizeBitCast(d8, sums.a), sums.mins);
#endif
#if PRONK_PIECES == 1
  return hn::ResizeBitCast(d4, eight);
#else
  return hn::Add(hn::LowerHalf(d4, eight), hn::UpperHalf(d4, eight));
#endif
}
// ... and four of those at a time to the end.
template <size_t n_rows, class Tokens>
HWY_INLINE void StoreSums(const Sums (&sums)[kMax<Tokens>][n_rows], Tokens n_tokens,
                          float* HWY_RESTRICT out) {
  const hn::FixedTag<float, 4> d;
  const size_t n = n_tokens * n_rows;
  alignas(64) float folded[(kMax<Tokens> * n_rows + 3) / 4 * 4][4];
  for (size_t i = 0; i < n; ++i) hn::Store(Fold(sums[i / n_rows][i % n_rows]), d, folded[i]);
  for (size_t i = n; i % 4 != 0; ++i) hn::Store(hn::Zero(d), d, folded[i]);
  for (size_t i = 0; i < n; i += 4) {
    hn::Vec<decltype(d)> a, b, c, e;
    hn::LoadInterleaved4(d, folded[i], a, b, c, e);
    hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, e)), d, out + i);
  }
}

// n_bytes of a step, and zeros up to the end of `step`.
template <size_t kStepBytes>
HWY_NOINLINE const uint8_t* PadStep(const uint8_t* HWY_RESTRICT w, size_t n_bytes,
                                    uint8_t (&step)[kStepBytes]) {
  std::memcpy(step, w, n_bytes);
  std::memset(step + n_bytes, 0, kStepBytes - n_bytes);
  return step;
}

// out[token][row]. `end` is that of the matrix.
template <class Type, size_t n_rows, class Tokens>
HWY_INLINE void DotRows(const std::array<const uint8_t*, n_rows>& rows, const uint8_t* end,
                        size_t row_bytes, size_t cols,
                        const typename Type::Input* HWY_RESTRICT inputs, Tokens n_tokens,
                        float* HWY_RESTRICT out) {
  constexpr size_t kStepBytes = Type::kStepBytes;
  Sums sums[kMax<Tokens>][n_rows];
  for (size_t t = 0; t < n_tokens; ++t) {
    for (Sums& s : sums[t]) s = {hn::Zero(DF()), hn::Zero(D8())};
  }
  IndicesOf<Type> indices[n_rows];
  const size_t n_steps = cols / Type::kStepWeights;
  for (size_t s = 0; s < n_steps; ++s) {
    if constexpr (kIndices<Type> != 0) {
      if (s % kLookAhead == 0) LookAhead<Type>(rows, s, n_steps, indices);
    }
    const auto step_of = [&](size_t r) HWY_ATTR {
      const uint8_t* const w = rows[r] + s * kStepBytes;
      for (size_t line = 0; line < kStepBytes; line += 64) {
        hwy::Prefetch(w + kPrefetchBytes + line);
      }
      return w;
    };
    const auto unpack = [&](size_t r) HWY_ATTR {
      const uint8_t* const w = step_of(r);
      if constexpr (kIndices<Type> != 0 && kMax<Tokens> == 1 && kUnpacksForOne<Type>) {
        return Type::UnpackForOne(w, indices[r].of_step[s % kLookAhead]);
      } else if constexpr (kIndices<Type> != 0) {
        return Type::Unpack(w, indices[r].of_step[s % kLookAhead]);
      } else if constexpr (kMax<Tokens> > 1 && kUnpacksForSeveral<Type>) {
        return Type::UnpackForSeveral(w);
      } else if constexpr (kMax<Tokens> == 1 && kUnpacksForOne<Type>) {
        return Type::UnpackForOne(w);
      } else {
        return Type::Unpack(w);
      }
    };
    if constexpr (kMax<Tokens> == 1 && kMultipliesAllRows<Type, n_rows>) {
      const uint8_t* steps[n_rows];
      for (size_t r = 0; r < n_rows; ++r) steps[r] = step_of(r);
      Type::MultiplyAllRows(steps, inputs[s], sums[0]);
    } else {
      MultiplyStep<Type, n_rows, Tokens>(unpack, inputs + s * n_tokens, n_tokens, sums);
    }
  }
  if constexpr (kPartialSteps<Type>) {
    static_assert(kIndices<Type> == 0);
    const size_t whole = n_steps * kStepBytes, n = cols - n_steps * Type::kStepWeights;
    if (n != 0) {
      // Read as a whole, with the beginning of the next row; at the end of the matrix a copy. (A
      // copy for each row costs a quarter of the time of rows of 1152: wide loads from what smaller
      // stores have just written wait until that is in the cache.)
      alignas(64) uint8_t copies[n_rows][kStepBytes];
      std::array<const uint8_t*, n_rows> last;
      for (size_t r = 0; r < n_rows; ++r) {
        last[r] = rows[r] + whole;
        if (static_cast<size_t>(end - last[r]) >= kStepBytes) continue;
        last[r] = PadStep(last[r], row_bytes - whole, copies[r]);
      }
      const auto unpack = [&](size_t r) HWY_ATTR { return Type::Keep(Type::Unpack(last[r]), n); };
      MultiplyStep<Type, n_rows, Tokens>(unpack, inputs + n_steps * n_tokens, n_tokens, sums);
    }
  }
  StoreSums<n_rows, Tokens>(sums, n_tokens, out);
}

// A format's Rows, see registry.h.
template <class Type>
HWY_INLINE void MultiplyRows(const Matrix& w, size_t begin, size_t end,
                             std::span<const ActivationRow> x, float* HWY_RESTRICT out,
                             size_t stride, std::span<std::byte> scratch) {
  if (begin == end) return;
  const size_t row_bytes = w.row_bytes();
  const auto* const data = reinterpret_cast<const uint8_t*>(w.data);
  const auto* const data_end = data + w.rows * row_bytes;
  constexpr size_t n = kRows<Type>;
  const size_t part = (end - begin + n - 1) / n;
  // What the steps do not ask for: the beginning of each stream. Measured: 2 to 4%.
  for (size_t line = 0; line < kPrefetchBytes; line += 64) {
    for (size_t r = 0; r < n; ++r) {
      hwy::Prefetch(data + std::min(begin + r * part, end - 1) * row_bytes + line);
    }
  }
  const auto* const inputs = PrepareInputs<Type>(x, w.cols, scratch);
  // Where parts are not full, the last row stands in for what is missing: a row's result comes from
  // the same code everywhere.
  for (size_t i = 0; i < part; ++i) {
    std::array<const uint8_t*, n> rows;
    for (size_t r = 0; r < n; ++r) {
      rows[r] = data + std::min(begin + r * part + i, end - 1) * row_bytes;
    }
    alignas(16) float dots[kRowTokens * n];
    if (x.size() == 1) {
      DotRows<Type, n>(rows, data_end, row_bytes, w.cols, inputs, OneToken(), dots);
    } else {
      DotRows<Type, n>(rows, data_end, row_bytes, w.cols, inputs, x.size(), dots);
    }
    for (size_t r = 0; r < n && r * part + i < end - begin; ++r) {
      for (size_t t = 0; t < x.size(); ++t) out[t * stride + r * part + i] = dots[t * n + r];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_MATMUL_ROWS_INL_H_
