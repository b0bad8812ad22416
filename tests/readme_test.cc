// Checks what the documents say of the tree: README's table of lines by room and its reading path.
// Reads files; runs none of the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

// Every file of the tree with one of the extensions, by its path from the root. Builds and hidden
// folders are none of the tree's.
std::vector<std::string> FilesOfTree(const std::set<std::string>& extensions) {
  const fs::path root = test::SourceDir();
  std::vector<std::string> paths;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
    const std::string name = it->path().filename().string();
    if (it.depth() == 0 && it->is_directory() &&
        (name.starts_with(".") || name.starts_with("build"))) {
      it.disable_recursion_pending();
    } else if (extensions.contains(it->path().extension().string())) {
      paths.push_back(fs::relative(it->path(), root).generic_string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Lines ReadLines(const fs::path& path) {
  std::ifstream file(fs::path(test::SourceDir()) / path);
  EXPECT_TRUE(file) << path;
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// --- README.md's table of lines ---
//
//   | **What a prompt needs** | **21,300** |      the sum of the rows that follow
//   | [`kernels/`](README.md) | 12,600 | ... |    .h and .cc in that folder, but for what is in the
//   | `kernels/encode/` | 1,500 | ... |           folder of another row
//   | **Tests: `tests/`** | **24,000** |          a sum and a folder at once

struct TableRow {
  std::string first_cell;
  std::string folder;  // the path in the first cell, or empty
  bool is_sum;
  size_t stated;  // lines, as README says
  size_t counted = 0;
};

std::vector<TableRow> TableOfLines() {
  static const std::regex row(R"(\| ([^|]*) \| \**([0-9,]+)\** \|.*)");
  static const std::regex folder(R"(`([a-z_/]+/)`)");
  std::vector<TableRow> rows;
  for (const std::string& line : ReadLines("README.md")) {
    std::smatch match, path;
    if (!std::regex_match(line, match, row)) continue;
    const std::string first_cell = match[1].str();
    std::string digits = match[2].str();
    std::erase(digits, ',');
    const bool is_sum = first_cell.starts_with("**");
    const bool has_folder = std::regex_search(first_cell, path, folder);
    if (!is_sum && !has_folder) continue;
    rows.push_back({first_cell, has_folder ? path[1].str() : "", is_sum, std::stoul(digits)});
  }
  return rows;
}

// To the nearest hundred, with a comma: 12,300.
std::string Rounded(size_t lines) {
  std::string text = std::to_string((lines + 50) / 100 * 100);
  if (text.size() > 3) text.insert(text.size() - 3, ",");
  return text;
}

TEST(Documents, TableOfLinesIsTrue) {
  std::vector<TableRow> rows = TableOfLines();
  for (const std::string& path : FilesOfTree({".h", ".cc"})) {
    TableRow* owner = nullptr;  // the innermost folder that has a row
    for (TableRow& row : rows) {
      if (row.folder.empty() || !path.starts_with(row.folder)) continue;
      if (owner == nullptr || row.folder.size() > owner->folder.size()) owner = &row;
    }
    ASSERT_NE(owner, nullptr) << path << ": README's table of lines has no row for it";
    owner->counted += ReadLines(path).size();
  }
  TableRow* sum = nullptr;
  for (TableRow& row : rows) {
    if (row.is_sum) {
      sum = &row;
    } else {
      ASSERT_NE(sum, nullptr) << "README's table of lines begins with a sum";
      sum->counted += row.counted;
    }
  }

  // Small changes pass, until they are two hundred lines or the twentieth part.
  bool is_true = true;
  std::string right;
  for (const TableRow& row : rows) {
    const size_t tolerance = std::max<size_t>(200, row.counted / 20);
    is_true &= row.stated <= row.counted + tolerance && row.counted <= row.stated + tolerance;
    right += "  " + row.first_cell + " | " + Rounded(row.counted) + "\n";
  }
  EXPECT_GT(rows.size(), 8u);
  EXPECT_TRUE(is_true) << "README.md's lines by room are now:\n" << right;
}

// The files that README says to read first, in its numbered table.
TEST(Documents, ReadingPathIsThereAndShort) {
  static const std::regex row(R"(\| \d \| \[[^\]]+\]\(([^)]+)\) \|.*)");
  size_t n_files = 0, n_lines = 0;
  for (const std::string& line : ReadLines("README.md")) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    ++n_files;
    n_lines += ReadLines(match[1].str()).size();
  }
  EXPECT_EQ(n_files, 5u);
  EXPECT_LT(n_lines, 1000u);
}

}  // namespace
