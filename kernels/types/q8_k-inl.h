// Q8_K: 256 weights of a byte with a scale. 292 bytes, 9.125 bits a weight.
//
//   bytes    0 ... 3       d (f32)
//            4 ... 259     qs: byte j is weight j, signed
//            260 ... 291   bsums, which weights do not need
//   weight   d * q

#include "kernels/types/q8_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q8_K : SignedType32<Q8_K, gguf::BlockQ8_K> {
  static constexpr gguf::DType kDType = gguf::DType::kQ8_K;
  using PanelForm = Int8Form<-128, 127>;

  static int Weight(const Block& block, int j) { return block.qs[j]; }
  static float GroupScale(const Block& block, int) { return block.d; }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    LoadSigned<32>(w + offsetof(Block, qs), v, codes);
  }
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) {
    float d;
    hwy::CopyBytes<4>(w + offsetof(Block, d), &d);
    Factors32 factors;
    for (VF8& v : factors.scales.vectors) v = hn::Set(DF8(), d);
    return factors;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
