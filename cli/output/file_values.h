// Parts of a file as inspect and diff show them: a metadata value as text, written piece by piece
// because it may be as large as the file; statistics of a tensor's numbers, and the error between
// two tensors. All threads of a pool read every number; the results do not depend on the number of
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "gguf/metadata.h"
#include "gguf/tensor.h"
#include "kernels/threads/thread_pool.h"

namespace cli {

// Receives text, a piece at a time.
using TextSink = std::function<void(std::string_view)>;

// A string in JSON's quotes.
void WriteJsonString(std::string_view text, const TextSink& sink);

// Writes a value as JSON. Numbers that JSON lacks are the strings "NaN", "Infinity" and
// "-Infinity"; an array is an object with its type, its count and its first elements.
void WriteJsonValue(const gguf::Value& value, const TextSink& sink);

// A value in one line of this many columns: strings are quoted and escaped as in JSON, an array is
// "5 x f32 [1.0,2.0]". The line may be slightly longer.
std::string ValueLine(const gguf::Value& value, size_t columns);

struct TensorCheck {
  uint64_t n_nan = 0, n_infinite = 0, n_zero = 0;
  // The range of the finite numbers; least > most if there are none.
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();
  uint64_t hash = 0;  // XXH64 of the tensor's bytes

  bool IsFinite() const { return n_nan + n_infinite == 0; }
};

// Tensors without weights (integers) get only the hash.
TensorCheck CheckTensor(kernels::ThreadPool& pool, const gguf::TensorView& tensor);

struct TensorError {
  double squares = 0;        // the sum of the squares of a
  double error_squares = 0;  // sum of squares of b - a
  double largest = 0;        // largest |b - a|; NaN if any is NaN

  void Add(const TensorError& other);
  double Relative() const;  // error_squares / squares; 0 where both are 0
};

// The error of b's numbers relative to a's; both have the same shape and contain weights.
TensorError CompareTensors(kernels::ThreadPool& pool, const gguf::TensorView& a,
                           const gguf::TensorView& b);

}  // namespace cli
