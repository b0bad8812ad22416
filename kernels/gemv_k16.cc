// Products with Q2_K, Q3_K and Q6_K: blocks of 256 weights, with a scale for every 16.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_k16.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

struct Q2_K {
  using Block = gguf::BlockQ2_K;
  using Input = RunInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);
  static constexpr int kZero = 0;
  static constexpr int kFactors[4] = {1, 4, 1, 4};

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadRunInput<Q2_K>(x, i);
  }
  static HWY_INLINE void Codes(const uint8_t* w, size_t v, VU8 (&codes)[4]) {
    const VU8 low = LoadRuns<32>(w + offsetof(Block, qs), v);
    const VU8 high = ShiftBits<4>(low);
    codes[0] = Mask(low, 3);
    codes[1] = Mask(low, 3 << 2);
    codes[2] = Mask(high, 3);
    codes[3] = Mask(high, 3 << 2);
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const DU8x16 d16;
    const auto packed = hn::LoadU(d16, w + offsetof(Block, scales));
    const auto scales = hn::And(packed, hn::Set(d16, uint8_t{15}));
    const auto mins = hn::ShiftRight<4>(packed);
    AddScaledRuns<Q2_K>(w, hn::BitCast(DI8x16(), scales), w + offsetof(Block, d), in, sums);
    sums.mins = hn::NegMulAdd(DotSums(Widen(hn::BitCast(DI8x16(), mins)), in),
                              SetHalf(D8(), w + offsetof(Block, dmin)), sums.mins);
  }
};

struct Q3_K {
  using Block = gguf::BlockQ3_K;
  using Input = RunInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);
  static constexpr int kZero = 4;
  static constexpr int kFactors[4] = {1, 1, 1, 1};

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadRunInput<Q3_K>(x, i);
  }

  // hmask for vector v, with the bits of its half of the block in bits 0..3.
  static HWY_INLINE VU8 ThirdBits(const uint8_t* hmask, size_t v) {
    const VU8 bytes = LoadRuns<0>(hmask, v);
#if PRONK_WIDE
    const hn::Repartition<uint32_t, DU8> d32;
    alignas(64) static constexpr uint32_t kCounts[16] = {0, 0, 0, 0, 0, 0, 0, 0,
                                                         4, 4, 4, 4, 4, 4, 4, 4};
    return hn::BitCast(DU8(), hn::Shr(hn::BitCast(d32, bytes), hn::Load(d32, kCounts)));
#else
    return v < kRunVectors / 2 ? bytes : ShiftBits<4>(bytes);
#endif
  }
  static HWY_INLINE void Codes(const uint8_t* w, size_t v, VU8 (&codes)[4]) {
    TwoBitCodes(LoadRuns<32>(w + offsetof(Block, qs), v), codes);
    const VU8 third = ThirdBits(w + offsetof(Block, hmask), v);
    codes[0] = AddBits(codes[0], ShiftBits<-2>(third), 4);
    codes[1] = AddBits(codes[1], ShiftBits<-1>(third), 4);
    codes[2] = AddBits(codes[2], third, 4);
    codes[3] = AddBits(codes[3], ShiftBits<1>(third), 4);
  }

  // Sixteen scales of six bits: the low four in nibbles of the first eight bytes, the top two in
  // the last four bytes.
  static HWY_INLINE VI8x16 Scales(const uint8_t* packed) {
    uint32_t s[3];
    hwy::CopyBytes<12>(packed, s);
    const auto four = [&](uint32_t low, int k) {
      return static_cast<uint64_t>((low & 0x0F0F0F0Fu) | ((s[2] >> (2 * k)) & 0x03030303u) << 4);
    };
    const uint64_t first = four(s[0], 0) | four(s[1], 1) << 32;
    const uint64_t second = four(s[0] >> 4, 2) | four(s[1] >> 4, 3) << 32;
    const DI8x16 d;
    const auto scales = hn::Dup128VecFromValues(hn::FixedTag<uint64_t, 2>(), first, second);
    return hn::Sub(hn::BitCast(d, scales), hn::Set(d, int8_t{32}));
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    AddScaledRuns<Q3_K>(w, Scales(w + offsetof(Block, scales)), w + offsetof(Block, d), in, sums);
  }
};

struct Q6_K {
  using Block = gguf::BlockQ6_K;
  using Input = RunInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStreams = 2;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);
  static constexpr int kZero = 32;
  static constexpr int kFactors[4] = {1, 1, 1, 1};

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadRunInput<Q6_K>(x, i);
  }
  static HWY_INLINE void Codes(const uint8_t* w, size_t v, VU8 (&codes)[4]) {
    const VU8 ql0 = LoadRuns<64>(w + offsetof(Block, ql), v);
    const VU8 ql1 = LoadRuns<64>(w + offsetof(Block, ql) + 32, v);
    const VU8 qh = LoadRuns<32>(w + offsetof(Block, qh), v);
    codes[0] = AddBits(LowNibbles(ql0), ShiftBits<-4>(qh), 0x30);
    codes[1] = AddBits(LowNibbles(ql1), ShiftBits<-2>(qh), 0x30);
    codes[2] = AddBits(HighNibbles(ql0), qh, 0x30);
    codes[3] = AddBits(HighNibbles(ql1), ShiftBits<2>(qh), 0x30);
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const DU8x16 d16;
    const auto scales = hn::BitCast(DI8x16(), hn::LoadU(d16, w + offsetof(Block, scales)));
    AddScaledRuns<Q6_K>(w, scales, w + offsetof(Block, d), in, sums);
  }
};

void RowsQ2_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q2_K>(w, begin, end, x, out);
}
void RowsQ3_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q3_K>(w, begin, end, x, out);
}
void RowsQ6_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q6_K>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsQ2_K);
PRONK_EXPORT(RowsQ3_K);
PRONK_EXPORT(RowsQ6_K);

void GemvQ2_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ2_K)(w, begin, end, x, out);
}
void GemvQ3_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ3_K)(w, begin, end, x, out);
}
void GemvQ6_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ6_K)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
