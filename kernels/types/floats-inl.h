// F32, F16 and BF16: unblocked weights, floats of 32 and 16 bits (half.h). Their input also stays
// float, or becomes BF16 in batches if the CPU multiplies BF16 faster.

#include <array>
#include <bit>

#include "gguf/dtype.h"
#include "kernels/half.h"
#include "kernels/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// A step is eight vectors of floats.
template <gguf::DType kType, typename WeightT>
struct Floats {
  using Weight = WeightT;
  static constexpr gguf::DType kDType = kType;
  static constexpr bool kReadsFloats = true;
  static constexpr size_t kRowsAtOnceForOne = 2;
  static constexpr size_t kVectors = 8;
  static constexpr size_t kStepWeights = kVectors * kFloatLanes;
  static constexpr size_t kStepBytes = kStepWeights * sizeof(Weight);
  struct Block {
    static constexpr int kWeights = 1;
    std::array<uint8_t, sizeof(Weight)> bytes;
  };

  static void Dequantize(const Block& weight, float* out) {
    if constexpr (sizeof(Weight) == 4) {
      *out = std::bit_cast<float>(weight);
    } else {
      const auto bits = std::bit_cast<uint16_t>(weight);
      *out = kType == gguf::DType::kF16 ? F16ToF32(bits) : Bf16ToF32(bits);
    }
  }

  // The product with an activation, which is not rounded.
  static double DotReference(const Block& weight, const ActivationRow& x) {
    float w;
    Dequantize(weight, &w);
    return double{w} * double{x.x[0]};
  }

  struct Input {
    const float* x;
  };
  struct Unpacked {
    VF weights[kVectors];
  };
  static HWY_INLINE VF Vector(const uint8_t* HWY_RESTRICT w, size_t v) {
    const hn::Rebind<Weight, DF> d_weight;
    const hn::Repartition<uint8_t, decltype(d_weight)> d_bytes;  // at any address
    const auto bytes = hn::LoadU(d_bytes, w + v * kFloatLanes * sizeof(Weight));
    if constexpr (sizeof(Weight) == 4) {
      return hn::BitCast(DF(), bytes);
    } else {
      return hn::PromoteTo(DF(), hn::BitCast(d_weight, bytes));
    }
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    for (size_t v = 0; v < kVectors; ++v) unpacked.weights[v] = Vector(w, v);
    return unpacked;
  }
  static HWY_INLINE Unpacked ZeroAfter(Unpacked w, size_t n) {
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t before = v * kFloatLanes;
      const auto mask = hn::FirstN(DF(), n > before ? n - before : 0);
      w.weights[v] = hn::IfThenElseZero(mask, w.weights[v]);
    }
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    AddProducts<1>([&](size_t, size_t v) HWY_ATTR { return w.weights[v]; }, in, &sums);
  }
#if PRONK_LANES128 == 2
  // For one token the steps of all rows are interleaved: from memory that is 2 to 5% faster than
  // row by row (BF16, AVX2; other vectors gain nothing, and lose 8 to 12% in the cache).
  template <size_t n>
  static HWY_INLINE void MultiplyAllRows(const uint8_t* const (&w)[n], const Input& in,
                                         RowSums (&sums)[n]) {
    AddProducts<n>([&](size_t r, size_t v) HWY_ATTR { return Vector(w[r], v); }, in, sums);
  }
#endif
  // weights(r, v) is vector v of row r.
  template <size_t n, class Weights>
  static HWY_INLINE void AddProducts(Weights weights, const Input& in, RowSums* HWY_RESTRICT sums) {
    VF chains[n][2];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      const VF x = hn::LoadU(DF(), in.x + v * kFloatLanes);
      HWY_UNROLL(4)
      for (size_t r = 0; r < n; ++r) {
        VF& chain = chains[r][v % 2];
        chain = v < 2 ? hn::Mul(weights(r, v), x) : hn::MulAdd(weights(r, v), x, chain);
      }
    }
    for (size_t r = 0; r < n; ++r) {
      sums[r].products = hn::Add(sums[r].products, hn::Add(chains[r][0], chains[r][1]));
    }
  }
};
using F32 = Floats<gguf::DType::kF32, float>;
using F16 = Floats<gguf::DType::kF16, hwy::float16_t>;
using BF16 = Floats<gguf::DType::kBF16, hwy::bfloat16_t>;

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
