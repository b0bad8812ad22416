// The registry, part by part, so that compilers may work side by side: grids of 256 and 512 points
// for four weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_iq3.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/iq3_s-inl.h"
#include "kernels/formats/iq3_xxs-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindIq3(gguf::DType dtype) { return Find<IQ3_XXS, IQ3_S>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(FindIq3);

Format FormatOfIq3(gguf::DType dtype) { return PRONK_DISPATCH(FindIq3)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
