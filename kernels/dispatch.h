// Which functions multiply which weight type: the one place that knows. Internal to kernels/.
#ifndef PRONK_KERNELS_DISPATCH_H_
#define PRONK_KERNELS_DISPATCH_H_

#include "kernels/gemm.h"
#include "kernels/gemv.h"

namespace kernels {

struct TypeKernels {
  gguf::DType dtype;
  Gemv* gemv;  // with a single vector
  Gemm* gemm;  // with a batch, or null
  bool int8;   // whether they read their input as int8, or else as floats
};

// For weights of this type; where there is no kernel, the scalar reference.
const TypeKernels& KernelsFor(gguf::DType dtype);

// What a batch is packed to for products with weights of this type.
BatchForm BatchFormFor(gguf::DType dtype);

}  // namespace kernels

#endif  // PRONK_KERNELS_DISPATCH_H_
