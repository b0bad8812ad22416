// Trace: each operation of a forward pass and its time, and intermediate values for an observer.
// TracedPass (traced_pass.h) fills it, for pronk trace and pronk imatrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/tensor.h"
#include "kernels/attention/attention.h"

namespace engine {

class InputSquares;

// The part of a tensor that an operation read.
struct TraceWeights {
  const gguf::TensorView* tensor;
  size_t rows;
  size_t cols;
};

struct TraceOperation {
  std::string_view kind;              // "norm", "matmul", "rope", ...
  std::vector<TraceWeights> weights;  // a product's weights
  uint64_t bytes = 0;                 // read from weights or cache
  double flops = 0;                   // multiplications and additions of products and attention
  double seconds = 0;
  // Of attention: the numbers of heads and of keys that the last token sees, and key_length.
  std::vector<size_t> shape = {};
};

// One layer's attention, while its buffers are unchanged.
struct TracedAttention {
  const kernels::KvLayer& cache;  // the batch is in it
  const kernels::AttentionParams& params;
  size_t n_heads;
  size_t position;  // position of the batch's last token
  const float* q;   // its queries [n_heads][key_length]
};

// Sees the batch's last token in every layer, on the pass's thread. The time that it takes is not
// part of any operation's.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  virtual void Attended(const TracedAttention& attention) = 0;
  // The token's experts, and the weights of their outputs.
  virtual void Routed(std::span<const uint32_t> chosen, std::span<const float> weights) = 0;
  // x: the residual stream after the layer, [embedding_length].
  virtual void EndLayer(std::span<const float> x) = 0;
};

struct Trace {
  std::vector<TraceOperation> operations = {};
  std::vector<size_t> layer_ends = {};  // the number of operations up to the end of each layer
  PassObserver* observer = nullptr;
  InputSquares* inputs = nullptr;  // sees the matrices' inputs (input_squares.h)
};

}  // namespace engine
