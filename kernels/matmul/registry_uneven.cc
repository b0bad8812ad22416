// The registry, part by part, so that compilers may work side by side: nibbles that stand for
// uneven values.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_uneven.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/iq4_nl-inl.h"
#include "kernels/formats/iq4_xs-inl.h"
#include "kernels/formats/mxfp4-inl.h"
#include "kernels/formats/nvfp4-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindUneven(gguf::DType dtype) { return Find<IQ4_NL, IQ4_XS, MXFP4, NVFP4>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(FindUneven);

Format FormatOfUneven(gguf::DType dtype) { return PRONK_DISPATCH(FindUneven)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
