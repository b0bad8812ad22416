// gguf::File: an open GGUF file (or all parts of a split one). Owns the mapping, the metadata and
// the tensor index. Opening reads the head only; weights are paged in when somebody touches them.
#ifndef PRONK_GGUF_FILE_H_
#define PRONK_GGUF_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf/mapped_file.h"
#include "gguf/metadata.h"
#include "gguf/tensor.h"

namespace gguf {

class File {
 public:
  // Opens and checks a file; a split model is opened by its first part. Throws gguf::Error.
  static File Open(const std::string& path);

  File(File&&) = default;
  File& operator=(File&&) = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  uint32_t n_parts() const { return static_cast<uint32_t>(mappings_.size()); }
  uint64_t file_bytes() const;    // of all parts
  uint64_t tensor_bytes() const;  // of all tensors
  const Metadata& metadata() const { return metadata_; }
  // In the file's own order (of a split file: part after part).
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* FindTensor(std::string_view name) const;

 private:
  friend class Reader;
  File() = default;
  std::string path_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<MappedFile> mappings_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
};

}  // namespace gguf

#endif  // PRONK_GGUF_FILE_H_
