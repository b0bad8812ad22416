// TensorView: a tensor in the mapped file. Owns nothing; copy freely. Valid as long as its File.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/dtype.h"
#include "gguf/number.h"

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
  // The factor of all weights, for types that store it after the last row; else 1.
  float scale() const {
    float scale = 1;
    if (Info(dtype).tail_bytes != 0) std::memcpy(&scale, row(rows()), sizeof(scale));
    return scale;
  }
};

// N of "blk.N."; none for a tensor of no layer.
inline std::optional<size_t> LayerOf(std::string_view name) {
  const size_t dot = name.find('.', 4);
  if (!name.starts_with("blk.") || dot == std::string_view::npos) return std::nullopt;
  return NumberIn<size_t>(name.substr(4, dot - 4));
}

// "[2, 3]"
inline std::string ShapeText(std::span<const uint64_t> dims) {
  std::string text = "[";
  for (const uint64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

}  // namespace gguf
