// Vectors and scores of texts, compared with an independent model's: small models of
// tests/data/vectors (reference.py), and models of golden/embeddings if the shared folder exists.
#include "engine/session/embedder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model/family.h"
#include "engine/model/model.h"
#include "engine/session/embedder_input.h"
#include "engine/session/session.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"

namespace engine {
namespace {

using test::Nmse;
using tokenizer::TokenId;

using Texts = std::vector<std::vector<TokenId>>;

struct Golden {
  std::filesystem::path model;
  Texts texts;
  std::vector<float> results;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.model.stem().string(); }

std::vector<Golden> Goldens() {
  std::vector<Golden> goldens;
  for (const auto& folder : {test::DataPath("vectors"), test::SharedPath("golden/embeddings")}) {
    if (folder.empty()) continue;
    Texts texts;
    std::ifstream lines(folder / "ids.txt");
    for (std::string line; std::getline(lines, line);) {
      std::istringstream ids(line);
      texts.emplace_back(std::istream_iterator<TokenId>(ids), std::istream_iterator<TokenId>());
    }
    std::ifstream models(folder / "models.txt");
    for (std::string name, arch, rest; models >> name >> arch && std::getline(models, rest);) {
      const std::filesystem::path path = folder / (name + ".gguf");
      const gguf::File file = gguf::File::Open(path);
      const auto own = file.metadata().GetString("general.architecture");
      if (std::ranges::find(Families(), own, &Family::name) == Families().end()) continue;
      goldens.push_back({path, texts, test::ReadFloats(folder / (name + ".f32"))});
    }
  }
  return goldens;
}

SessionOptions Options(kernels::KvType kv, size_t batch, int threads = 1) {
  return {.batch = batch, .n_threads = threads, .kv_type = kv};
}

std::vector<float> Embedded(const Model& model, const Texts& texts, const SessionOptions& options,
                            std::optional<Pooling> pooling = {}) {
  Embedder embedder(model, options, pooling);
  std::vector<float> all;
  embedder.Embed(texts, [&](size_t first, size_t n, std::span<const float> rows) {
    EXPECT_EQ(first * embedder.width(), all.size());
    EXPECT_EQ(rows.size(), n * embedder.width());
    all.insert(all.end(), rows.begin(), rows.end());
    return true;
  });
  return all;
}

class EmbedderTest : public testing::TestWithParam<Golden> {};

// All texts in a pass; or each text alone, in parts if the model does not see ahead.
TEST_P(EmbedderTest, EqualsTheReference) {
  const auto& [path, texts, expected] = GetParam();
  const Model model = Model::Load(path);
  for (const size_t batch : {512u, 7u, 1u}) {
    SCOPED_TRACE(batch);
    EXPECT_LT(Nmse(Embedded(model, texts, Options(kernels::KvType::kF32, batch)), expected), 1e-9);
    EXPECT_LT(Nmse(Embedded(model, texts, Options(kernels::KvType::kF16, batch)), expected), 1e-4);
  }
}

TEST_P(EmbedderTest, SameBitsForAnyNumberOfThreads) {
  const auto& [path, texts, expected] = GetParam();
  const Model model = Model::Load(path);
  for (const size_t batch : {512u, 1u}) {
    const auto one = Embedded(model, texts, Options(kernels::KvType::kF32, batch, 1));
    for (const int threads : {2, 3}) {
      EXPECT_EQ(Embedded(model, texts, Options(kernels::KvType::kF32, batch, threads)), one);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, EmbedderTest, testing::ValuesIn(Goldens()),
                         [](const auto& tested) {
                           return test::TestName(tested.param.model.stem().string() + "_" +
                                                 std::to_string(tested.index));
                         });

Model Load(const std::string& name) { return Model::Load(test::DataPath(name + ".gguf")); }

TEST(Embedder, RefusesWhatAModelIsNotFor) {
  const Model embed = Load("vectors/qwen3-embed"), rerank = Load("vectors/qwen3-rerank"),
              both_ways = Load("vectors/gemma-embedding"), writes = Load("tiny/llama");
  const auto error = [](const Model& model, std::optional<Pooling> pooling = {}) {
    return test::ErrorOf<Error>([&] { Embedder(model, {}, pooling); });
  };
  EXPECT_EQ(error(embed), "");
  EXPECT_TRUE(test::Has(error(writes), "names no pooling"));
  EXPECT_EQ(error(writes, Pooling::kMean), "");
  EXPECT_TRUE(test::Has(error(rerank, Pooling::kMean), "makes scores, not vectors"));
  EXPECT_TRUE(test::Has(error(embed, Pooling::kRank), "is not a reranker"));
  const auto session = [](const Model& model) {
    return test::ErrorOf<Error>([&] { Session(model, {}); });
  };
  EXPECT_EQ(session(embed), "");
  EXPECT_TRUE(
      test::Has(session(rerank), "which scores texts and cannot generate any: pronk rerank"));
  EXPECT_TRUE(test::Has(session(both_ways), "cannot generate any: pronk embed"));
}

TEST(Encoders, RefuseKeysThatDisagree) {
  const auto error = [](const std::string& name, const std::string& key, int64_t value) {
    gguf::File file = gguf::File::Open(test::DataPath("vectors/" + name + ".gguf"));
    file.metadata().SetInt(key, value);
    return test::ErrorOf([&] { Model::From(std::move(file)); });
  };
  const auto expect = [&](const std::string& name, const std::string& key, int64_t value,
                          const char* says) {
    const std::string found = error(name, key, value);
    EXPECT_TRUE(test::Has(found, key));
    EXPECT_TRUE(test::Has(found, says));
  };
  expect("bert-cls", "tokenizer.ggml.token_type_count", 0, "must not be 0");
  expect("nomic-bert", "nomic-bert.moe_every_n_layers", 2, "from 0 to 0");
  expect("nomic-bert-moe", "nomic-bert-moe.moe_every_n_layers", 1, "not of this period");
  expect("modern-bert", "modern-bert.attention.sliding_window_pattern", 0, "must not be 0");
  expect("gemma-embedding", "gemma-embedding.attention.sliding_window", 0, "must not be 0");
  expect("gemma-embedding", "gemma-embedding.dense_3_feat_in", 7, "expected 20, found 7");
  EXPECT_EQ(error("modern-bert", "modern-bert.attention.sliding_window", 0), "");
  EXPECT_TRUE(test::Has(error("bert-cls", "bert.context_length", 9), "position_embd"));
  EXPECT_TRUE(test::Has(error("bert-cls", "tokenizer.ggml.token_type_count", 9), "token_types"));
}

TEST(Embedder, NamesTheTextThatDoesNotFit) {
  const Model model = Load("vectors/gemma-embedding");
  const auto error = [&](const Texts& texts) {
    return test::ErrorOf<Error>([&] { Embedded(model, texts, {}); });
  };
  EXPECT_EQ(error({std::vector<TokenId>(64, 5)}), "");
  EXPECT_TRUE(test::Has(error({std::vector<TokenId>(65, 5)}), "needs 65 tokens"));
  EXPECT_TRUE(test::Has(error({{}}), "without tokens"));
  EXPECT_TRUE(test::Has(error({{56}}), "56 is not in the vocabulary of 56"));
}

// The state grows with the text, and a text's vector is the same as with a larger state from the
// start.
TEST(Embedder, GrowsWithTheText) {
  for (const std::string name : {"qwen3-embed", "gemma-embedding"}) {
    gguf::File file = gguf::File::Open(test::DataPath("vectors/" + name + ".gguf"));
    const std::string family = name == "qwen3-embed" ? "qwen3" : "gemma-embedding";
    file.metadata().SetInt(family + ".context_length", 6000);
    const Model model = Model::From(std::move(file));
    Texts texts = {{5, 6, 7}, {}, {8, 9}};
    for (int i = 0; i < 4500; ++i) texts[1].push_back(3 + i % 50);
    Embedder embedder(model, {.n_threads = 1});
    EXPECT_EQ(embedder.capacity(), 6000u) << name;
    const std::vector<float> grown = Embedded(model, texts, {.n_threads = 1});
    EXPECT_EQ(Embedded(model, texts, {.context = 6000, .n_threads = 1}), grown) << name;
    EXPECT_TRUE(test::Has(
        test::ErrorOf<Error>([&] { Embedded(model, texts, {.context = 4096, .n_threads = 1}); }),
        "has room for 4096"));
  }
}

// Families with a recurrent state cannot read several texts at once.
TEST(Embedder, ReadsTextsOfRecurrentFamiliesOneByOne) {
  const Model model = Load("hybrids/lfm2");
  const Texts texts = {{1, 5, 9}, {1, 7, 3, 2}};
  const auto together = Embedded(model, texts, Options(kernels::KvType::kF32, 64), Pooling::kLast);
  auto alone = Embedded(model, {texts[0]}, Options(kernels::KvType::kF32, 64), Pooling::kLast);
  const auto second =
      Embedded(model, {texts[1]}, Options(kernels::KvType::kF32, 64), Pooling::kLast);
  alone.insert(alone.end(), second.begin(), second.end());
  EXPECT_EQ(together, alone);
}

TEST(EncodePair, PutsTheTokensOfTheVocabularyBetween) {
  gguf::File file = gguf::File::Open(test::DataPath("tiny/llama.gguf"));
  file.metadata().SetBool("tokenizer.ggml.add_eos_token", true);
  file.metadata().SetBool("tokenizer.ggml.add_sep_token", true);
  file.metadata().SetInt("tokenizer.ggml.seperator_token_id", 5);
  const Model model = Model::From(std::move(file));
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  const auto text = [&](const char* of) {
    return model.tokenizer->Encode(of, {.add_special = false});
  };
  std::vector<TokenId> expected = {vocab.bos};
  const auto query = text("who?"), document = text("she did");
  expected.insert(expected.end(), query.begin(), query.end());
  expected.insert(expected.end(), {vocab.eos, 5});
  expected.insert(expected.end(), document.begin(), document.end());
  expected.push_back(vocab.eos);
  EXPECT_EQ(EncodePair(model, "who?", "she did", 100), expected);
}

// [CLS] query [SEP] document: " a", "b" and " c", "d" are tokens 5, 32 and 7, 34.
TEST(EncodePair, HasASeparatorForBert) {
  const Model model = Load("vectors/bert-rank");
  EXPECT_EQ(EncodePair(model, "ab", "cd", 100), (std::vector<TokenId>{2, 5, 32, 3, 7, 34}));
}

TEST(EncodePair, FillsTheTemplate) {
  gguf::File file = gguf::File::Open(test::DataPath("tiny/llama.gguf"));
  file.metadata().SetString("tokenizer.chat_template.rerank", "<s>{document}|{query}</s>{query");
  const Model model = Model::From(std::move(file));
  const auto special = model.tokenizer->Encode("<s>a</s>|{document}</s>{query",
                                               {.add_special = false, .parse_special = true});
  const auto ids = EncodePair(model, "{document}", "a</s>", 100);
  // A text's spellings of control tokens remain text.
  EXPECT_EQ(model.tokenizer->Decode(ids, true), model.tokenizer->Decode(special, true));
  EXPECT_EQ(std::ranges::count(ids, model.tokenizer->vocab().eos), 1);
  EXPECT_NE(test::ErrorOf<Error>([&] { EncodePair(model, std::string(100000, 'x'), "a", 9); }), "");
}

}  // namespace
}  // namespace engine
