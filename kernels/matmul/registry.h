// What there is for each format: the one place that knows. The formats are in formats/, and the
// registry_*.cc files list them. Internal to kernels/.
#ifndef PRONK_KERNELS_MATMUL_REGISTRY_H_
#define PRONK_KERNELS_MATMUL_REGISTRY_H_

#include <cstddef>
#include <span>

#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul.h"

namespace kernels {

// out[t * stride + i] = w.row(begin + i) . x[t] for rows [begin, end) and 1 to kRowTokens tokens. A
// result has the same bits whatever range and company it is computed in. scratch: see RowsScratch
// in rows.h, 64-byte aligned.
using Rows = void(const Matrix& w, size_t begin, size_t end, std::span<const ActivationRow> x,
                  float* out, size_t stride, std::span<std::byte> scratch);

// Products with batches by panels (gemm.h).
using Panels = Gemm;

// The values of a block's weights, wherever it lies: the scalar definition.
using Dequantize = void(const std::byte* block, float* out);

struct Format {
  Rows* rows = nullptr;
  Panels* panels = nullptr;
  Dequantize* dequantize = nullptr;
  bool int8 = false;  // whether products read their input as int8, or else as floats

  explicit operator bool() const { return rows != nullptr; }
};

// For weights of this type, with the instruction set of the moment (LimitCpu); empty where there is
// no such type of weights.
Format FormatOf(gguf::DType dtype);

// Its parts.
Format FormatOfFloat(gguf::DType dtype);    // registry_float.cc
Format FormatOfSimple(gguf::DType dtype);   // registry_simple.cc
Format FormatOfK(gguf::DType dtype);        // registry_k.cc
Format FormatOfIq1(gguf::DType dtype);      // registry_iq1.cc
Format FormatOfIq2(gguf::DType dtype);      // registry_iq2.cc
Format FormatOfIq3(gguf::DType dtype);      // registry_iq3.cc
Format FormatOfUneven(gguf::DType dtype);   // registry_uneven.cc
Format FormatOfFewBits(gguf::DType dtype);  // registry_few_bits.cc

// What a batch is packed to for products with weights of this type.
BatchForm BatchFormFor(gguf::DType dtype);

}  // namespace kernels

#endif  // PRONK_KERNELS_MATMUL_REGISTRY_H_
