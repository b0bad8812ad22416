// Reading ahead changes no bit of a model's output: with right, wrong and mixed drafts, in every
// family, whatever else the session does.
#include "engine/draft/speculation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/draft/nextn.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/generate.h"
#include "engine/session/model_drafter.h"
#include "engine/session/session.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr size_t kPrompt = 12;

std::vector<TokenId> Prompt(const Model& model) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < kPrompt; ++i) {
    ids.push_back(static_cast<TokenId>(i * i * 7 % model.tokenizer->vocab().size()));
  }
  return ids;
}

// Knows the text, and drafts it, except for some tokens.
class Oracle : public Drafter {
 public:
  Oracle(std::vector<TokenId> text, double right) : text_(std::move(text)), right_(right) {}
  std::optional<size_t> FindDrafts(std::span<const TokenId>) override { return 0; }
  void Draft(std::span<const TokenId> text, size_t n, std::vector<TokenId>& drafts) override {
    for (size_t i = text.size(); i < std::min(text.size() + n, text_.size()); ++i) {
      const bool is_right = std::uniform_real_distribution<double>(0, 1)(random_) < right_;
      drafts.push_back(is_right ? text_[i] : (text_[i] + 1) % 30);
    }
  }

 private:
  std::vector<TokenId> text_;
  double right_;
  std::mt19937_64 random_;
};

// A session's text, and the logits that it sampled from.
struct Written {
  std::vector<TokenId> text;  // with the prompt
  std::vector<std::vector<float>> logits;
  DraftCounts counts;
};

Written Write(const Model& model, const SessionOptions& options, size_t n_tokens) {
  Session session(model, options);
  session.Prefill(Prompt(model));
  Written written;
  for (size_t i = 0; i < n_tokens; ++i) {
    written.logits.emplace_back(session.logits().begin(), session.logits().end());
    session.Decode(session.Sample());
  }
  written.text.assign(session.tokens().begin(), session.tokens().end());
  if (session.speculation() != nullptr) written.counts = session.speculation()->counts();
  return written;
}

SessionOptions DraftedOptions(kernels::KvTypes kv, int n_threads, float temperature) {
  SessionOptions options;
  options.context = 512;
  options.kv_type = kv;
  options.n_threads = n_threads;
  options.sampling.seed = 7;
  options.sampling.temperature = temperature;
  options.sampling.repeat_penalty = 1.1f;
  return options;
}

DraftOptions Drafts(std::shared_ptr<Drafter> own, size_t n) {
  return {.on = true, .fixed = n, .lookup = false, .nextn = false, .own = std::move(own)};
}

class SpeculationTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(SpeculationTest, WritesTheSameWithDraftsThatAreRightAndWrong) {
  const Model model = Model::Load(GetParam());
  for (const auto& [kv, n_threads] :
       {std::pair(kernels::KvType::kF16, 2), std::pair(kernels::KvType::kQ8_0, 1),
        std::pair(kernels::KvType::kQ4_0, 1)}) {
    const SessionOptions plain = DraftedOptions(kv, n_threads, /*temperature=*/0.8f);
    const Written expected = Write(model, plain, 80);
    for (const double right : {0.0, 0.8, 1.0}) {
      for (const size_t n : {1u, 4u, 15u}) {
        SessionOptions with = plain;
        with.draft = Drafts(std::make_shared<Oracle>(expected.text, right), n);
        const Written written = Write(model, with, 80);
        ASSERT_EQ(written.text, expected.text) << right << " " << n;
        ASSERT_EQ(written.logits, expected.logits) << right << " " << n;
        if (right == 1) {  // the last pass may read beyond the end
          EXPECT_LE(written.counts.n_passes, 1 + 79 / (n + 1) + 1);
        }
        if (right == 0) {
          EXPECT_EQ(written.counts.accepted, 0u);
        }
      }
    }
  }
}

TEST_P(SpeculationTest, GoesBackWithTokensReadAhead) {
  const Model model = Model::Load(GetParam());
  const SessionOptions plain = DraftedOptions(kernels::KvType::kF16, 1, /*temperature=*/0);
  const Written expected = Write(model, plain, 60);
  SessionOptions with = plain;
  with.draft = Drafts(std::make_shared<Oracle>(expected.text, 0.8), 9);
  Session session(model, with), reference(model, plain);
  for (Session* const s : {&session, &reference}) {
    s->Prefill(std::span(expected.text).first(kPrompt));
    s->Bookmark();
    for (int i = 0; i < 25; ++i) s->Decode(s->Sample());
    s->Bookmark();
    for (int i = 0; i < 6; ++i) s->Decode(s->Sample());
  }
  ASSERT_TRUE(std::ranges::equal(session.logits(), reference.logits()));
  // Back to a bookmark, back to a position without one, and on with another text.
  for (const size_t position : {kPrompt + 25, kPrompt + 20, kPrompt}) {
    const size_t reached = session.Rewind(position);
    ASSERT_EQ(reached, reference.Rewind(position));
    ASSERT_EQ(session.has_logits(), reference.has_logits());
    for (Session* const s : {&session, &reference}) {
      if (!s->has_logits()) {
        const std::vector<TokenId> other = {5, 6, 7, 5, 6, 7, 5};
        s->Prefill(other);
      }
      for (int i = 0; i < 12; ++i) s->Decode(s->Sample());
    }
    ASSERT_TRUE(std::ranges::equal(session.tokens(), reference.tokens()));
    ASSERT_TRUE(std::ranges::equal(session.logits(), reference.logits()));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SpeculationTest,
                         testing::ValuesIn(test::SmallModels({"families", "more", "hybrids"},
                                                             UINTMAX_MAX)),
                         [](const auto& tested) { return test::TestName(tested.param.stem()); });

Model Tiny() { return Model::Load(test::DataPath("families") / "smollm3.gguf"); }

// A slow drafter that is always wrong.
class Slow : public Drafter {
 public:
  std::optional<size_t> FindDrafts(std::span<const TokenId>) override { return 0; }
  void Draft(std::span<const TokenId>, size_t, std::vector<TokenId>& drafts) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    drafts.push_back(1);
  }
};

TEST(Speculation, TheGainIsByTheClock) {
  const Model model = Tiny();
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
  options.draft = Drafts(std::make_shared<Slow>(), 1);
  const DraftCounts fixed = Write(model, options, 20).counts;
  EXPECT_GT(fixed.seconds, 0.019);
  EXPECT_FALSE(fixed.Gain());  // only the first pass had no drafts
  options.draft.fixed = {};    // in the first moments the model does not draft
  const DraftCounts counts = Write(model, options, 60).counts;
  ASSERT_TRUE(counts.Gain());
  EXPECT_LE(*counts.Gain(), 1);
}

TEST(Speculation, ReadsAheadUpToTheEndOfTheContext) {
  const Model model = Tiny();
  SessionOptions plain = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
  plain.context = 64;
  const Written expected = Write(model, plain, 64 - kPrompt);
  plain.draft = Drafts(std::make_shared<Oracle>(expected.text, 1.0), 15);
  EXPECT_EQ(Write(model, plain, 64 - kPrompt).text, expected.text);
}

TEST(Speculation, ReadsAheadNoMoreThanABatchHolds) {
  const Model model = Tiny();
  SessionOptions plain = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
  plain.batch = 3;
  const Written expected = Write(model, plain, 50);
  plain.draft = Drafts(std::make_shared<Oracle>(expected.text, 1.0), 15);
  const Written written = Write(model, plain, 50);
  EXPECT_EQ(written.text, expected.text);
  EXPECT_EQ(written.counts.n_passes, 1u + (49 + 2) / 3);  // the first reads one token
}

TEST(Speculation, CountsWhatWasReadAhead) {
  const Model model = Tiny();
  SessionOptions plain = DraftedOptions(kernels::KvType::kF16, 1, 0.0f);
  const Written expected = Write(model, plain, 40);
  plain.draft = Drafts(std::make_shared<Oracle>(expected.text, 1.0), 3);
  const DraftCounts counts = Write(model, plain, 40).counts;
  EXPECT_EQ(counts.n_tokens, 40u);
  EXPECT_EQ(counts.n_passes, 11u);  // the first reads one token, the last one 4 + 4 * 9 + 3
  EXPECT_EQ(counts.accepted, 29u);
  EXPECT_EQ(counts.drafted, 29u);
  EXPECT_GT(counts.seconds, 0);
}

// Forced tokens come by Prefill(), which does not read tokens again that were read ahead.
TEST(Speculation, PrefillTakesWhatWasReadAhead) {
  const Model model = Tiny();
  SessionOptions plain = DraftedOptions(kernels::KvType::kF16, 1, 0.0f);
  const Written expected = Write(model, plain, 20);
  const auto text = std::span(expected.text);
  for (const size_t n_read : {1u, 3u, 5u}) {  // of three drafts
    Session alone(model, plain);
    alone.Prefill(text.first(kPrompt + 2 + n_read));
    plain.draft = Drafts(std::make_shared<Oracle>(expected.text, 1.0), 3);
    Session session(model, plain);
    session.Prefill(text.first(kPrompt));
    session.Decode(text[kPrompt]);
    session.Decode(text[kPrompt + 1]);
    const size_t n_passes = session.n_passes();
    EXPECT_TRUE(session.Prefill(text.subspan(kPrompt + 2, n_read)));
    EXPECT_EQ(session.n_passes() - n_passes, n_read > 3 ? 1u : 0u);
    EXPECT_TRUE(std::ranges::equal(session.tokens(), text.first(kPrompt + 2 + n_read)));
    EXPECT_EQ(session.Sample(), alone.Sample());
    session.Decode(text[kPrompt + 2 + n_read]);
    EXPECT_EQ(session.Sample(), text[kPrompt + 3 + n_read]);
    plain.draft = {};
  }
}

TEST(Speculation, GenerateTellsWhatItBrought) {
  const Model model = Model::Load(test::DataPath("tiny") / "llama.gguf");
  Session session(model, {.sampling = {.temperature = 0}, .draft = {.on = true}});
  const std::vector<TokenId> prompt = {1, 5, 6, 7};
  GenerateOptions generate = {.max_tokens = 30};
  const GenerateResult result = Generate(session, prompt, generate, [](auto) { return true; });
  EXPECT_EQ(result.drafts.n_tokens, result.n_decoded);
  EXPECT_LE(result.drafts.n_passes, result.drafts.n_tokens);
}

// A draft model that is the model itself is always right.
TEST(ModelDrafter, DraftsWhatItsModelFindsMostLikely) {
  const Model model = Tiny();
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.0f);
  options.sampling.repeat_penalty = 1;
  const Written expected = Write(model, options, 60);
  options.draft = {.on = true, .fixed = 4, .lookup = false, .model = &model};
  const Written written = Write(model, options, 60);
  EXPECT_EQ(written.text, expected.text);
  EXPECT_EQ(written.logits, expected.logits);
  EXPECT_EQ(written.counts.n_passes, 13u);  // the first reads one token
  EXPECT_EQ(written.counts.accepted, 47u);
}

// The small model needs time for a long text, too: Ctrl-C ends its reading, and the read part
// stays.
TEST(ModelDrafter, StopsReadingWhereItIsInterrupted) {
  const Model model = Tiny();
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.0f);
  const Written expected = Write(model, options, 60);
  options.batch = 8;
  size_t n_asked = 0;
  bool is_on = true;
  options.draft.should_stop = [&] { return is_on && ++n_asked == 2; };
  ModelDrafter drafter(model, model, options);
  std::vector<TokenId> drafts;
  drafter.Draft(expected.text, 3, drafts);
  EXPECT_EQ(n_asked, 2u);
  EXPECT_TRUE(drafts.empty());
  is_on = false;
  drafter.Draft(std::span(expected.text).first(50), 3, drafts);
  EXPECT_EQ(drafts.size(), 3u);
}

TEST(ModelDrafter, FollowsATextThatGoesOnOtherwise) {
  const Model model = Tiny();
  const Model other = Model::Load(test::DataPath("families") / "qwen3moe.gguf");
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
  const Written expected = Write(model, options, 60);
  ModelDrafter drafter(model, other, options);
  Session alone(other, DraftedOptions(kernels::KvType::kF16, 1, 0.0f));
  for (const size_t n : {20u, 25u, 22u, 40u, 13u}) {  // back and forth
    const auto text = std::span(expected.text).first(n);
    ASSERT_TRUE(drafter.FindDrafts(text));
    std::vector<TokenId> drafts;
    drafter.Draft(text, 3, drafts);
    alone.Rewind(0);
    alone.Prefill(text);
    std::vector<TokenId> likely;
    for (int i = 0; i < 3; ++i) {
      const auto logits = alone.logits();
      likely.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
      alone.Decode(likely.back());
    }
    EXPECT_EQ(drafts, likely) << n;
  }
}

// The text has tokens that the small model lacks: it drafts nothing after them.
TEST(ModelDrafter, MayKnowFewerTokens) {
  const Model model = Tiny();
  const Model fewer = Model::Load(test::DataPath("hybrids") / "gemma3n.gguf");
  ASSERT_LT(fewer.config.vocab_size, model.tokenizer->vocab().size());
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
  const Written expected = Write(model, options, 80);
  ASSERT_GE(static_cast<size_t>(*std::ranges::max_element(expected.text)), fewer.config.vocab_size);
  options.draft = {.on = true, .fixed = 4, .lookup = false, .model = &fewer};
  EXPECT_EQ(Write(model, options, 80).text, expected.text);
}

// A drafter that gives invalid drafts, or fails.
class Unruly : public Drafter {
 public:
  explicit Unruly(bool throws) : throws_(throws) {}
  std::optional<size_t> FindDrafts(std::span<const TokenId>) override { return 0; }
  void Draft(std::span<const TokenId>, size_t, std::vector<TokenId>& drafts) override {
    if (throws_) throw Error("no drafts today");
    drafts = {3, 4, -1, 1'000'000};
    drafts.resize(100, 5);
  }

 private:
  bool throws_;
};

TEST(Speculation, SurvivesDraftersThatGiveTooMuch) {
  const Model model = Tiny();
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
  const Written expected = Write(model, options, 40);
  options.draft = Drafts(std::make_shared<Unruly>(false), 15);
  EXPECT_EQ(Write(model, options, 40).text, expected.text);
}

TEST(Speculation, WhereADrafterFailsTheTokenIsNotRead) {
  const Model model = Tiny();
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.0f);
  options.draft = Drafts(std::make_shared<Unruly>(true), 3);
  Session session(model, options);
  session.Prefill(Prompt(model));
  session.Decode(session.Sample());  // without drafts, to measure
  const TokenId id = session.Sample();
  EXPECT_THROW(session.Decode(id), Error);
  EXPECT_EQ(session.position(), kPrompt + 1);
  EXPECT_TRUE(session.has_logits());
  EXPECT_EQ(session.Sample(), id);
}

TEST(ModelDrafter, RefusesAnotherVocabulary) {
  const Model model = Model::Load(test::DataPath("hybrids") / "gemma4.gguf");
  const Model other = Model::Load(test::DataPath("hybrids") / "deepseek2.gguf");
  EXPECT_TRUE(test::Has(test::ErrorOf<Error>([&] { CheckSameVocabulary(model, other); }),
                        "the draft model has another vocabulary: token 3"));
}

constexpr const char* kWithBlocks[] = {"bailingmoe2", "exaone-moe", "glm4moe", "mimo2-qkv",
                                       "step35"};

void ExpectBlockEqualsTheReference(const std::filesystem::path& path) {
  SCOPED_TRACE(path);
  const Model model = Model::Load(path);
  std::ifstream in(path.parent_path() / "ids.txt");
  const std::vector<TokenId> ids{std::istream_iterator<TokenId>(in),
                                 std::istream_iterator<TokenId>()};
  const size_t n = ids.size(), width = model.config.embedding_length;
  const SequenceState::Size size = {.capacity = 64, .batch = 64, .kv_type = kernels::KvType::kF32};
  kernels::ThreadPool pool(2);
  SequenceState state(model.config, size);
  Scratch scratch(model.config, n, 2);
  const auto ropes = MakeRopes(model.config, model.weights.rope_freqs);
  const SequenceSlice text = {ropes, state, 0, n};
  pool.Run([&] { Forward(model, ids, {&text, 1}, scratch, pool); });
  Nextn nextn(model, size, 2);
  std::vector<float> hidden(n * width, 0.0f);
  for (size_t i = 0; i + 1 < n; ++i) {
    nextn.Hidden(scratch.x + i * width, hidden.data() + (i + 1) * width);
  }
  std::vector<float> logits(n * model.config.vocab_size);
  nextn.Forward(ids, hidden.data(), 0, pool);
  nextn.Logits(0, n, pool, logits.data());
  const std::string expected_of = path.stem().string() + ".nextn.f32";
  EXPECT_LT(test::Nmse(logits, test::ReadFloats(path.parent_path() / expected_of)), 1e-9);
  // And in two batches.
  nextn.Forward(std::span(ids).first(20), hidden.data(), 0, pool);
  nextn.Forward(std::span(ids).subspan(20), hidden.data() + 20 * width, 20, pool);
  std::vector<float> rest((n - 20) * model.config.vocab_size);
  nextn.Logits(0, n - 20, pool, rest.data());
  const std::vector<float> expected(
      logits.begin() + static_cast<ptrdiff_t>(20 * model.config.vocab_size), logits.end());
  EXPECT_LT(test::Nmse(rest, expected), 1e-12);
}

// Logits of the block after each token of the golden text, from the hidden states of the layers.
TEST(Nextn, EqualsTheReference) {
  for (const std::string name : kWithBlocks) {
    ExpectBlockEqualsTheReference(test::DataPath("more") / (name + ".gguf"));
  }
  const std::filesystem::path golden = test::SharedPath("golden/hybrids/qwen35-mtp.gguf");
  if (!golden.empty()) ExpectBlockEqualsTheReference(golden);
}

TEST(Nextn, ChangesNoTextInAnyFamily) {
  for (const std::string name : kWithBlocks) {
    SCOPED_TRACE(name);
    const Model model = Model::Load(test::DataPath("more") / (name + ".gguf"));
    SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
    const Written expected = Write(model, options, 60);
    options.draft = {.on = true, .fixed = 3, .lookup = false, .nextn = true};
    const Written written = Write(model, options, 60);
    EXPECT_EQ(written.text, expected.text);
    EXPECT_EQ(written.logits, expected.logits);
    EXPECT_GT(written.counts.drafted, 0u);
  }
}

TEST(Nextn, ChangesNoTextAndDraftsByTheHiddenStates) {
  const Model model = Model::Load(test::DataPath("hybrids") / "qwen35-mtp.gguf");
  SessionOptions options = DraftedOptions(kernels::KvType::kF16, 1, 0.8f);
  const Written expected = Write(model, options, 150);
  for (const size_t n : {1u, 3u, 15u}) {
    options.draft = {.on = true, .fixed = n, .lookup = false, .nextn = true};
    const Written written = Write(model, options, 150);
    EXPECT_EQ(written.text, expected.text);
    EXPECT_EQ(written.logits, expected.logits);
    EXPECT_GT(written.counts.drafted, 0u);
  }
}

}  // namespace
}  // namespace engine
