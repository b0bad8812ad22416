// Products of a panel of weights with a batch of tokens, tile by tile. Included once per
// instruction set by gemm.cc and the registry's files. The layout is in panel-inl.h.
//
// A tile is one band of rows and kTileTokens tokens. Its results stay in registers while it walks
// through all columns. The tile's activations are the same for all bands of a panel and stay in
// the first-level cache, while weights come from the second: one vector for kTileTokens products.
//
// A type is a struct with its Block, its Form and ToBytes() (see PackBand in panel-inl.h, which
// calls it).
#if defined(PRONK_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_GEMM_INL_H_
#undef PRONK_KERNELS_GEMM_INL_H_
#else
#define PRONK_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>
#include <span>

#include "kernels/amx.h"
#include "kernels/bf16.h"
#include "kernels/gemm_tile-inl.h"
#include "kernels/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// result: [kTileTokens][kBandRows]
template <class Weights, class Input>
HWY_NOINLINE void MultiplyTile(const Weights* HWY_RESTRICT w, const Input* HWY_RESTRICT x,
                               size_t n_blocks, float* HWY_RESTRICT result) {
  const DF d;
  TileSums sums;
#if PRONK_TILES
  Unrolled<kRowVectors * kTileTokens>([&](auto i) HWY_ATTR PRONK_ALWAYS_INLINE {
    sums[i / kTileTokens][i % kTileTokens] = hn::Zero(d);
  });
  for (size_t b = 0; b < n_blocks; ++b) AddBlock(w[b], x[b], sums);
  Unrolled<kRowVectors * kTileTokens>([&](auto i) HWY_ATTR PRONK_ALWAYS_INLINE {
    constexpr size_t v = i / kTileTokens, t = i % kTileTokens;
    hn::Store(sums[v][t], d, result + t * kBandRows + v * kFloats);
  });
#else
  for (size_t v = 0; v < kRowVectors; ++v) {
    HWY_UNROLL(kTileTokens)
    for (size_t t = 0; t < kTileTokens; ++t) sums[v][t] = hn::Zero(d);
  }
  for (size_t b = 0; b < n_blocks; ++b) AddBlock(w[b], x[b], sums);
  for (size_t v = 0; v < kRowVectors; ++v) {
    HWY_UNROLL(kTileTokens)
    for (size_t t = 0; t < kTileTokens; ++t) {
      hn::Store(sums[v][t], d, result + t * kBandRows + v * kFloats);
    }
  }
#endif
}

// Multiplies tiles as above.
struct TileMultiplier {
  template <class Weights, class Input>
  void Multiply(const Weights* w, const Input* x, size_t n_blocks, size_t /*n_tokens*/,
                float* sums) const {
    MultiplyTile(w, x, n_blocks, sums);
  }
};

// What the loops around bands and tiles, which are the same for all packings (gemm.cc), know of
// one.
struct PanelLoops {
  size_t n_rows, n_tokens;          // of a band, of a tile
  size_t panel_bytes, input_bytes;  // of their blocks
  void (*pack)(const Matrix& w, size_t row, std::byte* band);
  void (*multiply)(const void* multiplier, const std::byte* band, const std::byte* tile,
                   size_t n_blocks, size_t n_tokens, float* sums);
};
void RunPanelLoops(const PanelLoops& loops, const void* multiplier, const Matrix& w, size_t begin,
                   size_t end, const GemmInput& x, const GemmOutput& output,
                   std::span<std::byte> scratch);

// Rows [begin, end) of w. Packing::Pack(w, row, blocks) makes a band of kRows rows, and
// Packing::Multiplier multiplies it with a tile of kTokens tokens; Packing::Panel and
// Packing::Input are the two sides' blocks.
template <class Packing>
HWY_INLINE void MultiplyRange(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                              const GemmOutput& output, std::span<std::byte> scratch) {
  using Panel = typename Packing::Panel;
  using Input = typename Packing::Input;
  using Multiplier = typename Packing::Multiplier;
  static constexpr PanelLoops kLoops = {
      Packing::kRows,
      Packing::kTokens,
      sizeof(Panel),
      sizeof(Input),
      [](const Matrix& weights, size_t row, std::byte* band) {
        Packing::Pack(weights, row, reinterpret_cast<Panel*>(band));
      },
      [](const void* multiplier, const std::byte* band, const std::byte* tile, size_t n_blocks,
         size_t n_tokens, float* sums) {
        static_cast<const Multiplier*>(multiplier)
            ->Multiply(reinterpret_cast<const Panel*>(band), reinterpret_cast<const Input*>(tile),
                       n_blocks, n_tokens, sums);
      }};
  const Multiplier multiplier;
  RunPanelLoops(kLoops, &multiplier, w, begin, end, x, output, scratch);
}

#if PRONK_TILES
// The same between the set-up of AMX's registers and their release.
template <class Form>
struct AmxMultiplier : TileMultiplier {
  AmxMultiplier() {
    constexpr uint8_t kQuads = 8 / Form::kScales;
    static constexpr AmxConfig kConfig{
        .row_bytes = {64, 64, 0, 0, 4 * kQuads, 0, 64, 64},
        .rows = {kTileTokens, kTileTokens, 0, 0, kTileTokens, 0, kQuads, kQuads}};
    _tile_loadconfig(&kConfig);
  }
  ~AmxMultiplier() { _tile_release(); }
  AmxMultiplier(const AmxMultiplier&) = delete;
  AmxMultiplier& operator=(const AmxMultiplier&) = delete;
};
template <class Form>
using Int8Multiplier = AmxMultiplier<Form>;
#else
template <class Form>
using Int8Multiplier = TileMultiplier;
#endif

// How the rows of a quantized type become a panel.
template <class Type>
struct Int8Packing {
  using Panel = PanelBlock<typename Type::Form>;
  using Input = InputBlock;
  using Multiplier = Int8Multiplier<typename Type::Form>;
  static constexpr size_t kRows = kBandRows, kTokens = kTileTokens;
  static void Pack(const Matrix& w, size_t row, Panel* panel) {
    PackBand<typename Type::Form>(w, row, &UnpackPart<Type>, panel);
  }
};

#if PRONK_WIDE
// A band of rows in BF16 (bf16.h): Packing::Convert(row, first, n, out) makes 32 * n weights of a
// row from number 32 * first on.
struct Bf16Panels {
  using Panel = Bf16PanelBlock;
  using Input = Bf16InputBlock;
  using Multiplier = Bf16Multiplier;
  static constexpr size_t kRows = kBf16Rows, kTokens = kBf16Tokens;
  static_assert(kRows == kBandRows);

  template <class Convert>
  static HWY_INLINE void PackRows(const Matrix& w, size_t row, Convert convert, Panel* out) {
    const size_t n_blocks = (w.cols + 31) / 32;
    const auto data = RowPointers<kRows>(w, row);
    alignas(64) uint16_t rows[kRows][256];
    for (size_t first = 0; first < n_blocks; first += 8) {
      const size_t n = std::min<size_t>(8, n_blocks - first);
      for (size_t r = 0; r < kRows; ++r) convert(data[r], first, n, rows[r]);
      for (size_t b = 0; b < n; ++b) {
        Interleave<16, sizeof(rows[0])>(reinterpret_cast<const uint8_t*>(rows[0] + 32 * b), 0,
                                        reinterpret_cast<uint8_t*>(out[first + b].weights));
      }
    }
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_GEMM_INL_H_
