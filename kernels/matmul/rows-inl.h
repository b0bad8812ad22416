// The loop around every product of weight rows with 1 to TokensByRows() vectors of activations (16;
// 48 of int8 types with vectors of 64 bytes), for any weight type. Included once per instruction
// set.
//
// A type is a struct, say Q4_0, that unpacks a STEP, a few blocks that fill whole vectors, and
// multiplies it. The loop takes kRows<Type, Tokens> rows at a time and multiplies each step with
// all tokens:
//
//   for each step, for each token:   inputs[step][token] = Type::Load(activations, position)
//   for kRows<Type, Tokens> rows at a time:
//     for each step:
//       for each row:     unpacked = Type::Unpack(bytes of the row)                    in registers
//         for each token: Type::Multiply(unpacked, inputs[step][token], sums[token][row])
//   out = sum over the lanes of the sums
//
// The order of a token's sums does not depend on the other tokens, so results are batch-invariant
// (kernels/README.md). The struct has:
//   Block                       a block, with its kWeights
//   kReadsFloats                whether x is floats, or q and scales
//   kStepWeights, kStepBytes    a step
//   struct Input                vectors of activations for one step, 4 bytes per weight at most
//   static Input Load(const ActivationRow& x, size_t i)
//                               i is the index of the step's first weight. It may read q, scales
//                               and sums up to the next multiple of 512.
//   struct Unpacked             vectors of codes and scales
//   static Unpacked Unpack(const uint8_t* w)
//                               reads nothing outside of [w, w + kStepBytes): the mapping of the
//                               file may end there.
//   static void Multiply(const Unpacked& w, const Input& in, RowSums& sums)
//
// kernels/README.md ("Members that a type may add") explains the optional members, which other ways
// to the same numbers need: Keep, kUnitRows, kStreams, DeferUnpack, LoadForOne, MultiplyAllRows,
// kIndices with Look, kSums.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "kernels/matmul/registry.h"
#include "kernels/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The number of tokens, a compile-time constant if it is 1: that keeps the sums in registers.
using OneToken = std::integral_constant<size_t, 1>;
template <class Tokens>
constexpr size_t kMaxTokens = std::is_same_v<Tokens, OneToken> ? 1
                              : PRONK_WIDE                     ? kMaxTokensByRows
                                                               : kTokensByRows;

// Rows that are computed at a time, one from each of so many parts of the range: so each part is a
// long stream of memory. With neighbouring rows each memory stream would jump after every row and
// restart the CPU's prefetcher and ours: half the speed, measured on Zen 4 with rows of 1152 bytes.
// One memory stream alone reads up to a fifth slower than four. Types that saturate the bandwidth
// with two memory streams for each of two threads have a kStreams, for one token (NOTEBOOK.md);
// with several tokens four rows share inputs.
constexpr size_t kMaxRows = 4;
template <class Type, class Tokens>
constexpr size_t kRows = [] {
  if constexpr (requires { Type::kStreams; }) {
    if (kMaxTokens<Tokens> == 1) return size_t{Type::kStreams};
  }
  return kMaxRows;
}();

// Rows that lie side by side in a type's vectors, which then share a conversion to float and its
// scaling: a UNIT of rows.
template <class Type>
constexpr size_t kUnitRows = [] {
  if constexpr (requires { Type::kUnitRows; }) return Type::kUnitRows;
  return size_t{1};
}();
template <class Type>
using SumsOf = std::conditional_t<kUnitRows<Type> == 2, PairSums, RowSums>;

// Units of rows that are unpacked before they are multiplied, so that a token's vectors are loaded
// once for these units: as many as fit in 32 registers. With 16 registers one fits.
template <class Type>
constexpr size_t kUnitsTogether = [] {
  size_t n = kMaxRows / kUnitRows<Type>;
  while (n > 1 && (hn::MaxLanes(DF()) < 16 || n * sizeof(typename Type::Unpacked) > 28 * 64))
    n /= 2;
  return n;
}();

// How far ahead of the arithmetic each of n memory streams is prefetched. Measured: with four, 768
// bytes are 7% slower, 3072 4%; with two, 1536 are 10 to 14% slower. (Uses the compiler's function:
// Highway's does nothing except on x86.)
template <size_t n>
constexpr size_t kPrefetchBytes = 6144 / n;

// Steps whose indices are stored at a time: a load from what a vector has just stored waits until
// that is in the cache. 32 look-ups on Zen 4: 23 cycles, 24 one step ahead, 58 just before.
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
constexpr bool kDefersUnpack = requires(const uint8_t* w) {
  Type::DeferUnpack(w);
};
template <class Type, size_t n>
constexpr bool kMultipliesAllRows = requires(const uint8_t* const (&w)[n],
                                             const typename Type::Input& in, RowSums (&sums)[n]) {
  Type::MultiplyAllRows(w, in, sums);
};
// Whether a type adds to RowSums::mins.
template <class Type>
constexpr bool kAddsMins = [] {
  if constexpr (requires { Type::kSums; }) return Type::kSums;
  return true;
}();
template <class Type>
constexpr bool kPartialSteps = Type::kStepWeights > Type::Block::kWeights;

// Stores the indices of up to kLookAhead steps of all rows.
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

// Reorders the inputs, once for all rows of a call, at the cost of a row or two. Returns
// [step][token], in scratch. The last step is padded; the int8 form already is.
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
      const size_t i = s * Type::kStepWeights;
      if constexpr (requires { Type::LoadForOne(x[0], i); }) {
        if (x.size() == 1 && i + Type::kStepWeights <= cols) {
          inputs[s] = Type::LoadForOne(x[0], i);
          continue;
        }
      }
      for (size_t t = 0; t < x.size(); ++t) inputs[s * x.size() + t] = Type::Load(x[t], i);
    }
  }
  return inputs;
}

// sums[token][unit] += (a step of the unit of rows) * (the token's input for the step).
// unpack(unit) is what Type::Multiply takes.
template <class Type, size_t n_units, class Tokens, class Unpack>
HWY_INLINE void MultiplyStep(Unpack unpack, const typename Type::Input* HWY_RESTRICT inputs,
                             Tokens n_tokens, SumsOf<Type> (&sums)[kMaxTokens<Tokens>][n_units]) {
  if constexpr (kMaxTokens<Tokens> == 1) {
    HWY_UNROLL(4)
    for (size_t u = 0; u < n_units; ++u) Type::Multiply(unpack(u), inputs[0], sums[0][u]);
  } else {
    constexpr size_t n = kUnitsTogether<Type>;
    HWY_UNROLL(4)
    for (size_t first = 0; first < n_units; first += n) {
      typename Type::Unpacked unpacked[n];
      HWY_UNROLL(4)
      for (size_t u = 0; u < n; ++u) unpacked[u] = unpack(first + u);
      for (size_t t = 0; t < n_tokens; ++t) {
        HWY_UNROLL(4)
        for (size_t u = 0; u < n; ++u) Type::Multiply(unpacked[u], inputs[t], sums[t][first + u]);
      }
    }
  }
}

#if PRONK_WIDE
// Four sums of eight lanes each: of the lower and the upper half of `ab`, then of `cd`.
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> FoldEights(VF ab, VF cd) {
  const VF four = hn::Add(VF{_mm512_shuffle_f32x4(ab.raw, cd.raw, 0x88)},
                          VF{_mm512_shuffle_f32x4(ab.raw, cd.raw, 0xDD)});
  const VF two = hn::Add(four, hn::Shuffle2301(four));
  const VF one = hn::Add(two, hn::Shuffle1032(two));
  alignas(64) static constexpr int32_t kFirst[16] = {0, 4, 8, 12};
  return hn::ResizeBitCast(hn::FixedTag<float, 4>(),
                           hn::TableLookupLanes(one, hn::SetTableIndices(DF(), kFirst)));
}
template <bool kMins>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> Fold(const PairSums& ab, const PairSums& cd) {
  if constexpr (!kMins) return FoldEights(ab.products, cd.products);
  return FoldEights(hn::Add(ab.products, ab.mins), hn::Add(cd.products, cd.mins));
}
#endif
// The sums over the lanes of each of the four arguments.
template <bool kMins>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> Fold(const RowSums& s0, const RowSums& s1,
                                                const RowSums& s2, const RowSums& s3) {
#if PRONK_WIDE
  const DF d;
  const auto eight = [&](const RowSums& a, const RowSums& b) HWY_ATTR {
    const VF low{_mm512_shuffle_f32x4(a.products.raw, b.products.raw, 0x44)};
    const VF high{_mm512_shuffle_f32x4(a.products.raw, b.products.raw, 0xEE)};
    const VF both = hn::Add(low, high);
    if constexpr (kMins) return hn::Add(both, hn::Combine(d, b.mins, a.mins));
    return both;
  };
  return FoldEights(eight(s0, s1), eight(s2, s3));
#else
  const hn::FixedTag<float, 4> d4;
  alignas(16) float folded[4][4];
  const auto fold = [&](const RowSums& s, size_t i) HWY_ATTR {
    VF8 eight = hn::ResizeBitCast(DF8(), s.products);
    if constexpr (kMins) eight = hn::Add(eight, s.mins);
#if PRONK_PIECES == 1
    hn::Store(hn::ResizeBitCast(d4, eight), d4, folded[i]);
#else
    hn::Store(hn::Add(hn::LowerHalf(d4, eight), hn::UpperHalf(d4, eight)), d4, folded[i]);
#endif
  };
  fold(s0, 0), fold(s1, 1), fold(s2, 2), fold(s3, 3);
  hn::Vec<decltype(d4)> a, b, c, e;
  hn::LoadInterleaved4(d4, folded[0], a, b, c, e);
  return hn::Add(hn::Add(a, b), hn::Add(c, e));
#endif
}
template <bool kMins, size_t n_rows, class UnitSums, size_t n_units, class Tokens>
HWY_INLINE void StoreSums(const UnitSums (&sums)[kMaxTokens<Tokens>][n_units], Tokens n_tokens,
                          float* HWY_RESTRICT out) {
  const hn::FixedTag<float, 4> d;
  static_assert(n_rows == kMaxRows || (n_rows == 2 && kMaxTokens<Tokens> == 1));
  for (size_t t = 0; t < n_tokens; ++t) {  // of two rows, lanes 2 and 3 repeat 0 and 1
    const auto& units = sums[t];
    if constexpr (n_units == n_rows) {
      hn::Store(Fold<kMins>(units[0], units[1], units[2 % n_rows], units[3 % n_rows]), d,
                out + t * n_rows);
    } else {
      hn::Store(Fold<kMins>(units[0], units[1]), d, out + t * n_rows);
    }
  }
}

// n_bytes of a step, then zeros.
template <size_t kStepBytes>
HWY_NOINLINE const uint8_t* PadStep(const uint8_t* HWY_RESTRICT w, size_t n_bytes,
                                    uint8_t (&step)[kStepBytes]) {
  std::memcpy(step, w, n_bytes);
  std::memset(step + n_bytes, 0, kStepBytes - n_bytes);
  return step;
}

// A unit of rows, for Type::Multiply. step_of(row) is the row's step, whose indices, for types that
// have them, are number `step` of the row's.
template <class Type, class Tokens, size_t n_rows, class StepOf>
HWY_INLINE auto UnpackUnit(size_t unit, StepOf step_of,
                           [[maybe_unused]] const IndicesOf<Type> (&indices)[n_rows],
                           [[maybe_unused]] size_t step) {
  constexpr bool kDefers = kMaxTokens<Tokens> == 1 && kDefersUnpack<Type>;
  if constexpr (kUnitRows<Type> == 2) {
    return Type::Unpack(step_of(2 * unit), step_of(2 * unit + 1));
  } else if constexpr (kIndices<Type> != 0 && kDefers) {
    return Type::DeferUnpack(step_of(unit), indices[unit].of_step[step]);
  } else if constexpr (kIndices<Type> != 0) {
    return Type::Unpack(step_of(unit), indices[unit].of_step[step]);
  } else if constexpr (kDefers) {
    return Type::DeferUnpack(step_of(unit));
  } else {
    return Type::Unpack(step_of(unit));
  }
}

// Adds the products of the last n weights of each row, fewer than a step: from byte `whole` of the
// rows on, of row_bytes. `end` is the end of the matrix.
template <class Type, size_t n_rows, class Tokens>
HWY_INLINE void MultiplyLastStep(
    const std::array<const uint8_t*, n_rows>& rows, const uint8_t* end, size_t row_bytes,
    size_t whole, size_t n, const typename Type::Input* HWY_RESTRICT inputs, Tokens n_tokens,
    SumsOf<Type> (&sums)[kMaxTokens<Tokens>][n_rows / kUnitRows<Type>]) {
  static_assert(kIndices<Type> == 0);
  constexpr size_t kStepBytes = Type::kStepBytes;
  // The step is read whole, with the beginning of the next row, and copied only at the end of the
  // matrix: copying each row takes a quarter of the time of rows of 1152 weights.
  alignas(64) uint8_t copies[n_rows][kStepBytes];
  std::array<const uint8_t*, n_rows> last;
  for (size_t r = 0; r < n_rows; ++r) {
    last[r] = rows[r] + whole;
    if (static_cast<size_t>(end - last[r]) >= kStepBytes) continue;
    last[r] = PadStep(last[r], row_bytes - whole, copies[r]);
  }
  const auto unpack = [&](size_t u) HWY_ATTR {
    if constexpr (kUnitRows<Type> == 2) {
      return Type::Keep(Type::Unpack(last[2 * u], last[2 * u + 1]), n);
    } else {
      return Type::Keep(Type::Unpack(last[u]), n);
    }
  };
  MultiplyStep<Type, n_rows / kUnitRows<Type>, Tokens>(unpack, inputs, n_tokens, sums);
}

// out[token][row]. `end` is the end of the matrix.
template <class Type, size_t n_rows, class Tokens>
HWY_INLINE void DotRows(const std::array<const uint8_t*, n_rows>& rows, const uint8_t* end,
                        size_t row_bytes, size_t cols,
                        const typename Type::Input* HWY_RESTRICT inputs, Tokens n_tokens,
                        float* HWY_RESTRICT out) {
  constexpr size_t kStepBytes = Type::kStepBytes;
  constexpr size_t n_units = n_rows / kUnitRows<Type>;
  SumsOf<Type> sums[kMaxTokens<Tokens>][n_units];
  for (size_t t = 0; t < n_tokens; ++t) {
    for (SumsOf<Type>& s : sums[t]) {
      s.products = hn::Zero(DF());
      if constexpr (kAddsMins<Type>) s.mins = hn::Zero(hn::DFromV<decltype(s.mins)>());
    }
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
        __builtin_prefetch(w + kPrefetchBytes<n_rows> + line);
      }
      return w;
    };
    if constexpr (kMaxTokens<Tokens> == 1 && kMultipliesAllRows<Type, n_rows>) {
      const uint8_t* steps[n_rows];
      for (size_t r = 0; r < n_rows; ++r) steps[r] = step_of(r);
      Type::MultiplyAllRows(steps, inputs[s], sums[0]);
    } else {
      const auto unpack = [&](size_t unit) HWY_ATTR {
        return UnpackUnit<Type, Tokens>(unit, step_of, indices, s % kLookAhead);
      };
      MultiplyStep<Type, n_units, Tokens>(unpack, inputs + s * n_tokens, n_tokens, sums);
    }
  }
  if constexpr (kPartialSteps<Type>) {
    const size_t n = cols - n_steps * Type::kStepWeights;
    if (n != 0) {
      MultiplyLastStep<Type, n_rows, Tokens>(rows, end, row_bytes, n_steps * kStepBytes, n,
                                             inputs + n_steps * n_tokens, n_tokens, sums);
    }
  }
  StoreSums<kAddsMins<Type>, n_rows, SumsOf<Type>, n_units, Tokens>(sums, n_tokens, out);
}

// dots[k] has the results of row first + k of each memory stream, [token][stream]. Copies those of
// the rows [first, end) of each stream to `out`, whose rows have n_rows numbers; the last streams
// may have fewer rows.
template <size_t n_streams, size_t kWaiting, size_t kDots, class Tokens>
HWY_INLINE void StoreDots(const float (&dots)[kWaiting][kDots], size_t first, size_t end,
                          size_t rows_per_stream, size_t n_rows, Tokens n_tokens,
                          float* HWY_RESTRICT out, size_t stride) {
  for (size_t s = 0; s < n_streams && s * rows_per_stream + first < n_rows; ++s) {
    const size_t count = std::min(end, n_rows - s * rows_per_stream) - first;
    for (size_t t = 0; t < n_tokens; ++t) {
      float* const to = out + t * stride + s * rows_per_stream + first;
      for (size_t k = 0; k < count; ++k) to[k] = dots[k][t * n_streams + s];
    }
  }
}

// MultiplyRows for a number of tokens that may be a constant. The range of rows becomes as many
// memory streams as rows are computed at a time.
template <class Type, class Tokens>
HWY_INLINE void MultiplyStreams(const Matrix& w, size_t begin, size_t end,
                                std::span<const ActivationRow> x, Tokens n_tokens,
                                float* HWY_RESTRICT out, size_t stride,
                                std::span<std::byte> scratch, bool prepared) {
  const size_t row_bytes = w.row_bytes();
  const auto* const data = reinterpret_cast<const uint8_t*>(w.data);
  const auto* const data_end = data + w.rows * row_bytes;
  constexpr size_t n_streams = kRows<Type, Tokens>;
  const size_t rows_per_stream = (end - begin + n_streams - 1) / n_streams;
  // The beginning of each memory stream, which no step prefetches: 2 to 4%.
  for (size_t line = 0; line < kPrefetchBytes<n_streams>; line += 64) {
    for (size_t s = 0; s < n_streams; ++s) {
      __builtin_prefetch(data + std::min(begin + s * rows_per_stream, end - 1) * row_bytes + line);
    }
  }
  const auto* const inputs = prepared ? reinterpret_cast<typename Type::Input*>(scratch.data())
                                      : PrepareInputs<Type>(x, w.cols, scratch);
  // Where fewer than n_streams rows are left, the last row stands in, so that the same code
  // computes every result. The results of several tokens are collected until each token has a cache
  // line: where rows of `out` are a multiple of 4 KB apart, as widths of models are, the lines of
  // 16 tokens map to one set of the cache, which holds 8 or 12.
  constexpr size_t kWaiting = kMaxTokens<Tokens> == 1 ? 1 : 16;
  alignas(16) float dots[kWaiting][(kMaxTokens<Tokens> * n_streams + 3) / 4 * 4];
  for (size_t i = 0; i < rows_per_stream; ++i) {
    std::array<const uint8_t*, n_streams> rows;
    for (size_t s = 0; s < n_streams; ++s) {
      rows[s] = data + std::min(begin + s * rows_per_stream + i, end - 1) * row_bytes;
    }
    DotRows<Type, n_streams>(rows, data_end, row_bytes, w.cols, inputs, n_tokens,
                             dots[i % kWaiting]);
    if (i % kWaiting + 1 < kWaiting && i + 1 < rows_per_stream) continue;
    StoreDots<n_streams>(dots, i / kWaiting * kWaiting, i + 1, rows_per_stream, end - begin,
                         n_tokens, out, stride);
  }
}

// A weight type's RowsFunction, see registry.h.
template <class Type>
void MultiplyRows(const Matrix& w, size_t begin, size_t end, std::span<const ActivationRow> x,
                  float* HWY_RESTRICT out, size_t stride, std::span<std::byte> scratch,
                  bool prepared) {
  if (begin == end) return;
  if (x.size() == 1) {
    MultiplyStreams<Type>(w, begin, end, x, OneToken(), out, stride, scratch, prepared);
  } else {
    MultiplyStreams<Type>(w, begin, end, x, x.size(), out, stride, scratch, prepared);
  }
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
