// Texts that are generated together have the same bits as alone: in every family, with different
// samplers, lengths and caches, whichever texts join and leave.
#include "engine/session/batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "grammar/constraint.h"
#include "grammar/gbnf.h"
#include "tests/support/allocations.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr size_t kTexts = 7;

// The i-th text: its prompt and its options.
std::vector<TokenId> Prompt(const Model& model, size_t i) {
  std::vector<TokenId> ids;
  for (size_t k = 0; k < 3 + 4 * i; ++k) {
    ids.push_back(static_cast<TokenId>((k * k * 7 + i) % model.tokenizer->vocab().size()));
  }
  return ids;
}

SessionOptions Options(const Model& model, size_t i) {
  constexpr kernels::KvTypes kTypes[] = {kernels::KvType::kF16,
                                         kernels::KvType::kF32,
                                         kernels::KvType::kQ8_0,
                                         kernels::KvType::kQ4_0,
                                         {kernels::KvType::kQ8_0, kernels::KvType::kQ4_0}};
  SessionOptions options;
  options.context = i == 2 ? 20 : 64 + 7 * i;  // one is full before its text ends
  options.kv_type = kTypes[i % std::size(kTypes)];
  for (const LayerPlan& plan : model.config.layers) {
    if (plan.values_in_keys) options.kv_type.v = options.kv_type.k;
  }
  options.n_threads = 1;
  options.sampling.seed = i;
  options.sampling.temperature = i == 1 ? 0 : 0.9f;
  options.sampling.repeat_penalty = i == 3 ? 1.3f : 1.0f;
  options.sampling.mirostat.version = i == 4 ? 2 : 0;
  options.draft.on = i == 5;
  return options;
}

GenerateOptions Limits(size_t i) { return {.max_tokens = static_cast<int64_t>(24 - 3 * i)}; }

struct Written {
  std::string text;
  std::vector<TokenId> tokens, all;
  StopReason reason;
  std::vector<float> logits;
};

Written Of(const Session& session, const GenerateResult& result) {
  return {result.text,
          result.tokens,
          {session.tokens().begin(), session.tokens().end()},
          result.stop_reason,
          {session.logits().begin(), session.logits().end()}};
}

void ExpectEqual(const Written& together, const Written& alone, size_t i) {
  EXPECT_EQ(together.tokens, alone.tokens) << i;
  EXPECT_EQ(together.text, alone.text) << i;
  EXPECT_EQ(together.all, alone.all) << i;
  EXPECT_EQ(together.reason, alone.reason) << i;
  EXPECT_EQ(together.logits, alone.logits) << i;  // bit for bit: they are numbers, and none is -0
}

bool Any(std::string_view) { return true; }

class BatchTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(BatchTest, TextsAreAsAlone) {
  const Model model = Model::Load(GetParam());
  std::vector<Written> alone;
  for (size_t i = 0; i < kTexts; ++i) {
    Session session(model, Options(model, i));
    alone.push_back(Of(session, Generate(session, Prompt(model, i), Limits(i), Any)));
  }
  Batch batch(model, 2);
  std::vector<std::unique_ptr<Session>> sessions;
  size_t n_ended = 0;
  const auto step = [&] {
    for (const Batch::Ended& ended : batch.Step()) {
      ExpectEqual(Of(*sessions[ended.number], ended.result), alone[ended.number], ended.number);
      ++n_ended;
    }
  };
  // Some texts begin together, others join, and the last replaces one that has ended.
  for (size_t i = 0; i < kTexts; ++i) {
    sessions.push_back(std::make_unique<Session>(model, Options(model, i)));
    while (i + 1 == kTexts && n_ended == 0) step();
    EXPECT_EQ(batch.Add(*sessions[i], Prompt(model, i), Limits(i), Any), i);
    if (i > 2) step();
  }
  while (batch.size() > 0) step();
  EXPECT_EQ(n_ended, kTexts);
  EXPECT_TRUE(batch.Step().empty());
}

INSTANTIATE_TEST_SUITE_P(Families, BatchTest, testing::ValuesIn(test::SmallModels()),
                         [](const auto& tested) { return test::TestName(tested.param.stem()); });

Model Tiny() { return Model::Load(test::DataPath("tiny/llama.gguf")); }

// More texts than a pass has tokens. One has a grammar, whose forced tokens it reads by itself.
TEST(Batch, MoreThanAPass) {
  const Model model = Tiny();
  grammar::Constraint constraint(
      std::make_shared<const grammar::Grammar>(
          grammar::ParseGbnf("root ::= [ab] \" forced words, one after the other: \" [0-9]+")),
      *model.tokenizer);
  const auto limits = [&](size_t i) {
    return GenerateOptions{.max_tokens = 30, .constraint = i == 3 ? &constraint : nullptr};
  };
  std::vector<Written> alone;
  constexpr size_t kMany = kMaxDecodeTokens + 4;
  for (size_t i = 0; i < kMany; ++i) {
    Session session(model, Options(model, i % kTexts));
    alone.push_back(Of(session, Generate(session, Prompt(model, 1), limits(i), Any)));
  }
  EXPECT_TRUE(test::Has(alone[3].text, " forced words"));
  Batch batch(model, 1);
  std::vector<std::unique_ptr<Session>> sessions;
  for (size_t i = 0; i < kMany; ++i) {
    sessions.push_back(std::make_unique<Session>(model, Options(model, i % kTexts)));
    batch.Add(*sessions[i], Prompt(model, 1), limits(i), Any);
  }
  size_t n_ended = 0;
  while (batch.size() > 0) {
    for (const Batch::Ended& ended : batch.Step()) {
      ExpectEqual(Of(*sessions[ended.number], ended.result), alone[ended.number], ended.number);
      ++n_ended;
    }
  }
  EXPECT_EQ(n_ended, kMany);
}

// An exception ends only its own text, at any place of the batch.
TEST(Batch, AnExceptionEndsItsText) {
  const Model model = Tiny();
  Session reference(model, Options(model, 0));
  const std::string alone = Generate(reference, Prompt(model, 0), Limits(0), Any).text;
  for (size_t place = 0; place < 3; ++place) {
    Batch batch(model, 1);
    std::vector<std::unique_ptr<Session>> sessions;
    for (size_t i = 0; i < 3; ++i) {
      sessions.push_back(std::make_unique<Session>(model, Options(model, 0)));
      size_t n = 0;
      batch.Add(*sessions[i], Prompt(model, 0), Limits(0), [=](std::string_view) mutable -> bool {
        if (i == place && ++n == 4) throw 7;
        return true;
      });
    }
    size_t n_ended = 0, n_thrown = 0;
    while (batch.size() > 0) {
      try {
        for (const Batch::Ended& ended : batch.Step()) {
          EXPECT_EQ(ended.result.text, alone);
          ++n_ended;
        }
      } catch (int) {
        ++n_thrown;
      }
    }
    EXPECT_EQ(n_ended, 2u);
    EXPECT_EQ(n_thrown, 1u);
  }
}

// A text needs only the memory of its state: the batch has the buffers of a pass.
TEST(Batch, MemoryIsOneStateEach) {
  if (!test::kAllocationsAreCounted) GTEST_SKIP();
  const Model model = Tiny();
  SessionOptions options = Options(model, 0);
  options.context = 256;
  constexpr size_t kSessions = 8, kTokens = 200;
  const std::vector<TokenId> prompt(kTokens, 5);
  Batch batch(model, 1);
  const size_t before = test::CountAllocations().bytes;
  std::vector<std::unique_ptr<Session>> sessions;
  for (size_t i = 0; i < kSessions; ++i) {
    sessions.push_back(std::make_unique<Session>(model, options));
    batch.Add(*sessions[i], prompt, Limits(0), Any);
    if (i == 0) batch.Step();  // alone, with buffers of its own
  }
  batch.Step();
  const size_t each = (test::CountAllocations().bytes - before) / kSessions;
  const size_t state = sessions[0]->state().bytes();
  const size_t scratch = Scratch::BytesFor(model.config, kTokens, 1);
  EXPECT_LT(each, state + scratch / (2 * kSessions));
  EXPECT_GE(each, state);
}

}  // namespace
}  // namespace engine
