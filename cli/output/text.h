// Numbers as text, and the width of text on a terminal, where a character takes 0, 1 or 2 columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/tensor.h"

namespace cli {

inline constexpr size_t kColumns = 80;  // width of reports

// printf into a string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::string HumanBytes(uint64_t n);  // "1.17 GB", "640 KB"

// A number with n figures at most, but with all figures before the point: "12.34", "12345".
std::string Figures(double number, int n);

std::string Counted(size_t n, const std::string& what);  // "1 thread", "2 threads"

std::string TypeName(gguf::DType type);  // "Q8_0"

// "4096 x 256": rows first, as everywhere except in a file's own dims.
std::string ShapeText(const gguf::TensorView& tensor);

std::string Lower(std::string text);  // A to Z become a to z

// Joins words with `between`.
template <class Words>
std::string Joined(const Words& words, std::string_view between) {
  std::string text;
  bool is_first = true;
  for (const auto& word : words) {
    if (!is_first) text += between;
    text += word;
    is_first = false;
  }
  return text;
}

// How many letters to change, add, remove or swap with their neighbour turn one word into the
// other. Takes time in proportion to the product of their lengths.
size_t EditDistance(std::string_view a, std::string_view b);

// Replaces characters of the text by their escapes in another language.
std::string Replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> by);

// One word of a shell's command line, in single quotes.
std::string ShellQuoted(std::string_view text);

size_t TextColumns(std::string_view text);

// Adds spaces after the text, or before it if `right`, to fill at least this many columns.
std::string Padded(const std::string& text, size_t columns, bool right = false);

// Cuts a text to a number of columns, at the edge of a character.
std::string Cut(const std::string& text, size_t columns);

// A file name without folders, cut at the front because its end says more; fit to print.
std::string ShortPath(const std::string& path);

// The name, fit to print, exactly this wide: a long name loses its middle, as names differ at ends.
std::string Column(std::string_view name, size_t columns);

struct TableColumn {
  std::string title;
  bool right = false;  // right-aligned cells
  size_t width = 0;    // minimum
};

// A table whose rows may be written one by one.
class Table {
 public:
  // kPlain has two spaces between columns. kMarkdown has aligned columns and escapes "|" in cells.
  enum class Style { kPlain, kMarkdown };
  Table(Style style, std::vector<TableColumn> columns);
  std::string Head() const;
  std::string Row(const std::vector<std::string>& cells) const;
  // Widens columns for these rows. Returns the head and the rows.
  std::string All(const std::vector<std::vector<std::string>>& rows);

 private:
  std::string Cell(const std::string& text) const;

  Style style_;
  std::vector<TableColumn> columns_;
};

}  // namespace cli
