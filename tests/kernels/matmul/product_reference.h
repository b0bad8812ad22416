// The expected result of a product, by the scalar definitions of the types and sums in double.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/reference.h"
#include "tests/kernels/random_weights.h"

namespace kernels {

struct Expected {
  double value, tolerance;
};

// Activation i as the kernels read it: for int8 types the rounded number.
inline double ActivationOf(gguf::DType dtype, const ActivationRow& x, size_t i) {
  return UsesInt8(dtype) ? double{x.scales[i / 32]} * x.q[i] : double{x.x[i]};
}

// A row's product, and how far off `roundings` operations in float may be: each is rounded by at
// most eps / 2 of the sum of magnitudes. Sums of integers are exact.
inline Expected ExpectProduct(const Matrix& w, size_t row, const ActivationRow& x,
                              double roundings) {
  std::vector<float> weights(w.cols);
  DequantizeRow(w.dtype, w.row(row), w.cols, weights.data());
  double magnitude = 0;
  for (size_t i = 0; i < w.cols; ++i) {
    magnitude += std::abs(double{weights[i]} * ActivationOf(w.dtype, x, i));
  }
  return {DotReference(w.dtype, w.row(row), x, w.cols), kEps / 2 * roundings * magnitude + 1e-30};
}

// A row's product with activations that are not rounded.
inline double UnroundedDot(const Matrix& w, size_t row, const float* x) {
  std::vector<float> weights(w.cols);
  DequantizeRow(w.dtype, w.row(row), w.cols, weights.data());
  double sum = 0;
  for (size_t i = 0; i < w.cols; ++i) sum += double{weights[i]} * double{x[i]};
  return sum;
}

}  // namespace kernels
