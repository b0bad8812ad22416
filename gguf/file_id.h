// The identity of a file regardless of its path, to detect an output that is also an input.
#ifndef PRONK_GGUF_FILE_ID_H_
#define PRONK_GGUF_FILE_ID_H_

#include <sys/stat.h>

#include <cstdint>

namespace gguf {

struct FileId {
  uint64_t device = 0, inode = 0;

  static FileId Of(const struct stat& status) {
    return {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino)};
  }
  bool operator==(const FileId&) const = default;
};

}  // namespace gguf

#endif  // PRONK_GGUF_FILE_ID_H_
