// Products with float weights: F32, F16, BF16. The input stays float, too.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_float.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/gemv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A step is two vectors, whatever the weights are before they become floats.
template <typename Weight>
struct Floats {
  static constexpr bool kReadsFloats = true;
  static constexpr size_t kStreams = 2;
  static constexpr size_t kStepWeights = 2 * kFloats;
  static constexpr size_t kStepBytes = kStepWeights * sizeof(Weight);

  struct Input {
    VF x0, x1;
  };
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    const DF d;
    return {hn::LoadU(d, x.x + i), hn::LoadU(d, x.x + i + kFloats)};
  }

  static HWY_INLINE VF ToFloat(const uint8_t* w) {
    const DF d;
    const hn::Rebind<Weight, DF> d_weight;
    const hn::Repartition<uint8_t, decltype(d_weight)> d_bytes;  // as many bytes, at any address
    const auto v = hn::BitCast(d_weight, hn::LoadU(d_bytes, w));
    if constexpr (sizeof(Weight) == 4) {
      return v;
    } else {
      return hn::PromoteTo(d, v);
    }
  }
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    sums.a = hn::MulAdd(ToFloat(w), in.x0, sums.a);
    sums.b = hn::MulAdd(ToFloat(w + kStepBytes / 2), in.x1, sums.b);
  }
};

void RowsF32(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Floats<float>>(w, begin, end, x, out);
}
void RowsF16(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Floats<hwy::float16_t>>(w, begin, end, x, out);
}
void RowsBF16(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Floats<hwy::bfloat16_t>>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RowsF32);
HWY_EXPORT(RowsF16);
HWY_EXPORT(RowsBF16);

void GemvF32(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsF32)(w, begin, end, x, out);
}
void GemvF16(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsF16)(w, begin, end, x, out);
}
void GemvBF16(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsBF16)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
