// Runs the JSON Schema Test Suite (json-schema-org), which is not part of this project. Each of its
// schemas becomes a grammar or is refused, and no grammar may match a text that the suite calls
// invalid. Prints the results of every file. The suite is searched for in Debian's packages and in
// the folder JSON_SCHEMA_SUITE, which holds draft7 and draft2020-12. schema_test.cc always runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "tests/grammar/matches.h"
#include "tests/support/data.h"
#include "tests/support/json.h"

namespace grammar {
namespace {

using test::Json;

// Returns a value's texts with its keys in many orders, since a grammar may fix the order.
std::vector<std::string> TextsOf(const Json& value) {
  constexpr size_t kMaxTexts = 1000;
  if (!value.is_array() && !value.is_object()) return {value.dump()};
  std::vector<size_t> order(value.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> parts;
  for (const auto& [key, part] : value.items()) {
    keys.push_back(value.is_object() ? Json(key).dump() + ":" : "");
    parts.push_back(TextsOf(part));
  }
  std::vector<std::string> all;
  do {
    std::vector<std::string> texts = {value.is_object() ? "{" : "["};
    for (const size_t i : order) {
      std::vector<std::string> longer;
      for (const std::string& text : texts) {
        for (const std::string& part : parts[i]) {
          if (longer.size() == kMaxTexts) break;
          longer.push_back(text + (text.size() > 1 ? "," : "") + keys[i] + part);
        }
      }
      texts = std::move(longer);
    }
    for (const std::string& text : texts) all.push_back(text + (value.is_object() ? "}" : "]"));
  } while (value.is_object() && all.size() < kMaxTexts &&
           std::ranges::next_permutation(order).found);
  return all;
}

bool MatchesAny(const Grammar& grammar, const std::vector<std::string>& texts) {
  return std::ranges::any_of(texts,
                             [&](const std::string& text) { return test::Matches(grammar, text); });
}

struct Counts {
  size_t compiled = 0, refused = 0, right = 0, narrower = 0, wrong = 0;
  size_t noted = 0;  // invalid but matched, and a note reports an unknown format
};

class Suite {
 public:
  explicit Suite(std::string address) : address_(std::move(address)) {}

  void Run(const std::filesystem::path& file) {
    Counts& counts = counts_[file.filename().string()];
    for (Json group : Json::parse(test::ReadText(file))) {
      // The folder gives the draft.
      if (group["schema"].is_object() && !group["schema"].contains("$schema")) {
        group["schema"]["$schema"] = address_;
      }
      const std::string name = file.filename().string() + ": " + group["description"].dump();
      try {
        bool has_note = false;
        const Grammar grammar = ParseJsonSchema(
            group["schema"].dump(),
            {.free_space = true, .note = [&](const std::string&) { has_note = true; }});
        ++counts.compiled;
        for (const Json& test : group["tests"]) Try(grammar, has_note, test, name, counts);
      } catch (const Error& error) {
        ++counts.refused;
        std::cout << "refused   " << name << " " << error.what() << "\n";
      }
    }
  }

  // Returns the sums over all files.
  Counts Print() const {
    Counts all;
    for (const auto& [file, counts] : counts_) {
      Print(file, counts);
      all.compiled += counts.compiled;
      all.refused += counts.refused;
      all.right += counts.right;
      all.narrower += counts.narrower;
      all.wrong += counts.wrong;
      all.noted += counts.noted;
    }
    Print("all", all);
    return all;
  }

 private:
  static void Print(const std::string& what, const Counts& counts) {
    std::cout << what << ": " << counts.compiled << " schemas, " << counts.refused << " refused; "
              << counts.right << " values right, " << counts.narrower << " narrower, "
              << counts.wrong << " wrong, " << counts.noted << " by a note\n";
  }

  static void Try(const Grammar& grammar, bool has_note, const Json& test, const std::string& name,
                  Counts& counts) {
    const bool matches = MatchesAny(grammar, TextsOf(test["data"]));
    const std::string what = name + ": " + test["description"].dump() + " " + test["data"].dump();
    if (matches == test["valid"]) {
      ++counts.right;
    } else if (matches && has_note) {
      ++counts.noted;
    } else if (matches) {
      ++counts.wrong;
      ADD_FAILURE() << what << " is matched, and not valid";
    } else {
      ++counts.narrower;
      std::cout << "narrower  " << what << "\n";
    }
  }

  std::string address_;
  std::map<std::string, Counts> counts_;
};

// Version 1.019's minimum results: schemas that become grammars, and values judged correctly.
struct Draft {
  const char *name, *address;
  size_t n_grammars, n_right;
};
class JsonSchemaSuite : public testing::TestWithParam<Draft> {};

TEST_P(JsonSchemaSuite, MatchesNothingInvalid) {
  const std::string name = GetParam().name;
  std::vector<std::filesystem::path> places = {
      "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests",
      "/usr/share/json-schema-test-suite/tests"};
  if (const char* const folder = std::getenv("JSON_SCHEMA_SUITE")) places = {folder};
  const auto place = std::ranges::find_if(
      places, [&](const auto& folder) { return std::filesystem::exists(folder / name); });
  if (place == places.end()) GTEST_SKIP() << "no JSON Schema Test Suite is installed";
  Suite suite(GetParam().address);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*place / name)) {
    if (entry.path().extension() == ".json") suite.Run(entry.path());
  }
  const Counts all = suite.Print();
  EXPECT_GE(all.compiled, GetParam().n_grammars);
  EXPECT_GE(all.right, GetParam().n_right);
}

INSTANTIATE_TEST_SUITE_P(
    Drafts, JsonSchemaSuite,
    testing::Values(Draft{"draft7", "http://json-schema.org/draft-07/schema#", 266, 1278},
                    Draft{"draft2020-12", "https://json-schema.org/draft/2020-12/schema", 328,
                          1520}),
    [](const auto& draft) {
      std::string name = draft.param.name;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace grammar
