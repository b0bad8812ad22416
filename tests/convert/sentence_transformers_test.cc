// Sentence Transformers' files beside a model: the written file keeps each setting, or Convert()
// refuses the setting by name.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "convert/convert.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/embedder.h"
#include "engine/session/embedder_input.h"
#include "engine/session/encode.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/temp_dir.h"

namespace convert {
namespace {

using test::TempDir;

const std::string kPooling = "1_Pooling/config.json", kModules = "modules.json",
                  kPrompts = "config_sentence_transformers.json",
                  kBert = "sentence_bert_config.json";
const std::string kTransformer =
    R"([{"path":"","type":"sentence_transformers.models.Transformer"},)"
    R"({"path":"1_Pooling","type":"a.b.Pooling"})";
const std::string kNormalize = R"(,{"path":"2_Normalize","type":"c.Normalize"}])";

using Files = std::vector<std::pair<std::string, std::string>>;

// Converts a folder with these files and loads the model.
engine::Model Converted(const TempDir& dir, const Files& files) {
  test::HfLlama llama;
  const std::string folder = llama.Write(dir);
  std::filesystem::create_directory(folder + "/1_Pooling");
  for (const auto& [name, text] : files) {
    dir.Write(folder.substr(dir.Path("").size()) + "/" + name, text);
  }
  Convert(folder, dir.Path("out.gguf"), {});
  return engine::Model::Load(dir.Path("out.gguf"));
}
std::string ErrorOf(const Files& files) {
  const TempDir dir;
  const std::string what = test::ErrorOf([&] { Converted(dir, files); });
  const std::string root = dir.Path("");
  return what.starts_with(root) ? what.substr(what.find('/', root.size() + 1) + 1) : what;
}

std::vector<float> Vector(const engine::Model& model, const std::vector<int>& ids) {
  engine::Embedder embedder(model, {.n_threads = 1});
  std::vector<float> all;
  embedder.Embed({&ids, 1}, [&](size_t, size_t, std::span<const float> row) {
    all.assign(row.begin(), row.end());
    return true;
  });
  return all;
}
double Length(const std::vector<float>& x) {
  double squares = 0;
  for (const float v : x) squares += double{v} * double{v};
  return std::sqrt(squares);
}

TEST(SentenceTransformers, PoolingIsFollowed) {
  const auto pooling = [](const std::string& config) {
    const TempDir dir;
    return Converted(dir, {{kPooling, config}, {kModules, kTransformer + kNormalize}})
        .config.pooling;
  };
  EXPECT_EQ(pooling(R"({"pooling_mode_cls_token":true})"), engine::Pooling::kFirst);
  EXPECT_EQ(pooling(R"({"pooling_mode_lasttoken":true,"pooling_mode_mean_tokens":false})"),
            engine::Pooling::kLast);
  EXPECT_EQ(pooling(R"({"pooling_mode":"mean","word_embedding_dimension":32})"),
            engine::Pooling::kMean);
  EXPECT_EQ(pooling(R"({"pooling_mode_mean_sqrt_len_tokens":true})"), engine::Pooling::kMean);
  EXPECT_EQ(pooling("{}"), engine::Pooling::kMean);  // the library's default
}

TEST(SentenceTransformers, LengthsPromptsAndTheLongestTextAreFollowed) {
  const TempDir dir;
  const std::string mean = R"({"pooling_mode_mean_tokens":true})";
  const engine::Model plain = Converted(dir, {{kPooling, mean}});
  const std::vector<float> unit = Vector(plain, {5, 6, 7});
  EXPECT_NEAR(Length(unit), 1, 1e-6);
  EXPECT_EQ(engine::PromptOf(plain), "");
  const TempDir other;
  const engine::Model model = Converted(
      other, {{kPooling, mean},
              {kModules, kTransformer + "]"},
              {kPrompts, R"({"prompts":{"query":"ask: ","document":""},)"
                         R"("default_prompt_name":"query","similarity_fn_name":"cosine"})"},
              {kBert, R"({"max_seq_length":9,"do_lower_case":false})"}});
  EXPECT_EQ(engine::PromptOf(model), "ask: ");
  EXPECT_EQ(engine::PromptOf(model, "document"), "");
  EXPECT_EQ(engine::PromptOf(model, ""), "");
  EXPECT_EQ(test::ErrorOf<engine::Error>([&] { engine::PromptOf(model, "code"); }),
            "this model has no prompt \"code\"; there are query, document");
  EXPECT_EQ(engine::Embedder(model, {}).capacity(), 9u);
  EXPECT_EQ(engine::Embedder(plain, {}).capacity(), 64u);
  const std::vector<float> own = Vector(model, {5, 6, 7});  // not divided by its length
  EXPECT_GT(std::abs(Length(own) - 1), 0.01);
  for (size_t i = 0; i < unit.size(); ++i) EXPECT_NEAR(own[i] / Length(own), unit[i], 1e-6);
}

TEST(SentenceTransformers, WhatFilesCannotSayIsRefused) {
  const auto pooling = [](const std::string& config) { return ErrorOf({{kPooling, config}}); };
  EXPECT_EQ(pooling(R"({"pooling_mode_max_tokens":true})"),
            "1_Pooling/config.json: pooling_mode_max_tokens: expected pooling by mean, cls or "
            "lasttoken, as files can say");
  EXPECT_EQ(pooling(R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true})"),
            "1_Pooling/config.json: pooling_mode_mean_tokens: expected one way of pooling, found "
            "pooling_mode_cls_token, too");
  EXPECT_EQ(pooling(R"({"pooling_mode_mean_tokens":true,"word_embedding_dimension":48})"),
            "1_Pooling/config.json: word_embedding_dimension: expected the model's hidden_size 32");
  EXPECT_EQ(pooling(R"({"pooling_mode_mean_tokens":true,"power":2})"),
            "1_Pooling/config.json: power: this field is not known: its vectors might be wrong");
  EXPECT_EQ(ErrorOf({{kPooling, "{}"}, {kModules, kTransformer + R"(,{"type":"a.LSTM"}])"}}),
            "modules.json: type: expected Transformer, Pooling, Dense and Normalize in this order, "
            "found \"a.LSTM\"");
  EXPECT_EQ(
      ErrorOf({{kPooling, "{}"}, {kPrompts, R"({"default_prompt_name":"query"})"}}),
      "config_sentence_transformers.json: default_prompt_name: expected one of prompts, found "
      "\"query\"");
  EXPECT_EQ(ErrorOf({{kPooling, R"({"include_prompt":false})"},
                     {kPrompts, R"({"prompts":{"query":"ask: "}})"}}),
            "config_sentence_transformers.json: prompts: expected none, since pooling leaves them "
            "out (include_prompt)");
  EXPECT_EQ(ErrorOf({{kPooling, "{}"}, {kBert, R"({"do_lower_case":true})"}}),
            "sentence_bert_config.json: do_lower_case: expected false, since the tokenizer's files "
            "do not say so");
}

}  // namespace
}  // namespace convert
