// Reads everything that an open file says is readable.
#pragma once

#include <cstdint>
#include <string_view>

#include "gguf/file.h"

namespace test {

// Returns a number that depends on every byte, so that no compiler omits the reads.
inline uint64_t TouchAll(const gguf::File& file) {
  uint64_t sum = 0;
  const auto touch = [&sum](std::string_view text) {
    for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
  };
  const gguf::Metadata& metadata = file.metadata();
  for (const auto& [key, value] : metadata.entries()) {
    touch(key);
    touch({reinterpret_cast<const char*>(value.data), value.bytes});
    if (value.type == gguf::ValueType::kString) touch(metadata.GetString(key));
    if (value.type != gguf::ValueType::kArray) continue;
    if (value.element_type == gguf::ValueType::kString) {
      for (const std::string_view text : metadata.GetStrings(key)) touch(text);
    }
  }
  for (const gguf::TensorView& tensor : file.tensors()) {
    touch(tensor.name);
    touch({reinterpret_cast<const char*>(tensor.data), tensor.bytes});
    touch({reinterpret_cast<const char*>(tensor.row(tensor.rows() - 1)), tensor.row_bytes()});
  }
  return sum;
}

}  // namespace test
