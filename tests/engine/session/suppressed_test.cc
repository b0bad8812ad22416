// Tokens that a file says are never sampled (tokenizer.ggml.suppress_tokens): by a session, by the
// library, whatever the options.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/pronk.h"
#include "engine/session/generate.h"
#include "gguf/writer.h"
#include "tests/support/error_of.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// A model that would begin every text with "Well", and the same model with "Well" suppressed.
class Suppressed : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::byte> bytes = test::ScriptedModel({{"Well"}, {" no"}, {"!"}}, "");
    const gguf::File file = gguf::File::Parse("scripted.gguf", bytes);
    const auto tokenizer = tokenizer::Tokenizer::Create(file);
    while (tokenizer->Piece(++well_, /*special=*/false) != "Well") {
      ASSERT_TRUE(tokenizer->vocab().Has(well_));
    }
    gguf::Writer writer;
    for (const auto& entry : file.metadata().entries()) writer.Add(entry);
    writer.AddArray("tokenizer.ggml.suppress_tokens", std::span<const int32_t>(&well_, 1));
    for (const gguf::TensorView& t : file.tensors()) writer.AddTensor(t);
    writer.WriteFile(path_);
    dir_.Write("bare.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  std::vector<TokenId> Say(const Model& model, const Sampling& sampling) const {
    Session session(model, {.n_threads = 1, .sampling = sampling});
    session.SetSampling(sampling);  // keeps them, too
    GenerateOptions generate = {.max_tokens = 4};
    return Generate(session, model.tokenizer->Encode("Q"), generate, [](auto) { return true; })
        .tokens;
  }

  test::TempDir dir_;
  std::string path_ = dir_.Path("model.gguf");
  TokenId well_ = -1;
};

TEST_F(Suppressed, AreNeverSampled) {
  Sampling greedy = {.temperature = 0};
  const Model bare = Model::Load(dir_.Path("bare.gguf")), model = Model::Load(path_);
  EXPECT_EQ(Say(bare, greedy).at(0), well_);
  EXPECT_EQ(std::ranges::count(Say(model, greedy), well_), 0);
  Sampling biased = {.logit_bias = {{well_, 100.0f}}};
  EXPECT_EQ(Say(bare, biased).at(0), well_);
  for (int64_t seed = 0; seed < 20; ++seed) {
    biased.seed = seed;
    EXPECT_EQ(std::ranges::count(Say(model, biased), well_), 0) << seed;
  }
}

TEST_F(Suppressed, AreNeverSampledByTheLibrary) {
  const auto text_of = [&](const std::string& path) {
    pronk::Session session(pronk::Model(path), {.threads = 1, .sampling = {.temperature = 0}});
    return session.Complete("Q").text;
  };
  EXPECT_EQ(text_of(dir_.Path("bare.gguf")), "Well no!");
  EXPECT_FALSE(test::Has(text_of(path_), "Well"));
}

}  // namespace
}  // namespace engine
