#include "cli/output/file_text.h"

#include <utility>

#include "cli/terminal/terminal.h"

namespace cli {

void Output::Add(std::string_view text) {
  constexpr size_t kPiece = size_t{1} << 16;
  text_ += text;
  if (text_.size() >= kPiece) Flush();
}

void Output::Flush() { open_ = open_ && WriteOut(std::exchange(text_, "")); }

std::string ShapeText(const gguf::TensorView& tensor) {
  std::string text;
  for (uint32_t i = tensor.n_dims; i-- > 0;) {
    text += std::to_string(tensor.dims[i]) + (i == 0 ? "" : " x ");
  }
  return text;
}

}  // namespace cli
