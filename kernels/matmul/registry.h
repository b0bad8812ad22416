// The kernels of each weight type. types.cc lists the types, which kernels/types/ defines. Internal
// to kernels/.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul.h"

namespace kernels {

// out[t * stride + i] = w.row(begin + i) . x[t] for rows [begin, end) and 1 to MaxRowTokens()
// tokens. Results are batch-invariant (kernels/README.md) and do not depend on the range. scratch
// is RowsScratch::product (rows.h), 64-byte aligned; `prepared`: an earlier call for the type has
// prepared the same x in it.
using RowsFunction = void(const Matrix& w, size_t begin, size_t end,
                          std::span<const ActivationRow> x, float* out, size_t stride,
                          std::span<std::byte> scratch, bool prepared);

// The scalar definitions of a block, at any address: the values of its weights, and its product
// with the same number of activations, which begin x.
using Dequantize = void(const std::byte* block, float* out);
using DotBlock = double(const std::byte* block, const ActivationRow& x);

// The functions of a weight type.
struct TypeKernels {
  RowsFunction* rows = nullptr;
  PanelsFunction* panels = nullptr;  // gemm.h
  Dequantize* dequantize = nullptr;
  DotBlock* dot_reference = nullptr;
  bool int8 = false;                             // products read their input as int8, not as floats
  size_t max_row_tokens = kDefaultMaxRowTokens;  // up to this many tokens, rows beat panels
};

// Indexed by the id of the type; ids without a type have an empty entry.
using KernelTable = std::array<TypeKernels, 144>;
constexpr size_t TypeIndex(gguf::DType dtype) { return static_cast<size_t>(dtype); }

// The kernels for weights of this kind, on the instruction set in use (LimitCpu); empty if products
// do not support the type.
TypeKernels KernelsOf(WeightKind kind);

// These kernels with products that round no activations (exact.cc).
TypeKernels Exact(TypeKernels kernels);

// The largest number of tokens that are multiplied row by row: at most kMaxRowTokens.
size_t MaxRowTokens(WeightKind kind);

// The form to which a batch is packed for products with weights of this kind.
BatchForm BatchFormFor(WeightKind kind);

}  // namespace kernels
