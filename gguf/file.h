// gguf::File: an open GGUF file (or all parts of a split one). Owns the mapping, the metadata and
// the tensor index. Opening reads the head only; weights are paged in on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file_id.h"
#include "gguf/mapped_file.h"
#include "gguf/metadata.h"
#include "gguf/reader.h"
#include "gguf/tensor.h"

namespace gguf {

// Whether this is a regular file that begins with GGUF's magic. Pipes and the like are not read.
bool BeginsAsGguf(const std::string& path);

class File {
 public:
  // Opens and checks a file; a split model is opened by its first part. Throws gguf::Error.
  static File Open(const std::string& path);
  // Reads a whole model in memory, aligned to 8; it must outlive the File. For fuzzers and tests.
  static File Parse(const std::string& name, std::span<const std::byte> bytes);

  File(File&&) = default;
  File& operator=(File&&) = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  // The paths of all parts; empty for bytes in memory. OutputFile must not write to these.
  std::vector<FileId> ids() const;
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }  // of a split file: the first part's
  uint32_t n_parts() const { return n_parts_; }
  uint64_t file_bytes() const { return file_bytes_; }      // size of all parts
  uint64_t tensor_bytes() const { return tensor_bytes_; }  // size of all tensors
  uint64_t elements() const { return elements_; }          // numbers of all tensors
  const Metadata& metadata() const { return metadata_; }
  Metadata& metadata() { return metadata_; }
  // The tensors in the file's order (in a split file: part after part).
  const std::vector<TensorView>& tensors() const { return tensors_; }
  // The tensor, or nullptr.
  const TensorView* FindTensor(std::string_view name) const;
  // Replaces `part` by `by` in the names of tensors. A part without a dot after it counts only at
  // the end of a name. Returns whether a name changed. Throws if two tensors then share a name.
  bool RenameTensors(std::string_view part, std::string_view by);

 private:
  File(const std::string& path, FilePart first, uint64_t bytes);
  void OpenOtherParts();
  void AddTensors(const std::vector<TensorView>& tensors);
  void IndexTensors();

  std::string path_;
  uint32_t version_;
  uint64_t alignment_;
  uint32_t n_parts_ = 1;
  uint64_t file_bytes_;
  uint64_t tensor_bytes_ = 0, elements_ = 0;
  std::vector<MappedFile> mappings_;  // one per part; empty for bytes in memory
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  // Positions in tensors_, sorted by name. A file could choose names that collide in a hash table.
  std::vector<size_t> by_name_;
  std::deque<std::string> renamed_;
};

}  // namespace gguf
