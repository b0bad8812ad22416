// A context that grows: the text is the same as in a context of the final size.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "engine/session/session_file.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr size_t kStart = 24, kMaxCapacity = 320;

SessionOptions Options(bool grows, kernels::KvTypes type = kernels::KvType::kF16) {
  SessionOptions options = {
      .context = grows ? kStart : kMaxCapacity, .n_threads = 1, .kv_type = type};
  options.max_context = kMaxCapacity;
  options.batch = 64;
  options.sampling.seed = 5;
  options.sampling.temperature = 1;
  options.draft.on = true;
  return options;
}

std::vector<TokenId> LongPrompt(const Model& model, size_t n) {
  std::vector<TokenId> ids(n);
  for (size_t i = 0; i < n; ++i)
    ids[i] = static_cast<TokenId>(3 + i * i % (model.tokenizer->vocab().size() - 3));
  return ids;
}

// Two prompts with generated tokens after each, which grow the state in both ways; and a rewind.
// Returns the logits after each part.
std::vector<std::vector<float>> LogitsOfParts(Session& session) {
  const std::vector<TokenId> ids = LongPrompt(session.model(), 110);
  std::vector<std::vector<float>> all;
  const auto generate = [&](size_t n) {
    for (size_t i = 0; i < n; ++i) session.Decode(session.Sample());
    all.emplace_back(session.logits().begin(), session.logits().end());
  };
  session.Prefill(std::span(ids).first(20));
  generate(40);
  session.Bookmark();
  session.Prefill(ids);
  generate(20);
  session.Prefill(std::span(ids).subspan(session.RewindToCommon(ids)));
  generate(100);
  return all;
}

class GrowthInFamilies : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GrowthInFamilies, ChangesNoBit) {
  const Model model = Model::Load(GetParam());
  for (const kernels::KvTypes type : {kernels::KvType::kF16, kernels::KvType::kQ8_0,
                                      kernels::KvType::kQ4_0, kernels::KvType::kF32}) {
    Session fixed(model, Options(false, type)), growing(model, Options(true, type));
    EXPECT_EQ(growing.state().capacity(), kStart);
    EXPECT_EQ(LogitsOfParts(growing), LogitsOfParts(fixed));
    EXPECT_EQ(growing.capacity(), kMaxCapacity);
    EXPECT_GT(growing.state().capacity(), 200u);
    EXPECT_TRUE(std::ranges::equal(growing.tokens(), fixed.tokens()));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GrowthInFamilies, testing::ValuesIn([] {
                           std::vector<std::filesystem::path> models;
                           for (const char* const name :
                                {"tiny/llama", "families/gemma3", "families/gpt-oss",
                                 "families/phi3", "hybrids/qwen35-mtp", "hybrids/jamba",
                                 "hybrids/mamba2", "hybrids/gemma3n", "hybrids/deepseek2",
                                 "hybrids/deepseek2-legacy", "hybrids/lfm2-window",
                                 "hybrids/minimax-01", "more/exaone-moe"})
                             models.push_back(test::DataPath(std::string(name) + ".gguf"));
                           return models;
                         }()),
                         [](const auto& of) { return test::TestName(of.param.stem().string()); });

// Drafts of a second model, whose context grows as well.
TEST(Growth, WithADraftModel) {
  const Model model = Model::Load(test::DataPath("families/gemma3.gguf"));
  SessionOptions options = Options(true);
  options.draft.model = &model;
  options.draft.fixed = 3;
  Session fixed(model, Options(false)), growing(model, options);
  EXPECT_EQ(LogitsOfParts(growing), LogitsOfParts(fixed));
  EXPECT_GT(growing.speculation()->counts().accepted, 20u);
}

TEST(Growth, OfASavedSession) {
  const test::TempDir dir;
  const Model model = Model::Load(test::DataPath("families/gemma3.gguf"));
  const std::vector<TokenId> ids = LongPrompt(model, 100);
  Session first(model, Options(true)), second(model, Options(true));
  first.Prefill(ids);
  SaveSession(first, dir.Path("session"));
  second.Prefill(std::span(ids).first(5));
  LoadSession(second, dir.Path("session"));
  EXPECT_TRUE(std::ranges::equal(second.logits(), first.logits()));
  first.Prefill(ids);
  second.Prefill(ids);
  EXPECT_TRUE(std::ranges::equal(second.logits(), first.logits()));
}

TEST(Growth, StopsWhereMemoryDoes) {
  const Model model = Model::Load(test::DataPath("tiny/llama.gguf"));
  SessionOptions options = Options(true);
  options.max_context = 1'000'000'000;
  options.batch = 16;
  Session session(model, options, {.total = 4'000'000, .available = 4'000'000});
  const size_t room = session.capacity();
  EXPECT_GT(room, 100u);
  EXPECT_LT(room, 100'000u);
  const std::string message =
      test::ErrorOf<TooLong>([&] { session.CheckRoom(std::vector<TokenId>(room + 1)); });
  const std::string trained = std::to_string(model.config.context_length);
  EXPECT_EQ(message, "the text needs " + std::to_string(room + 1) +
                         " tokens, and the context has room for " + std::to_string(room) +
                         " (the model was trained for " + trained + "; there is memory for " +
                         std::to_string(room) + ")");
  EXPECT_TRUE(session.Reserve(room));
  EXPECT_FALSE(session.Reserve(room + 1));
}

TEST(Growth, OfTheDefaultContextGoesAsFarAsTheModelWasTrained) {
  const Model model = Model::Load(test::DataPath("families/phi3-short.gguf"));
  const Session usual(model, {.n_threads = 1}), fixed(model, {.context = 5000, .n_threads = 1});
  EXPECT_EQ(model.config.context_length, 16'384u);
  EXPECT_EQ(usual.capacity(), 16'384u);
  EXPECT_EQ(usual.state().capacity(), 4096u);
  EXPECT_EQ(fixed.capacity(), 5000u);
}

// A long context has other angles from its first token on: a text that has begun with the short
// ones is read again, and a text that is being written ends.
TEST(Growth, WithTwoSetsOfAngles) {
  const Model model = Model::Load(test::DataPath("families/phi3-long.gguf"));
  ASSERT_EQ(model.config.ropes[0].original_context, 16u);
  const std::vector<TokenId> ids = LongPrompt(model, 40);
  SessionOptions options = Options(true);
  options.context = 10;
  Session session(model, options);
  session.Prefill(std::span(ids).first(9));
  EXPECT_FALSE(session.MakeRoom(8));
  EXPECT_TRUE(session.MakeRoom(7));
  EXPECT_EQ(session.RewindToCommon(ids), 0u);
  session.Prefill(ids);
  Session fixed(model, Options(false));
  fixed.Prefill(ids);
  EXPECT_TRUE(std::ranges::equal(session.logits(), fixed.logits()));
  // A file with the long angles switches a session to them.
  const test::TempDir dir;
  SaveSession(session, dir.Path("session"));
  Session other(model, options);
  other.Prefill(std::span(ids).first(3));
  LoadSession(other, dir.Path("session"));
  session.Prefill(ids);
  other.Prefill(ids);
  EXPECT_TRUE(std::ranges::equal(session.logits(), other.logits()));
}

}  // namespace
}  // namespace engine
