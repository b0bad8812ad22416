// Converts the old weights to the new bytes piece by piece: neither has to fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "convert/source.h"
#include "gguf/dtype.h"
#include "kernels/threads/thread_pool.h"

namespace convert {

class TensorEncoder {
 public:
  explicit TensorEncoder(int n_threads)
      : pool_(n_threads, kernels::Oversubscription::kRunOnCaller) {}

  // A piece: rows of the tensor from `row` on in this type; moves `row` past them. The bytes are
  // valid until the next call. Throws gguf::Error if the type cannot represent a weight.
  std::span<const std::byte> Next(const OutTensor& tensor, gguf::DType type, uint64_t& row);

 private:
  float AbsMean(const OutTensor& tensor);

  kernels::ThreadPool pool_;
  std::vector<std::byte> bytes_;
  std::vector<std::vector<float>> rows_;  // one per thread
  float mean_ = 1;                        // AbsMean() of the tensor that is being written
};

}  // namespace convert
