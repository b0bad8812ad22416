// A file mapped into memory for reading: the owner of every byte that metadata and tensors view.
//
// Mapping reads nothing. The system pages bytes in on first use, shares them between processes and
// drops them under memory pressure, so a model may be larger than memory and opens at once. If the
// file is truncated while it is mapped, later reads fail (SIGBUS). If it is written to in place,
// bytes change while they are used: bytes that are read twice must be kept first (KeepFirst).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gguf/error.h"
#include "gguf/file_id.h"

namespace gguf {

// The file does not exist.
class NotFound : public Error {
 public:
  using Error::Error;
};

// The printable path of the file mapped at this address, or nullptr. For signal handlers.
const char* MappedFileAt(const void* address);

// Whether this mapped byte is in memory, so that reading it waits for no disk.
bool IsResident(const std::byte* at);
// Asks the system to read mapped bytes into memory; they arrive later.
void ReadAhead(std::span<const std::byte> mapped);
// Lets the system reclaim the memory of mapped bytes first. Has no effect on pages that another
// process also uses, on a file that this user may not write, and on systems other than Linux.
void LetGo(std::span<const std::byte> mapped);
inline constexpr size_t kHugePage = size_t{2} << 20;  // bytes, on most CPUs
// Asks for huge pages for memory that is not used yet, if it is large enough for one: a fault then
// maps 2 MB instead of 4 KB. Has no effect where the system does not allow it.
void UseHugePages(std::span<const std::byte> memory);
// Keeps mapped bytes in memory. False if the system does not allow it.
bool Lock(std::span<const std::byte> mapped);

// Move-only. Moving keeps the mapping at its address, so views into it stay valid.
class MappedFile {
 public:
  // Maps a whole regular file. Throws gguf::Error with the reason otherwise: missing, a directory,
  // a pipe or device (which is not opened, so nothing blocks), unreadable, empty, larger than
  // `max_bytes`. `expected` names the kind of file in messages.
  static MappedFile Open(const std::string& path, const std::string& expected = "a GGUF file",
                         uint64_t max_bytes = UINT64_MAX);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const;
  FileId id() const;
  // Makes at least the first n bytes a copy of this process, at the same address: another process
  // that writes to the file no longer changes them. Their memory is not shared any more.
  void KeepFirst(size_t n);

 private:
  friend const char* MappedFileAt(const void* address);
  struct Mapping;
  explicit MappedFile(std::unique_ptr<Mapping> mapping);
  std::unique_ptr<Mapping> mapping_;  // null once moved from
};

}  // namespace gguf
