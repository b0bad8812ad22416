// The largest of many numbers: the likeliest token of a vocabulary.
#pragma once

#include <cstddef>

namespace kernels {

struct Largest {
  size_t index;     // of the largest finite number, the first of equals; n if none is finite
  bool all_finite;  // of all n
};
Largest FindLargest(const float* x, size_t n);

}  // namespace kernels
