// Rounds activations to int8, the form in which products with quantized weights read them.
#ifndef PRONK_KERNELS_OPS_QUANTIZE_H_
#define PRONK_KERNELS_OPS_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/buffer.h"
#include "kernels/machine/team.h"

namespace kernels {

constexpr size_t kActivationBlock = 32;  // share a scale
constexpr size_t kActivationPad = 512;   // rows are padded with zeros to a multiple of this

// For each 32 of the n numbers: scale = max|x| / 127, q = x / scale rounded to nearest (even); and
// the sums of each 16 q. n is a multiple of 32. The same bits on every instruction set.
void QuantizeActivations(const float* x, size_t n, int8_t* q, float* scales, int16_t* sums);

// To the nearest f16 (even).
void RoundToF16(const float* x, size_t n, uint16_t* out);

// One input vector as the kernels read it. q, scales and sums are null if only floats are needed.
struct ActivationRow {
  const float* x;   // [cols]
  const int8_t* q;  // [cols, padded with zeros to a multiple of 512], in -127..127; x ~ scale * q
  const float* scales;  // [cols / 32, padded with zeros]
  // [cols / 16, padded with zeros]: sums of q, for types with minimums or offsets
  const int16_t* sums;
};

// Rows of int8 activations, padded. Buffers are sized at construction.
class QuantizedRows {
 public:
  QuantizedRows(size_t max_rows, size_t max_cols);
  // The bytes of its buffers.
  static size_t BytesFor(size_t max_rows, size_t max_cols);

  // Sets the length of the rows.
  void SetCols(size_t cols) { cols_ = cols; }
  // Columns [begin, end) of a row; x is the row. begin and end are multiples of 32.
  void Quantize(size_t row, size_t begin, size_t end, const float* x);
  // All n_rows rows of x ([n_rows][cols]).
  void QuantizeAll(Team& team, const float* x, size_t n_rows);
  // x: the floats of the row
  ActivationRow row(size_t row, const float* x) const;

 private:
  size_t cols_ = 0;
  Buffer<int8_t> q_;
  Buffer<float> scales_;
  Buffer<int16_t> sums_;
};

}  // namespace kernels

#endif  // PRONK_KERNELS_OPS_QUANTIZE_H_
