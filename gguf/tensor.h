// TensorView: a tensor in the mapped file. Owns nothing; copy freely. Valid as long as its File.
#ifndef PRONK_GGUF_TENSOR_H_
#define PRONK_GGUF_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gguf/dtype.h"

namespace gguf {

struct TensorView {
  std::string_view name;
  DType dtype = DType::kF32;
  uint32_t n_dims = 0;
  // dims[0] is contiguous: the row length. Absent ones are 1.
  std::array<uint64_t, 4> dims = {1, 1, 1, 1};
  const std::byte* data = nullptr;  // into the mapping
  uint64_t bytes = 0;

  uint64_t cols() const { return dims[0]; }
  uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  uint64_t elements() const { return cols() * rows(); }
  uint64_t row_bytes() const { return RowBytes(dtype, cols()); }
  const std::byte* row(uint64_t r) const { return data + r * row_bytes(); }
};

}  // namespace gguf

#endif  // PRONK_GGUF_TENSOR_H_
