// The list of weight types, and the kernels of each (registry.h). A new type is a row here:
// the #include of its file and its name in PRONK_TYPES.
//
// The list has parts, which compile in parallel: CMakeLists.txt compiles this file once for each
// part, with the part's number as PRONK_PART. Without PRONK_PART the file has every part
// (avx_vnni.cc, neon_*.cc).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/types.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include <cstring>
#include <type_traits>

#include "kernels/matmul/gemm-inl.h"
#include "kernels/matmul/registry.h"
#include "kernels/matmul/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

template <class Type>
void PanelsOf(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
              std::span<std::byte> scratch) {
#if PRONK_VECTOR64
  if (x.form == BatchForm::kBf16) {
    using Bf16 = std::conditional_t<Type::kReadsFloats, Bf16HalfPacking<Type>, Bf16Packing<Type>>;
    return MultiplyRange<Bf16>(w, begin, end, x, out, scratch);
  }
#endif
  using Packing = std::conditional_t<Type::kReadsFloats, FloatPacking<Type>, Int8Packing<Type>>;
  MultiplyRange<Packing>(w, begin, end, x, out, scratch);
}

// Copies the block, since the bytes of a test or a gathered row may have any address.
template <class Type>
void DequantizeOf(const std::byte* bytes, float* out) {
  typename Type::Block block;
  std::memcpy(&block, bytes, sizeof(block));
  Type::Dequantize(block, out);
}
template <class Type>
double DotReferenceOf(const std::byte* bytes, const ActivationRow& x) {
  typename Type::Block block;
  std::memcpy(&block, bytes, sizeof(block));
  return Type::DotReference(block, x);
}

// With more tokens than this, panels are faster (NOTEBOOK.md).
template <class Type>
constexpr size_t kMaxRowTokensOf =
    PRONK_VECTOR64 && !Type::kReadsFloats ? kMaxRowTokens : kDefaultMaxRowTokens;

#ifdef PRONK_NEON_I8MM
template <class Type>
void AddPanels(PanelsFunction*& panels) {
  if constexpr (!Type::kReadsFloats) panels = &PanelsOf<Type>;
}
#endif

template <class... Types>
void AddTypes(KernelTable& table) {
  static_assert((... && (TypeIndex(Types::kDType) < std::tuple_size_v<KernelTable>)));
#ifdef PRONK_NEON_I8MM  // its other functions are neondot's
  (AddPanels<Types>(table[TypeIndex(Types::kDType)].panels), ...);
#else
  ((table[TypeIndex(Types::kDType)] = {&MultiplyRows<Types>, &PanelsOf<Types>, &DequantizeOf<Types>,
                                       &DotReferenceOf<Types>, !Types::kReadsFloats,
                                       kMaxRowTokensOf<Types>}),
   ...);
#endif
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#undef PRONK_IS_PART
#ifdef PRONK_PART
#define PRONK_IS_PART(part) (PRONK_PART == part)
#else
#define PRONK_IS_PART(part) 1
#endif

// Defines AddTypes0 and so on, which registry.cc calls.
#undef PRONK_TYPES
#define PRONK_TYPES(part, ...)                                                     \
  namespace kernels::HWY_NAMESPACE {                                               \
  void AddTypes##part(KernelTable& table) { return AddTypes<__VA_ARGS__>(table); } \
  }

// Floats.
#if PRONK_IS_PART(0)
#include "kernels/types/floats-inl.h"
PRONK_TYPES(0, F32, F16, BF16)
#endif

// Blocks of 32 weights with a scale.
#if PRONK_IS_PART(1)
#include "kernels/types/q4_0-inl.h"
#include "kernels/types/q4_1-inl.h"
#include "kernels/types/q5_0-inl.h"
#include "kernels/types/q5_1-inl.h"
#include "kernels/types/q8_0-inl.h"
PRONK_TYPES(1, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1)
#endif

// K-quants.
#if PRONK_IS_PART(2)
#include "kernels/types/q2_k-inl.h"
#include "kernels/types/q3_k-inl.h"
#include "kernels/types/q4_k-inl.h"
#include "kernels/types/q5_k-inl.h"
#include "kernels/types/q6_k-inl.h"
#include "kernels/types/q8_k-inl.h"
PRONK_TYPES(2, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K)
#endif

// Grids of 8 weights.
#if PRONK_IS_PART(3)
#include "kernels/types/iq1_m-inl.h"
#include "kernels/types/iq1_s-inl.h"
PRONK_TYPES(3, IQ1_S, IQ1_M)
#endif

#if PRONK_IS_PART(4)
#include "kernels/types/iq2_s-inl.h"
#include "kernels/types/iq2_xs-inl.h"
#include "kernels/types/iq2_xxs-inl.h"
PRONK_TYPES(4, IQ2_XXS, IQ2_XS, IQ2_S)
#endif

// Grids of 4 weights.
#if PRONK_IS_PART(5)
#include "kernels/types/iq3_s-inl.h"
#include "kernels/types/iq3_xxs-inl.h"
PRONK_TYPES(5, IQ3_XXS, IQ3_S)
#endif

// Non-uniform codebooks of 16 values.
#if PRONK_IS_PART(6)
#include "kernels/types/iq4_nl-inl.h"
#include "kernels/types/iq4_xs-inl.h"
#include "kernels/types/mxfp4-inl.h"
#include "kernels/types/nvfp4-inl.h"
PRONK_TYPES(6, IQ4_NL, IQ4_XS, MXFP4, NVFP4)
#endif

// One and two bits, and ternary weights.
#if PRONK_IS_PART(7)
#include "kernels/types/i2_s-inl.h"
#include "kernels/types/pq2_0-inl.h"
#include "kernels/types/ptq1_0-inl.h"
#include "kernels/types/q1_0-inl.h"
#include "kernels/types/q2_0-inl.h"
#include "kernels/types/tq1_0-inl.h"
#include "kernels/types/tq2_0-inl.h"
PRONK_TYPES(7, Q1_0, Q2_0, TQ1_0, TQ2_0, I2_S, PQ2_0, PTQ1_0)
#endif
