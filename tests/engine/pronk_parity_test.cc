// The libraries for C++ and for C have the same functions, fields and values: reads both headers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/regex.h"

namespace {

// A header without its comments.
std::string Header(const std::string& name) {
  std::istringstream lines(test::ReadText(test::SourceDir() + "/" + name));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.substr(0, line.find("//")) + "\n";
  return text;
}

// "SetToolChoice" and "kContextFull" as "set_tool_choice" and "context_full".
std::string Snake(std::string name) {
  if (name.size() > 1 && name[0] == 'k' && std::isupper(name[1]) != 0) name.erase(0, 1);
  std::string snake;
  for (const char c : name) {
    if (std::isupper(c) != 0 && !snake.empty()) snake += '_';
    snake += static_cast<char>(std::tolower(c));
  }
  return snake;
}

// The text between `begin` and the next line that begins with a closing brace.
std::string Body(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << begin;
  if (at == std::string::npos) return "";
  const size_t from = at + begin.size();
  return text.substr(from, text.find("\n}", from) - from);
}

// The first group of each match.
std::vector<std::string> Names(const std::string& text, const std::string& pattern) {
  std::vector<std::string> names;
  for (const test::Match& match : test::FindAll(text, pattern)) names.push_back(match[1]);
  return names;
}

std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::vector<std::string> names = Names(text, pattern);
  return {names.begin(), names.end()};
}

TEST(LibraryParity, EveryMethodHasItsFunction) {
  // Functions that C has in another form.
  const std::map<std::string, std::string> others = {
      {"model_architecture", "model_metadata"},      {"model_context_length", "model_facts"},
      {"model_size_in_bytes", "model_facts"},        {"model_n_parameters", "model_facts"},
      {"model_vocabulary_size", "model_facts"},      {"model_embedding_length", "model_facts"},
      {"model_metadata_keys", "model_metadata_key"}, {"model_special_tokens", "model_token"},
  };
  const std::string cpp = Header("engine/pronk.h"), c = Header("engine/pronk_c.h");
  const std::set<std::string> functions = Matches(c, "\\bpronk_([a-z_]+)\\(");
  std::set<std::string> used = {"error",         "version",          "model_ends",
                                "model_open",    "model_open_exact", "session_complete_ids",
                                "batch_add_chat"};
  size_t n_methods = 0;
  for (const std::string name :
       {"Model", "Grammar", "Session", "Batch", "Chat", "Embedder", "Reranker"}) {
    std::string body = Body(cpp, "\nclass " + name + " {");
    body = body.substr(0, body.find(" private:"));
    for (const std::string& method : Matches(body, "\\n  [A-Za-z][^\\n(]* ([A-Za-z_]+)\\(")) {
      if (method == name || method == "operator") continue;
      ++n_methods;
      std::string expected = Snake(name) + "_" + Snake(method);
      if (const auto other = others.find(expected); other != others.end()) expected = other->second;
      EXPECT_TRUE(functions.contains(expected))
          << name << "::" << method << ": no pronk_" << expected;
      used.insert(expected);
    }
    used.insert(Snake(name) + "_free");
    used.insert(Snake(name) + "_open");
  }
  EXPECT_GT(n_methods, 40u);
  for (const std::string& function : functions)
    EXPECT_TRUE(used.contains(function)) << "pronk_" << function << " has no method";
}

TEST(LibraryParity, EveryFieldAndValue) {
  const std::string c = Header("engine/pronk_c.h");
  const auto expect = [&](const std::string& header, const std::string& type,
                          const std::string& in_c, std::set<std::string> but) {
    const std::set<std::string> fields =
        Matches(Body(Header(header), "\nstruct " + type + " {"), "\\b([a-z_]+)(?: =[^;\\n]*)?;");
    const std::set<std::string> of_c =
        Matches(Body(c, "typedef struct " + in_c + " {"), "\\b([a-z_]+)(?=[,;])");
    EXPECT_GE(fields.size(), 3u) << type;
    for (const std::string& field : fields)
      EXPECT_TRUE(of_c.contains(field) || but.contains(field)) << in_c << " has no " << field;
  };
  expect("engine/pronk.h", "Limits", "pronk_limits", {});
  expect("engine/pronk.h", "Rendering", "pronk_rendering", {"begins_answer"});
  expect("engine/pronk.h", "MemoryUse", "pronk_memory_use", {});
  // The functions for text and thinking receive these, and a chat's history has its calls.
  expect("engine/completion.h", "Completion", "pronk_completion",
         {"text", "thinking", "tool_calls"});

  const auto values = [](const std::string& body) {
    return Names(body, "\\b(k[A-Z][A-Za-z]+|PRONK_[A-Z_]+)\\b");
  };
  std::vector<std::string> kinds =
      values(Body(Header("engine/pronk.h"), "\nenum class ErrorKind {"));
  std::vector<std::string> statuses = values(Body(c, "typedef enum pronk_status {"));
  statuses.erase(statuses.begin(), statuses.begin() + 2);  // PRONK_OK, PRONK_ABSENT
  ASSERT_EQ(kinds.size(), statuses.size());
  for (size_t i = 0; i + 1 < kinds.size(); ++i) {  // the last is PRONK_FAILED
    std::string name = Snake(kinds[i]);
    std::ranges::transform(name, name.begin(),
                           [](char ch) { return static_cast<char>(std::toupper(ch)); });
    EXPECT_EQ("PRONK_" + name, statuses[i]);
  }
  EXPECT_EQ(values(Body(Header("engine/completion.h"), "\nenum class StopReason : std::uint8_t {"))
                .size(),
            values(Body(c, "typedef enum pronk_stop_reason {")).size());
}

}  // namespace
