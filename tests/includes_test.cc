// Checks the structure of the tree: which folder may include what, how headers guard themselves,
// whether comments name files that exist. Reads every source file of the tree; runs none of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/regex.h"

namespace {

namespace fs = std::filesystem;

// A file has one subject, in about 300 lines (CONTRIBUTING, Style). A test cannot tell whether it
// has; this limit catches only extremes. Rows of number tables are not counted.
constexpr size_t kMaxLines = 800;

// What a file of a folder may include of ours: whole folders ("gguf/") or single headers.
struct Rule {
  std::string_view path;  // a folder, or one file that has a rule of its own
  std::vector<std::string_view> ours;
};

// The arrow: cli -> convert -> engine -> { grammar -> tokenizer, kernels } -> gguf. The first row
// that fits counts, so folders inside folders come before those around them.
const std::vector<Rule>& Rules() {
  static const std::vector<Rule> rules = {
      {"gguf/", {"gguf/"}},
      {"kernels/threads/", {"kernels/threads/"}},
      {"kernels/simd/", {"kernels/simd/", "kernels/threads/"}},
      {"kernels/ops/", {"kernels/ops/", "kernels/simd/", "kernels/threads/", "kernels/buffer.h"}},
      {"kernels/types/shared/",
       {"kernels/types/shared/", "kernels/ops/", "kernels/simd/", "kernels/half.h", "gguf/dtype.h",
        "gguf/blocks.h"}},
      {"kernels/types/",
       {"kernels/types/", "kernels/simd/", "kernels/half.h", "gguf/dtype.h", "gguf/blocks.h"}},
      {"kernels/matmul/",
       {"kernels/matmul/", "kernels/types/", "kernels/ops/", "kernels/simd/", "kernels/threads/",
        "kernels/buffer.h", "gguf/dtype.h"}},
      {"kernels/experts/",
       {"kernels/experts/", "kernels/matmul/", "kernels/ops/", "kernels/threads/",
        "kernels/buffer.h"}},
      {"kernels/attention/",
       {"kernels/attention/", "kernels/experts/", "kernels/matmul/", "kernels/types/shared/",
        "kernels/ops/", "kernels/simd/", "kernels/threads/", "kernels/buffer.h", "kernels/half.h",
        "gguf/dtype.h", "gguf/blocks.h"}},
      {"kernels/recurrence/",
       {"kernels/recurrence/", "kernels/ops/", "kernels/simd/", "kernels/threads/"}},
      {"kernels/encode/",
       {"kernels/encode/", "kernels/types/shared/", "kernels/simd/", "kernels/half.h",
        "gguf/dtype.h", "gguf/blocks.h"}},
      {"kernels/", {}},
      {"tokenizer/jinja/values/",
       {"tokenizer/jinja/values/", "tokenizer/characters.h", "tokenizer/errors.h",
        "tokenizer/byte_span.h", "gguf/"}},
      {"tokenizer/jinja/syntax/",
       {"tokenizer/jinja/syntax/", "tokenizer/jinja/values/", "tokenizer/errors.h", "gguf/"}},
      {"tokenizer/jinja/interpreter/",
       {"tokenizer/jinja/interpreter/", "tokenizer/jinja/syntax/", "tokenizer/jinja/values/",
        "tokenizer/errors.h", "gguf/"}},
      {"tokenizer/jinja/functions/",
       {"tokenizer/jinja/functions/", "tokenizer/jinja/interpreter/", "tokenizer/jinja/values/",
        "tokenizer/errors.h", "gguf/"}},
      {"tokenizer/message.h", {}},  // a part of pronk.h
      {"tokenizer/", {"tokenizer/", "gguf/"}},
      {"grammar/", {"grammar/", "tokenizer/", "gguf/"}},
      {"engine/hf/", {"engine/hf/", "kernels/half.h", "gguf/"}},
      {"engine/model/",
       {"engine/model/", "engine/hf/", "engine/error.h", "tokenizer/", "kernels/", "gguf/"}},
      {"engine/pass/",
       {"engine/pass/", "engine/model/", "engine/error.h", "engine/stopwatch.h", "tokenizer/",
        "kernels/", "gguf/"}},
      {"engine/sampling/sampling.h", {}},                // a part of pronk.h
      {"engine/completion.h", {"tokenizer/message.h"}},  // likewise
      {"engine/sampling/",
       {"engine/sampling/", "engine/completion.h", "engine/error.h", "tokenizer/", "kernels/ops/",
        "gguf/"}},
      {"engine/draft/",
       {"engine/draft/", "engine/pass/", "engine/model/", "engine/error.h", "engine/stopwatch.h",
        "tokenizer/", "kernels/", "gguf/"}},
      {"engine/answer/", {"engine/answer/", "engine/error.h", "grammar/", "tokenizer/", "gguf/"}},
      {"engine/session/",
       {"engine/session/", "engine/answer/", "engine/draft/", "engine/sampling/", "engine/pass/",
        "engine/model/", "engine/completion.h", "engine/error.h", "engine/stopwatch.h", "grammar/",
        "tokenizer/", "kernels/", "gguf/"}},
      {"engine/library/", {"engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
      {"engine/pronk_c.h", {}},
      // What other projects include: the standard library and what is installed with it.
      {"engine/pronk.h",
       {"engine/sampling/sampling.h", "engine/completion.h", "tokenizer/message.h"}},
      {"engine/", {"engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
      {"convert/", {"convert/", "engine/", "tokenizer/", "kernels/", "gguf/"}},
      {"cli/terminal/", {"cli/terminal/", "cli/command.h", "engine/", "tokenizer/", "gguf/"}},
      {"cli/output/",
       {"cli/output/", "cli/terminal/", "engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
      {"cli/options/",
       {"cli/options/", "cli/output/", "cli/terminal/", "cli/command.h", "engine/", "grammar/",
        "tokenizer/", "kernels/", "gguf/"}},
      {"cli/chat/",
       {"cli/chat/", "cli/options/", "cli/output/", "cli/terminal/", "cli/command.h", "engine/",
        "grammar/", "tokenizer/", "gguf/"}},
      {"cli/prediction/",
       {"cli/prediction/", "cli/options/", "cli/output/", "cli/terminal/", "cli/command.h",
        "engine/", "gguf/"}},
      {"cli/bench/",
       {"cli/bench/", "cli/prediction/", "cli/options/", "cli/output/", "cli/terminal/",
        "cli/command.h", "convert/", "engine/", "kernels/", "gguf/"}},
      {"cli/trace/",
       {"cli/trace/", "cli/prediction/", "cli/options/", "cli/output/", "cli/terminal/",
        "cli/command.h", "engine/", "tokenizer/", "kernels/", "gguf/"}},
      {"cli/quantize/",
       {"cli/quantize/", "cli/output/", "cli/terminal/", "cli/command.h", "convert/", "tokenizer/",
        "kernels/", "gguf/"}},
      {"cli/", {"cli/", "convert/", "engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
      {"tests/",
       {"tests/", "cli/", "convert/", "engine/", "grammar/", "tokenizer/", "kernels/", "gguf/"}},
  };
  return rules;
}

// Headers of libraries, by prefix, and the folders that may include them. Every folder may include
// the standard library; tests may include all of these.
struct Library {
  std::vector<std::string_view> headers;
  std::vector<std::string_view> users;  // folders or single files
};

const std::vector<Library>& Libraries() {
  static const std::vector<Library> libraries = {
      {{"cpuid.h", "fcntl.h", "linux/", "mach-o/dyld.h", "poll.h", "pthread.h", "sched.h", "sys/",
        "termios.h", "unistd.h"},  // the operating system
       {"gguf/", "kernels/", "engine/session/", "convert/", "cli/"}},
      {{"hwy/", "immintrin.h"}, {"kernels/"}},
      {{"sanitizer/"}, {"kernels/buffer.h"}},
      {{"omp.h"}, {"kernels/threads/thread_pool.cc"}},  // and OpenMP's pragmas
      {{"sentencepiece", "pcre2.h"}, {"tokenizer/"}},
      {{"nlohmann/"}, {"cli/"}},
      {{"histedit.h"}, {"cli/terminal/line_editor.cc"}},
      {{"gtest/", "gmock/", "benchmark/", "arpa/inet.h", "malloc", "signal.h", "ucontext.h"},
       {"tests/"}},
      {{"pronk/pronk.h"}, {"tests/package/"}},  // as it is installed
      {{"pronk/pronk_c.h"}, {"engine/pronk.h"}},
      {{"stddef.h", "stdint.h"}, {"engine/pronk_c.h"}},  // which is C
  };
  return libraries;
}

const Rule* RuleFor(std::string_view path) {
  const auto& rules = Rules();
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [&](const Rule& each) { return path.starts_with(each.path); });
  return rule == rules.end() ? nullptr : &*rule;
}

// Whether `text` begins with one of `prefixes`.
bool BeginsWithOne(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Whether the file at `path` may include `header`; both are written from the root of the tree.
bool IsAllowed(std::string_view path, std::string_view header) {
  for (const Library& library : Libraries()) {
    if (!BeginsWithOne(header, library.headers)) continue;
    return path.starts_with("tests/") || BeginsWithOne(path, library.users);
  }
  if (header.find_first_of("./") == std::string_view::npos) return true;  // <vector>

  const Rule* rule = RuleFor(path);
  if (rule == nullptr) return false;
  return BeginsWithOne(header, rule->ours);
}

// The macro of such a file's guard: kernels/a-inl.h -> PRONK_KERNELS_A_INL_H_.
std::string GuardOf(std::string_view path) {
  std::string guard = "PRONK_";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    guard += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return guard + "_";
}

// A file for Highway without any guard, which one file alone includes, once per instruction set.
bool NeedsNoGuard(std::string_view path, const std::string& text) {
  return path.ends_with("-inl.h") && text.find("_H_\n") == std::string::npos;
}

// Whether the header's first directive keeps it from being read twice. Highway's -inl.h files, read
// once per instruction set, toggle a macro of their path.
bool HasGuard(std::string_view path, const std::string& text) {
  const size_t first_directive = text.starts_with("#") ? 0 : text.find("\n#") + 1;
  const auto begins = [&](const std::string& opening) {
    return text.compare(first_directive, opening.size(), opening) == 0;
  };
  if (!path.ends_with("-inl.h")) return begins("#pragma once\n");
  const std::string guard = GuardOf(path);
  return begins("#if defined(" + guard + ") == defined(HWY_TARGET_TOGGLE)\n") &&
         text.find("#define " + guard + "\n") != std::string::npos &&
         text.ends_with("\n#endif  // " + guard + "\n");
}

// Everything wrong with one file, as "path:line: what".
std::vector<std::string> Faults(const std::string& path, const std::string& text) {
  static const std::string include_line(R"re(^\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  static const std::string openmp_line(R"re(^\s*#\s*pragma\s+omp\b.*)re");
  static const std::string table_row(
      R"re(^[-+\s{}(),.0-9a-fA-FxXuUlL]*[0-9][-+\s{}(),.0-9a-fA-FxXuUlL]*$)re");

  std::vector<std::string> faults;
  std::istringstream lines(text);
  std::string line;
  size_t n_counted = 0;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    const auto fault = [&](const std::string& what) {
      faults.push_back(path + ":" + std::to_string(number) + ": " + what);
    };
    if (test::MatchAll(line, table_row).empty()) ++n_counted;
    if (const test::Match match = test::MatchAll(line, include_line); !match.empty()) {
      if (!IsAllowed(path, match[2])) fault("may not include " + match[2]);
      if (match[1] == "<" && RuleFor(match[2]) != nullptr) fault("ours is written in quotes");
    }
    if (!test::MatchAll(line, openmp_line).empty() && !IsAllowed(path, "omp.h")) {
      fault("OpenMP is only where omp.h may be included");
    }
  }
  if (n_counted > kMaxLines) {
    faults.push_back(path + ": " + std::to_string(n_counted) + " lines, " +
                     std::to_string(kMaxLines) + " at most");
  }
  if (path.ends_with(".h") && !NeedsNoGuard(path, text) && !HasGuard(path, text)) {
    faults.push_back(path + ": expected " +
                     (path.ends_with("-inl.h") ? "the guard " + GuardOf(path) : "#pragma once"));
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
  for (const Rule& rule : Rules()) {
    const bool is_read = std::any_of(sources.begin(), sources.end(), [&](const auto& source) {
      return source.first.starts_with(rule.path) && !source.second.empty();
    });
    EXPECT_TRUE(is_read) << "no source was read in " << rule.path;
  }
}

TEST(Includes, OfOursExist) {
  static const std::string quoted(R"re(\n\s*#\s*include\s*"([^"]+)")re");
  const auto sources = Sources();
  std::map<std::string, int> n_users;
  for (const auto& [path, text] : sources) {
    for (const test::Match& match : test::FindAll(text, quoted)) {
      const std::string& header = match[1];
      if (header.starts_with("hwy/")) continue;
      EXPECT_TRUE(fs::exists(fs::path(test::SourceDir()) / header)) << path << ": " << header;
      ++n_users[header];
    }
  }
  for (const auto& [path, text] : sources) {
    EXPECT_TRUE(!NeedsNoGuard(path, text) || n_users[path] == 1) << path << " needs a guard";
  }
}

// No network connection, no plug-in, no other program but bench's (tests/fuzz/README.md).
TEST(Includes, KeepToThemselves) {
  static const std::string leaves(
      R"re(<(sys/socket|netdb|netinet/\w+|arpa/inet|dlfcn|spawn)\.h>|)re"
      R"re([ (=!](::|std::)?(v?fork|exec[lv]p?e?|system|popen|posix_spawnp?|dlopen)\(\w)re");
  for (const auto& [path, text] : Sources()) {
    if (path.starts_with("tests/") || path == "cli/bench/bench_pairs.cc") continue;
    for (const test::Match& found : test::FindAll(text, leaves)) {
      ADD_FAILURE() << path << ": " << found[0];
    }
  }
}

// Names of files in comments are the first thing that a move leaves behind.
TEST(Comments, NameFilesThatExist) {
  static const std::string name(R"re([A-Za-z0-9_]+(-inl)?\.(h|cc)\b)re");
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
      for (const test::Match& match : test::FindAll(words, name)) {
        EXPECT_TRUE(names.contains(match[0])) << path << ": " << line;
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
           {"kernels/types/a.cc", "\"gguf/blocks.h\""},
           {"kernels/a.cc", "\"hwy/highway.h\""},
           {"kernels/encode/a.cc", "\"kernels/encode/grid.h\""},
           {"kernels/encode/a.cc", "\"kernels/types/shared/tables.h\""},
           {"kernels/threads/thread_pool.cc", "<omp.h>"},
           {"tokenizer/a.cc", "\"gguf/file.h\""},
           {"tokenizer/a.cc", "<pcre2.h>"},
           {"engine/a.cc", "\"kernels/ops/ops.h\""},
           {"cli/a.cc", "\"engine/model.h\""},
           {"cli/a.cc", "\"convert/convert.h\""},
           {"convert/a.cc", "\"engine/model.h\""},
           {"cli/a.cc", "<nlohmann/json.hpp>"},
           {"tests/kernels/a.cc", "\"hwy/highway.h\""},
           {"tests/package/a.cc", "<pronk/pronk.h>"},
       }) {
    EXPECT_TRUE(FaultsOfInclude(path, header).empty()) << path << " " << header;
  }
}

TEST(IncludesChecks, CatchWhatGoesAgainstTheArrow) {
  for (const auto& [path, header] : std::vector<std::pair<std::string, std::string>>{
           {"gguf/a.cc", "\"kernels/ops/ops.h\""},
           {"gguf/a.cc", "\"engine/model.h\""},
           {"gguf/a.cc", "<nlohmann/json.hpp>"},
           {"kernels/a.cc", "\"gguf/file.h\""},
           {"kernels/simd/a.cc", "\"kernels/matmul/matmul.h\""},
           {"kernels/types/shared/a.cc", "\"kernels/types/q4_0-inl.h\""},
           {"kernels/attention/a.cc", "\"kernels/encode/grid.h\""},
           {"kernels/a.cc", "\"tokenizer/tokenizer.h\""},
           {"kernels/a.cc", "<omp.h>"},
           {"tokenizer/a.cc", "\"kernels/ops/ops.h\""},
           {"tokenizer/a.cc", "\"hwy/highway.h\""},
           {"engine/a.cc", "\"cli/command.h\""},
           {"grammar/a.cc", "\"engine/error.h\""},
           {"engine/model/a.cc", "\"engine/pass/pass.h\""},
           {"engine/draft/a.cc", "\"engine/session/session.h\""},
           {"engine/session/a.cc", "\"engine/pronk.h\""},
           {"engine/session/a.cc", "\"engine/library/handles.h\""},
           {"cli/terminal/a.cc", "\"cli/options/loading.h\""},
           {"tokenizer/jinja/values/a.cc", "\"tokenizer/vocabulary.h\""},
           {"convert/a.cc", "\"grammar/grammar.h\""},
           {"engine/a.cc", "\"convert/convert.h\""},
           {"convert/a.cc", "\"cli/command.h\""},
           {"engine/a.cc", "<nlohmann/json.hpp>"},
           {"engine/a.cc", "<sentencepiece_processor.h>"},
           {"engine/a.cc", "<pronk/pronk.h>"},
           {"cli/a.cc", "<pcre2.h>"},
           {"cli/a.cc", "\"tests/support/data.h\""},
           {"engine/a.cc", "\"model.h\""},         // not from the root
           {"engine/a.cc", "\"../gguf/file.h\""},  // nor from elsewhere
           {"engine/a.cc", "<gguf/file.h>"},       // ours in angles
           {"gguf/a.cc", "<boost/any.hpp>"},       // a library that is not in the table
           {"gguf/a.cc", "<vector>\n  #  include \"kernels/ops/ops.h\"  // why"},
       }) {
    EXPECT_EQ(FaultsOfInclude(path, header).size(), 1u) << path << " " << header;
  }
}

TEST(IncludesChecks, CatchWhatOtherProjectsWouldSee) {
  EXPECT_TRUE(IsAllowed("engine/pronk.h", "vector"));
  EXPECT_FALSE(IsAllowed("engine/pronk.h", "engine/error.h"));
  EXPECT_FALSE(IsAllowed("engine/pronk.h", "sys/mman.h"));
  EXPECT_FALSE(IsAllowed("engine/pronk.h", "hwy/highway.h"));
}

TEST(IncludesChecks, CatchOpenMpElsewhere) {
  const std::string text = "void F() {\n#pragma omp parallel\n}\n";
  EXPECT_TRUE(Faults("kernels/threads/thread_pool.cc", text).empty());
  EXPECT_EQ(Faults("kernels/ops/ops.cc", text).size(), 1u);
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

TEST(IncludesChecks, CatchMissingGuards) {
  EXPECT_TRUE(Faults("gguf/a.h", "// Why.\n#pragma once\n").empty());
  EXPECT_EQ(Faults("gguf/a.h", "").size(), 1u);
  EXPECT_EQ(Faults("gguf/a.h", "// Why.\n#include <map>\n#pragma once\n").size(), 1u);
}

TEST(IncludesChecks, CatchTogglesSpeltWrong) {
  const std::string good =
      "#if defined(PRONK_KERNELS_A_INL_H_) == defined(HWY_TARGET_TOGGLE)\n"
      "#define PRONK_KERNELS_A_INL_H_\n\n#endif  // PRONK_KERNELS_A_INL_H_\n";
  EXPECT_TRUE(Faults("kernels/a-inl.h", good).empty());
  EXPECT_EQ(Faults("kernels/b-inl.h", good).size(), 1u);
  EXPECT_EQ(Faults("kernels/a-inl.h", good.substr(0, good.find("#endif"))).size(), 1u);
  EXPECT_EQ(Faults("kernels/a-inl.h", "#pragma once\n" + good).size(), 1u);
}

}  // namespace
