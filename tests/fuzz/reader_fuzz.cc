// Any bytes as a GGUF file: refused by gguf::Error, or all that the File promises can be read.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gguf/error.h"
#include "gguf/file.h"
#include "tests/support/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, aligned as a mapping is.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  try {
    test::TouchAll(gguf::File::Parse("f.gguf", bytes));
  } catch (const gguf::Error&) {
  }
  return 0;
}
