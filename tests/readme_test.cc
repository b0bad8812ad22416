// Checks what the documents say of the tree: links, names of files, README's table of lines by
// folder, READING's path, and how wide their lines are. Reads files; runs none of the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/regex.h"

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

// Every file of the tree with one of the extensions, by its path from the root. Builds and hidden
// folders do not count.
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

// What `pattern` finds in the lines that are not code (neither indented by four spaces nor between
// ``` fences): its groups, those that did not take part empty.
std::vector<Lines> FindInText(const Lines& lines, const std::string& pattern) {
  std::vector<Lines> found;
  bool is_fenced = false;
  for (const std::string& line : lines) {
    if (line.starts_with("```")) is_fenced = !is_fenced;
    if (is_fenced || line.starts_with("    ")) continue;
    for (Lines& groups : test::FindAll(line, pattern)) found.push_back(std::move(groups));
  }
  return found;
}

// A heading's anchor as GitHub makes it: "By hand, quickly" -> "by-hand-quickly".
std::string AnchorOf(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || byte >= 0x80) {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> AnchorsOf(const Lines& lines) {
  static const std::string heading(R"(^#+ +(.*))");
  std::set<std::string> anchors;
  for (const Lines& groups : FindInText(lines, heading)) anchors.insert(AnchorOf(groups[1]));
  return anchors;
}

TEST(Documents, LinksLeadSomewhere) {
  static const std::string link(R"re(\]\(([^)\s]+)\)|<img src="([^"]+)")re");
  for (const std::string& path : FilesOfTree({".md"})) {
    const Lines lines = ReadLines(path);
    for (const Lines& groups : FindInText(lines, link)) {
      const std::string target = groups[1] + groups[2];
      if (target.find("://") != std::string::npos) continue;
      const size_t hash = std::min(target.find('#'), target.size());
      const fs::path file =
          hash == 0 ? fs::path(path) : fs::path(path).parent_path() / target.substr(0, hash);
      ASSERT_TRUE(fs::exists(fs::path(test::SourceDir()) / file)) << path << ": " << target;
      if (hash == target.size()) continue;
      EXPECT_TRUE(AnchorsOf(ReadLines(file)).contains(target.substr(hash + 1)))
          << path << ": " << target << ": no such heading";
    }
  }
}

TEST(Documents, NameFilesThatExist) {
  static const std::string name(R"re((^|[^\w*-])(\w[\w-]*(/\w[\w-]*)*\.(h|cc|py))\b)re");
  std::vector<std::string> files = FilesOfTree({".h", ".cc", ".py"});
  files.insert(files.end(), {"/omp.h", "/pronk/pronk.h"});
  for (const std::string& path : FilesOfTree({".md"})) {
    for (const Lines& groups : FindInText(ReadLines(path), name)) {
      if (groups[2].find("NAME") != std::string::npos) continue;
      const bool exists = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
        return file == groups[2] || file.ends_with("/" + groups[2]);
      });
      EXPECT_TRUE(exists) << path << ": " << groups[2];
    }
  }
}

// A README begins with what is in its folder, in about two sentences.
TEST(Documents, ReadmesBeginWithASentence) {
  for (const std::string& path : FilesOfTree({".md"})) {
    if (fs::path(path).filename() != "README.md" && path != "LAB.md" && path != "READING.md")
      continue;
    const Lines lines = ReadLines(path);
    ASSERT_GT(lines.size(), 3u) << path;
    EXPECT_TRUE(lines[0].starts_with("# ")) << path << ": the title comes first";
    const auto end = std::find(lines.begin() + 2, lines.end(), "");
    EXPECT_TRUE(std::isalpha(static_cast<unsigned char>(lines[2][0])) || lines[2][0] == '`' ||
                lines[2][0] == '[')
        << path << ": begin with a sentence";
    EXPECT_LE(end - (lines.begin() + 2), 4) << path << ": the first paragraph is long";
  }
}

// LAB.md also names patches in commands, which are not links.
TEST(Documents, LabNamesItsPatches) {
  static const std::string patch(R"(tests/patches/lab/[\w.]+\.patch)");
  std::set<std::string> named;
  for (const std::string& line : ReadLines("LAB.md")) {
    for (const Lines& match : test::FindAll(line, patch)) named.insert(match[0]);
  }
  std::set<std::string> there;
  for (const std::string& path : FilesOfTree({".patch"})) {
    if (path.starts_with("tests/patches/lab/")) there.insert(path);
  }
  EXPECT_EQ(named, there);
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
  static const std::string row(R"(\| ([^|]*) \| \**([0-9,]+)\** \|.*)");
  static const std::string folder(R"(`([a-z_/]+/)`)");
  std::vector<TableRow> rows;
  for (const std::string& line : ReadLines("README.md")) {
    const Lines match = test::MatchAll(line, row);
    if (match.empty()) continue;
    const std::string& first_cell = match[1];
    std::string digits = match[2];
    std::erase(digits, ',');
    const bool is_sum = first_cell.starts_with("**");
    const std::vector<Lines> path = test::FindAll(first_cell, folder);
    const bool has_folder = !path.empty();
    if (!is_sum && !has_folder) continue;
    rows.push_back({first_cell, has_folder ? path[0][1] : "", is_sum, std::stoul(digits)});
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
  EXPECT_TRUE(is_true) << "README.md's lines by folder are now:\n" << right;
}

// --- READING.md's path ---
//
//   | 5 | [forward.cc](engine/pass/forward.cc) | 4 | 90 | ... |     row 4 calls it; its lines

struct PathRow {
  std::string file, caller;  // caller: a row's number, empty for the first
  size_t lines;              // as READING says
};

std::vector<PathRow> ReadingPath() {
  static const std::string row(R"(\| \d+ \| \[[^\]]+\]\(([^)]+)\) \| (\d*) *\| (\d+) \|.*)");
  std::vector<PathRow> rows;
  for (const std::string& line : ReadLines("READING.md")) {
    const Lines match = test::MatchAll(line, row);
    if (!match.empty()) rows.push_back({match[1], match[2], std::stoul(match[3])});
  }
  return rows;
}

// What a file and its header include.
std::set<std::string> IncludesOf(const std::string& file) {
  static const std::string include(R"re(^#include "([^"]+)")re");
  std::set<std::string> includes;
  const std::string header = file.substr(0, file.rfind('.')) + ".h";
  for (const std::string& path : {file, header}) {
    if (!fs::exists(fs::path(test::SourceDir()) / path)) continue;
    for (const std::string& line : ReadLines(path)) {
      for (const Lines& match : test::FindAll(line, include)) includes.insert(match[1]);
    }
  }
  return includes;
}

// A file can call another one if both include a header of the other's folder, such as its own.
bool MayCall(const std::string& caller, const std::string& file) {
  const std::set<std::string> theirs = IncludesOf(caller), own = IncludesOf(file);
  const std::string folder = fs::path(file).parent_path().string();
  if (theirs.contains(file)) return true;
  return std::ranges::any_of(own, [&](const std::string& header) {
    return fs::path(header).parent_path().string() == folder && theirs.contains(header);
  });
}

TEST(Documents, ReadingPathIsTheRouteOfAToken) {
  const std::vector<PathRow> rows = ReadingPath();
  ASSERT_GT(rows.size(), 10u);
  EXPECT_EQ(rows[0].caller, "");
  for (const PathRow& row : rows) {
    const size_t lines = ReadLines(row.file).size();
    EXPECT_NEAR(static_cast<double>(row.lines), static_cast<double>(lines),
                20 + static_cast<double>(lines) / 10)
        << row.file;
    if (&row == &rows[0]) continue;
    const size_t caller = std::stoul(row.caller);
    ASSERT_LE(caller, rows.size()) << row.file;
    EXPECT_TRUE(MayCall(rows[caller - 1].file, row.file))
        << rows[caller - 1].file << " cannot call " << row.file;
  }
}

// What tests read beside the checkout is in the table of tests/README.
TEST(Documents, NameWhatTestsReadOfShared) {
  std::string table;
  for (const std::string& line : ReadLines("tests/README.md")) {
    if (line.starts_with("|")) table += line + "\n";
  }
  size_t n = 0;
  for (const std::string& path : FilesOfTree({".cc"})) {
    if (!path.starts_with("tests/")) continue;
    for (const std::string& line : ReadLines(path)) {
      for (const Lines& groups : test::FindAll(line, R"re(SharedPath\("(\w+)(/(\w+))?)re")) {
        ++n;
        for (const std::string& name : {groups[1], groups[3]})
          EXPECT_NE(table.find(name), std::string::npos) << path << ": " << name;
      }
    }
  }
  EXPECT_GT(n, 10u);
}

// Text fits a terminal or an editor's window; tables and code are as wide as they have to be.
TEST(Documents, LinesOfTextHaveAtMost120Columns) {
  for (const std::string& path : FilesOfTree({".md"})) {
    size_t number = 0;
    bool is_fenced = false;
    for (const std::string& line : ReadLines(path)) {
      ++number;
      if (line.starts_with("```")) is_fenced = !is_fenced;
      const size_t first = std::min(line.find_first_not_of(' '), line.size());
      if (is_fenced || first >= 4 || line.substr(first).starts_with("|")) continue;
      const auto columns = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(columns, 120) << path << ":" << number;
    }
  }
}

}  // namespace
