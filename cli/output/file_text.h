// What inspect and diff show of a file, for a terminal of 80 columns.
#ifndef PRONK_CLI_OUTPUT_FILE_TEXT_H_
#define PRONK_CLI_OUTPUT_FILE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "gguf/tensor.h"

namespace cli {

inline constexpr size_t kColumns = 80;

// Hands text on in large pieces, until nobody reads any more.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Add(std::string_view text);
  void Flush();

 private:
  std::string text_;
  bool open_ = true;
};

// "4096 x 256": rows first, as everywhere but in a file's own dims.
std::string ShapeText(const gguf::TensorView& tensor);

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_FILE_TEXT_H_
