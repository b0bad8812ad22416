// From a list of formats to the functions that multiply them. Included once per instruction set by
// the registry_*.cc files.
#if defined(PRONK_KERNELS_MATMUL_REGISTRY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_MATMUL_REGISTRY_INL_H_
#undef PRONK_KERNELS_MATMUL_REGISTRY_INL_H_
#else
#define PRONK_KERNELS_MATMUL_REGISTRY_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "kernels/matmul/gemm-inl.h"
#include "kernels/matmul/registry.h"
#include "kernels/matmul/rows-inl.h"
#include "kernels/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

template <class Type>
void RowsOf(const Matrix& w, size_t begin, size_t end, std::span<const ActivationRow> x, float* out,
            size_t stride, std::span<std::byte> scratch) {
  MultiplyRows<Type>(w, begin, end, x, out, stride, scratch);
}

template <class Type>
void PanelsOf(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
              std::span<std::byte> scratch) {
#if PRONK_WIDE
  if (x.form == BatchForm::kBf16) {
    using Bf16 = std::conditional_t<Type::kReadsFloats, Bf16HalfPacking<Type>, Bf16Packing<Type>>;
    return MultiplyRange<Bf16>(w, begin, end, x, out, scratch);
  }
#endif
  using Packing = std::conditional_t<Type::kReadsFloats, FloatPacking<Type>, Int8Packing<Type>>;
  MultiplyRange<Packing>(w, begin, end, x, out, scratch);
}

// Copies, since the bytes of a test or a gathered row may lie at any address.
template <class Type>
void DequantizeOf(const std::byte* bytes, float* out) {
  typename Type::Block block;
  std::memcpy(&block, bytes, sizeof(block));
  Type::Dequantize(block, out);
}

template <class Type>
Format Make() {
  return {&RowsOf<Type>, &PanelsOf<Type>, &DequantizeOf<Type>, !Type::kReadsFloats};
}

// That of the type among `Types`, or an empty one.
template <class... Types>
Format Find(gguf::DType dtype) {
  Format found;
  ((Types::kDType == dtype ? void(found = Make<Types>()) : void()), ...);
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_MATMUL_REGISTRY_INL_H_
