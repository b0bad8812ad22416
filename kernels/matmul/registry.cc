// Chooses the functions of each weight type for this CPU, once.
#include "kernels/matmul/registry.h"

#include "kernels/threads/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/simd/targets.h"

#ifdef PRONK_NEON_I8MM
namespace kernels::N_NEON_DOT {
const KernelTable& AllKernels();
}
#endif

namespace kernels::HWY_NAMESPACE {
// The parts of the list, each in its own object file (types.cc).
void AddTypes0(KernelTable&);
void AddTypes1(KernelTable&);
void AddTypes2(KernelTable&);
void AddTypes3(KernelTable&);
void AddTypes4(KernelTable&);
void AddTypes5(KernelTable&);
void AddTypes6(KernelTable&);
void AddTypes7(KernelTable&);
}  // namespace kernels::HWY_NAMESPACE

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

const KernelTable& AllKernels() {
  static const KernelTable kernels = [] {
#ifdef PRONK_NEON_I8MM
    KernelTable table = N_NEON_DOT::AllKernels();
#else
    KernelTable table{};
#endif
    for (void (*const add)(KernelTable&) :
         {AddTypes0, AddTypes1, AddTypes2, AddTypes3, AddTypes4, AddTypes5, AddTypes6, AddTypes7}) {
      add(table);
    }
    return table;
  }();
  return kernels;
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

using gguf::DType;

PRONK_EXPORT(AllKernels);

TypeKernels KernelsOf(WeightKind kind) {
  const size_t index = TypeIndex(kind.dtype);
  if (index >= std::tuple_size_v<KernelTable>) return {};
  const TypeKernels& of_type = PRONK_DISPATCH(AllKernels)()[index];
  return kind.exact ? Exact(of_type) : of_type;
}

size_t MaxRowTokens(WeightKind kind) {
  return CpuUses(Extension::kAmx) ? kDefaultMaxRowTokens : KernelsOf(kind).max_row_tokens;
}

BatchForm BatchFormFor(WeightKind kind) {
  if (kind.exact) return BatchForm::kFloats;
  const DType dtype = kind.dtype;
  if (UsesInt8(dtype)) return CpuUses(Extension::kAmx) ? BatchForm::kBf16 : BatchForm::kInt8;
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  return half && CpuUses(Extension::kBf16) ? BatchForm::kBf16 : BatchForm::kFloats;
}

}  // namespace kernels
#endif  // HWY_ONCE
