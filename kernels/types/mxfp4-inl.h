// MXFP4 (OCP Microscaling Formats 1.0): 32 four-bit floats with a power-of-two scale. 17 bytes,
// 4.25 bits a weight.
//
//   bytes    0          e
//            1 ... 16   qs: nibbles as in Q4_0
//   weight   2^(e - 128) * values[q], values in tables.h: twice the 4-bit floats, -12 to 12

#include "kernels/types/q4_0-inl.h"
#include "kernels/types/shared/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct MXFP4 : UnsignedType32<MXFP4, gguf::BlockMXFP4, 12, 24>,
               Nibbles32<gguf::BlockMXFP4, TableCodes<kFp4Values, 12>> {
  static constexpr gguf::DType kDType = gguf::DType::kMXFP4;

  static int Weight(const Block& block, int j) { return kFp4Values[Q4_0::Nibble(block.qs, j)]; }
  static float GroupScale(const Block& block, int) { return E8m0HalfToF32(block.e); }

  // E8m0HalfToF32 of half.h for eight blocks.
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < 8; ++i) bytes |= static_cast<uint64_t>(w[i * sizeof(Block)]) << (8 * i);
    const hn::RebindToUnsigned<DF8> du;
    const hn::Rebind<uint8_t, DF8> d_bytes;
    Factors32 factors;
    for (size_t k = 0; k < kVectors8; ++k) {
      const auto part = hn::Set(hn::FixedTag<uint64_t, 1>(), bytes >> (32 * k));
      const auto e = hn::PromoteTo(du, hn::ResizeBitCast(d_bytes, part));
      const auto one = hn::Set(du, 1u);
      const auto normal = hn::ShiftLeft<23>(hn::Sub(e, one));
      const auto denormal = hn::ShiftLeft<21>(hn::Add(e, one));  // for e = 0 and 1
      factors.scales.vectors[k] =
          hn::BitCast(DF8(), hn::IfThenElse(hn::Gt(e, one), normal, denormal));
    }
    return factors;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
