#include "cli/output/file_text.h"

#include <utility>

#include "cli/terminal/terminal.h"
#include "gguf/error.h"

namespace cli {

void Output::Add(std::string_view text) {
  constexpr size_t kPiece = size_t{1} << 16;
  text_ += text;
  if (text_.size() >= kPiece) Flush();
}

void Output::Flush() { open_ = open_ && WriteOut(std::exchange(text_, "")); }

std::string Cut(const std::string& text, size_t columns) {
  size_t width = 0, last = 0;  // where the last character that was counted starts
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (!starts_character) continue;
    if (++width > columns) return text.substr(0, last) + "\u2026";
    last = i;
  }
  return text;
}

std::string Column(std::string_view name, size_t columns) {
  std::string text = gguf::Printable(name);
  if (text.size() > columns) {
    // What is no ASCII is cut at its end alone: its bytes are not columns.
    for (const char c : text) {
      if (static_cast<unsigned char>(c) >= 0x80) return Cut(text, columns - 1);
    }
    const size_t end = columns / 2;
    text = text.substr(0, columns - end - 2) + ".." + text.substr(text.size() - end);
  }
  return Padded(text, columns);
}

std::string DimsText(const gguf::TensorView& tensor) {
  std::string text;
  for (uint32_t i = 0; i < tensor.n_dims; ++i) {
    text += (i == 0 ? "" : " x ") + std::to_string(tensor.dims[i]);
  }
  return text;
}

}  // namespace cli
