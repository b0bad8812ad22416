// Rounds activations to int8, which products with quantized weights read, and to f16. (encode/
// turns weights into blocks for a file.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/buffer.h"
#include "kernels/threads/thread_pool.h"

namespace kernels {

constexpr size_t kActivationBlock = 32;  // activations that share a scale
constexpr size_t kActivationPad = 512;   // rows are padded with zeros to a multiple of this

// For each block of 32 of the n numbers (n is a multiple of 32): scale = max|x| / 127, or NaN if a
// number is not finite; q = x / scale, rounded to nearest even; and the sums of each 16 q. The bits
// are the same on every instruction set.
void RoundActivations(const float* x, size_t n, int8_t* q, float* scales, int16_t* sums);

// Numbers in int8: [n], [n / 32], [n / 16].
struct Rounded {
  int8_t* q;
  float* scales;
  int16_t* sums;
};
// RoundActivations, and the rounding residuals x - scale * q as multiples of scale / 254. A
// number and its residual together have 16 bits.
void RoundWithResidual(const float* x, size_t n, const Rounded& numbers, const Rounded& residuals);

// Rounds n numbers to f16, to nearest even.
void RoundToF16(const float* x, size_t n, uint16_t* out);

// One input vector as the kernels read it: x ~ scale * q, with q in -127..127. q, scales and sums
// are padded with zeros as if cols were a multiple of 512; they are null if only floats are needed.
struct ActivationRow {
  const float* x;       // [cols]
  const int8_t* q;      // [cols]
  const float* scales;  // [cols / 32]
  const int16_t* sums;  // [cols / 16], sums of q, for types with minimums or zero points
};

// Rows of int8 activations, padded. Buffers are sized at construction.
class RoundedRows {
 public:
  RoundedRows(size_t max_rows, size_t max_cols);
  // The total size of the buffers for these arguments.
  static size_t BytesFor(size_t max_rows, size_t max_cols);

  // Sets the length of the rows.
  void SetCols(size_t cols) { cols_ = cols; }
  // Rounds columns [begin, end) of a row; x is the row. begin and end are multiples of 32.
  void Round(size_t row, size_t begin, size_t end, const float* x);
  // Rounds a whole row, and its rounding residual to a row of `residuals`.
  void RoundWithResidual(size_t row, const float* x, RoundedRows& residuals);
  // Rounds all n_rows rows of x ([n_rows][cols]).
  void RoundAll(ThreadPool& pool, const float* x, size_t n_rows);
  // The row, whose floats are at x.
  ActivationRow row(size_t row, const float* x) const;

 private:
  // Columns of a row, from a multiple of 32 on.
  Rounded At(size_t row, size_t begin);
  // Pads a row with zeros.
  void Pad(size_t row);

  size_t cols_ = 0;
  Buffer<int8_t> q_;
  Buffer<float> scales_;
  Buffer<int16_t> sums_;
};

}  // namespace kernels
