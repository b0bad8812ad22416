// Bounds and messages of the reader.
#include "gguf/cursor.h"

#include "gguf/error.h"

namespace gguf {

const std::byte* Cursor::Take(uint64_t n, std::string_view what) {
  if (n > remaining()) {
    Fail(offset_,
         "expected " + std::to_string(n) + " bytes (" + std::string(what) + "), found " +
             std::to_string(remaining()) +
             " before the end of the file: truncated or damaged, download or copy it again");
  }
  const std::byte* const start = here();
  offset_ += n;
  return start;
}

void Cursor::Fail(uint64_t offset, const std::string& what) const {
  std::string message = PrintablePath(file_) + ": byte " + std::to_string(offset) + ": ";
  if (!item_.kind.empty()) {
    const std::string name = item_.name.empty() ? std::to_string(item_.index) : Quoted(item_.name);
    message += std::string(item_.kind) + " " + name + ": ";
  }
  throw Error(message + what);
}

}  // namespace gguf
