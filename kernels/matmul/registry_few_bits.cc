// The registry, part by part, so that compilers may work side by side: weights of one and two bits
// and ternary ones.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_few_bits.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/q1_0-inl.h"
#include "kernels/formats/q2_0-inl.h"
#include "kernels/formats/tq1_0-inl.h"
#include "kernels/formats/tq2_0-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindFewBits(gguf::DType dtype) { return Find<Q1_0, Q2_0, TQ1_0, TQ2_0>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(FindFewBits);

Format FormatOfFewBits(gguf::DType dtype) { return PRONK_DISPATCH(FindFewBits)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
