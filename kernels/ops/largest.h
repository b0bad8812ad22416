// The largest of many numbers: the likeliest tokens of a vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernels {

struct Largest {
  size_t index;     // of the largest finite number, the first of equals; n if none is finite
  bool all_finite;  // of all n
};
Largest FindLargest(const float* x, size_t n);

// Writes the indices of the numbers that are at least `least`, ascending, and returns how many
// there are. `indices` has room for n, which is below 2^31; what follows those written is
// undefined.
size_t FindAtLeast(const float* x, size_t n, float least, int32_t* indices);

}  // namespace kernels
