// Builds GGUF files byte by byte, including wrong files: with any version, count, length, type or
// offset. (gguf::Writer makes correct files more easily.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/dtype.h"
#include "gguf/metadata.h"

namespace test {

class GgufBytes {
 public:
  // Writes the header with these counts, whatever follows.
  GgufBytes(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    Raw("GGUF").Number(version).Number(n_tensors).Number(n_keys);
  }

  template <typename T>
  GgufBytes& Number(T number) {
    return Append(std::as_bytes(std::span(&number, 1)));
  }
  GgufBytes& Raw(std::string_view text) { return Append(std::as_bytes(std::span(text))); }
  GgufBytes& String(std::string_view text) { return Number(uint64_t{text.size()}).Raw(text); }

  // The start of a key-value pair; the value follows.
  GgufBytes& Key(std::string_view key, gguf::ValueType type) {
    return String(key).Number(static_cast<uint32_t>(type));
  }
  // The start of an array's value; the elements follow.
  GgufBytes& Array(gguf::ValueType element_type, uint64_t count) {
    return Number(static_cast<uint32_t>(element_type)).Number(count);
  }
  GgufBytes& Tensor(std::string_view name, const std::vector<uint64_t>& dims, gguf::DType type,
                    uint64_t offset) {
    return Tensor(name, dims, static_cast<uint32_t>(type), offset);
  }
  GgufBytes& Tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                    uint64_t offset) {
    String(name).Number(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) Number(dim);
    return Number(type).Number(offset);
  }
  // Zeros up to the data section, then n bytes of data: 0, 1, 2, ...
  GgufBytes& Data(uint64_t n, uint64_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    for (uint64_t i = 0; i < n; ++i) Number(static_cast<uint8_t>(i));
    return *this;
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  GgufBytes& Append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace test
