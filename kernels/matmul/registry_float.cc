// The registry, part by part, so that compilers may work side by side: floats.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_float.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/floats-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindFloat(gguf::DType dtype) { return Find<F32, F16, BF16>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(FindFloat);

Format FormatOfFloat(gguf::DType dtype) { return HWY_DYNAMIC_DISPATCH(FindFloat)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
