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

// How the rows of a quantized type become a panel.
template <class Type>
struct Int8Packing {
  using Panel = PanelBlock<typename Type::Form>;
  using Input = InputBlock;
  using Multiplier = TileMultiplier;
  static constexpr size_t kRows = kBandRows, kTokens = kTileTokens;
  static void Pack(const Matrix& w, size_t row, Panel* panel) {
    PackBand<typename Type::Form>(w, row, &UnpackPart<Type>, panel);
  }
};

#if PRONK_WIDE
// A band of rows in BF16 (bf16.h): Packing::Pack(w, row, blocks) as above.
struct Bf16Panels {
  using Panel = Bf16PanelBlock;
  using Input = Bf16InputBlock;
  using Multiplier = Bf16Multiplier;
  static constexpr size_t kRows = kBf16Rows, kTokens = kBf16Tokens;
  static_assert(kRows == kBandRows);
};

template <class Type>
struct Bf16Packing : Bf16Panels {
  static void Pack(const Matrix& w, size_t row, Panel* panel) {
    PackBf16Band<typename Type::Form>(w, row, &UnpackPart<Type>, panel);
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_GEMM_INL_H_
