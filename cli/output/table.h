// Text in columns, as a terminal counts them: a character takes none, one or two, whatever its
// bytes.
#ifndef PRONK_CLI_OUTPUT_TABLE_H_
#define PRONK_CLI_OUTPUT_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

size_t TextColumns(std::string_view text);

// With spaces after it, or before it, so that it takes at least this many columns.
std::string Padded(const std::string& text, size_t columns, bool right = false);

// Cut to a number of columns, at a character's edge.
std::string Cut(const std::string& text, size_t columns);

// Fit to print, and exactly this wide: what is too long loses its middle, since names differ at
// both ends.
std::string Column(std::string_view name, size_t columns);

struct TableColumn {
  std::string title;
  bool right = false;  // cells end at the right
  size_t width = 0;    // at least
};

// Rows that may be written one by one.
class Table {
 public:
  // kPlain has two spaces between columns; Markdown is aligned, too, and escapes "|" in cells.
  enum class Style { kPlain, kMarkdown };
  Table(Style style, std::vector<TableColumn> columns);
  void Fit(const std::vector<std::string>& cells);  // widens columns for this row
  std::string Head() const;
  std::string Row(const std::vector<std::string>& cells) const;

 private:
  std::string Cell(const std::string& text) const;

  Style style_;
  std::vector<TableColumn> columns_;
};

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_TABLE_H_
