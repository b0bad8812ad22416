// The Hadamard transform, which spreads each number over its whole block.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>

namespace kernels {

// Element i of x[n] times the Hadamard matrix of n rows (Sylvester 1867: entry i, j is -1 to the
// number of bits that i and j share), over the root of n: the definition.
inline double HadamardReference(const float* x, size_t n, size_t i) {
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    sum += std::popcount(i & j) % 2 == 0 ? double{x[j]} : -double{x[j]};
  }
  return sum / std::sqrt(static_cast<double>(n));
}

// Transforms x[n] in place. n is a power of two. Applied twice, it gives x again.
void Hadamard(float* x, size_t n);

}  // namespace kernels
