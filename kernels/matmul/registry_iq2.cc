// The registry, part by part, so that compilers may work side by side: grids of 256 to 1024 points.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_iq2.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/iq2_s-inl.h"
#include "kernels/formats/iq2_xs-inl.h"
#include "kernels/formats/iq2_xxs-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindIq2(gguf::DType dtype) { return Find<IQ2_XXS, IQ2_XS, IQ2_S>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(FindIq2);

Format FormatOfIq2(gguf::DType dtype) { return PRONK_DISPATCH(FindIq2)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
