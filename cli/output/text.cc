// Numbers with units, padding, cutting and breaking of lines by columns.
#include "cli/output/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <numeric>
#include <utility>

#include "cli/terminal/charset.h"
#include "gguf/error.h"
#include "gguf/utf8.h"

namespace cli {

std::string Format(const char* format, ...) {
  std::va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, args)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(args);
  return text;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  // The distances of b's prefixes from a's first i, i - 1 and i - 2 letters.
  std::vector<size_t> row(b.size() + 1), last(b.size() + 1), before_last(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

std::string Replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> by) {
  std::string out;
  for (const char c : text) {
    const auto* const found = std::ranges::find(by, c, &std::pair<char, std::string_view>::first);
    out += found != by.end() ? found->second : std::string_view(&c, 1);
  }
  return out;
}

std::string ShellQuoted(std::string_view text) {
  return "'" + Replaced(text, {{'\'', R"('\'')"}}) + "'";
}

std::string HumanBytes(uint64_t n) {
  constexpr std::array kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  auto bytes = static_cast<double>(n);
  size_t unit = 0;
  // The bounds apply to the printed number: 999.5 KB would be rounded to 1000 KB.
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  return Format("%.*f %s", digits, bytes, kUnits[unit]);
}

std::string Figures(double number, int n) {
  const bool is_long = std::abs(number) >= std::pow(10, n - 1);
  return is_long ? Format("%.0f", number) : Format("%.*g", n, number);
}

std::string Counted(size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string TypeName(gguf::DType type) { return std::string(gguf::Info(type).name); }

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return text;
}

std::string ShapeText(const gguf::TensorView& tensor) {
  std::string text;
  for (uint32_t i = tensor.n_dims; i-- > 0;) {
    text += std::to_string(tensor.dims[i]) + (i == 0 ? "" : " x ");
  }
  return text;
}

size_t TextColumns(std::string_view text) {
  size_t columns = 0;
  for (const auto& [code, bytes] : gguf::Characters(text)) columns += CharColumns(code);
  return columns;
}

std::string Padded(const std::string& text, size_t columns, bool right) {
  const size_t width = TextColumns(text);
  const std::string fill(std::max(width, columns) - width, ' ');
  return right ? fill + text : text + fill;
}

std::string Cut(const std::string& text, size_t columns) {
  size_t width = 0, at = 0, kept = 0;  // columns, bytes, and bytes that leave room for "..."
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (width < columns) kept = at;
    width += CharColumns(code);
    if (width > columns) return text.substr(0, kept) + "\u2026";
    at += bytes.size();
  }
  return text;
}

std::string ShortPath(const std::string& path) {
  const std::string text = gguf::PrintablePath(path);
  const size_t slash = text.find_last_of('/');
  return gguf::Printable(slash == std::string::npos ? text : text.substr(slash + 1), 60);
}

std::string Column(std::string_view name, size_t columns) {
  std::string text = gguf::Printable(name);
  const size_t width = TextColumns(text), end = columns / 2;
  if (width > columns && width == text.size()) {
    text = text.substr(0, columns - end - 2) + ".." + text.substr(text.size() - end);
  }
  return Padded(Cut(text, columns), columns);
}

Table::Table(Style style, std::vector<TableColumn> columns)
    : style_(style), columns_(std::move(columns)) {
  for (TableColumn& column : columns_) {
    column.width = std::max(column.width, TextColumns(column.title));
  }
}

std::string Table::Cell(const std::string& text) const {
  return style_ == Style::kMarkdown ? Replaced(text, {{'|', "\\|"}}) : text;
}

std::string Table::All(const std::vector<std::vector<std::string>>& rows) {
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      columns_[i].width = std::max(columns_[i].width, TextColumns(Cell(row[i])));
    }
  }
  std::string text = Head();
  for (const std::vector<std::string>& row : rows) text += Row(row);
  return text;
}

std::string Table::Row(const std::vector<std::string>& cells) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = Padded(Cell(cells[i]), columns_[i].width, columns_[i].right);
    line += style_ == Style::kMarkdown ? "| " + cell + " " : (i == 0 ? "" : "  ") + cell;
  }
  if (style_ == Style::kMarkdown) return line + "|\n";
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string Table::Head() const {
  std::vector<std::string> titles, rule;
  for (const TableColumn& column : columns_) {
    titles.push_back(column.title);
    rule.push_back(std::string(column.width - 1, '-') + (column.right ? ":" : "-"));
  }
  return Row(titles) + (style_ == Style::kMarkdown ? Row(rule) : "");
}

}  // namespace cli
