// The loop around every product of weight rows with 1 to MaxRowTokens() vectors of activations (16;
// 48 of int8 types with vectors of 64 bytes), for any weight type. Included once per instruction
// set.
//
// A type is a struct, say Q4_0, that unpacks a STEP, a few blocks that fill whole vectors, and
// multiplies it. The loop takes kRowsAtOnce<Type, Tokens> rows at a time and multiplies each step
// with all tokens:
//
//   for each step, for each token:   inputs[step][token] = Type::LoadInput(activations, position)
//   for kRowsAtOnce<Type, Tokens> rows at a time:
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
//   static Input LoadInput(const ActivationRow& x, size_t i)
//                               i is the index of the step's first weight. It may read q, scales
//                               and sums up to the next multiple of 512.
//   struct Unpacked             vectors of codes and scales
//   static Unpacked Unpack(const uint8_t* w)
//                               reads nothing outside of [w, w + kStepBytes): the mapping of the
//                               file may end there.
//   static void Multiply(const Unpacked& w, const Input& in, RowSums& sums)
//
// kernels/README.md ("Members that a type may add") explains the optional members, which other ways
// to the same numbers need: ZeroAfter, kRowsPerVector, kRowsAtOnceForOne, DeferUnpack,
// LoadInputForOne, MultiplyAllRows, kIndices with ComputeIndices, kAddsOffsets.

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
constexpr size_t kMaxTokensOf = std::is_same_v<Tokens, OneToken> ? 1
                                : PRONK_VECTOR64                 ? kMaxRowTokens
                                                                 : kDefaultMaxRowTokens;

// Rows that are computed at a time. The rows are divided into as many equal row ranges, and one row
// of each range is computed at a time, so that each range is a long stream of memory. With
// neighbouring rows each stream would jump after every row and restart the CPU's prefetcher and
// ours: half the speed, measured on Zen 4 with rows of 1152 bytes. One stream alone reads up to a
// fifth slower than four. Types that saturate the bandwidth with two streams for each of two
// threads have a kRowsAtOnceForOne, for one token (NOTEBOOK.md); with several tokens four rows
// share inputs.
constexpr size_t kMaxRowsAtOnce = 4;
template <class Type, class Tokens>
constexpr size_t kRowsAtOnce = [] {
  if constexpr (requires { Type::kRowsAtOnceForOne; }) {
    if (kMaxTokensOf<Tokens> == 1) return size_t{Type::kRowsAtOnceForOne};
  }
  return kMaxRowsAtOnce;
}();

// Rows that lie side by side in a type's vectors: one, or a row pair, which shares a conversion to
// float and its scaling. Sum number i is that of row i, or of the row pair 2 i and 2 i + 1.
template <class Type>
constexpr size_t kRowsPerVector = [] {
  if constexpr (requires { Type::kRowsPerVector; }) return Type::kRowsPerVector;
  return size_t{1};
}();
template <class Type>
using SumsOf = std::conditional_t<kRowsPerVector<Type> == 2, PairSums, RowSums>;

// Rows (or row pairs) that are unpacked before they are multiplied, so that a token's vectors are
// loaded once for these: as many as fit in 32 registers. With 16 registers one row fits.
template <class Type>
constexpr size_t kUnpackedTogether = [] {
  size_t n = kMaxRowsAtOnce / kRowsPerVector<Type>;
  while (n > 1 && (hn::MaxLanes(DF()) < 16 || n * sizeof(typename Type::Unpacked) > 28 * 64))
    n /= 2;
  return n;
}();

// The bytes by which prefetching is ahead of the arithmetic in each of n row ranges. Measured: with
// four, 768 bytes are 7% slower, 3072 4%; with two, 1536 are 10 to 14% slower. (Prefetching uses
// the compiler's function: Highway's does nothing except on x86.)
template <size_t n>
constexpr size_t kPrefetchBytes = 6144 / n;

// Steps whose indices are stored at a time: a load from a vector just stored waits until the vector
// is in the cache. 32 look-ups on Zen 4 take 23 cycles; 24 if indices are stored one step ahead, 58
// if just before.
constexpr size_t kIndexSteps = 8;
template <class Type>
constexpr size_t kIndices = [] {
  if constexpr (requires { Type::kIndices; }) return Type::kIndices;
  return size_t{0};
}();
template <class Type>
struct Indices {
  alignas(64) uint16_t of_step[kIndexSteps][kIndices<Type>];
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
// True if a type adds to RowSums::offsets.
template <class Type>
constexpr bool kAddsOffsets = [] {
  if constexpr (requires { Type::kAddsOffsets; }) return Type::kAddsOffsets;
  return true;
}();
template <class Type>
constexpr bool kPartialSteps = Type::kStepWeights > Type::Block::kWeights;

// Stores the indices of up to kIndexSteps steps of all rows.
template <class Type, size_t n_rows>
HWY_NOINLINE void ComputeIndicesAhead(const std::array<const uint8_t*, n_rows>& rows, size_t step,
                                      size_t n_steps, Indices<Type> (&indices)[n_rows]) {
  const size_t n = std::min(n_steps - step, kIndexSteps);
  for (size_t r = 0; r < n_rows; ++r) {
    for (size_t s = 0; s < n; ++s) {
      Type::ComputeIndices(rows[r] + (step + s) * Type::kStepBytes, indices[r].of_step[s]);
    }
  }
}

// Reorders the inputs, once for all rows of a call; that costs as much as a row or two. Returns
// [step][token], in scratch. The last step is padded; the int8 form is padded already.
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
      if constexpr (requires { Type::LoadInputForOne(x[0], i); }) {
        if (x.size() == 1 && i + Type::kStepWeights <= cols) {
          inputs[s] = Type::LoadInputForOne(x[0], i);
          continue;
        }
      }
      for (size_t t = 0; t < x.size(); ++t) inputs[s * x.size() + t] = Type::LoadInput(x[t], i);
    }
  }
  return inputs;
}

// Adds the products of a step to sums[token][i]. unpack(i) returns the step's weights for sum
// number i, as Type::Multiply takes them; `inputs` are the tokens' inputs for the step.
template <class Type, size_t n_sums, class Tokens, class Unpack>
HWY_INLINE void MultiplyStep(Unpack unpack, const typename Type::Input* HWY_RESTRICT inputs,
                             Tokens n_tokens, SumsOf<Type> (&sums)[kMaxTokensOf<Tokens>][n_sums]) {
  if constexpr (kMaxTokensOf<Tokens> == 1) {
    HWY_UNROLL(4)
    for (size_t i = 0; i < n_sums; ++i) Type::Multiply(unpack(i), inputs[0], sums[0][i]);
  } else {
    constexpr size_t n = kUnpackedTogether<Type>;
    HWY_UNROLL(4)
    for (size_t first = 0; first < n_sums; first += n) {
      typename Type::Unpacked unpacked[n];
      HWY_UNROLL(4)
      for (size_t i = 0; i < n; ++i) unpacked[i] = unpack(first + i);
      for (size_t t = 0; t < n_tokens; ++t) {
        HWY_UNROLL(4)
        for (size_t i = 0; i < n; ++i) Type::Multiply(unpacked[i], inputs[t], sums[t][first + i]);
      }
    }
  }
}

#if PRONK_VECTOR64
// The sums over the lanes of four halves: the lower and the upper half of `ab`, then of `cd`.
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> SumLanesOfHalves(VF ab, VF cd) {
  const VF four = hn::Add(VF{_mm512_shuffle_f32x4(ab.raw, cd.raw, 0x88)},
                          VF{_mm512_shuffle_f32x4(ab.raw, cd.raw, 0xDD)});
  const VF two = hn::Add(four, hn::Shuffle2301(four));
  const VF one = hn::Add(two, hn::Shuffle1032(two));
  alignas(64) static constexpr int32_t kFirst[16] = {0, 4, 8, 12};
  return hn::ResizeBitCast(hn::FixedTag<float, 4>(),
                           hn::TableLookupLanes(one, hn::SetTableIndices(DF(), kFirst)));
}
template <bool kOffsets>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> SumLanes(const PairSums& ab, const PairSums& cd) {
  if constexpr (!kOffsets) return SumLanesOfHalves(ab.products, cd.products);
  return SumLanesOfHalves(hn::Add(ab.products, ab.offsets), hn::Add(cd.products, cd.offsets));
}
#endif
// The sums over the lanes of each of four rows.
template <bool kOffsets>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> SumLanes(const RowSums& s0, const RowSums& s1,
                                                    const RowSums& s2, const RowSums& s3) {
#if PRONK_VECTOR64
  const DF d;
  const auto eight = [&](const RowSums& a, const RowSums& b) HWY_ATTR {
    const VF low{_mm512_shuffle_f32x4(a.products.raw, b.products.raw, 0x44)};
    const VF high{_mm512_shuffle_f32x4(a.products.raw, b.products.raw, 0xEE)};
    const VF both = hn::Add(low, high);
    if constexpr (kOffsets) return hn::Add(both, hn::Combine(d, b.offsets, a.offsets));
    return both;
  };
  return SumLanesOfHalves(eight(s0, s1), eight(s2, s3));
#else
  const hn::FixedTag<float, 4> d4;
  alignas(16) float parts[4][4];
  const auto store_part = [&](const RowSums& s, size_t i) HWY_ATTR {
    VF8 eight = hn::ResizeBitCast(DF8(), s.products);
    if constexpr (kOffsets) eight = hn::Add(eight, s.offsets);
#if PRONK_LANES128 == 1
    hn::Store(hn::ResizeBitCast(d4, eight), d4, parts[i]);
#else
    hn::Store(hn::Add(hn::LowerHalf(d4, eight), hn::UpperHalf(d4, eight)), d4, parts[i]);
#endif
  };
  store_part(s0, 0), store_part(s1, 1), store_part(s2, 2), store_part(s3, 3);
  hn::Vec<decltype(d4)> a, b, c, e;
  hn::LoadInterleaved4(d4, parts[0], a, b, c, e);
  return hn::Add(hn::Add(a, b), hn::Add(c, e));
#endif
}
template <bool kOffsets, size_t n_rows, class Sums, size_t n_sums, class Tokens>
HWY_INLINE void StoreSums(const Sums (&sums)[kMaxTokensOf<Tokens>][n_sums], Tokens n_tokens,
                          float* HWY_RESTRICT out) {
  const hn::FixedTag<float, 4> d;
  static_assert(n_rows == kMaxRowsAtOnce || (n_rows == 2 && kMaxTokensOf<Tokens> == 1));
  for (size_t t = 0; t < n_tokens; ++t) {  // with two rows, lanes 2 and 3 repeat lanes 0 and 1
    const auto& s = sums[t];
    if constexpr (n_sums == n_rows) {
      hn::Store(SumLanes<kOffsets>(s[0], s[1], s[2 % n_rows], s[3 % n_rows]), d, out + t * n_rows);
    } else {
      hn::Store(SumLanes<kOffsets>(s[0], s[1]), d, out + t * n_rows);
    }
  }
}

// Copies n_bytes of a step, and pads it with zeros.
template <size_t kStepBytes>
HWY_NOINLINE const uint8_t* PadStep(const uint8_t* HWY_RESTRICT w, size_t n_bytes,
                                    uint8_t (&step)[kStepBytes]) {
  std::memcpy(step, w, n_bytes);
  std::memset(step + n_bytes, 0, kStepBytes - n_bytes);
  return step;
}

// A step's weights for sum number i, as Type::Multiply takes them. step_of(row) is the address of
// the row's step. Types with indices find the step's indices in indices[row].of_step[step].
template <class Type, class Tokens, size_t n_rows, class StepOf>
HWY_INLINE auto UnpackRows(size_t i, StepOf step_of,
                           [[maybe_unused]] const IndicesOf<Type> (&indices)[n_rows],
                           [[maybe_unused]] size_t step) {
  constexpr bool kDefers = kMaxTokensOf<Tokens> == 1 && kDefersUnpack<Type>;
  if constexpr (kRowsPerVector<Type> == 2) {
    return Type::Unpack(step_of(2 * i), step_of(2 * i + 1));
  } else if constexpr (kIndices<Type> != 0 && kDefers) {
    return Type::DeferUnpack(step_of(i), indices[i].of_step[step]);
  } else if constexpr (kIndices<Type> != 0) {
    return Type::Unpack(step_of(i), indices[i].of_step[step]);
  } else if constexpr (kDefers) {
    return Type::DeferUnpack(step_of(i));
  } else {
    return Type::Unpack(step_of(i));
  }
}

// Adds the products of the last n weights of each row, fewer than a step, which begin at byte
// `whole` of the row's row_bytes. `end` is the end of the matrix.
template <class Type, size_t n_rows, class Tokens>
HWY_INLINE void MultiplyLastStep(
    const std::array<const uint8_t*, n_rows>& rows, const uint8_t* end, size_t row_bytes,
    size_t whole, size_t n, const typename Type::Input* HWY_RESTRICT inputs, Tokens n_tokens,
    SumsOf<Type> (&sums)[kMaxTokensOf<Tokens>][n_rows / kRowsPerVector<Type>]) {
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
  const auto unpack = [&](size_t i) HWY_ATTR {
    if constexpr (kRowsPerVector<Type> == 2) {
      return Type::ZeroAfter(Type::Unpack(last[2 * i], last[2 * i + 1]), n);
    } else {
      return Type::ZeroAfter(Type::Unpack(last[i]), n);
    }
  };
  MultiplyStep<Type, n_rows / kRowsPerVector<Type>, Tokens>(unpack, inputs, n_tokens, sums);
}

// Computes out[token][row]. `end` is the end of the matrix.
template <class Type, size_t n_rows, class Tokens>
HWY_INLINE void DotRows(const std::array<const uint8_t*, n_rows>& rows, const uint8_t* end,
                        size_t row_bytes, size_t cols,
                        const typename Type::Input* HWY_RESTRICT inputs, Tokens n_tokens,
                        float* HWY_RESTRICT out) {
  constexpr size_t kStepBytes = Type::kStepBytes;
  constexpr size_t n_sums = n_rows / kRowsPerVector<Type>;
  SumsOf<Type> sums[kMaxTokensOf<Tokens>][n_sums];
  for (size_t t = 0; t < n_tokens; ++t) {
    for (SumsOf<Type>& s : sums[t]) {
      s.products = hn::Zero(DF());
      if constexpr (kAddsOffsets<Type>) s.offsets = hn::Zero(hn::DFromV<decltype(s.offsets)>());
    }
  }
  IndicesOf<Type> indices[n_rows];
  const size_t n_steps = cols / Type::kStepWeights;
  for (size_t s = 0; s < n_steps; ++s) {
    if constexpr (kIndices<Type> != 0) {
      if (s % kIndexSteps == 0) ComputeIndicesAhead<Type>(rows, s, n_steps, indices);
    }
    const auto step_of = [&](size_t r) HWY_ATTR {
      const uint8_t* const w = rows[r] + s * kStepBytes;
      for (size_t line = 0; line < kStepBytes; line += 64) {
        __builtin_prefetch(w + kPrefetchBytes<n_rows> + line);
      }
      return w;
    };
    if constexpr (kMaxTokensOf<Tokens> == 1 && kMultipliesAllRows<Type, n_rows>) {
      const uint8_t* steps[n_rows];
      for (size_t r = 0; r < n_rows; ++r) steps[r] = step_of(r);
      Type::MultiplyAllRows(steps, inputs[s], sums[0]);
    } else {
      const auto unpack = [&](size_t i) HWY_ATTR {
        return UnpackRows<Type, Tokens>(i, step_of, indices, s % kIndexSteps);
      };
      MultiplyStep<Type, n_sums, Tokens>(unpack, inputs + s * n_tokens, n_tokens, sums);
    }
  }
  if constexpr (kPartialSteps<Type>) {
    const size_t n = cols - n_steps * Type::kStepWeights;
    if (n != 0) {
      MultiplyLastStep<Type, n_rows, Tokens>(rows, end, row_bytes, n_steps * kStepBytes, n,
                                             inputs + n_steps * n_tokens, n_tokens, sums);
    }
  }
  StoreSums<kAddsOffsets<Type>, n_rows, SumsOf<Type>, n_sums, Tokens>(sums, n_tokens, out);
}

// dots[k] has the results of row first + k of each row range, [token][range]. Copies the results of
// the rows [first, end) of each range to `out`, whose rows have n_rows numbers; the last ranges may
// have fewer rows.
template <size_t n_row_ranges, size_t kBuffered, size_t kDots, class Tokens>
HWY_INLINE void StoreDots(const float (&dots)[kBuffered][kDots], size_t first, size_t end,
                          size_t rows_per_range, size_t n_rows, Tokens n_tokens,
                          float* HWY_RESTRICT out, size_t stride) {
  for (size_t range = 0; range < n_row_ranges && range * rows_per_range + first < n_rows; ++range) {
    const size_t count = std::min(end, n_rows - range * rows_per_range) - first;
    for (size_t t = 0; t < n_tokens; ++t) {
      float* const to = out + t * stride + range * rows_per_range + first;
      for (size_t k = 0; k < count; ++k) to[k] = dots[k][t * n_row_ranges + range];
    }
  }
}

// MultiplyRows for a number of tokens that may be a constant. The rows are divided into as many row
// ranges as rows are computed at a time.
template <class Type, class Tokens>
HWY_INLINE void MultiplyRowRanges(const Matrix& w, size_t begin, size_t end,
                                  std::span<const ActivationRow> x, Tokens n_tokens,
                                  float* HWY_RESTRICT out, size_t stride,
                                  std::span<std::byte> scratch, bool prepared) {
  const size_t row_bytes = w.row_bytes();
  const auto* const data = reinterpret_cast<const uint8_t*>(w.data);
  const auto* const data_end = data + w.rows * row_bytes;
  constexpr size_t n_row_ranges = kRowsAtOnce<Type, Tokens>;
  const size_t rows_per_range = (end - begin + n_row_ranges - 1) / n_row_ranges;
  // Prefetches the beginning of each row range, which no step does: 2 to 4% faster.
  for (size_t line = 0; line < kPrefetchBytes<n_row_ranges>; line += 64) {
    for (size_t range = 0; range < n_row_ranges; ++range) {
      __builtin_prefetch(data + std::min(begin + range * rows_per_range, end - 1) * row_bytes +
                         line);
    }
  }
  const auto* const inputs = prepared ? reinterpret_cast<typename Type::Input*>(scratch.data())
                                      : PrepareInputs<Type>(x, w.cols, scratch);
  // Where fewer than n_row_ranges rows are left, the last row is repeated, so that the same code
  // computes every result. The results of several tokens are collected until each token has a cache
  // line: where rows of `out` are a multiple of 4 KB apart, as widths of models are, the lines of
  // 16 tokens map to one set of the cache, which holds 8 or 12.
  constexpr size_t kBuffered = kMaxTokensOf<Tokens> == 1 ? 1 : 16;
  alignas(16) float dots[kBuffered][(kMaxTokensOf<Tokens> * n_row_ranges + 3) / 4 * 4];
  for (size_t i = 0; i < rows_per_range; ++i) {
    std::array<const uint8_t*, n_row_ranges> rows;
    for (size_t range = 0; range < n_row_ranges; ++range) {
      rows[range] = data + std::min(begin + range * rows_per_range + i, end - 1) * row_bytes;
    }
    DotRows<Type, n_row_ranges>(rows, data_end, row_bytes, w.cols, inputs, n_tokens,
                                dots[i % kBuffered]);
    if (i % kBuffered + 1 < kBuffered && i + 1 < rows_per_range) continue;
    StoreDots<n_row_ranges>(dots, i / kBuffered * kBuffered, i + 1, rows_per_range, end - begin,
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
    MultiplyRowRanges<Type>(w, begin, end, x, OneToken(), out, stride, scratch, prepared);
  } else {
    MultiplyRowRanges<Type>(w, begin, end, x, x.size(), out, stride, scratch, prepared);
  }
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
