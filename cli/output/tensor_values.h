// What the numbers in a tensor are, and how far those of another one are from them. Every number is
// looked at, by all threads of a team; the results do not depend on how many these are.
#ifndef PRONK_CLI_OUTPUT_TENSOR_VALUES_H_
#define PRONK_CLI_OUTPUT_TENSOR_VALUES_H_

#include <cstdint>
#include <limits>

#include "gguf/tensor.h"
#include "kernels/machine/team.h"

namespace cli {

struct TensorCheck {
  uint64_t n_nan = 0, n_infinite = 0, n_zero = 0;
  // Of those that are finite; least > most where there are none.
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();
  uint64_t hash = 0;  // XXH64 of the tensor's bytes

  bool IsFinite() const { return n_nan + n_infinite == 0; }
};

// Of tensors that hold no weights (integers) nothing but the hash.
TensorCheck CheckTensor(kernels::Team& team, const gguf::TensorView& tensor);

struct TensorError {
  double squares = 0;        // the sum of the squares of a
  double error_squares = 0;  // of b - a
  double largest = 0;        // of |b - a|; NaN where one of them is none

  void Add(const TensorError& other);
  double Relative() const;  // error_squares / squares; 0 where both are 0
};

// How far b's numbers are from a's; both have the same shape and hold weights.
TensorError CompareTensors(kernels::Team& team, const gguf::TensorView& a,
                           const gguf::TensorView& b);

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_TENSOR_VALUES_H_
