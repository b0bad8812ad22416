// Names what a file is when it is not GGUF.
#ifndef PRONK_GGUF_FORMAT_GUESS_H_
#define PRONK_GGUF_FORMAT_GUESS_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace gguf {

// What a file with these bytes is and how to mend that ("a zip archive, as PyTorch writes: convert
// ..."), or an empty text where nothing known matches. Looks at the first few hundred bytes only.
std::string_view GuessFormat(std::span<const std::byte> bytes);

}  // namespace gguf

#endif  // PRONK_GGUF_FORMAT_GUESS_H_
