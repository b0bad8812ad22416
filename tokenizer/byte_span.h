// A range of bytes of a string.
#ifndef PRONK_TOKENIZER_BYTE_SPAN_H_
#define PRONK_TOKENIZER_BYTE_SPAN_H_

#include <cstddef>

namespace tokenizer {

// Bytes [begin, end) of a string.
struct ByteSpan {
  size_t begin = 0, end = 0;
  bool operator==(const ByteSpan&) const = default;
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_BYTE_SPAN_H_
