// Trace: what each operation of a forward pass was and how long it took. Filled by Pass where
// somebody asks (pronk trace); a forward pass without one costs nothing.
#ifndef PRONK_ENGINE_TRACE_H_
#define PRONK_ENGINE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/tensor.h"

namespace engine {

class InputSquares;

// What an operation read of a tensor.
struct TraceWeights {
  const gguf::TensorView* tensor;
  size_t rows;
  size_t cols;
};

struct TraceStep {
  std::string_view kind;              // "norm", "matmul", "rope", ...
  std::vector<TraceWeights> weights;  // those of a product
  uint64_t bytes = 0;                 // read from weights or cache
  double seconds = 0;
};

struct Trace {
  std::vector<TraceStep> steps;
  InputSquares* inputs = nullptr;  // sees what matrices are multiplied with (input_squares.h)
};

}  // namespace engine

#endif  // PRONK_ENGINE_TRACE_H_
