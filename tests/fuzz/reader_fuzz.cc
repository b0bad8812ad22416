// Any bytes as a GGUF file. gguf::Error refuses them, or everything that File promises is readable.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gguf/error.h"
#include "gguf/file.h"
#include "tests/support/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, aligned like a mapping.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  try {
    test::TouchAll(gguf::File::Parse("f.gguf", bytes));
  } catch (const gguf::Error&) {
  }
  return 0;
}
