// The identity of a file regardless of its path, to detect an output that is also an input.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace gguf {

struct FileId {
  uint64_t device = 0, inode = 0;
  // Not part of the identity: the file's size, and its last change in ns since 1970, when examined.
  uint64_t bytes = 0, changed = 0;

  static FileId Of(const struct stat& status) {
#if defined(__APPLE__)
    const timespec& changed = status.st_ctimespec;
#else
    const timespec& changed = status.st_ctim;
#endif
    return {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino),
            static_cast<uint64_t>(status.st_size),
            static_cast<uint64_t>(changed.tv_sec) * 1'000'000'000 +
                static_cast<uint64_t>(changed.tv_nsec)};
  }
  bool operator==(const FileId& other) const {
    return device == other.device && inode == other.inode;
  }
};

}  // namespace gguf
