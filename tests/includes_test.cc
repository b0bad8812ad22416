// The order of the house, checked: which folder may include what, where OpenMP is, how long files
// are, how headers guard themselves. Reads every source file of the tree; runs none of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLines = 500;  // rows of number tables are not counted
constexpr std::string_view kOpenMpFile = "kernels/team.cc";

// What a file of a room may include of ours: whole rooms ("gguf/") or single headers.
struct Room {
  std::string_view folder;
  std::vector<std::string_view> ours;
};

// The arrow: cli -> { convert, engine } -> { grammar, tokenizer, kernels } -> gguf. Rooms inside
// rooms come before what they are in.
const std::vector<Room>& Rooms() {
  static const std::vector<Room> rooms = {
      {"gguf/", {"gguf/"}},
      {"kernels/", {"kernels/", "gguf/dtype.h", "gguf/blocks.h"}},
      {"tokenizer/", {"tokenizer/", "gguf/"}},
      {"grammar/", {"grammar/", "tokenizer/", "gguf/"}},
      {"engine/model/", {"engine/model/", "engine/error.h", "tokenizer/", "kernels/", "gguf/"}},
      {"engine/pass/",
       {"engine/pass/", "engine/model/", "engine/error.h", "engine/stopwatch.h", "tokenizer/",
        "kernels/", "gguf/"}},
      {"engine/sampling/", {"engine/sampling/", "engine/error.h", "tokenizer/", "gguf/"}},
      {"engine/draft/",
       {"engine/draft/", "engine/pass/", "engine/model/", "engine/error.h", "engine/stopwatch.h",
        "tokenizer/", "kernels/", "gguf/"}},
      {"engine/", {"engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
      {"convert/", {"convert/", "engine/", "tokenizer/", "kernels/", "gguf/"}},
      {"cli/", {"cli/", "convert/", "engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
      {"tests/",
       {"tests/", "cli/", "convert/", "engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
  };
  return rooms;
}

// Headers of libraries, by prefix, and the folders that may include them, a row for each. Tests may
// include them all.
struct Library {
  std::string_view header;
  std::string_view folder;
};

constexpr std::array kLibraries = {
    Library{"hwy/", "kernels/"},
    Library{"immintrin.h", "kernels/"},
    Library{"omp.h", kOpenMpFile},
    Library{"sentencepiece", "tokenizer/"},
    Library{"pcre2.h", "tokenizer/"},
    Library{"CLI/", "cli/options/command_line.cc"},
    Library{"histedit.h", "cli/terminal/line_editor.cc"},
    Library{"nlohmann/", "cli/"},
    Library{"nlohmann/", "convert/"},
    Library{"nlohmann/", "grammar/"},
    Library{"gtest/", "tests/"},
    Library{"gmock/", "tests/"},
    Library{"benchmark/", "tests/"},
    Library{"arpa/inet.h", "tests/"},            // addresses as the system reads them
    Library{"pronk/pronk.h", "tests/package/"},  // as it is installed
};

// What other projects include: it shows the standard library's types and no others.
constexpr std::string_view kPublicHeader = "engine/pronk.h";

// Of the operating system; everyone may include these and the standard library's.
constexpr std::array<std::string_view, 12> kSystemHeaders = {
    "cpuid.h", "fcntl.h",  "mach-o/dyld.h", "malloc",    "poll.h",     "pthread.h",
    "sched.h", "signal.h", "sys/",          "termios.h", "ucontext.h", "unistd.h"};

// Folders in kernels/ that are built on the rest of it, and know nothing of each other.
constexpr std::array<std::string_view, 3> kPartsOfKernels = {
    "kernels/attention/", "kernels/encode/", "kernels/recurrence/"};

const Room* RoomOf(std::string_view path) {
  const auto& rooms = Rooms();
  const auto room = std::find_if(rooms.begin(), rooms.end(), [&](const Room& candidate) {
    return path.starts_with(candidate.folder);
  });
  return room == rooms.end() ? nullptr : &*room;
}

// Whether the file at `path` may include `header`; both are written from the root of the tree.
bool IsAllowed(std::string_view path, std::string_view header) {
  const bool is_standard = header.find_first_of("./") == std::string_view::npos;  // <vector>
  if (path == kPublicHeader) return is_standard;
  const auto is_prefix = [&](std::string_view prefix) { return header.starts_with(prefix); };
  bool is_library = false;
  for (const Library& library : kLibraries) {
    if (!is_prefix(library.header)) continue;
    if (path.starts_with(library.folder)) return true;
    is_library = true;
  }
  if (is_library) return path.starts_with("tests/");
  if (std::any_of(kSystemHeaders.begin(), kSystemHeaders.end(), is_prefix)) return true;
  if (is_standard) return true;

  const Room* room = RoomOf(path);
  if (room == nullptr) return false;
  for (const std::string_view part : kPartsOfKernels) {
    if (room->folder == "kernels/" && is_prefix(part) && !path.starts_with(part)) return false;
  }
  return std::any_of(room->ours.begin(), room->ours.end(), is_prefix);
}

// The macro of a header's include guard: gguf/file.h -> PRONK_GGUF_FILE_H_.
std::string GuardOf(std::string_view path) {
  std::string guard = "PRONK_";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    guard += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return guard + "_";
}

// Whether the header opens with its guard, sets it, and closes with it. Highway's -inl.h files,
// read once per instruction set, toggle theirs.
bool HasGuard(std::string_view path, const std::string& text) {
  const std::string guard = GuardOf(path);
  const std::string opening = path.ends_with("-inl.h")
                                  ? "#if defined(" + guard + ") == defined(HWY_TARGET_TOGGLE)\n"
                                  : "#ifndef " + guard + "\n#define " + guard + "\n";
  const size_t first_directive = text.starts_with("#") ? 0 : text.find("\n#") + 1;
  return text.compare(first_directive, opening.size(), opening) == 0 &&
         text.find("#define " + guard + "\n") != std::string::npos &&
         text.ends_with("\n#endif  // " + guard + "\n");
}

// Everything wrong with one file, as "path:line: what".
std::vector<std::string> Faults(const std::string& path, const std::string& text) {
  static const std::regex include_line(R"re(^\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  static const std::regex openmp_line(R"re(^\s*#\s*pragma\s+omp\b.*)re");
  static const std::regex table_row(
      R"re(^[-+\s{}(),.0-9a-fA-FxXuUlL]*[0-9][-+\s{}(),.0-9a-fA-FxXuUlL]*$)re");

  std::vector<std::string> faults;
  std::istringstream lines(text);
  std::string line;
  size_t n_counted = 0;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    const auto fault = [&](const std::string& what) {
      faults.push_back(path + ":" + std::to_string(number) + ": " + what);
    };
    std::smatch match;
    if (!std::regex_match(line, table_row)) ++n_counted;
    if (std::regex_match(line, match, include_line)) {
      if (!IsAllowed(path, match[2].str())) fault("may not include " + match[2].str());
      if (match[1] == "<" && RoomOf(match[2].str()) != nullptr) fault("ours is written in quotes");
    }
    if (path != kOpenMpFile && std::regex_match(line, openmp_line)) {
      fault("OpenMP is only in " + std::string(kOpenMpFile));
    }
  }
  if (n_counted > kMaxLines) {
    faults.push_back(path + ": " + std::to_string(n_counted) + " lines, " +
                     std::to_string(kMaxLines) + " at most");
  }
  if (path.ends_with(".h") && !HasGuard(path, text)) {
    faults.push_back(path + ": the include guard is not " + GuardOf(path));
  }
  return faults;
}

// Every .h and .cc of the tree with its text, by its path from the root.
std::vector<std::pair<std::string, std::string>> Sources() {
  const fs::path root = test::SourceDir();
  std::vector<std::pair<std::string, std::string>> sources;
  for (const char* folder :
       {"gguf", "kernels", "tokenizer", "grammar", "engine", "convert", "cli", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      sources.emplace_back(fs::relative(entry.path(), root).generic_string(),
                           std::string(std::istreambuf_iterator<char>(in), {}));
    }
  }
  return sources;
}

TEST(Includes, FollowTheArrow) {
  const auto sources = Sources();
  for (const auto& [path, text] : sources) {
    for (const std::string& fault : Faults(path, text)) ADD_FAILURE() << fault;
  }
  for (const Room& room : Rooms()) {
    const bool is_read = std::any_of(sources.begin(), sources.end(), [&](const auto& source) {
      return source.first.starts_with(room.folder) && !source.second.empty();
    });
    EXPECT_TRUE(is_read) << "no source was read in " << room.folder;
  }
}

TEST(Includes, OfOursExist) {
  static const std::regex quoted(R"re(\n\s*#\s*include\s*"([^"]+)")re");
  for (const auto& [path, text] : Sources()) {
    for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it) {
      const std::string header = (*it)[1].str();
      if (header.starts_with("hwy/")) continue;
      EXPECT_TRUE(fs::exists(fs::path(test::SourceDir()) / header)) << path << ": " << header;
    }
  }
}

// Names of files in comments are the first thing that a move leaves behind.
TEST(Comments, NameFilesThatExist) {
  static const std::regex name(R"re([A-Za-z0-9_]+(-inl)?\.(h|cc)\b)re");
  const auto sources = Sources();
  std::set<std::string> names = {"omp.h"};
  for (const auto& source : sources) names.insert(fs::path(source.first).filename().string());
  for (const auto& [path, text] : sources) {
    if (path == "tests/includes_test.cc") continue;  // has made-up ones
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const size_t comment = line.find("// ");
      if (comment == std::string::npos) continue;
      const std::string words = line.substr(comment);
      for (std::sregex_iterator it(words.begin(), words.end(), name), end; it != end; ++it) {
        EXPECT_TRUE(names.contains(it->str())) << path << ": " << line;
      }
    }
  }
}

// --- The checks themselves: made-up files, good and bad. ---

std::vector<std::string> FaultsOfInclude(const std::string& path, const std::string& header) {
  return Faults(path, "#include " + header + "\n");
}

TEST(IncludesChecks, TakeWhatTheArrowAllows) {
  for (const auto& [path, header] : std::vector<std::pair<std::string, std::string>>{
           {"gguf/a.cc", "<vector>"},
           {"gguf/a.cc", "<sys/mman.h>"},
           {"gguf/a.cc", "\"gguf/file.h\""},
           {"kernels/a.cc", "\"gguf/blocks.h\""},
           {"kernels/a.cc", "\"hwy/highway.h\""},
           {"kernels/encode/a.cc", "\"kernels/encode/grid.h\""},
           {"kernels/encode/a.cc", "\"kernels/tables.h\""},
           {"kernels/team.cc", "<omp.h>"},
           {"tokenizer/a.cc", "\"gguf/file.h\""},
           {"tokenizer/a.cc", "<pcre2.h>"},
           {"engine/a.cc", "\"kernels/ops.h\""},
           {"cli/a.cc", "\"engine/model.h\""},
           {"cli/a.cc", "\"convert/convert.h\""},
           {"convert/a.cc", "\"engine/model.h\""},
           {"convert/a.cc", "<nlohmann/json.hpp>"},
           {"cli/options/command_line.cc", "<CLI/CLI.hpp>"},
           {"tests/kernels/a.cc", "\"hwy/highway.h\""},
           {"tests/package/a.cc", "<pronk/pronk.h>"},
       }) {
    EXPECT_TRUE(FaultsOfInclude(path, header).empty()) << path << " " << header;
  }
}

TEST(IncludesChecks, CatchWhatGoesAgainstTheArrow) {
  for (const auto& [path, header] : std::vector<std::pair<std::string, std::string>>{
           {"gguf/a.cc", "\"kernels/ops.h\""},
           {"gguf/a.cc", "\"engine/model.h\""},
           {"gguf/a.cc", "<nlohmann/json.hpp>"},
           {"kernels/a.cc", "\"gguf/file.h\""},
           {"kernels/a.cc", "\"kernels/encode/grid.h\""},
           {"kernels/attention/a.cc", "\"kernels/encode/grid.h\""},
           {"kernels/a.cc", "\"tokenizer/tokenizer.h\""},
           {"kernels/a.cc", "<omp.h>"},
           {"tokenizer/a.cc", "\"kernels/ops.h\""},
           {"tokenizer/a.cc", "\"hwy/highway.h\""},
           {"engine/a.cc", "\"cli/command.h\""},
           {"grammar/a.cc", "\"engine/error.h\""},
           {"engine/model/a.cc", "\"engine/pass/pass.h\""},
           {"engine/draft/a.cc", "\"engine/session/session.h\""},
           {"convert/a.cc", "\"grammar/grammar.h\""},
           {"engine/a.cc", "\"convert/convert.h\""},
           {"convert/a.cc", "\"cli/command.h\""},
           {"engine/a.cc", "<nlohmann/json.hpp>"},
           {"engine/a.cc", "<sentencepiece_processor.h>"},
           {"engine/a.cc", "<CLI/CLI.hpp>"},
           {"engine/a.cc", "<pronk/pronk.h>"},
           {"cli/a.cc", "<pcre2.h>"},
           {"cli/a.cc", "\"tests/support/data.h\""},
           {"engine/a.cc", "\"model.h\""},         // not from the root
           {"engine/a.cc", "\"../gguf/file.h\""},  // nor from elsewhere
           {"engine/a.cc", "<gguf/file.h>"},       // ours in angles
           {"gguf/a.cc", "<boost/any.hpp>"},       // a library that is not in the table
           {"gguf/a.cc", "<vector>\n  #  include \"kernels/ops.h\"  // why"},
       }) {
    EXPECT_EQ(FaultsOfInclude(path, header).size(), 1u) << path << " " << header;
  }
}

TEST(IncludesChecks, CatchWhatOtherProjectsWouldSee) {
  EXPECT_TRUE(IsAllowed(kPublicHeader, "vector"));
  EXPECT_FALSE(IsAllowed(kPublicHeader, "engine/model.h"));
  EXPECT_FALSE(IsAllowed(kPublicHeader, "sys/mman.h"));
  EXPECT_FALSE(IsAllowed(kPublicHeader, "hwy/highway.h"));
}

TEST(IncludesChecks, CatchOpenMpElsewhere) {
  const std::string text = "void F() {\n#pragma omp parallel\n}\n";
  EXPECT_TRUE(Faults("kernels/team.cc", text).empty());
  EXPECT_EQ(Faults("kernels/ops.cc", text).size(), 1u);
}

TEST(IncludesChecks, CatchLongFilesButNotTables) {
  std::string rows = "const int kTable[] = {\n";
  for (size_t i = 0; i < 2 * kMaxLines; ++i) rows += "    0x1f, 2, -3,\n";
  EXPECT_TRUE(Faults("kernels/tables.cc", rows + "};\n").empty());

  std::string lines;
  for (size_t i = 0; i < kMaxLines; ++i) lines += "int x;\n";
  EXPECT_TRUE(Faults("gguf/a.cc", lines).empty());
  EXPECT_EQ(Faults("gguf/a.cc", lines + "\n").size(), 1u);
}

TEST(IncludesChecks, CatchGuardsSpeltWrong) {
  const std::string good =
      "// Why.\n#ifndef PRONK_GGUF_A_H_\n#define PRONK_GGUF_A_H_\n\n#endif  // PRONK_GGUF_A_H_\n";
  EXPECT_TRUE(Faults("gguf/a.h", good).empty());
  EXPECT_EQ(Faults("gguf/b.h", good).size(), 1u);
  EXPECT_EQ(Faults("gguf/a.h", "#pragma once\n").size(), 1u);
  EXPECT_EQ(Faults("gguf/a.h", "").size(), 1u);
  EXPECT_EQ(Faults("gguf/a.h", good.substr(0, good.find("#endif"))).size(), 1u);
  EXPECT_EQ(Faults("kernels/a-inl.h", good).size(), 1u);
}

// The files that README says to read first, in its numbered table.
TEST(ReadingPath, IsThereAndShort) {
  std::ifstream readme(fs::path(test::SourceDir()) / "README.md");
  const std::regex row(R"(\| \d \| \[[^\]]+\]\(([^)]+)\) \|.*)");
  size_t n_files = 0, n_lines = 0;
  for (std::string line; std::getline(readme, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    ++n_files;
    std::ifstream file(fs::path(test::SourceDir()) / match[1].str());
    ASSERT_TRUE(file) << match[1];
    for (std::string text; std::getline(file, text);) ++n_lines;
  }
  EXPECT_EQ(n_files, 5u);
  EXPECT_LT(n_lines, 1000u);
}

}  // namespace
