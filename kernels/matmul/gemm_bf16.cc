// Batches: products of BF16 pairs, and conversions to BF16. Compiled for one target, AVX-512 with
// BF16 (Zen 4, Sapphire Rapids), for which no other file has to be built.
#ifndef HWY_COMPILE_ONLY_STATIC
#define HWY_COMPILE_ONLY_STATIC
#endif
#define HWY_BASELINE_TARGETS HWY_AVX3_ZEN4
#undef HWY_DISABLED_TARGETS
#include "hwy/foreach_target.h"
// After that the target is known.
#include "hwy/highway.h"
#include "kernels/matmul/bf16.h"
#include "kernels/threads/cpu.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::FixedTag<float, 16>;
using VF = hn::Vec<DF>;
using DBF16 = hn::Repartition<hwy::bfloat16_t, DF>;
using VBF16 = hn::Vec<DBF16>;

using DU32 = hn::RebindToUnsigned<DF>;
constexpr size_t kHalf = kBf16Half;

HWY_INLINE VBF16 LoadPairs(const uint16_t (*pairs)[2]) {
  return hn::BitCast(DBF16(), hn::Load(hn::RebindToUnsigned<DBF16>(), pairs[0]));
}

// Broadcasts a row's pair of columns to all lanes.
HWY_INLINE VBF16 Broadcast(const uint16_t* pair) {
  uint32_t bits;
  hwy::CopyBytes<4>(pair, &bits);
  return hn::BitCast(DBF16(), hn::Set(DU32(), bits));
}

// Multiplies rows [first, first + kRows) with the first 16 tokens, or with all 32. A lane is a
// token. 16 independent chains of sums stay in registers.
template <size_t kHalves, size_t kRows = 16 / kHalves>
void MultiplyPairs(const Bf16PanelBlock* HWY_RESTRICT w, const Bf16InputBlock* HWY_RESTRICT x,
                   size_t n_blocks, size_t first, Bf16Sums& sums) {
  const DF d;
  VF chains[kRows][kHalves], unused = hn::Zero(d);
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t h = 0; h < kHalves; ++h) chains[r][h] = hn::Zero(d);
  }
  for (size_t b = 0; b < n_blocks; ++b) {
    for (size_t k = 0; k < kBf16Cols / 2; ++k) {
      VBF16 tokens[kHalves];
      for (size_t h = 0; h < kHalves; ++h) tokens[h] = LoadPairs(x[b].x[h][k]);
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        const VBF16 pair = Broadcast(w[b].weights[first + r] + 2 * k);
        for (size_t h = 0; h < kHalves; ++h) {
          chains[r][h] = hn::ReorderWidenMulAccumulate(d, tokens[h], pair, chains[r][h], unused);
        }
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t h = 0; h < kHalves; ++h) {
      hn::Store(chains[r][h], d, sums[h][(first + r) / kHalf][(first + r) % kHalf]);
    }
  }
}

void MultiplyAllPairs(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks,
                      size_t n_tokens, Bf16Sums& sums) {
  if (n_tokens <= kHalf) {
    for (size_t row = 0; row < kBf16Rows; row += 16) MultiplyPairs<1>(w, x, n_blocks, row, sums);
  } else {
    for (size_t row = 0; row < kBf16Rows; row += 8) MultiplyPairs<2>(w, x, n_blocks, row, sums);
  }
}

// Four numbers of each of the rows 0, 4, 8 and 12 from `rows` on, side by side.
HWY_INLINE hn::Vec<DU32> LoadFourRows(const uint32_t* rows, size_t stride) {
  const hn::FixedTag<uint32_t, 4> d4;
  auto v = hn::ResizeBitCast(DU32(), hn::LoadU(d4, rows));
  v = hn::InsertBlock<1>(v, hn::LoadU(d4, rows + 4 * stride));
  v = hn::InsertBlock<2>(v, hn::LoadU(d4, rows + 8 * stride));
  return hn::InsertBlock<3>(v, hn::LoadU(d4, rows + 12 * stride));
}

// out[k][r] = in[r][k] for 16 rows and columns; the strides of rows are in numbers.
HWY_INLINE void Transpose16(const uint32_t* HWY_RESTRICT in, size_t in_stride,
                            uint32_t* HWY_RESTRICT out, size_t out_stride) {
  const DU32 d;
  const hn::Repartition<uint64_t, DU32> d64;
  for (size_t k = 0; k < 16; k += 4, out += 4 * out_stride) {
    const auto load = [&](size_t r)
                          HWY_ATTR { return LoadFourRows(in + r * in_stride + k, in_stride); };
    const auto a = load(0), b = load(1), c = load(2), e = load(3);
    const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
    const auto ab2 = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
    const auto ce0 = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
    const auto ce2 = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
    const auto store = [&](auto v, size_t i)
                           HWY_ATTR { hn::Store(hn::BitCast(d, v), d, out + i * out_stride); };
    store(hn::InterleaveLower(d64, ab0, ce0), 0);
    store(hn::InterleaveUpper(d64, ab0, ce0), 1);
    store(hn::InterleaveLower(d64, ab2, ce2), 2);
    store(hn::InterleaveUpper(d64, ab2, ce2), 3);
  }
}

// out[token][row]
void ByToken(const Bf16Sums& sums, size_t n_tokens, float* HWY_RESTRICT out) {
  for (size_t h = 0; h * kHalf < n_tokens; ++h) {
    for (size_t r = 0; r < kBf16Rows / kHalf; ++r) {
      Transpose16(reinterpret_cast<const uint32_t*>(sums[h][r][0]), kHalf,
                  reinterpret_cast<uint32_t*>(out) + h * kHalf * kBf16Rows + r * kHalf, kBf16Rows);
    }
  }
}

HWY_INLINE void StoreRounded(VF first, VF second, uint16_t* out) {
  const hn::RebindToUnsigned<DBF16> d;
  hn::StoreU(hn::BitCast(d, hn::OrderedDemote2To(DBF16(), first, second)), d, out);
}

void PackInputs(const float (&x)[kBf16Tokens][kBf16Cols], Bf16InputBlock* HWY_RESTRICT block) {
  alignas(64) uint16_t rounded[kBf16Tokens][kBf16Cols];
  for (size_t t = 0; t < kBf16Tokens; ++t) {
    StoreRounded(hn::LoadU(DF(), x[t]), hn::LoadU(DF(), x[t] + 16), rounded[t]);
  }
  for (size_t h = 0; h < kBf16Tokens / kHalf; ++h) {
    Transpose16(reinterpret_cast<const uint32_t*>(rounded[h * kHalf]), kBf16Cols / 2,
                reinterpret_cast<uint32_t*>(block->x[h][0][0]), kHalf);
  }
}

// 16 integers from number i on, times their scales plus their minimums, each for 32 or 16 integers.
HWY_INLINE VF Scaled(const ScaledIntegers& w, size_t i) {
  const DF d;
  const auto integers =
      hn::PromoteTo(hn::RebindToSigned<DF>(), hn::LoadU(hn::Rebind<int8_t, DF>(), w.weights + i));
  const auto number = [i](size_t n) { return n == 1 ? i / 32 : i / 16; };
  const VF scaled = hn::Mul(hn::ConvertTo(d, integers), hn::Set(d, w.scales[number(w.n_scales)]));
  return w.n_mins == 0 ? scaled : hn::Add(scaled, hn::Set(d, w.mins[number(w.n_mins)]));
}

void PackIntegers(const ScaledIntegers& w, size_t n_blocks, size_t row,
                  Bf16PanelBlock* HWY_RESTRICT blocks) {
  for (size_t b = 0; b < n_blocks; ++b) {
    StoreRounded(Scaled(w, 32 * b), Scaled(w, 32 * b + 16), blocks[b].weights[row]);
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

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace kernels {

void PackBf16Integers(const ScaledIntegers& w, size_t n_blocks, size_t row,
                      Bf16PanelBlock* blocks) {
  HWY_STATIC_DISPATCH(PackIntegers)(w, n_blocks, row, blocks);
}

void PackBf16Inputs(const float (&x)[kBf16Tokens][kBf16Cols], Bf16InputBlock* block) {
  HWY_STATIC_DISPATCH(PackInputs)(x, block);
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
  alignas(64) Bf16Sums by_row;
  if (amx_) {
    MultiplyAmx(w, x, n_blocks, n_tokens, by_row);
  } else {
    HWY_STATIC_DISPATCH(MultiplyAllPairs)(w, x, n_blocks, n_tokens, by_row);
  }
  HWY_STATIC_DISPATCH(ByToken)(by_row, n_tokens, sums);
}

}  // namespace kernels
