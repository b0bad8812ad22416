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

// Cut to a number of columns, at a character's edge. Counts code points: close enough for a table.
std::string Cut(const std::string& text, size_t columns);

// Fit to print, and so many columns wide: what is too long loses its middle, since names differ at
// both ends.
std::string Column(std::string_view name, size_t columns);

std::string DimsText(const gguf::TensorView& tensor);  // "256 x 4096"

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_FILE_TEXT_H_
