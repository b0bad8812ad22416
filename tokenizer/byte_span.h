// A range of bytes of a string.
#pragma once

#include <cstddef>

namespace tokenizer {

// Bytes [begin, end) of a string.
struct ByteSpan {
  size_t begin = 0, end = 0;
  bool operator==(const ByteSpan&) const = default;
};

}  // namespace tokenizer
