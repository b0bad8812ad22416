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
// A block is 32 columns of a group: 8 such rows of codes, then the scales (and minimums) of its
// rows, one float per row for 32 weights or two for types with a scale per 16. Every quantized type
// is small integers times a scale, so this is exact, and so are the integer sums. A panel is as
// many groups as stay in the second-level cache.
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
#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"
#include "kernels/simd-inl.h"
#include "kernels/unpack-inl.h"

// Bytes are multiplied by maddubs (u8 x i8, neighbours added up in i16, saturating) where there is
// no instruction that adds up four products in i32.
#undef PRONK_MADDUBS
#if HWY_ARCH_X86 && !PRONK_WIDE
#define PRONK_MADDUBS 1
#else
#define PRONK_MADDUBS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A tile: rows of a group and tokens whose sums are kept in registers together (README.md).
constexpr size_t kRowVectors = 1;
#if PRONK_WIDE
constexpr size_t kTileTokens = 12;
#else
constexpr size_t kTileTokens = 6;
#endif
constexpr size_t kGroupRows = kRowVectors * kFloats;
static_assert(kGroupRows <= kGemmMaxRows && kTileTokens <= kGemmMaxTokens);

// How a quantized type looks in a panel: weight = scale * w (+ minimum), where w is an integer of
// kBits bits, -2^(kBits-1) and up, and a scale holds for kGroup weights, 32 or 16.
template <int kBits, size_t kGroup, bool kHasMins>
struct Format {
  static constexpr size_t kScales = 32 / kGroup;
  static constexpr size_t kMins = kHasMins ? kScales : 0;
#if PRONK_MADDUBS
  // Unsigned codes w + kZero of as few bits as possible: so many sums of two products with an
  // activation of -127..127 fit in i16. With eight bits not even one does: those stay signed, and
  // their sign goes to the activation.
  static constexpr bool kSigned = kBits == 8;
  static constexpr size_t kRun = kBits >= 7 ? 1 : size_t{8} >> (kBits - 4);
  static constexpr int kOffsetShift = 8 - kBits;
#elif HWY_ARCH_X86
  static constexpr bool kSigned = false;  // the instruction wants unsigned codes
  static constexpr int kOffsetShift = 0;
#else
  static constexpr bool kSigned = true;
  static constexpr int kOffsetShift = 0;
#endif
  static constexpr uint8_t kZero = kSigned ? 0 : 128 >> kOffsetShift;
};
#if !PRONK_MADDUBS
// The number of bits makes no difference: one kernel for all.
template <int kBits>
constexpr int kFormatBits = 8;
#else
template <int kBits>
constexpr int kFormatBits = kBits;
#endif
template <int kBits, size_t kGroup = 32, bool kHasMins = false>
using Int8Format = Format<kFormatBits<kBits>, kGroup, kHasMins>;

// 32 columns of a group.
template <class Format>
struct alignas(64) PanelBlock {
  uint8_t codes[8][kGroupRows][4];                             // w + kZero
  float factors[Format::kScales + Format::kMins][kGroupRows];  // scales, then minimums
};
struct alignas(64) FloatPanelBlock {
  float weights[32][kGroupRows];
};

// 32 columns of a tile's activations: x ~ scale * q.
struct InputBlock {
  int8_t q[kTileTokens][32];
  float scale[kTileTokens];
  int32_t offset[kTileTokens];        // -128 * (sum of q)
  float sum[kTileTokens];             // scale * (sum of q)
  int32_t first_offset[kTileTokens];  // the same of the first 16 columns
  float first_sum[kTileTokens];
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

// Rows [row, row + kGroupRows) of w as a group; the last row stands in for rows past it, whose
// results nobody wants. Type::Unpack(blocks of one row, number of 32 weights, Unpacked&) reads the
// next 256 weights of a row or, in types with blocks of 32, what is left.
template <class Type>
HWY_NOINLINE void PackGroup(const Matrix& w, size_t row,
                            PanelBlock<typename Type::Format>* HWY_RESTRICT out) {
  using Format = typename Type::Format;
  using Block = typename Type::Block;
  constexpr size_t kBlocks32 = Block::kWeights / 32;  // per block of the type
  const size_t n_blocks = w.cols / 32;
  Unpacked rows[kGroupRows];
  for (size_t first = 0; first < n_blocks; first += 8) {
    const size_t n = std::min<size_t>(8, n_blocks - first);
    for (size_t r = 0; r < kGroupRows; ++r) {
      const std::byte* const data = w.row(std::min(row + r, w.rows - 1));
      Type::Unpack(reinterpret_cast<const Block*>(data) + first / kBlocks32, n, rows[r]);
    }
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
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_PANEL_INL_H_
