// The packing of weights and activations for products with a batch of tokens. Included once per
// instruction set.
//
// In prefill a weight is used once for each of hundreds of tokens. So a thread packs a micro-panel
// of kMicroRows rows, of any type, into one simple layout in its own cache, once per batch. A
// k-group is four consecutive weights of each row, side by side. One broadcast of a token's four
// activations feeds all lanes of a dot product; a lane belongs to a row, and no sum crosses lanes:
//
//   codes     | row 0: k k+1 k+2 k+3 | row 1: k k+1 k+2 k+3 | ... | row 15: k k+1 k+2 k+3 |
//   token t   |        k k+1 k+2 k+3 |        k k+1 k+2 k+3 | ... |         k k+1 k+2 k+3 |
//   i32 dots  | row 0                | row 1                | ... | row 15                |
//
// (A micro-panel of 32 rows has two such vectors.) A block is 32 columns of a micro-panel: 8
// k-groups of codes, then the scales (and minimums) of its rows, one float per row and 32 weights,
// or two for types with a scale per 16. Every quantized type consists of small integers times a
// scale, so this is exact. A panel is the micro-panels that fit in the second-level cache.
//
// Activations are packed in tiles of kTileTokens tokens, 32 columns of each in a block, so that a
// kernel reads both inputs in one stream each.
//
// Arm's i8mm multiplies two tokens with two rows, eight columns of each, so there a k-group has
// eight columns, and tokens are packed in pairs:
//
//   codes     | row 0: k ... k+7     | row 1: k ... k+7     |
//   tokens    | token t: k ... k+7   | token t+1: k ... k+7 |
//   i32 dots  | row 0, t | row 1, t  | row 0, t+1 | row 1, t+1 |
#if defined(PRONK_KERNELS_MATMUL_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_MATMUL_PANEL_INL_H_
#undef PRONK_KERNELS_MATMUL_PANEL_INL_H_
#else
#define PRONK_KERNELS_MATMUL_PANEL_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/bf16.h"
#include "kernels/matmul/gemm.h"
#include "kernels/simd/vectors-inl.h"
#include "kernels/types/shared/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The columns of a k-group, and the number of tokens in a vector of sums.
#ifdef PRONK_NEON_I8MM
constexpr size_t kGroupCols = 8, kSumTokens = 2;
#else
constexpr size_t kGroupCols = 4, kSumTokens = 1;
#endif

// A register tile: the rows of a micro-panel and the tokens whose sums stay in registers together.
constexpr size_t kRowVectors = PRONK_VECTOR64 || kSumTokens == 2 ? 2 : 1;
constexpr size_t kTokenVectors = kSumTokens == 2 ? 4 : 6;
constexpr size_t kTileTokens = kTokenVectors * kSumTokens;
constexpr size_t kMicroRows = kRowVectors * kFloatLanes / kSumTokens;
static_assert(kMicroRows <= kGemmMaxRows && kTileTokens <= kMaxTileTokens);

// Added to the activations' bytes, because VNNI needs one side unsigned. Its contribution to a
// row's sums depends only on the row; the sums start at minus this contribution.
constexpr uint8_t kInputBias = PRONK_BIAS ? 128 : 0;

// Sets the number of row r, or of token t, in each lane that multiplies one of its sums.
HWY_INLINE void SetOfRow(float* p, size_t r, float value) {
  constexpr size_t kRows = kFloatLanes / kSumTokens;
  for (size_t i = 0; i < kSumTokens; ++i)
    p[r / kRows * kFloatLanes + i * kRows + r % kRows] = value;
}
HWY_INLINE void SetOfToken(float* p, size_t t, float value) {
  for (size_t i = 0; i < kSumTokens; ++i) p[t * kSumTokens + i] = value;
}

// 32 columns of a micro-panel.
template <class PanelForm>
struct alignas(64) PanelBlock {
  uint8_t codes[32 / kGroupCols][kMicroRows][kGroupCols];  // w + kZeroPoint
  float factors[PanelForm::kScales + PanelForm::kMins]
               [kRowVectors * kFloatLanes];  // scales, then minimums
#if PRONK_BIAS
  int32_t starts[PanelForm::kScales][kMicroRows];  // -kInputBias * (sum of w)
#endif
};
struct alignas(64) FloatPanelBlock {
  float weights[32][kMicroRows];
};

// A block has sums over its 32 columns, over the first 16 and over the last 16.
constexpr size_t kAll = 0, kFirstHalf = 1, kLastHalf = 2;
// The columns that scale or minimum number i of n belongs to.
constexpr size_t Columns(size_t i, size_t n) { return n == 1 ? kAll : kFirstHalf + i; }

// 32 columns of a tile's activations: x ~ scale * q.
struct InputBlock {
  uint8_t q[kTokenVectors][32 / kGroupCols][kSumTokens][kGroupCols];  // q + kInputBias
  float scale[kTileTokens * kSumTokens];
  float sums[3][kTileTokens * kSumTokens];  // scale * (sum of q)
#if PRONK_MADDUBS
  int32_t starts[3][kTileTokens];  // -128 * (sum of q)
#endif
};
struct FloatInputBlock {
  float x[32][kTileTokens];
};

// Transposes kFloatLanes rows, `stride` bytes apart, of four elements of four bytes. Calls put(v,
// k) for each element k, where lane r of v is element k of row r. Adds `bias` to each byte.
template <class Put>
HWY_INLINE void TransposeRows(const uint8_t* HWY_RESTRICT in, size_t stride, uint8_t bias,
                              Put put) {
  const DU8 d8;
  const hn::Repartition<uint32_t, DU8> d32;
  const hn::Repartition<uint64_t, DU8> d64;
  const auto add = hn::Set(d8, bias);
  // 128-bit lane p: row + 4 p.
  const auto load = [&](size_t row) HWY_ATTR {
    return hn::BitCast(d32, hn::Add(LoadLanes128(in + row * stride, 4 * stride), add));
  };
  const auto a = load(0), b = load(1), c = load(2), d = load(3);
  const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
  const auto ab2 = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
  const auto cd0 = hn::BitCast(d64, hn::InterleaveLower(d32, c, d));
  const auto cd2 = hn::BitCast(d64, hn::InterleaveUpper(d32, c, d));
  put(hn::BitCast(d8, hn::InterleaveLower(d64, ab0, cd0)), 0);
  put(hn::BitCast(d8, hn::InterleaveUpper(d64, ab0, cd0)), 1);
  put(hn::BitCast(d8, hn::InterleaveLower(d64, ab2, cd2)), 2);
  put(hn::BitCast(d8, hn::InterleaveUpper(d64, ab2, cd2)), 3);
}
// to(k)[row] = element k of a row, for kMicroRows rows of kCount elements of four bytes; kCount is
// a multiple of four.
template <size_t kCount, size_t kStride, class To>
HWY_INLINE void InterleaveTo(const uint8_t* HWY_RESTRICT in, uint8_t bias, To to) {
  for (size_t r = 0; r < kMicroRows; r += kFloatLanes) {
    for (size_t k = 0; k < kCount; k += 4) {
      TransposeRows(in + r * kStride + 4 * k, kStride, bias,
                    [&](VU8 v, size_t i) HWY_ATTR { hn::Store(v, DU8(), to(k + i) + r * 4); });
    }
  }
}
template <size_t kCount, size_t kStride>
HWY_INLINE void Interleave(const uint8_t* HWY_RESTRICT in, uint8_t bias,
                           uint8_t* HWY_RESTRICT out) {
  InterleaveTo<kCount, kStride>(in, bias,
                                [&](size_t k) HWY_ATTR { return out + k * kMicroRows * 4; });
}

#if PRONK_BIAS
// The negated contribution of kInputBias to the dots of each row.
template <class PanelForm>
HWY_INLINE void SetStarts(PanelBlock<PanelForm>& block) {
  const DI32 d;
  constexpr size_t kKGroups = 8 / PanelForm::kScales;
  for (size_t s = 0; s < PanelForm::kScales; ++s) {
    for (size_t r = 0; r < kMicroRows; r += kFloatLanes) {
      VI32 sum = hn::Zero(d);
      for (size_t g = s * kKGroups; g < (s + 1) * kKGroups; ++g) {
        const VI8 codes = hn::BitCast(DI8(), hn::Load(DU8(), &block.codes[g][r][0]));
        sum = DotBytes(sum, hn::Set(DU8(), kInputBias), codes);
      }
      hn::Store(hn::Neg(sum), d, &block.starts[s][r]);
    }
  }
}
#endif

// The addresses of n rows of w from `row` on. Rows past the end, whose results are not used, get
// the address of the last row.
template <size_t n>
HWY_INLINE std::array<const std::byte*, n> RowPointers(const Matrix& w, size_t row) {
  std::array<const std::byte*, n> data;
  for (size_t r = 0; r < n; ++r) data[r] = w.row(std::min(row + r, w.rows - 1));
  return data;
}

// Unpacks weights [32 * first, 32 * (first + n)) of a row, at most 256, by Type::ToBytes(w,
// Bytes256&). Weights past the end of the row are zeros. Prefetches as many bytes of the row's next
// weights, and from `ahead` on for later calls.
template <class Type>
HWY_NOINLINE void UnpackPart(const std::byte* row, size_t first, size_t n, const std::byte* ahead,
                             Bytes256& out) {
  using Block = typename Type::Block;
  constexpr size_t kBytes = 256 / Block::kWeights * sizeof(Block);
  const uint8_t* const w =
      reinterpret_cast<const uint8_t*>(row) + first * 32 / Block::kWeights * sizeof(Block);
  // The CPU itself does not prefetch so many streams, one per row.
  for (size_t byte = 0; byte < kBytes; byte += 64) {
    __builtin_prefetch(w + kBytes + byte);
    __builtin_prefetch(ahead + byte);
  }
  if (Block::kWeights < 256 && n < 8) {
    alignas(64) uint8_t padded[kBytes] = {};
    std::memcpy(padded, w, n * 32 / Block::kWeights * sizeof(Block));
    Type::ToBytes(padded, out);
  } else {
    Type::ToBytes(w, out);
  }
}

using UnpackFunction = void(const std::byte* row, size_t first, size_t n, const std::byte* ahead,
                            Bytes256& out);

// Stores kPer32 factors of n blocks of each row at to(block, factor). `factors` are the factors of
// the first row; the next Bytes256 has the factors of the next row.
template <size_t kPer32, class To>
HWY_INLINE void InterleaveFactors(const float* HWY_RESTRICT factors, size_t n, To to) {
#ifdef PRONK_NEON_I8MM
  for (size_t k = 0; k < n * kPer32; ++k) {
    for (size_t r = 0; r < kMicroRows; ++r) {
      SetOfRow(to(k / kPer32, k % kPer32), r, factors[r * sizeof(Bytes256) / sizeof(float) + k]);
    }
  }
#else
  alignas(64) float unused[kMicroRows];
  const auto* const bytes = reinterpret_cast<const uint8_t*>(factors);
  InterleaveTo<8 * kPer32, sizeof(Bytes256)>(bytes, 0, [&](size_t k) HWY_ATTR {
    float* const factor = k < n * kPer32 ? to(k / kPer32, k % kPer32) : unused;
    return reinterpret_cast<uint8_t*>(factor);
  });
#endif
}

// Packs rows [row, row + kMicroRows) of w as a micro-panel. `unpack` is the type's UnpackPart, a
// pointer, so that this is compiled once for each form.
template <class PanelForm>
HWY_NOINLINE void PackMicroPanel(const Matrix& w, size_t row, UnpackFunction* unpack,
                                 PanelBlock<PanelForm>* HWY_RESTRICT out) {
  const size_t n_blocks = w.cols / 32;
  const auto data = RowPointers<kMicroRows>(w, row);
  // The next micro-panel's rows lie behind these, in one stream: threads take neighbouring ranges.
  const std::byte* ahead = data[0] + kMicroRows * w.row_bytes();
  const size_t part_bytes = w.row_bytes() * 8 / n_blocks;
  Bytes256 rows[kMicroRows];
  for (size_t first = 0; first < n_blocks; first += 8) {
    const size_t n = std::min<size_t>(8, n_blocks - first);
    for (size_t r = 0; r < kMicroRows; ++r, ahead += part_bytes) {
      unpack(data[r], first, n, ahead, rows[r]);
    }
    InterleaveFactors<PanelForm::kScales>(
        rows[0].scales, n, [&](size_t b, size_t i) HWY_ATTR { return out[first + b].factors[i]; });
    if constexpr (PanelForm::kMins > 0)
      InterleaveFactors<PanelForm::kMins>(rows[0].mins, n, [&](size_t b, size_t i) HWY_ATTR {
        return out[first + b].factors[PanelForm::kScales + i];
      });
    for (size_t b = 0; b < n; ++b) {
      PanelBlock<PanelForm>& block = out[first + b];
#ifdef PRONK_NEON_I8MM
      for (size_t g = 0; g < 4; ++g) {
        for (size_t r = 0; r < kMicroRows; ++r) {
          hwy::CopyBytes<kGroupCols>(rows[r].weights + 32 * b + kGroupCols * g, block.codes[g][r]);
        }
      }
#else
      Interleave<8, sizeof(Bytes256)>(reinterpret_cast<const uint8_t*>(rows[0].weights) + 32 * b,
                                      PanelForm::kZeroPoint, &block.codes[0][0][0]);
#endif
#if PRONK_BIAS
      SetStarts(block);
#endif
    }
  }
}

#if PRONK_VECTOR64
// Packs a micro-panel in BF16.
template <class PanelForm>
HWY_NOINLINE void PackBf16MicroPanel(const Matrix& w, size_t row, UnpackFunction* unpack,
                                     Bf16PanelBlock* HWY_RESTRICT out) {
  const size_t n_blocks = w.cols / 32;
  const auto data = RowPointers<kBf16Rows>(w, row);
  Bytes256 part;
  const ScaledIntegers integers{part.weights, part.scales, PanelForm::kScales, part.mins,
                                PanelForm::kMins};
  for (size_t first = 0; first < n_blocks; first += 8) {
    const size_t n = std::min<size_t>(8, n_blocks - first);
    for (size_t r = 0; r < kBf16Rows; ++r) {
      unpack(data[r], first, n, data[r], part);  // prefetching ahead was not measured here
      PackBf16Integers(integers, n, r, out + first);
    }
  }
}
#endif

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_MATMUL_PANEL_INL_H_
