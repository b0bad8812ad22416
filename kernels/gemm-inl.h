// Products of a panel of weights with a batch of tokens, tile by tile. Included once per
// instruction set by the gemm_*.cc files. The layout is in panel-inl.h.
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
#include <type_traits>
#include <utility>

#include "kernels/amx.h"
#include "kernels/bf16.h"
#include "kernels/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// --------------------------------------------------------------------------------------------------
// One block of a tile.

// The four activations at p in every lane.
HWY_INLINE VU8 Broadcast4(const uint8_t* p) {
  int32_t bits;
  hwy::CopyBytes<4>(p, &bits);
  return hn::BitCast(DU8(), hn::Set(DI32(), bits));
}

using TileDots = VI32[kRowVectors][kTileTokens];
using TileSums = VF[kRowVectors][kTileTokens];

template <class Form>
HWY_INLINE VU8 LoadCodes(const PanelBlock<Form>& w, size_t quad, size_t v) {
  return hn::Load(DU8(), &w.codes[quad][v * kFloats][0]);
}

#if PRONK_MADDUBS
// What makes codes count as weights: -kZero times the sum of the activations.
template <class Form, size_t kScale>
HWY_INLINE VI32 Offset(const InputBlock& x, size_t t) {
  const DI32 d;
  if constexpr (Form::kSigned) return hn::Zero(d);
  const VI32 offset = hn::Set(d, x.offsets[Columns(kScale, Form::kScales)][t]);
  return hn::ShiftRight<Form::kZeroShift>(offset);
}

// Products of neighbours, added up in pairs.
template <class Form>
HWY_INLINE VI16 MultiplyPairs(VU8 codes, VI8 x) {
  if constexpr (Form::kSigned) {
    const VI8 w = hn::BitCast(DI8(), codes);
    return hn::SatWidenMulPairwiseAdd(DI16(), hn::BitCast(DU8(), hn::Abs(w)),
                                      hn::IfNegativeThenNegOrUndefIfZero(w, x));
  } else {
    return hn::SatWidenMulPairwiseAdd(DI16(), codes, x);
  }
}

// The integer dots of the columns of scale number kScale. Products are added up in i16 as long as
// they fit.
template <class Form, size_t kScale>
HWY_INLINE void DotBlock(const PanelBlock<Form>& w, const InputBlock& x, TileDots& dots) {
  constexpr size_t kQuads = 8 / Form::kScales;
  constexpr size_t kRun = std::min(kQuads, Form::kRun);
  HWY_UNROLL(8)
  for (size_t first = 0; first < kQuads; first += kRun) {
    VI16 pairs[kRowVectors][kTileTokens];
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRun; ++i) {
      const size_t g = kScale * kQuads + first + i;
      for (size_t v = 0; v < kRowVectors; ++v) {
        const VU8 codes = LoadCodes(w, g, v);
        HWY_UNROLL(kTileTokens)
        for (size_t t = 0; t < kTileTokens; ++t) {
          const VI8 four = hn::BitCast(DI8(), Broadcast4(x.q[t] + 4 * g));
          const VI16 products = MultiplyPairs<Form>(codes, four);
          pairs[v][t] = i == 0 ? products : hn::Add(pairs[v][t], products);
        }
      }
    }
    for (size_t v = 0; v < kRowVectors; ++v) {
      HWY_UNROLL(kTileTokens)
      for (size_t t = 0; t < kTileTokens; ++t) {
        const VI32 start = first == 0 ? Offset<Form, kScale>(x, t) : dots[v][t];
        const VI32 sum = hn::WidenMulPairwiseAdd(DI32(), pairs[v][t], hn::Set(DI16(), 1));
        dots[v][t] = hn::Add(start, sum);
      }
    }
  }
}
#elif !PRONK_TILES
template <class Form, size_t kScale>
HWY_INLINE void DotBlock(const PanelBlock<Form>& w, const InputBlock& x, TileDots& dots) {
  constexpr size_t kQuads = 8 / Form::kScales;
  const DI32 d;
  for (size_t v = 0; v < kRowVectors; ++v) {
#if PRONK_BIAS
    const VI32 start = hn::Load(d, w.offsets[kScale] + v * kFloats);
#else
    const VI32 start = hn::Zero(d);
#endif
    HWY_UNROLL(kTileTokens)
    for (size_t t = 0; t < kTileTokens; ++t) dots[v][t] = start;
  }
  HWY_UNROLL(8)
  for (size_t g = kScale * kQuads; g < (kScale + 1) * kQuads; ++g) {
    VI8 codes[kRowVectors];
    for (size_t v = 0; v < kRowVectors; ++v) codes[v] = hn::BitCast(DI8(), LoadCodes(w, g, v));
    HWY_UNROLL(kTileTokens)
    for (size_t t = 0; t < kTileTokens; ++t) {
      const VU8 four = Broadcast4(x.q[t] + 4 * g);
      for (size_t v = 0; v < kRowVectors; ++v) {
#if PRONK_VNNI
        dots[v][t] = DotBytes(dots[v][t], four, codes[v]);
#else
        dots[v][t] = DotBytes(dots[v][t], codes[v], hn::BitCast(DI8(), four));
#endif
      }
    }
  }
}
#endif

#undef PRONK_ALWAYS_INLINE
#define PRONK_ALWAYS_INLINE __attribute__((always_inline))

#if PRONK_TILES
// AMX: an instruction multiplies 8 tokens with 16 rows of weights over the columns of a scale. It
// takes both as they lie in the blocks: quads of columns are a register's rows, and the rows
// of weights are its columns.
//
//   registers   0 1   dots of 8 tokens with the first and last 16 rows
//               4     activations: 8 tokens
//               6 7   weights: the first and last 16 rows
//
// The dots go through memory, in the first-level cache, to vectors. That is what limits: 8 cycles
// for a product, but at least 12 to convert and scale its dots.

struct alignas(64) StoredDots {
  int32_t dots[kRowVectors][kTileTokens][kFloats];
};
static_assert(kTileTokens == 8 && kRowVectors == 2);

// The integer dots of the columns of scale number kScale.
template <class Form, size_t kScale>
HWY_INLINE void DotBlock(const PanelBlock<Form>& w, const InputBlock& x, StoredDots& out) {
  constexpr size_t kQuad = 8 / Form::kScales * kScale;  // the first
  constexpr int kInputStride = sizeof(x.q[0]), kWeightStride = sizeof(w.codes[0]);
  constexpr int kDotStride = sizeof(out.dots[0][0]);
  _tile_zero(0);
  _tile_zero(1);
  _tile_loadd(4, x.q[0] + 4 * kQuad, kInputStride);
  _tile_loadd(6, w.codes[kQuad][0], kWeightStride);
  _tile_dpbssd(0, 4, 6);
  _tile_loadd(7, w.codes[kQuad][kFloats], kWeightStride);
  _tile_dpbssd(1, 4, 7);
  _tile_stored(0, out.dots[0], kDotStride);
  _tile_stored(1, out.dots[1], kDotStride);
}

// Calls each(number) for 0 to n - 1, with numbers that the compiler knows early: it keeps arrays in
// registers over AMX's instructions only if no index is ever a variable.
template <size_t n, class Each>
HWY_INLINE void Unrolled(Each each) {
  [&]<size_t... i>(std::index_sequence<i...>) HWY_ATTR PRONK_ALWAYS_INLINE {
    (each(std::integral_constant<size_t, i>()), ...);
  }
  (std::make_index_sequence<n>());
}

// sums += (scale of w) * dot * (scale of x) + (minimum of w) * (sum of x), in the order of the
// other instruction sets: the same bits as with VNNI.
template <class Form>
HWY_INLINE void AddBlock(const PanelBlock<Form>& w, const InputBlock& x, TileSums& sums) {
  const DF d;
  StoredDots dots[Form::kScales];
  DotBlock<Form, 0>(w, x, dots[0]);
  if constexpr (Form::kScales == 2) DotBlock<Form, 1>(w, x, dots[1]);
  Unrolled<kRowVectors * kTileTokens>([&](auto i) HWY_ATTR PRONK_ALWAYS_INLINE {
    constexpr size_t v = i / kTileTokens, t = i % kTileTokens;
    const float* const factors = w.factors[0] + v * kFloats;
    const auto dot = [&](size_t s) HWY_ATTR PRONK_ALWAYS_INLINE {
      return hn::ConvertTo(d, hn::Load(DI32(), dots[s].dots[v][t]));
    };
    VF scaled = hn::Mul(dot(0), hn::Load(d, factors));
    if constexpr (Form::kScales == 2) {
      scaled = hn::MulAdd(dot(1), hn::Load(d, factors + kBandRows), scaled);
    }
    VF sum = hn::MulAdd(scaled, hn::Set(d, x.scale[t]), sums[v][t]);
    Unrolled<Form::kMins>([&](auto m) HWY_ATTR PRONK_ALWAYS_INLINE {
      const VF min = hn::Load(d, factors + (Form::kScales + m) * kBandRows);
      sum = hn::MulAdd(min, hn::Set(d, x.sums[Columns(m, Form::kMins)][t]), sum);
    });
    sums[v][t] = sum;
  });
}
#else
// scaled = the sum of (scale of w) * dot for the scales from kScale on.
template <class Form, size_t kScale = 0>
HWY_INLINE void ScaleDots(const PanelBlock<Form>& w, const InputBlock& x, TileSums& scaled) {
  const DF d;
  TileDots dots;
  DotBlock<Form, kScale>(w, x, dots);
  for (size_t v = 0; v < kRowVectors; ++v) {
    const VF scale = hn::Load(d, w.factors[kScale] + v * kFloats);
    HWY_UNROLL(kTileTokens)
    for (size_t t = 0; t < kTileTokens; ++t) {
      const VF dot = hn::ConvertTo(d, dots[v][t]);
      scaled[v][t] = kScale == 0 ? hn::Mul(dot, scale) : hn::MulAdd(dot, scale, scaled[v][t]);
    }
  }
  if constexpr (kScale + 1 < Form::kScales) ScaleDots<Form, kScale + 1>(w, x, scaled);
}

// sums += (scale of w) * dot * (scale of x) + (minimum of w) * (sum of x)
template <class Form>
HWY_INLINE void AddBlock(const PanelBlock<Form>& w, const InputBlock& x, TileSums& sums) {
  const DF d;
  TileSums scaled;
  ScaleDots<Form>(w, x, scaled);
  for (size_t v = 0; v < kRowVectors; ++v) {
    HWY_UNROLL(kTileTokens)
    for (size_t t = 0; t < kTileTokens; ++t) {
      sums[v][t] = hn::MulAdd(scaled[v][t], hn::Set(d, x.scale[t]), sums[v][t]);
    }
    for (size_t m = 0; m < Form::kMins; ++m) {
      const VF min = hn::Load(d, w.factors[Form::kScales + m] + v * kFloats);
      const float* const x_sums = x.sums[Columns(m, Form::kMins)];
      HWY_UNROLL(kTileTokens)
      for (size_t t = 0; t < kTileTokens; ++t) {
        sums[v][t] = hn::MulAdd(min, hn::Set(d, x_sums[t]), sums[v][t]);
      }
    }
  }
}
#endif

// The same for weights that are floats in the panel.
HWY_INLINE void AddBlock(const FloatPanelBlock& w, const FloatInputBlock& x, TileSums& sums) {
  const DF d;
  for (size_t k = 0; k < 32; ++k) {
    for (size_t v = 0; v < kRowVectors; ++v) {
      const VF weights = hn::Load(d, w.weights[k] + v * kFloats);
      HWY_UNROLL(kTileTokens)
      for (size_t t = 0; t < kTileTokens; ++t) {
        sums[v][t] = hn::MulAdd(weights, hn::Set(d, x.x[k][t]), sums[v][t]);
      }
    }
  }
}

// --------------------------------------------------------------------------------------------------
// Tiles and panels.

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
