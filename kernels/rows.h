// Products of ranges of rows as layers need them: the product of the type's kernel, then what is
// left to do with its results while they are in the first-level cache. What matmul.cc and
// experts.cc have in common. Internal to kernels/.
#ifndef PRONK_KERNELS_ROWS_H_
#define PRONK_KERNELS_ROWS_H_

#include <cstddef>
#include <span>

#include "kernels/gemm.h"
#include "kernels/matmul.h"

namespace kernels {

// Threads split rows at multiples of this: a cache line of results.
constexpr size_t kRowGrain = 16;

// Rows that GatedRows() takes at most: so many results of `up` lie on the stack.
constexpr size_t kGatedRows = 512;

// out[i] = w.scale * (w.row(begin + i) . x) + bias[begin + i] for rows [begin, end); bias may be
// null. x has the form that the type's products read.
void MultiplyRows(const Matrix& w, const float* bias, size_t begin, size_t end,
                  const ActivationRow& x, float* out);

// The same for the two matrices of a gated layer, joined by its activation. At most kGatedRows.
void GatedRows(const GatedLayer& layer, size_t begin, size_t end, const ActivationRow& x,
               float* out);

// Rows [begin, end) of a gated layer for a batch, by panels; arguments as for Gemm (gemm.h). out is
// [n_tokens][stride].
void GatedPanels(const GatedLayer& layer, size_t begin, size_t end, const GemmInput& gate_input,
                 const GemmInput& up_input, float* out, size_t stride,
                 std::span<std::byte> scratch);

// Rows of a matrix that the tokens of a batch pass through together where each token is multiplied
// by itself, so that rows are read from memory once: a multiple of kRowGrain.
size_t RowsInCache(const Matrix& w);

// Rows of panels that a thread takes at a time where `rows` are to be multiplied: few enough that
// all threads are done at about the same time, many enough that the activations of a tile are used
// by several groups of rows, which matters most to AMX (see PanelBytes in gemm.cc).
size_t RowsAtATime(size_t rows, size_t n_threads);

}  // namespace kernels

#endif  // PRONK_KERNELS_ROWS_H_
