// The page of pronk trace --html: self-contained, with --json's data; texts stay in their place.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gguf/utf8.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/regex.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

class TracePage : public testing::Test {
 protected:
  std::string PageOf(const std::string& model, const std::string& text) const {
    const std::string path = dir_.Path("page.html");
    const Finished run = Done(Pronk({"trace", "-m", model, "-p", text, "-t", "1", "--html", path}));
    return run.status == 0 ? ReadText(path) : "";
  }

  const TempDir dir_;
};

std::string Between(const std::string& text, const std::string& first, const std::string& last) {
  const size_t begin = text.find(first) + first.size();
  return text.substr(begin, text.find(last, begin) - begin);
}

Json TraceIn(const std::string& page) {
  return Json::parse(Between(page, "id=\"trace\">", "</script>"));
}

// Parses as a browser does: elements nest properly, and script and style end only at their own end
// tag. Returns their names.
std::vector<std::string> ExpectParses(std::string page) {
  const std::vector<std::pair<std::string, std::string>> opaque = {
      {"<!--", "-->"}, {"<script", "</script"}, {"<style", "</style"}};
  for (const auto& [first, last] : opaque) {
    for (size_t at = 0; (at = page.find(first, at)) != std::string::npos;) {
      at = first == "<!--" ? at : page.find('>', at) + 1;
      page.erase(at, std::min(page.find(last, at), page.size()) - at);
    }
  }
  std::vector<std::string> open, seen;
  for (const Match& tag :
       FindAll(page, R"re(<(!doctype|/?[a-zA-Z][\w-]*)((?:"[^"]*"|[^">])*)>)re")) {
    const std::string& name = tag[1];
    if (name[0] == '!' || name == "meta" || tag[2].ends_with("/")) continue;
    if (name[0] != '/') {
      open.push_back(name);
      seen.push_back(name);
      continue;
    }
    EXPECT_FALSE(open.empty());
    if (open.empty()) return seen;
    EXPECT_EQ("/" + open.back(), name);
    open.pop_back();
  }
  EXPECT_EQ(open, std::vector<std::string>()) << "not closed";
  return seen;
}

std::vector<uint8_t> Bytes(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  size_t n = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    n += 6;
    if (n < 8) continue;
    n -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> n));
  }
  return bytes;
}

TEST_F(TracePage, HasWhatTheJsonHas) {
  const std::string text = "It was a day like any other days";
  Json page = TraceIn(PageOf(kModel, text));
  const Finished run =
      Done(Pronk({"trace", "-m", kModel, "-p", text, "-t", "1", "--json", "--values"}));
  Json other = Json::parse(run.out);
  const size_t n = other["tokens"].size();
  ASSERT_EQ(n % 3, 1u) << "base64 is to be padded";
  for (size_t i = 0; i < other["layers"].size(); ++i) {
    Json& heads = other["layers"][i]["heads"];
    for (size_t h = 0; h < heads.size(); ++h) {
      const std::vector<uint8_t> bytes = Bytes(page["layers"][i]["heads_base64"][h]);
      ASSERT_EQ(bytes.size(), n * (n + 1) / 2);
      size_t at = 0;
      for (const Json& row : heads[h]) {
        for (const Json& weight : row) {
          EXPECT_NEAR(bytes[at++], 255 * weight.get<double>(), 0.5 + 1e-9);
        }
      }
    }
    EXPECT_EQ(page["layers"][i]["heads_base64"].size(), heads.size());
    page["layers"][i].erase("heads_base64");
    other["layers"][i].erase("heads");
  }
  // Times differ between two runs.
  for (Json* const of : {&page, &other}) {
    for (const char* ceiling : {"read_bytes_per_second", "operations_per_second"}) {
      EXPECT_GT((*of)[ceiling], 0.0);
      of->erase(ceiling);
    }
    for (const char* steps : {"steps", "prompt_steps"}) {
      for (Json& step : (*of)[steps]) step.erase("seconds");
    }
  }
  EXPECT_EQ(page, other);
}

TEST_F(TracePage, NeedsNothingElse) {
  const std::string page = PageOf(kModel, "It was a day");
  ExpectParses(page);
  EXPECT_FALSE(Has(page, "@TRACE@"));
  const std::string nonce = Between(page, "script-src 'nonce-", "'");
  EXPECT_EQ(nonce.size(), 32u);
  EXPECT_EQ(Count(page, "<script nonce=\"" + nonce + "\">"), 1u);
  EXPECT_TRUE(Has(page, "content=\"default-src 'none';"));
  EXPECT_FALSE(Has(PageOf(kModel, "It was a day"), nonce)) << "not by chance";
  for (const char* from :
       {"src=", "href=", "url(", "@import", "fetch(", "innerHTML", "javascript:"}) {
    EXPECT_FALSE(Has(page, from));
  }
  // Names of SVG's vocabulary are not links.
  EXPECT_EQ(Count(page, "://"), Count(page, "http://www.w3.org/2000/svg"));
}

// Tokens and file names that would end an element, or begin one.
TEST_F(TracePage, KeepsTextInItsPlace) {
  const std::vector<std::string> evil = {"</script><script>alert(1)</script>",
                                         "<!--<script>",
                                         "]]><img src=x onerror=alert(1)>",
                                         "&lt;\u2028\u2029\u202e",
                                         "\x9b\xff",
                                         "\"'\\@NONCE@"};
  SmallModel small;
  small.change_vocabulary = [&](VocabSpec& spec) {
    for (const std::string& text : evil) spec.Add(text, 0, tokenizer::TokenType::kUserDefined);
  };
  const std::vector<std::byte> bytes = small.Bytes();
  const std::string path = dir_.Write(
      "<!--<script>&.gguf", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::string text;
  for (const std::string& word : evil) text += word;
  const std::string page = PageOf(path, text), usual = PageOf(kModel, "a");

  EXPECT_EQ(ExpectParses(page).front(), "html");
  for (const char* word : {"<script", "</script", "<!--", "-->", "<img"}) {
    EXPECT_EQ(Count(page, word), Count(usual, word)) << word;
  }
  EXPECT_EQ(gguf::ValidUtf8Prefix(page), page.size());
  for (const char* word : {"\u2028", "\u2029", "\u202e"}) {
    EXPECT_FALSE(Has(page, word));
  }
  std::string said;
  const Json trace = TraceIn(page);
  for (const Json& token : trace["tokens"]) said += token["text"].get<std::string>();
  EXPECT_TRUE(Has(said, evil[0] + evil[1] + evil[2] + evil[3]));
  EXPECT_TRUE(Has(said, evil[5]));
}

// A page of 256 tokens and the default model, which has 48 heads.
TEST_F(TracePage, IsSmall) {
  const std::string& model = kDefault;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Once upon a time there was a boy called Tom. ";
  const Args args = {"trace", "-m", model, "-p", text, "--html", dir_.Path("p")};
  ExpectError(Pronk(args), 2, "--html: expected a text of at most 256 tokens, not of ");
  std::vector<std::string> first = args;
  first.insert(first.end(), {"--token", "256"});
  ASSERT_EQ(Pronk(first).status, 0);
  const std::string page = ReadText(dir_.Path("p"));
  EXPECT_EQ(TraceIn(page)["tokens"].size(), 256u);
  EXPECT_LE(page.size(), 3'000'000u);
  ExpectParses(page);
}

// Recurrent layers have no attention; a model with several residual streams has no lens.
TEST_F(TracePage, OfEveryMixer) {
  size_t n_without = 0;
  for (const auto& path : SmallModels({"hybrids"})) {
    SCOPED_TRACE(path);
    const Json trace = TraceIn(PageOf(path, "It was a day like any other day"));
    for (const Json& layer : trace["layers"]) {
      const std::string mixer = layer["mixer"];
      EXPECT_EQ(layer.contains("heads_base64"), mixer.ends_with("attention")) << mixer;
      n_without += layer.contains("heads_base64") ? 0 : 1;
    }
  }
  EXPECT_GT(n_without, 0u);
}

TEST_F(TracePage, IsNoInput) {
  const std::string model = dir_.Path("model.gguf");
  std::filesystem::copy_file(kModel, model);
  std::filesystem::permissions(model, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  ExpectError(Pronk({"trace", "-m", model, "-p", "a", "--html", model}), 1,
              "is a file that is read");
  EXPECT_EQ(ReadText(model), ReadText(kModel));
  const std::string page = dir_.Path("p"), plot = dir_.Path("s");
  ExpectError(Pronk({"trace", "-m", model, "--html", page}), 2, "--html: expected a text (-p)");
  ExpectError(Pronk({"trace", "-m", model, "-p", "a", "--html", page, "--plot", plot}), 2,
              "--plot: not together with --html");
  EXPECT_FALSE(std::filesystem::exists(page));
}

}  // namespace
}  // namespace test
