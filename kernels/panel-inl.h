// The layout of weights and activations in products with a batch of tokens, and the way there.
// Included once per instruction set.
//
// Reading a prompt is arithmetic: a weight is used once for each of hundreds of tokens. So a thread
// converts a group of kGroupRows rows, whatever their type, to one simple layout in its own cache,
// and pays for that once per batch. Four consecutive weights of a row lie together, and those of
// all rows of the group side by side: a vector holds four weights for each of its rows. One
// broadcast of the same four activations of a token then feeds all lanes of a dot product, a lane
// belongs to a row, and nothing is ever added up across lanes:
//
//   codes     | row 0: k k+1 k+2 k+3 | row 1: k k+1 k+2 k+3 | ... | row 15: k k+1 k+2 k+3 |
//   token t   |        k k+1 k+2 k+3 |        k k+1 k+2 k+3 | ... |         k k+1 k+2 k+3 |
//   i32 dots  | row 0                | row 1                | ... | row 15                |
//
// (A group of 32 rows has two such vectors beside each other.) A block is 32 columns of a group: 8
// such rows of codes, then the scales (and minimums) of its rows, one float per row for 32 weights
// or two for types with a scale per 16. Every quantized type is small integers times a scale, so
// this is exact, and so are the integer sums. A panel is as many groups as stay in the second-level
// cache.
//
// Activations are packed, too, in tiles of kTileTokens tokens: a tile's block has 32 columns of
// each, so a kernel reads both of its inputs in one stream each.
#if defined(PRONK_KERNELS_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_PANEL_INL_H_
#undef PRONK_KERNELS_PANEL_INL_H_
#else
#define PRONK_KERNELS_PANEL_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "kernels/gemm.h"
#include "kernels/simd-inl.h"
#include "kernels/unpack-inl.h"

// How bytes are multiplied. On x86 without VNNI neighbours are added up in i16, saturating
// (maddubs). With VNNI one side must be unsigned (a bias). AMX multiplies whole tiles, signed with
// signed.
#undef PRONK_MADDUBS
#undef PRONK_TILES
#undef PRONK_BIAS
#define PRONK_MADDUBS (HWY_ARCH_X86 && !PRONK_VNNI)
#ifdef PRONK_AMX
#define PRONK_TILES 1
#else
#define PRONK_TILES 0
#endif
#define PRONK_BIAS (PRONK_VNNI && !PRONK_TILES)

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A tile: rows of a group and tokens whose sums are kept in registers together (README.md).
constexpr size_t kRowVectors = PRONK_WIDE ? 2 : 1;
constexpr size_t kTileTokens = PRONK_TILES ? 8 : 6;
constexpr size_t kGroupRows = kRowVectors * kFloats;
static_assert(kGroupRows <= kGemmMaxRows);

// Added to the activations' bytes: VNNI wants one side unsigned. What 128 adds to the sums of a row
// depends on the row alone, and is taken off where the sums begin.
constexpr uint8_t kInputBias = PRONK_BIAS ? 128 : 0;

// How a quantized type looks in a panel: weight = scale * w (+ minimum), where w is an integer of
// kBits bits, -2^(kBits-1) and up. Each 32 weights have kScales scales and kMins minimums: one for
// all of them, or one for each half.
template <int kBits, size_t kScalesPer32, size_t kMinsPer32>
struct Format {
  static constexpr size_t kScales = kScalesPer32;
  static constexpr size_t kMins = kMinsPer32;
#if PRONK_MADDUBS
  // Unsigned codes w + kZero of as few bits as possible: so many sums of two products with an
  // activation of -127..127 fit in i16. With eight bits not even one does: those stay signed, and
  // their sign goes to the activation.
  static constexpr bool kSigned = kBits == 8;
  static constexpr size_t kRun = kBits >= 7 ? 1 : size_t{8} >> (kBits - 4);
  static constexpr int kZeroShift = 8 - kBits;
  static constexpr uint8_t kZero = kSigned ? 0 : 128 >> kZeroShift;
#else
  static constexpr uint8_t kZero = 0;
#endif
};
// Where the number of bits makes no difference there is one kernel for all.
template <int kBits, size_t kScales = 1, size_t kMins = 0>
using Int8Format = Format<PRONK_MADDUBS ? kBits : 8, kScales, kMins>;

// 32 columns of a group.
template <class Format>
struct alignas(64) PanelBlock {
  uint8_t codes[8][kGroupRows][4];                             // w + kZero
  float factors[Format::kScales + Format::kMins][kGroupRows];  // scales, then minimums
#if PRONK_BIAS
  int32_t offsets[Format::kScales][kGroupRows];  // -kInputBias * (sum of w)
#endif
};
struct alignas(64) FloatPanelBlock {
  float weights[32][kGroupRows];
};

// Numbers that a block has three times: for its 32 columns, for the first 16 and for the last 16.
constexpr size_t kAll = 0, kFirstHalf = 1, kLastHalf = 2;
// Which of them belong to scale or minimum number i of n.
constexpr size_t Columns(size_t i, size_t n) { return n == 1 ? kAll : kFirstHalf + i; }

// 32 columns of a tile's activations: x ~ scale * q.
struct InputBlock {
  uint8_t q[kTileTokens][32];  // q + kInputBias
  float scale[kTileTokens];
  float sums[3][kTileTokens];  // scale * (sum of q)
#if PRONK_MADDUBS
  int32_t offsets[3][kTileTokens];  // -128 * (sum of q)
#endif
};
struct FloatInputBlock {
  float x[32][kTileTokens];
};

// out[k][row] = rows[row][k] for kGroupRows rows of kCount units of four bytes each, a multiple of
// four. Adds `bias` to each byte. The rows of `in` are kStride bytes apart.
template <size_t kCount, size_t kStride>
HWY_INLINE void Interleave(const uint8_t* HWY_RESTRICT in, uint8_t bias,
                           uint8_t* HWY_RESTRICT out) {
  const DU8x16 d8;
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::FixedTag<uint64_t, 2> d64;
  const auto add = hn::Set(d8, bias);
  for (size_t r = 0; r < kGroupRows; r += 4) {
    for (size_t k = 0; k < kCount; k += 4) {
      const auto load = [&](size_t row) HWY_ATTR {
        const auto bytes = hn::LoadU(d8, in + (r + row) * kStride + 4 * k);
        return hn::BitCast(d32, hn::Add(bytes, add));
      };
      const auto a = load(0), b = load(1), c = load(2), d = load(3);
      const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
      const auto ab2 = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
      const auto cd0 = hn::BitCast(d64, hn::InterleaveLower(d32, c, d));
      const auto cd2 = hn::BitCast(d64, hn::InterleaveUpper(d32, c, d));
      const auto store = [&](auto v, size_t i) HWY_ATTR {
        hn::Store(hn::BitCast(d8, v), d8, out + ((k + i) * kGroupRows + r) * 4);
      };
      store(hn::InterleaveLower(d64, ab0, cd0), 0);
      store(hn::InterleaveUpper(d64, ab0, cd0), 1);
      store(hn::InterleaveLower(d64, ab2, cd2), 2);
      store(hn::InterleaveUpper(d64, ab2, cd2), 3);
    }
  }
}

#if PRONK_BIAS
// What kInputBias adds to the dots of each row, negated.
template <class Format>
HWY_INLINE void SetOffsets(PanelBlock<Format>& block) {
  const DI32 d;
  constexpr size_t kGroups = 8 / Format::kScales;
  for (size_t s = 0; s < Format::kScales; ++s) {
    for (size_t r = 0; r < kGroupRows; r += kFloats) {
      VI32 sum = hn::Zero(d);
      for (size_t g = s * kGroups; g < (s + 1) * kGroups; ++g) {
        const VI8 codes = hn::BitCast(DI8(), hn::Load(DU8(), &block.codes[g][r][0]));
        sum = DotBytes(sum, hn::Set(DU8(), kInputBias), codes);
      }
      hn::Store(hn::Neg(sum), d, &block.offsets[s][r]);
    }
  }
}
#endif

// Where n rows of w from `row` on begin. The last row stands in for rows past it, whose results
// nobody wants.
template <size_t n>
HWY_INLINE std::array<const std::byte*, n> RowPointers(const Matrix& w, size_t row) {
  std::array<const std::byte*, n> data;
  for (size_t r = 0; r < n; ++r) data[r] = w.row(std::min(row + r, w.rows - 1));
  return data;
}

// Weights [32 * first, 32 * (first + n)) of a row, at most 256. Type::Unpack(blocks of one row,
// number of 32 weights, Unpacked&) reads the next 256 weights of a row or, in types with smaller
// blocks, what is left.
template <class Type>
HWY_NOINLINE void UnpackPart(const std::byte* row, size_t first, size_t n, Unpacked& out) {
  using Block = typename Type::Block;
  constexpr size_t kBlocks32 = Block::kWeights / 32;             // per block of the type
  constexpr size_t kChunkBytes = 8 / kBlocks32 * sizeof(Block);  // of 256 weights
  const Block* const blocks = reinterpret_cast<const Block*>(row) + first / kBlocks32;
  // The next 256 weights of all rows are more streams than a CPU follows by itself.
  for (size_t byte = 0; byte < kChunkBytes; byte += 64) {
    hwy::Prefetch(reinterpret_cast<const uint8_t*>(blocks) + kChunkBytes + byte);
  }
  Type::Unpack(blocks, n, out);
}

// Rows [row, row + kGroupRows) of w as a group.
template <class Type>
HWY_NOINLINE void PackGroup(const Matrix& w, size_t row,
                            PanelBlock<typename Type::Format>* HWY_RESTRICT out) {
  using Format = typename Type::Format;
  const size_t n_blocks = w.cols / 32;
  const auto data = RowPointers<kGroupRows>(w, row);
  Unpacked rows[kGroupRows];
  for (size_t first = 0; first < n_blocks; first += 8) {
    const size_t n = std::min<size_t>(8, n_blocks - first);
    for (size_t r = 0; r < kGroupRows; ++r) UnpackPart<Type>(data[r], first, n, rows[r]);
    for (size_t b = 0; b < n; ++b) {
      PanelBlock<Format>& block = out[first + b];
      Interleave<8, sizeof(Unpacked)>(reinterpret_cast<const uint8_t*>(rows[0].weights) + 32 * b,
                                      Format::kZero, &block.codes[0][0][0]);
      for (size_t r = 0; r < kGroupRows; ++r) {
        for (size_t s = 0; s < Format::kScales; ++s) {
          block.factors[s][r] = rows[r].scales[Format::kScales * b + s];
        }
        for (size_t s = 0; s < Format::kMins; ++s) {
          block.factors[Format::kScales + s][r] = rows[r].mins[Format::kMins * b + s];
        }
      }
#if PRONK_BIAS
      SetOffsets(block);
#endif
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_PANEL_INL_H_
