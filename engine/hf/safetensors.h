// Safetensors: the file format in which models are published.
//
//   8 bytes   n, little-endian
//   n bytes   JSON: {"NAME": {"dtype": "BF16", "shape": [rows, cols], "data_offsets": [b, e]}, ...}
//             and perhaps "__metadata__": {"KEY": "VALUE", ...}
//   the rest  the tensors' data; offsets count from here. Rows follow each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gguf/dtype.h"
#include "gguf/error.h"
#include "gguf/mapped_file.h"
#include "gguf/tensor.h"

namespace engine {

using gguf::ShapeText;

// The form of weights that are not plain floats (quantized.cc).
enum class Packing : uint8_t { kNone, kTernary, kF8 };

struct SafeTensor {
  std::string file;  // the file that contains the tensor, for messages
  std::string name;
  std::string dtype;                  // the file's name of the type, such as "BF16"
  std::optional<gguf::DType> floats;  // our type, if it is a float type
  std::vector<uint64_t> shape;        // row length last
  uint64_t elements = 1;
  std::span<const std::byte> data;  // bytes of the file; unaligned

  Packing packing = Packing::kNone;
  float factor = 1;                    // kTernary: multiplies -1, 0 and 1
  const SafeTensor* scales = nullptr;  // kF8: floats, one per block of a matrix
  uint64_t block_rows = 1, block_cols = 1;

  bool is_weights() const { return floats.has_value() || packing != Packing::kNone; }
  // Throws gguf::Error: "FILE: tensor NAME: what".
  template <class... Parts>
  [[noreturn]] void Fail(const Parts&... what) const {
    gguf::Fail(file, "tensor ", gguf::Quoted(name), ": ", what...);
  }
};

class Safetensors {
 public:
  // Maps and checks a file. Every tensor's data must be inside the file, have the size of its type
  // and shape, and overlap no other data. Throws gguf::Error.
  static Safetensors Open(const std::string& path);
  // Like Open(), for a file's bytes in memory, which must outlive the result.
  static Safetensors Parse(const std::string& name, std::span<const std::byte> bytes);

  const std::vector<SafeTensor>& tensors() const { return tensors_; }  // sorted by name
  std::optional<gguf::FileId> id() const;

 private:
  Safetensors() = default;
  std::optional<gguf::MappedFile> mapping_;
  std::vector<SafeTensor> tensors_;
};

}  // namespace engine
