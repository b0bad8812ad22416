// The library's public face: that it streams what it returns, ends where it is asked to, and throws
// one type.
#include "engine/pronk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/data.h"

namespace {

const std::string kTiny = test::DataPath("tiny/llama.gguf");
const std::string kDefault = std::string(PRONK_SOURCE_DIR) + "/models/default.gguf";

pronk::Options Greedy() {
  pronk::Options options;
  options.sampling.temperature = 0;
  options.threads = 1;
  return options;
}

pronk::Limits AtMost(int max_tokens) { return {max_tokens, {}}; }

TEST(Library, StreamsWhatItReturns) {
  const pronk::Model model(kDefault);
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_GT(model.context_length(), 0u);
  EXPECT_GT(model.size_in_bytes(), 5'000'000u);
  pronk::Session session(model, Greedy());
  std::string streamed;
  const pronk::Completion completion = session.Complete(
      "Once upon a time", [&](std::string_view text) { streamed += text; }, AtMost(20));
  EXPECT_EQ(completion.text, streamed);
  EXPECT_FALSE(streamed.empty());
  EXPECT_EQ(completion.end, pronk::End::kLength);
  EXPECT_EQ(completion.n_generated, 20u);
  EXPECT_EQ(completion.n_prompt, model.Tokenize("Once upon a time").size());
}

// A text that begins anew is the same; one that goes on reads what is new.
TEST(Library, GoesOnWhereItWas) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const std::string all = session.Complete("Once upon a time", {}, AtMost(20)).text;
  session.Clear();
  EXPECT_EQ(session.Complete("Once upon a time", {}, AtMost(20)).text, all);

  pronk::Session moved = std::move(session);
  EXPECT_EQ(moved.Complete(" And then", {}, AtMost(5)).n_generated, 5u);
}

TEST(Library, EndsWhereItIsAskedTo) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  int n_pieces = 0;
  const auto three = [&](std::string_view) { return ++n_pieces < 3; };
  EXPECT_EQ(session.Complete("Once upon a time", three).end, pronk::End::kCaller);
  EXPECT_EQ(n_pieces, 3);
  session.Clear();
  const pronk::Completion stopped = session.Complete("Once upon a time", {}, {50, {"."}});
  EXPECT_EQ(stopped.end, pronk::End::kStop);
  EXPECT_EQ(stopped.text.find('.'), std::string::npos);
}

TEST(Library, ThrowsOneType) {
  EXPECT_THROW(pronk::Model("no/such.gguf"), pronk::Error);
  EXPECT_THROW(pronk::Model(std::string(PRONK_SOURCE_DIR) + "/README.md"), pronk::Error);
  const pronk::Model model(kTiny);
  pronk::Options options = Greedy();
  options.context = 4;
  pronk::Session session(model, options);
  EXPECT_THROW(session.Complete("a b c d e f g h i j k l m n o p"), pronk::Error);
  options.context = size_t{1} << 60;
  EXPECT_THROW(pronk::Session(model, options), pronk::Error);
}

TEST(Library, SessionsKeepTheirModel) {
  auto model = std::make_unique<pronk::Model>(kTiny);
  pronk::Session session(*model, Greedy());
  pronk::Chat chat(*model, "", Greedy());
  model.reset();
  EXPECT_EQ(session.Complete("Hello", {}, AtMost(3)).n_generated, 3u);
  EXPECT_LE(chat.Say("Hello", {}, AtMost(3)).n_generated, 3u);
}

// Only what is new is read, until the conversation begins anew.
TEST(Library, RemembersAConversation) {
  const pronk::Model model(kDefault);
  pronk::Chat chat(model, "You are kind.", Greedy());
  const pronk::Completion first = chat.Say("What is a goat?", {}, AtMost(8));
  const pronk::Completion second = chat.Say("What is a goat?", {}, AtMost(8));
  EXPECT_LT(second.n_prompt, first.n_prompt + 8 + first.n_generated);
  chat.Clear();
  EXPECT_EQ(chat.Say("What is a goat?", {}, AtMost(8)).text, first.text);
}

TEST(Library, TellsItsVersion) {
  const std::string version = pronk::Version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
}

}  // namespace
