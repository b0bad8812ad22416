// The registry, part by part, so that compilers may work side by side: grids of 2048 points.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_iq1.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/iq1_m-inl.h"
#include "kernels/formats/iq1_s-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindIq1(gguf::DType dtype) { return Find<IQ1_S, IQ1_M>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(FindIq1);

Format FormatOfIq1(gguf::DType dtype) { return PRONK_DISPATCH(FindIq1)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
