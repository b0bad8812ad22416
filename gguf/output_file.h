// A file that appears under its name only when complete: models (writer.h) and all other output.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/error.h"
#include "gguf/file_id.h"

namespace gguf {

// Reports why an output file cannot be written.
class OutputError : public Error {
 public:
  explicit OutputError(const std::string& message) : Error(message) {}
};

// Writes to a file without a name in the folder of `path`, to which Commit() gives its name. No
// program sees a partial file, an old file stays until then, and without Commit() no file remains,
// even after SIGKILL. Where the file system has no such files, it is NAME.tmpPID (NAME.tmpPID-2 and
// so on if taken), which signal handlers remove.
//
// A link stays, and the file that it leads to is replaced. The new file has the old one's
// permissions and owner. Devices and pipes cannot be replaced by a file and are written directly;
// so are open files by number (/dev/stdout, /dev/fd/N), from their current position.
//
// Refused before anything is touched: folders, files without permission to write, files whose owner
// the new file could not have, and the `inputs`, which are still being read. All methods throw
// OutputError. Only one OutputFile may exist at a time.
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
  void OpenReplacement(std::span<const FileId> inputs);
  void KeepOwner(const struct stat& old);
  bool OpenNameless();
  void TakeName(const std::function<int()>& create);
  void OpenAsItStands(int open_fd, std::span<const FileId> inputs);
  void Discard();
  [[noreturn]] void Fail(const std::string& path) const;

  std::string path_;       // the path as given, for messages
  std::string target_;     // the path with links resolved
  std::string temporary_;  // a name that exists, or empty
  bool is_nameless_ = false;
  int fd_ = -1;
};

// Throws Error if the file that was found at `path` is one of the inputs.
void RefuseInputs(const std::string& path, const struct stat& status,
                  std::span<const FileId> inputs);

// Removes the unfinished temporary file. For signal handlers that end the program.
void RemoveUnfinishedFile();

}  // namespace gguf
