// The largest of many numbers: the likeliest tokens of a vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernels {

struct Largest {
  size_t index;  // index of the largest finite number, the first of equals; n: no number is finite
  bool all_finite;  // true if all n numbers are finite
};
Largest FindLargest(const float* x, size_t n);

// Writes the indices of the numbers that are at least `min`, ascending, and returns how many there
// are. `indices` has room for n indices; n is below 2^31. The rest of `indices` is undefined.
size_t FindAtLeast(const float* x, size_t n, float min, int32_t* indices);

}  // namespace kernels
