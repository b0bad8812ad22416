// Products of ranges of rows for matmul.cc and experts.cc: the type's product, then factor, bias
// and activation while results are in the first-level cache. Internal to kernels/.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul.h"

namespace kernels {

// Threads split rows at multiples of this: a cache line of results.
constexpr size_t kRowGrain = 16;

// Rows whose results a thread's scratch holds, as in GatedRows().
constexpr size_t kBufferedRows = 512;

// Bytes a thread needs for products of rows with up to n_tokens tokens, a multiple of kCacheLine.
size_t RowsScratchBytes(size_t n_tokens, size_t cols);

// A thread's scratch: first the results, then the product's own scratch.
struct RowsScratch {
  RowsScratch(std::span<std::byte> scratch, size_t n_tokens);
  float* results;  // [n_tokens][kBufferedRows]
  std::span<std::byte> product;
};

// out[t * stride + i] = w.scale * (w.row(begin + i) . in.x[t]) + bias[begin + i] for rows [begin,
// end); bias may be null. in.x has 1 to MaxRowTokens(w) tokens in the form that the type's products
// read. in.scratch has RowsScratchBytes(in.x.size(), w.cols) bytes, 64-byte aligned.
void LinearRows(const Matrix& w, const float* bias, size_t begin, size_t end, RowsInput& in,
                float* out, size_t stride);

// LinearRows for a gated layer: the activation combines the results of its two matrices, or applies
// to the results of its only matrix.
void GatedRows(const GatedLayer& layer, size_t begin, size_t end, RowsInput& in, float* out,
               size_t stride);

// Rows [begin, end) of a gated layer for a batch, by panels; arguments as for PanelsFunction
// (gemm.h). out is [n_tokens][stride]. Without a gate, gate_input is not read.
void GatedPanels(const GatedLayer& layer, size_t begin, size_t end, const GemmInput& gate_input,
                 const GemmInput& up_input, float* out, size_t stride,
                 std::span<std::byte> scratch);

// The number of rows, of `rows`, that a thread takes at a time: few enough that threads finish at
// about the same time, enough that several micro-panels use the activations of a tile (PanelBytes
// in gemm.cc).
size_t RowsAtATime(size_t rows, size_t n_threads);

}  // namespace kernels
