// Products of a panel of weights with a batch of tokens, by register tiles. Included once per
// instruction set by gemm.cc and types.cc. The layout is in panel-inl.h.
//
// A register tile's sums stay in registers through all columns. Its activations are the same for
// all micro-panels of a panel and stay in the first-level cache, while weights come from the
// second-level cache: one vector for kTileTokens products.
#if defined(PRONK_KERNELS_MATMUL_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_MATMUL_GEMM_INL_H_
#undef PRONK_KERNELS_MATMUL_GEMM_INL_H_
#else
#define PRONK_KERNELS_MATMUL_GEMM_INL_H_
#endif

#include <algorithm>
#include <span>

#include "kernels/matmul/bf16.h"
#include "kernels/matmul/gemm_tile-inl.h"
#include "kernels/matmul/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// result is [kTileTokens][kMicroRows]; the first kTokens vectors of tokens are written.
template <size_t kTokens, class Weights, class Input>
HWY_NOINLINE void MultiplyTile(const Weights* HWY_RESTRICT w, const Input* HWY_RESTRICT x,
                               size_t n_blocks, float* HWY_RESTRICT result) {
  const DF d;
  TileSums<kTokens> sums;
  for (size_t v = 0; v < kRowVectors; ++v) {
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) sums[v][t] = hn::Zero(d);
  }
  for (size_t b = 0; b < n_blocks; ++b) AddBlock(w[b], x[b], sums);
  for (size_t v = 0; v < kRowVectors; ++v) {
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) StoreTileSums(sums[v][t], v, t, result);
  }
}

struct TileMultiplier {
  template <class Weights, class Input>
  void Multiply(const Weights* w, const Input* x, size_t n_blocks, size_t n_tokens,
                float* sums) const {
    // The last tile may have fewer tokens.
    constexpr size_t kShortTile = PRONK_VECTOR64 ? 4 : kTokenVectors;
    if (n_tokens <= kShortTile) return MultiplyTile<kShortTile>(w, x, n_blocks, sums);
    MultiplyTile<kTokenVectors>(w, x, n_blocks, sums);
  }
};

// The interface of a packing to the loops around micro-panels and tiles (gemm.cc). The loops are
// compiled once for all packings.
struct PanelLoops {
  size_t n_rows, n_tokens;          // rows of a micro-panel, tokens of a tile
  size_t panel_bytes, input_bytes;  // bytes of a block of each
  void (*pack)(const Matrix& w, size_t row, std::byte* micro_panel);
  void (*multiply)(const void* multiplier, const std::byte* micro_panel, const std::byte* tile,
                   size_t n_blocks, size_t n_tokens, float* sums);
};
void RunPanelLoops(const PanelLoops& loops, const void* multiplier, const Matrix& w, size_t begin,
                   size_t end, const GemmInput& x, const GemmOutput& output,
                   std::span<std::byte> scratch);

// Multiplies rows [begin, end) of w. Packing::Pack(w, row, blocks) makes a micro-panel of kRows
// rows, and Packing::Multiplier multiplies it with a tile of kTokens tokens; Panel and Input are
// the blocks.
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
      [](const Matrix& weights, size_t row, std::byte* micro_panel) {
        Packing::Pack(weights, row, reinterpret_cast<Panel*>(micro_panel));
      },
      [](const void* multiplier, const std::byte* micro_panel, const std::byte* tile,
         size_t n_blocks, size_t n_tokens, float* sums) {
        static_cast<const Multiplier*>(multiplier)
            ->Multiply(reinterpret_cast<const Panel*>(micro_panel),
                       reinterpret_cast<const Input*>(tile), n_blocks, n_tokens, sums);
      }};
  const Multiplier multiplier;
  RunPanelLoops(kLoops, &multiplier, w, begin, end, x, output, scratch);
}

// Packs rows of a quantized type.
template <class Type>
struct Int8Packing {
  using Panel = PanelBlock<typename Type::PanelForm>;
  using Input = InputBlock;
  using Multiplier = TileMultiplier;
  static constexpr size_t kRows = kMicroRows, kTokens = kTileTokens;
  static void Pack(const Matrix& w, size_t row, Panel* panel) {
    PackMicroPanel<typename Type::PanelForm>(w, row, &UnpackPart<Type>, panel);
  }
};

// Packs weights in F32, F16 and BF16.
template <class Type>
struct FloatPacking {
  using Weight = typename Type::Weight;
  using Panel = FloatPanelBlock;
  using Input = FloatInputBlock;
  using Multiplier = TileMultiplier;
  static constexpr size_t kRows = kMicroRows, kTokens = kTileTokens;

  static void Pack(const Matrix& w, size_t row, Panel* HWY_RESTRICT panel) {
    const uint8_t* data[kMicroRows];
    for (size_t r = 0; r < kMicroRows; ++r) {
      data[r] = reinterpret_cast<const uint8_t*>(w.row(std::min(row + r, w.rows - 1)));
    }
    alignas(64) float rows[kMicroRows][32];
    for (size_t k = 0; k < w.cols; k += 32, ++panel) {
      const size_t n = std::min<size_t>(32, w.cols - k);
      for (size_t r = 0; r < kMicroRows; ++r) {
        const uint8_t* from = data[r] + k * sizeof(Weight);
        __builtin_prefetch(from + kPrefetchBytes);
        alignas(64) uint8_t padded[32 * sizeof(Weight)];
        if (n < 32) {
          std::memset(padded, 0, sizeof(padded));
          from = static_cast<const uint8_t*>(std::memcpy(padded, from, n * sizeof(Weight)));
        }
        ToFloats(from, rows[r]);
      }
      Interleave<32, sizeof(rows[0])>(reinterpret_cast<const uint8_t*>(rows[0]), 0,
                                      reinterpret_cast<uint8_t*>(panel->weights[0]));
    }
  }

 private:
  static constexpr size_t kPrefetchBytes = 256;  // two or four blocks of each row

  // Converts 32 weights, at any address.
  static HWY_INLINE void ToFloats(const uint8_t* HWY_RESTRICT p, float* HWY_RESTRICT out) {
    const hn::CappedTag<float, 8> d;
    const hn::Rebind<Weight, decltype(d)> d_weight;
    const hn::Repartition<uint8_t, decltype(d_weight)> d8;
    for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
      const auto v = hn::BitCast(d_weight, hn::LoadU(d8, p + i * sizeof(Weight)));
      if constexpr (sizeof(Weight) == 4) {
        hn::Store(v, d, out + i);
      } else {
        hn::Store(hn::PromoteTo(d, v), d, out + i);
      }
    }
  }
};

#if PRONK_VECTOR64
// Shared by packings to BF16 (bf16.h).
struct Bf16Panels {
  using Panel = Bf16PanelBlock;
  using Input = Bf16InputBlock;
  using Multiplier = Bf16Multiplier;
  static constexpr size_t kRows = kBf16Rows, kTokens = kBf16Tokens;
  static_assert(kRows == kMicroRows);
};

template <class Type>
struct Bf16Packing : Bf16Panels {
  static void Pack(const Matrix& w, size_t row, Panel* panel) {
    PackBf16MicroPanel<typename Type::PanelForm>(w, row, &UnpackPart<Type>, panel);
  }
};

// Packs weights in F16 and BF16 where the CPU multiplies BF16.
template <class Type>
struct Bf16HalfPacking : Bf16Panels {
  static void Pack(const Matrix& w, size_t row, Panel* HWY_RESTRICT panel) {
    constexpr size_t kPrefetchBytes = 512;
    const auto data = RowPointers<kRows>(w, row);
    for (size_t k = 0; k < w.cols; k += 32, ++panel) {
      const size_t n_bytes = std::min<size_t>(32, w.cols - k) * sizeof(uint16_t);
      for (size_t r = 0; r < kRows; ++r) {
        const std::byte* const from = data[r] + k * sizeof(uint16_t);
        __builtin_prefetch(from + kPrefetchBytes);
        uint16_t* const out = panel->weights[r];
        if (n_bytes < sizeof(panel->weights[r])) std::memset(out, 0, sizeof(panel->weights[r]));
        std::memcpy(out, from, n_bytes);
        if constexpr (Type::kDType == gguf::DType::kF16) HalfsToBf16(out, 32);
      }
    }
  }
};
#endif

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_MATMUL_GEMM_INL_H_
