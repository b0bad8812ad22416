// Identifies files that are not GGUF.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace gguf {

// The kind of file that these bytes are, and the remedy ("a zip archive, as PyTorch writes: convert
// ..."), or an empty text if nothing known matches. Looks only at the first few hundred bytes.
std::string_view GuessFormat(std::span<const std::byte> bytes);

}  // namespace gguf
