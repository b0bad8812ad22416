// The micro-kernel: products of one block of a micro-panel with one block of a tile's activations.
// Included once per instruction set. The layouts are in panel-inl.h.
//
// Integer dots of a block are products of bytes added up in pairs (AVX2) or dots of four bytes
// (VNNI, NEON), or of two times two rows of eight (i8mm). The order of additions and scaling is the
// same in each.

#include <algorithm>

#include "kernels/matmul/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// OfRows: the factors of vector v of a tile's sums, from a number for each row. OfTokens: the
// factors of the sums of vector t of tokens, from a number for each token.
HWY_INLINE VF OfRows(const float* p, size_t v) { return hn::Load(DF(), p + v * kFloatLanes); }

// The dots and the sums of a tile, or of its first kTokens vectors of tokens.
template <size_t kTokens>
using TileDots = VI32[kRowVectors][kTokens];
template <size_t kTokens>
using TileSums = VF[kRowVectors][kTokens];

template <class PanelForm>
HWY_INLINE VU8 LoadCodes(const PanelBlock<PanelForm>& w, size_t k_group, size_t v) {
  return hn::Load(DU8(), &w.codes[k_group][v * kFloatLanes / kSumTokens][0]);
}

// The activations of a k-group: four in every lane, or the 16 bytes that have them.
HWY_INLINE VU8 LoadInputs(const InputBlock& x, size_t k_group, size_t t) {
#ifdef PRONK_NEON_DOT
  constexpr size_t n = 4 / kSumTokens / kSumTokens;
  return hn::LoadU(DU8(), &x.q[t][k_group / n * n][0][0]);
#else
  int32_t bits;
  hwy::CopyBytes<4>(x.q[t][k_group][0], &bits);
  return hn::BitCast(DU8(), hn::Set(DI32(), bits));
#endif
}

#ifdef PRONK_NEON_I8MM
HWY_INLINE VF OfTokens(const float* p, size_t t) { return hn::LoadU(DF(), p + t * kFloatLanes); }

// result: [kTileTokens][kMicroRows]
HWY_INLINE void StoreTileSums(VF sums, size_t v, size_t t, float* HWY_RESTRICT result) {
  const hn::FixedTag<float, 2> d;
  float* const rows = result + 2 * t * kMicroRows + 2 * v;
  hn::StoreU(hn::LowerHalf(d, sums), d, rows);
  hn::StoreU(hn::UpperHalf(d, sums), d, rows + kMicroRows);
}
#else
HWY_INLINE VF OfTokens(const float* p, size_t t) { return hn::Set(DF(), p[t]); }

HWY_INLINE void StoreTileSums(VF sums, size_t v, size_t t, float* HWY_RESTRICT result) {
  hn::Store(sums, DF(), result + t * kMicroRows + v * kFloatLanes);
}
#endif

#if PRONK_MADDUBS
// The contribution of the zero point: -kZeroPoint times the sum of the activations.
template <class PanelForm, size_t kScale>
HWY_INLINE VI32 StartOf(const InputBlock& x, size_t t) {
  const DI32 d;
  if constexpr (PanelForm::kSigned) return hn::Zero(d);
  const VI32 start = hn::Set(d, x.starts[Columns(kScale, PanelForm::kScales)][t]);
  return hn::ShiftRight<PanelForm::kZeroShift>(start);
}

// Products of neighbours, added up in pairs.
template <class PanelForm>
HWY_INLINE VI16 MultiplyPairs(VU8 codes, VI8 x) {
  if constexpr (PanelForm::kSigned) {
    const VI8 w = hn::BitCast(DI8(), codes);
    return hn::SatWidenMulPairwiseAdd(DI16(), hn::BitCast(DU8(), hn::Abs(w)),
                                      hn::IfNegativeThenNegOrUndefIfZero(w, x));
  } else {
    return hn::SatWidenMulPairwiseAdd(DI16(), codes, x);
  }
}

// The integer dots of the columns of scale number kScale. Products are summed in i16 as long as
// they fit.
template <class PanelForm, size_t kScale, size_t kTokens>
HWY_INLINE void DotBlock(const PanelBlock<PanelForm>& w, const InputBlock& x,
                         TileDots<kTokens>& dots) {
  constexpr size_t kKGroups = 8 / PanelForm::kScales;
  constexpr size_t kSumsInI16 = std::min(kKGroups, PanelForm::kSumsInI16);
  HWY_UNROLL(8)
  for (size_t first = 0; first < kKGroups; first += kSumsInI16) {
    VI16 pairs[kRowVectors][kTokens];
    HWY_UNROLL(8)
    for (size_t i = 0; i < kSumsInI16; ++i) {
      const size_t g = kScale * kKGroups + first + i;
      for (size_t v = 0; v < kRowVectors; ++v) {
        const VU8 codes = LoadCodes(w, g, v);
        HWY_UNROLL(kTokenVectors)
        for (size_t t = 0; t < kTokens; ++t) {
          const VI8 four = hn::BitCast(DI8(), LoadInputs(x, g, t));
          const VI16 products = MultiplyPairs<PanelForm>(codes, four);
          pairs[v][t] = i == 0 ? products : hn::Add(pairs[v][t], products);
        }
      }
    }
    for (size_t v = 0; v < kRowVectors; ++v) {
      HWY_UNROLL(kTokenVectors)
      for (size_t t = 0; t < kTokens; ++t) {
        const VI32 start = first == 0 ? StartOf<PanelForm, kScale>(x, t) : dots[v][t];
        const VI32 sum = hn::WidenMulPairwiseAdd(DI32(), pairs[v][t], hn::Set(DI16(), 1));
        dots[v][t] = hn::Add(start, sum);
      }
    }
  }
}
#else
template <class PanelForm, size_t kScale, size_t kTokens>
HWY_INLINE void DotBlock(const PanelBlock<PanelForm>& w, const InputBlock& x,
                         TileDots<kTokens>& dots) {
  constexpr size_t kKGroups = 32 / kGroupCols / PanelForm::kScales;
  for (size_t v = 0; v < kRowVectors; ++v) {
#if PRONK_BIAS
    const VI32 start = hn::Load(DI32(), w.starts[kScale] + v * kFloatLanes);
#else
    alignas(16) static constexpr int32_t kStart[4] = {kFloatStart, kFloatStart, kFloatStart,
                                                      kFloatStart};
    const VI32& start = reinterpret_cast<const VI32&>(kStart);
#endif
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) dots[v][t] = LoadStart(start);
  }
  HWY_UNROLL(8)
  for (size_t g = kScale * kKGroups; g < (kScale + 1) * kKGroups; ++g) {
    VI8 codes[kRowVectors];
    for (size_t v = 0; v < kRowVectors; ++v) codes[v] = hn::BitCast(DI8(), LoadCodes(w, g, v));
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) {
      const VU8 inputs = LoadInputs(x, g, t);
      for (size_t v = 0; v < kRowVectors; ++v) {
#if PRONK_VNNI
        dots[v][t] = DotBytes(dots[v][t], inputs, codes[v]);
#elif defined(PRONK_NEON_I8MM)
        dots[v][t] = DotPairs(dots[v][t], hn::BitCast(DI8(), inputs), codes[v]);
#elif defined(PRONK_NEON_DOT)
        dots[v][t] = DotLane(dots[v][t], codes[v], hn::BitCast(DI8(), inputs), g % 4);
#else
        dots[v][t] = DotBytes(dots[v][t], codes[v], hn::BitCast(DI8(), inputs));
#endif
      }
    }
  }
}
#endif

// scaled = the sum of (scale of w) * dot for the scales from kScale on.
template <class PanelForm, size_t kScale, size_t kTokens>
HWY_INLINE void ScaleDots(const PanelBlock<PanelForm>& w, const InputBlock& x,
                          TileSums<kTokens>& scaled) {
  TileDots<kTokens> dots;
  DotBlock<PanelForm, kScale>(w, x, dots);
  for (size_t v = 0; v < kRowVectors; ++v) {
    const VF scale = OfRows(w.factors[kScale], v);
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) {
      const VF dot = ToFloats(dots[v][t]);
      scaled[v][t] = kScale == 0 ? hn::Mul(dot, scale) : hn::MulAdd(dot, scale, scaled[v][t]);
    }
  }
  if constexpr (kScale + 1 < PanelForm::kScales) ScaleDots<PanelForm, kScale + 1>(w, x, scaled);
}

// sums += (scale of w) * dot * (scale of x) + (minimum of w) * (sum of x)
template <class PanelForm, size_t kTokens>
HWY_INLINE void AddBlock(const PanelBlock<PanelForm>& w, const InputBlock& x,
                         TileSums<kTokens>& sums) {
  TileSums<kTokens> scaled;
  ScaleDots<PanelForm, 0>(w, x, scaled);
  for (size_t v = 0; v < kRowVectors; ++v) {
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) {
      sums[v][t] = hn::MulAdd(scaled[v][t], OfTokens(x.scale, t), sums[v][t]);
    }
    for (size_t m = 0; m < PanelForm::kMins; ++m) {
      const VF min = OfRows(w.factors[PanelForm::kScales + m], v);
      const float* const x_sums = x.sums[Columns(m, PanelForm::kMins)];
      HWY_UNROLL(kTokenVectors)
      for (size_t t = 0; t < kTokens; ++t) {
        sums[v][t] = hn::MulAdd(min, OfTokens(x_sums, t), sums[v][t]);
      }
    }
  }
}

#ifndef PRONK_NEON_I8MM
// sums += column k of the weights, floats, times column k of the tokens.
template <size_t kTokens>
HWY_INLINE void AddColumn(const FloatPanelBlock& w, const FloatInputBlock& x, size_t k,
                          TileSums<kTokens>& sums) {
  const DF d;
  for (size_t v = 0; v < kRowVectors; ++v) {
    const VF weights = hn::Load(d, w.weights[k] + v * kFloatLanes);
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) {
      sums[v][t] = hn::MulAdd(weights, hn::Set(d, x.x[k][t]), sums[v][t]);
    }
  }
}

// AddBlock for float weights. An addition takes four cycles, and two can start in each cycle, so
// six chains are too few: with one vector of rows, odd columns have their own chains.
template <size_t kTokens>
HWY_INLINE void AddBlock(const FloatPanelBlock& w, const FloatInputBlock& x,
                         TileSums<kTokens>& sums) {
  if constexpr (kRowVectors > 1) {
    for (size_t k = 0; k < 32; ++k) AddColumn(w, x, k, sums);
  } else {
    const DF d;
    TileSums<kTokens> odd;
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) odd[0][t] = hn::Zero(d);
    for (size_t k = 0; k < 32; k += 2) {
      AddColumn(w, x, k, sums);
      AddColumn(w, x, k + 1, odd);
    }
    HWY_UNROLL(kTokenVectors)
    for (size_t t = 0; t < kTokens; ++t) sums[0][t] = hn::Add(sums[0][t], odd[0][t]);
  }
}
#endif

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
