// Ranked tokens (tiktoken): the converted file must have merges that make the same tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "convert/convert.h"
#include "convert/hf_tokenizer.h"
#include "gguf/file.h"
#include "tests/support/base64.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/temp_dir.h"
#include "tokenizer/tokenizer.h"

namespace convert {
namespace {

// Merges the bytes of a text like tiktoken: first the neighbours whose joined token ranks lowest.
struct RankedBytes {
  std::vector<std::string> tokens;
  std::map<std::string, size_t> ranks;

  void Add(const std::string& token) {
    ranks[token] = tokens.size();
    tokens.push_back(token);
  }
  std::vector<std::string> Split(const std::string& word) const {
    std::vector<std::string> parts;
    for (const char byte : word) parts.emplace_back(1, byte);
    for (;;) {
      size_t best = tokens.size(), at = 0;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks.find(parts[i] + parts[i + 1]);
        if (found == ranks.end() || found->second >= best) continue;
        best = found->second;
        at = i;
      }
      if (best == tokens.size()) return parts;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
  }
  std::string Lines() const {
    std::string lines;
    for (const std::string& token : tokens)
      lines += test::Base64(token) + " " + std::to_string(ranks.at(token)) + "\n";
    return lines;
  }
};

// Adds the bytes in descending order, then the n most frequent pairs of these words.
RankedBytes Trained(const std::vector<std::string>& words, size_t n) {
  RankedBytes ranked;
  for (int byte = 255; byte >= 0; --byte) ranked.Add(std::string(1, static_cast<char>(byte)));
  while (n-- > 0) {
    std::map<std::string, size_t> counts;
    for (const std::string& word : words) {
      const std::vector<std::string> parts = ranked.Split(word);
      for (size_t i = 0; i + 1 < parts.size(); ++i) ++counts[parts[i] + parts[i + 1]];
    }
    ranked.Add(
        std::ranges::max_element(counts, {}, &std::pair<const std::string, size_t>::second)->first);
  }
  return ranked;
}

// Kimi's pattern does not cut these words.
const std::vector<std::string> kWords = {"aaaaaaaaaaaa", "banana", "bandana", "nandana", "anna",
                                         "中文中文文",   " naïve", "éé",      "abababab"};

// Kimi's vocabulary has ranks instead of merges.
TEST(ConvertRanks, BecomeMerges) {
  const test::TempDir dir;
  const RankedBytes ranked = Trained(kWords, 24);
  test::HfLlama llama;
  llama.tensors.erase("model.embed_tokens.weight");
  llama.Add("model.embed_tokens.weight", {600, 32});
  llama.files = {
      {"tiktoken.model", ranked.Lines()},
      {"tokenizer_config.json",
       R"({"tokenizer_class":"TikTokenTokenizer","bos_token":"[BOS]","eos_token":"[EOS]",)"
       R"("added_tokens_decoder":{"280":{"content":"[BOS]","special":true},)"
       R"("281":{"content":"[EOS]","special":true},)"
       R"("283":{"content":"<think>","special":false}}})"}};
  Convert(llama.Write(dir), dir.Path("out"), {});
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  const auto tokenizer = tokenizer::Tokenizer::Create(file);
  const auto ids = [&](std::string_view text) {
    return tokenizer->Encode(text, {.add_special = true, .parse_special = true});
  };
  for (const std::string& word : kWords) {
    std::vector<tokenizer::TokenId> expected;
    for (const std::string& part : ranked.Split(word))
      expected.push_back(static_cast<tokenizer::TokenId>(ranked.ranks.at(part)));
    EXPECT_EQ(ids(word), expected) << word;
  }
  const std::vector<tokenizer::TokenId> specials = {280, 283, 282, 281};
  EXPECT_EQ(ids("[BOS]<think><|reserved_token_282|>[EOS]"), specials);
  EXPECT_EQ(file.metadata().GetString("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(file.metadata().GetString("tokenizer.ggml.pre"), "kimi-k2");
  EXPECT_EQ(file.metadata().GetStrings("tokenizer.ggml.merges").size(), 24u);
  EXPECT_EQ(tokenizer->vocab().bos, 280);
  EXPECT_EQ(tokenizer->vocab().eos, 281);
  const std::vector<int64_t> types = file.metadata().GetInts("tokenizer.ggml.token_type");
  EXPECT_EQ(types[279], 1);
  EXPECT_EQ(types[283], 4);  // text, as in folders with tokenizer.json
  EXPECT_EQ(types[535], 3);
  EXPECT_EQ(types[536], 5);

  dir.Write("model/tokenizer_config.json", R"({"tokenizer_class":"Other"})");
  EXPECT_EQ(test::ErrorOf([&] { Convert(dir.Path("model"), dir.Path("out"), {}); }),
            dir.Path("model/tokenizer_config.json") +
                ": tokenizer_class: expected TikTokenTokenizer, found \"Other\"");
}

TEST(ConvertRanks, OddOnesAreRefused) {
  const std::string good = Trained(kWords, 8).Lines();
  const auto error = [](const std::string& text) {
    return test::ErrorOf([&] { ReadTiktoken("m", text); });
  };
  const auto line = [](int n, const std::string& found) {
    return "m: line " + std::to_string(n) + ": expected a token in base64 and its rank, " +
           std::to_string(n - 1) + ", found \"" + found + "\"";
  };
  EXPECT_EQ(error(good), "");
  EXPECT_EQ(error(""), "m: expected a token for each byte");
  EXPECT_EQ(error(good.substr(good.find('\n') + 1)), line(1, "/g== 1"));
  for (const char* odd : {"", "YQ==", "YQ== ", " 264", "YQ== 265", "YQ== -1", "YQ== 264 ", "Y 264",
                          "YQ 264", "Y!== 264", "YQ!! 264", "YQ=A 264", "YQ==\t264", "\xff 264"}) {
    EXPECT_TRUE(error(good + odd + "\n").starts_with("m: line 265: expected a token")) << odd;
  }
  const std::string longest(tokenizer::kMaxTokenBytes, 'a');
  EXPECT_EQ(error(good + test::Base64(longest) + " 264"), "");
  EXPECT_TRUE(
      error(good + test::Base64(longest + "a") + " 264").starts_with("m: expected at most"));
  const std::string spelled(tokenizer::kMaxTokenBytes / 2 + 1, '\xff');  // two bytes each
  EXPECT_TRUE(error(good + test::Base64(spelled) + " 264").ends_with("found more at rank 264"));
  for (size_t n = 0; n < good.size(); n += 11) {
    const std::string found = error(good.substr(0, n));
    EXPECT_TRUE(found.empty() || found.starts_with("m: ")) << n;
  }
}

}  // namespace
}  // namespace convert
