// Sessions: reading, rewinding and sampling.
#include "engine/session/session.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"

namespace engine {
namespace {

using tokenizer::TokenId;

class SessionTest : public testing::Test {
 protected:
  static SessionOptions Small(size_t context) { return {.context = context, .n_threads = 1}; }
  std::vector<float> LogitsAfter(Session& session, std::span<const TokenId> ids) {
    session.Prefill(ids);
    return {session.logits().begin(), session.logits().end()};
  }

  const Model model_ = Model::Load(test::DataPath("tiny/llama.gguf"));
};

// Penalties look at the current text, and not at removed tokens.
TEST_F(SessionTest, RewindingTakesPenaltiesBack) {
  SessionOptions options = Small(32);
  options.sampling.temperature = 0;
  options.sampling.presence_penalty = 1000;
  Session session(model_, options);
  const std::vector<TokenId> ids = {1, 300, 12};
  session.Prefill(ids);
  const TokenId next = session.Sample();
  session.Decode(next);
  session.Rewind(2);
  session.Decode(12);
  EXPECT_EQ(session.Sample(), next);
}

template <class Code>
std::string MessageOf(Code code) {
  return test::ErrorOf<Error>(code);
}

TEST_F(SessionTest, ContextIsALimitWithAMessage) {
  Session session(model_, Small(4));
  const std::vector<TokenId> five = {1, 2, 3, 4, 5};
  const std::string message = MessageOf([&] { session.Prefill(five); });
  EXPECT_TRUE(test::Has(message, "needs 5 tokens"));
  EXPECT_TRUE(test::Has(message, "room for 4"));
  EXPECT_EQ(session.position(), 0u);  // nothing was read
  session.Prefill(std::span(five).first(4));
  EXPECT_NE(MessageOf([&] { session.Decode(1); }), "");
}

TEST_F(SessionTest, IdsOutsideTheVocabularyAreRefused) {
  Session session(model_, Small(8));
  for (const TokenId id : {-1, 320, 1 << 30}) {
    EXPECT_TRUE(test::Has(MessageOf([&] { session.Decode(id); }), "not in the vocabulary"));
  }
}

TEST_F(SessionTest, ContextIsAsWishedOrAsTrained) {
  EXPECT_EQ(Session(model_, {.n_threads = 1}).capacity(), model_.config.context_length);
  Config config = model_.config;
  config.context_length = 131'072;
  EXPECT_EQ(ContextOf(config), 4096u);
  EXPECT_EQ(ContextOf(config, 0), 131'072u);
  EXPECT_EQ(ContextOf(config, 200'000), 200'000u);
}

TEST_F(SessionTest, RewindForgets) {
  const std::vector<TokenId> first = {1, 300, 12}, wrong = {45, 99}, right = {7, 263};
  Session session(model_, Small(16));
  session.Prefill(first);
  session.Prefill(wrong);
  session.Rewind(3);
  EXPECT_EQ(session.position(), 3u);
  const std::vector<float> after_rewind = LogitsAfter(session, right);
  Session fresh(model_, Small(16));
  fresh.Prefill(first);
  EXPECT_EQ(after_rewind, LogitsAfter(fresh, right));
}

TEST_F(SessionTest, ProgressCanStopThePrompt) {
  SessionOptions options = Small(16);
  options.batch = 2;
  Session session(model_, options);
  std::vector<size_t> seen;
  const std::vector<TokenId> ids = {1, 2, 3, 4, 5, 6};
  EXPECT_FALSE(session.Prefill(ids, [&](size_t done) {
    if (seen.empty() || done != seen.back()) seen.push_back(done);
    return done < 5;
  }));
  // A batch counts in proportion to its layers.
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(session.position(), 4u);
  EXPECT_FALSE(session.has_logits());
}

TEST_F(SessionTest, WhatProgressThrowsLeavesTheTextAsItWas) {
  Session session(model_, Small(16));
  const std::vector<TokenId> first = {1, 2, 3}, ids = {4, 5, 6};
  session.Prefill(first);
  const auto fail = [](size_t) -> bool { throw std::runtime_error("mine"); };
  EXPECT_THROW(session.Prefill(ids, fail), std::runtime_error);
  Session fresh(model_, Small(16));
  fresh.Prefill(first);
  EXPECT_EQ(LogitsAfter(session, ids), LogitsAfter(fresh, ids));
}

TEST_F(SessionTest, ImpossibleContextIsRefusedInOneLine) {
  const std::string message = MessageOf([&] { Session(model_, Small(size_t{1} << 60)); });
  EXPECT_TRUE(test::Has(message, "one of at most "));
}

TEST_F(SessionTest, SessionsShareAModel) {
  Session a(model_, Small(16)), b(model_, Small(16));
  const std::vector<TokenId> ids = {1, 300, 12};
  const std::vector<float> logits = LogitsAfter(a, ids);
  b.Prefill(std::vector<TokenId>{5});
  b.Rewind(0);
  EXPECT_EQ(logits, LogitsAfter(b, ids));
}

}  // namespace
}  // namespace engine
