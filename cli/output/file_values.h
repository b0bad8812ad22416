// What inspect and diff show of a file: a metadata value as text, written piece by piece, since it
// may be as large as its file; what the numbers in a tensor are, and how far those of another one
// are from them. Every number is looked at, by all threads of a team; the results do not depend on
// how many these are.
#ifndef PRONK_CLI_OUTPUT_FILE_VALUES_H_
#define PRONK_CLI_OUTPUT_FILE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "gguf/metadata.h"
#include "gguf/tensor.h"
#include "kernels/machine/team.h"

namespace cli {

// Where text goes, a piece at a time.
using TextSink = std::function<void(std::string_view)>;

// A string in JSON's quotes.
void WriteJsonString(std::string_view text, const TextSink& sink);

// As JSON. Numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity"; an array is
// an object of its type, its count and its first elements.
void WriteJsonValue(const gguf::Value& value, const TextSink& sink);

// For a line of this many columns: strings in quotes and with escapes as in JSON, an array as
// "5 x f32 [1.0,2.0]". It may be longer than the line, but not by much.
std::string ValueLine(const gguf::Value& value, size_t columns);

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

#endif  // PRONK_CLI_OUTPUT_FILE_VALUES_H_
