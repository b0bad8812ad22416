// OutputFile: a file that appears under its name only when complete. For models (writer.h) and all
// other output files.
#ifndef PRONK_GGUF_OUTPUT_FILE_H_
#define PRONK_GGUF_OUTPUT_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "gguf/file_id.h"

namespace gguf {

// Writes to a temporary file beside `path` (NAME.tmpPID, or NAME.tmpPID-2 and so on if taken),
// which Commit() renames: nobody sees a partial file, an old file stays until then, and without
// Commit() nothing is left. Devices, pipes and links (such as /dev/stdout) cannot be replaced by a
// file and are written directly.
//
// A path to one of the `inputs`, which are still being read, is refused before anything is touched.
// All methods throw gguf::Error. One OutputFile at a time.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path, std::span<const FileId> inputs = {});
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }
  void Commit();

 private:
  void CreateTemporary();
  void OpenAsItStands(std::span<const FileId> inputs);
  void RefuseInputs(const struct stat& status, std::span<const FileId> inputs) const;
  [[noreturn]] void Fail(const std::string& path) const;

  std::string path_;
  std::string temporary_;  // empty once renamed, and when writing directly
  int fd_ = -1;
};

// For signal handlers that end the program: removes the unfinished temporary file.
void RemoveUnfinishedFile();

}  // namespace gguf

#endif  // PRONK_GGUF_OUTPUT_FILE_H_
