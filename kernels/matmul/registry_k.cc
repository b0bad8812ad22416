// The registry, part by part, so that compilers may work side by side: the K-quants.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry_k.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/formats/q2_k-inl.h"
#include "kernels/formats/q3_k-inl.h"
#include "kernels/formats/q4_k-inl.h"
#include "kernels/formats/q5_k-inl.h"
#include "kernels/formats/q6_k-inl.h"
#include "kernels/formats/q8_k-inl.h"
#include "kernels/matmul/registry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

Format FindK(gguf::DType dtype) { return Find<Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(FindK);

Format FormatOfK(gguf::DType dtype) { return PRONK_DISPATCH(FindK)(dtype); }

}  // namespace kernels
#endif  // HWY_ONCE
