// The reader: checks the bytes of one GGUF file and builds its metadata and tensor index. File
// (file.h) opens files and joins the parts of a split model.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/error.h"
#include "gguf/mapped_file.h"
#include "gguf/metadata.h"
#include "gguf/tensor.h"

namespace gguf {

// The first bytes of a file.
inline constexpr std::string_view kMagic = "GGUF";

// The alignment if general.alignment is absent.
inline constexpr uint64_t kDefaultAlignment = 32;
// The format requires a multiple of 8: blocks are read in place. The upper limit is ours.
inline constexpr uint64_t kMinAlignment = 8;
inline constexpr uint64_t kMaxAlignment = uint64_t{1} << 21;
constexpr bool IsValidAlignment(uint64_t n) {
  return std::has_single_bit(n) && n >= kMinAlignment && n <= kMaxAlignment;
}

// The limit for keys, and for tensors in all parts of a model; the largest models have some
// thousands. An entry can take more memory than file space; this many take 30 MB.
inline constexpr uint64_t kMaxItems = uint64_t{1} << 17;

// The limit for names of keys and tensors; the format has it for keys.
inline constexpr uint64_t kMaxNameBytes = 65535;

// The file does not begin as a GGUF file does.
class NotGguf : public Error {
 public:
  using Error::Error;
};

// The content of one file; everything views its bytes.
struct FilePart {
  uint32_t version = 0;
  uint64_t alignment = kDefaultAlignment;
  Metadata metadata;
  std::vector<TensorView> tensors;  // in the file's order
};

// Reads a file's head and checks it: the keys, and that each tensor's data is inside the file.
// `path` is for messages. Time and memory are O(n log n) in the head's size. Tensor names may still
// repeat: File compares the names of all parts. Throws gguf::Error.
FilePart ReadFilePart(const std::string& path, std::span<const std::byte> bytes);
// Reads a mapped file. The mapping keeps a copy of the head, so that checked lengths cannot change
// when the file does. Refuses more than max_tensors tensors.
FilePart ReadFilePart(const std::string& path, MappedFile& mapping,
                      uint64_t max_tensors = kMaxItems);

}  // namespace gguf
