// OutputFile: a file that appears under its name only when it is whole. For models that are written
// (writer.h), and for every other file that a person asks for.
#ifndef PRONK_GGUF_OUTPUT_FILE_H_
#define PRONK_GGUF_OUTPUT_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "gguf/file_id.h"

namespace gguf {

// Written under a temporary name beside `path` (NAME.tmpPID, or NAME.tmpPID-2 and so on where that
// is taken), which is renamed by Commit(): nobody sees half a file, an old one stays until then,
// and without Commit() nothing is left. But what is not a file of its own cannot be replaced by
// one: devices, pipes and links (/dev/stdout is one) are written through, as they stand.
//
// A path that leads to one of the `inputs`, which somebody still reads, is refused before anything
// is touched. All methods throw gguf::Error. One at a time.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path, std::span<const FileId> inputs = {});
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Commit();

 private:
  void CreateTemporary();
  void OpenAsItStands(std::span<const FileId> inputs);
  void RefuseInputs(const struct stat& status, std::span<const FileId> inputs) const;
  [[noreturn]] void Fail(const std::string& path) const;

  std::string path_;
  std::string temporary_;  // empty once it is renamed, and for what is written through
  int fd_ = -1;
};

// For handlers of signals that end the program: removes what an OutputFile has written so far.
void RemoveUnfinishedFile();

}  // namespace gguf

#endif  // PRONK_GGUF_OUTPUT_FILE_H_
