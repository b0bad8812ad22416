// Batches: products of BF16 pairs, and the way from other floats to BF16. Compiled for one target,
// AVX-512 with BF16 (Zen 4 and Sapphire Rapids have it), which no other file has to be built for.
#ifndef HWY_COMPILE_ONLY_STATIC
#define HWY_COMPILE_ONLY_STATIC
#endif
#define HWY_BASELINE_TARGETS HWY_AVX3_ZEN4
#undef HWY_DISABLED_TARGETS
#include "hwy/foreach_target.h"
// After that the target is known.
#include "hwy/highway.h"
#include "kernels/bf16.h"
#include "kernels/cpu.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::FixedTag<float, 16>;
using VF = hn::Vec<DF>;
using DBF16 = hn::Repartition<hwy::bfloat16_t, DF>;
using VBF16 = hn::Vec<DBF16>;

// Tokens whose sums stay in registers, two vectors of rows for each: 16 chains of sums, none of
// which has to wait for another.
constexpr size_t kTileTokens = 8;
static_assert(kBf16Tokens % kTileTokens == 0 && kBf16Rows == 2 * 16);

HWY_INLINE VBF16 LoadPairs(const uint16_t (*pairs)[2]) {
  return hn::BitCast(DBF16(), hn::Load(hn::RebindToUnsigned<DBF16>(), pairs[0]));
}

// A token's pair of columns in all lanes.
HWY_INLINE VBF16 Broadcast(const uint16_t* pair) {
  uint32_t bits;
  hwy::CopyBytes<4>(pair, &bits);
  return hn::BitCast(DBF16(), hn::Set(hn::RebindToUnsigned<DF>(), bits));
}

// Tokens [first, first + kTileTokens).
void MultiplyTokens(const Bf16PanelBlock* HWY_RESTRICT w, const Bf16InputBlock* HWY_RESTRICT x,
                    size_t n_blocks, size_t first, float* HWY_RESTRICT sums) {
  const DF d;
  VF low[kTileTokens], high[kTileTokens], unused = hn::Zero(d);
  HWY_UNROLL(8)
  for (size_t t = 0; t < kTileTokens; ++t) low[t] = high[t] = hn::Zero(d);
  for (size_t b = 0; b < n_blocks; ++b) {
    for (size_t k = 0; k < kBf16Cols / 2; ++k) {
      const VBF16 w_low = LoadPairs(w[b].weights[k]), w_high = LoadPairs(w[b].weights[k] + 16);
      HWY_UNROLL(8)
      for (size_t t = 0; t < kTileTokens; ++t) {
        const VBF16 pair = Broadcast(x[b].x[first + t] + 2 * k);
        low[t] = hn::ReorderWidenMulAccumulate(d, w_low, pair, low[t], unused);
        high[t] = hn::ReorderWidenMulAccumulate(d, w_high, pair, high[t], unused);
      }
    }
  }
  HWY_UNROLL(8)
  for (size_t t = 0; t < kTileTokens; ++t) {
    hn::Store(low[t], d, sums + (first + t) * kBf16Rows);
    hn::Store(high[t], d, sums + (first + t) * kBf16Rows + 16);
  }
}

HWY_INLINE void StoreRounded(VF first, VF second, uint16_t* out) {
  const hn::RebindToUnsigned<DBF16> d;
  hn::StoreU(hn::BitCast(d, hn::OrderedDemote2To(DBF16(), first, second)), d, out);
}

void RoundFloats(const float* HWY_RESTRICT x, size_t n, uint16_t* HWY_RESTRICT out) {
  for (size_t i = 0; i < n; i += 32) {
    StoreRounded(hn::LoadU(DF(), x + i), hn::LoadU(DF(), x + i + 16), out + i);
  }
}

HWY_INLINE VF LoadHalfs(const uint16_t* x) {
  const hn::Rebind<hwy::float16_t, DF> d_half;
  return hn::PromoteTo(DF(),
                       hn::BitCast(d_half, hn::LoadU(hn::RebindToUnsigned<decltype(d_half)>(), x)));
}

void RoundHalfs(uint16_t* x, size_t n) {
  for (size_t i = 0; i < n; i += 32) StoreRounded(LoadHalfs(x + i), LoadHalfs(x + i + 16), x + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

namespace kernels {

void RoundToBf16(const float* x, size_t n, uint16_t* out) {
  HWY_STATIC_DISPATCH(RoundFloats)(x, n, out);
}

void HalfsToBf16(uint16_t* x, size_t n) { HWY_STATIC_DISPATCH(RoundHalfs)(x, n); }

Bf16Multiplier::Bf16Multiplier() : amx_(CpuUses(Extension::kAmx)) {
  if (amx_) SetUpAmx();
}

Bf16Multiplier::~Bf16Multiplier() {
  if (amx_) ReleaseAmx();
}

void Bf16Multiplier::Multiply(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks,
                              size_t n_tokens, float* sums) const {
  if (amx_) return MultiplyAmx(w, x, n_blocks, n_tokens, sums);
  for (size_t t = 0; t < n_tokens; t += HWY_STATIC_DISPATCH(kTileTokens)) {
    HWY_STATIC_DISPATCH(MultiplyTokens)(w, x, n_blocks, t, sums);
  }
}

}  // namespace kernels
