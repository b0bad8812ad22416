// A file that appears under its name only when complete: models (writer.h) and all other output.
#ifndef PRONK_GGUF_OUTPUT_FILE_H_
#define PRONK_GGUF_OUTPUT_FILE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/file_id.h"

namespace gguf {

// Writes to a file without a name in the folder of `path`, to which Commit() gives its name: nobody
// sees a partial file, an old file stays until then, and without Commit() nothing is left, not even
// by SIGKILL. Where the file system has no such files it is NAME.tmpPID (NAME.tmpPID-2 and so on if
// taken), which signal handlers remove. Devices, pipes and links (such as /dev/stdout) cannot be
// replaced by a file and are written directly.
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
  bool OpenNameless();
  void TakeName(const std::function<int()>& create);
  void OpenAsItStands(std::span<const FileId> inputs);
  [[noreturn]] void Fail(const std::string& path) const;

  std::string path_;
  std::string temporary_;  // a name that exists, or empty
  bool is_nameless_ = false;
  int fd_ = -1;
};

// Throws Error if the file that was found at `path` is one of the inputs.
void RefuseInputs(const std::string& path, const struct stat& status,
                  std::span<const FileId> inputs);

// For signal handlers that end the program: removes the unfinished temporary file.
void RemoveUnfinishedFile();

}  // namespace gguf

#endif  // PRONK_GGUF_OUTPUT_FILE_H_
