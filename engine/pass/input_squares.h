// InputSquares: each layer matrix's sums of squared inputs, by column, for pronk imatrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/model/weights.h"
#include "kernels/threads/thread_pool.h"

namespace engine {

// Sums over the inputs of one tensor's matrices.
struct ColumnSquares {
  size_t cols = 0;
  std::vector<double> sums;      // [n_matrices][cols]: sums of squares
  std::vector<uint64_t> counts;  // [n_matrices]: the number of inputs
};
using SquaresByTensor = std::map<std::string, ColumnSquares, std::less<>>;

class InputSquares {
 public:
  // Adds n inputs of `cols` numbers that begin `stride` apart.
  struct Inputs {
    const float* data;
    size_t stride, n, cols;
  };
  // Adds the inputs of matrix `index` of a tensor. Tensors outside of layers (embedding, output)
  // are left out, as in llama.cpp: nearly all of their inputs are never computed.
  void Add(const gguf::TensorView* tensor, const Inputs& inputs, size_t index = 0,
           size_t n_matrices = 1);
  // Adds the inputs of experts, `in` [n_tokens][cols]; `chosen` is [n_tokens][n_used]. The inputs
  // of down are recomputed.
  void AddExperts(const LayerWeights& w, const kernels::ExpertLayer& layer, const float* in,
                  size_t n_tokens, const uint32_t* chosen, size_t n_used,
                  kernels::ThreadPool& pool);

  const SquaresByTensor& squares() const { return squares_; }

 private:
  SquaresByTensor squares_;
};

}  // namespace engine
