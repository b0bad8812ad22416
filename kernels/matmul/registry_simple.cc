// The registry, part by part, so that compilers may work side by side: blocks of 32 weights with a
// scale and perhaps a minimum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_simple.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/q4_0-inl.h"
#include "kernels/formats/q4_1-inl.h"
#include "kernels/formats/q5_0-inl.h"
#include "kernels/formats/q5_1-inl.h"
#include "kernels/formats/q8_0-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindSimple(gguf::DType dtype) { return Find<Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(FindSimple);

Format FormatOfSimple(gguf::DType dtype) { return PRONK_DISPATCH(FindSimple)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
