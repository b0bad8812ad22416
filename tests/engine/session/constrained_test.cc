// Generations that follow a grammar.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session/generate.h"
#include "grammar/constraint.h"
#include "grammar/gbnf.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/scripted_model.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// A model that would write something else, with a grammar.
class ConstrainedModel : public testing::Test {
 protected:
  static GenerateResult Say(const std::vector<test::ScriptedToken>& script, std::string_view gbnf,
                            const std::string& prompt = "Q", const std::string& chat_template = "",
                            int64_t max_tokens = -1) {
    const std::vector<std::byte> bytes = test::ScriptedModel(script, "");
    const Model model = Model::From(gguf::File::Parse("scripted.gguf", bytes));
    Session session(model, {.n_threads = 1, .sampling = {.temperature = 0}});
    grammar::Constraint constraint(
        std::make_shared<const grammar::Grammar>(grammar::ParseGbnf(gbnf)), *model.tokenizer);
    GenerateOptions generate = {.max_tokens = max_tokens,
                                .thinking = FindThinkingFormat(chat_template),
                                .constraint = &constraint};
    std::string streamed;
    GenerateResult result =
        Generate(session, model.tokenizer->Encode(prompt), generate, [&](std::string_view text) {
          streamed += text;
          return true;
        });
    EXPECT_EQ(streamed, result.text);
    return result;
  }
};

TEST_F(ConstrainedModel, SaysWhatItMay) {
  const std::vector<test::ScriptedToken> script = {{"Well"}, {" no"}, {"!"}};
  EXPECT_EQ(Say(script, "root ::= .*").text, "Well no!");
  const GenerateResult result = Say(script, R"(root ::= "It is: " ("yes" | " no") "." )");
  EXPECT_TRUE(result.text == "It is: yes." || result.text == "It is:  no.") << result.text;
  EXPECT_EQ(result.stop_reason, StopReason::kEos);
  EXPECT_EQ(Say(script, R"(root ::= "It is long." )", "Q", "", 3).stop_reason, StopReason::kLength);
}

TEST_F(ConstrainedModel, ThinksFreely) {
  const std::vector<test::ScriptedToken> script = {{"<think>", tokenizer::TokenType::kControl},
                                                   {"hm"},
                                                   {"</think>", tokenizer::TokenType::kControl},
                                                   {"nine"}};
  const GenerateResult result = Say(script, R"(root ::= "nine" | "ten")", "Q", "<think></think>");
  EXPECT_EQ(result.thinking, "hm");
  EXPECT_EQ(result.text, "nine");
  // A prompt that has begun the thinking, and a prompt that has ended it.
  const std::vector<test::ScriptedToken> rest = {
      {"hm"}, {"</think>", tokenizer::TokenType::kUserDefined}, {"six"}};
  EXPECT_EQ(Say(rest, R"(root ::= "six")", "<think>", "<think></think>").thinking, "hm");
  EXPECT_EQ(Say(rest, R"(root ::= "six")", "<think> </think>", "<think></think>").thinking, "");
}

// However a text ends, the session has read the whole text, with the logits after its last token.
TEST(ConstrainedText, IsReadToItsEnd) {
  const Model model = Model::Load(test::kDefault);
  const SessionOptions options = {.n_threads = 1, .sampling = {.temperature = 0}};
  const std::vector<TokenId> prompt = model.tokenizer->Encode("Is it good?");
  const auto expect = [&](const char* gbnf, GenerateOptions generate, size_t max_bytes,
                          StopReason reason) {
    grammar::Constraint constraint(
        std::make_shared<const grammar::Grammar>(grammar::ParseGbnf(gbnf)), *model.tokenizer);
    generate.constraint = &constraint;
    Session session(model, options);
    size_t n_bytes = 0;
    const GenerateResult result = Generate(session, prompt, generate, [&](std::string_view text) {
      return (n_bytes += text.size()) < max_bytes;
    });
    EXPECT_EQ(result.stop_reason, reason) << result.text;
    std::vector<TokenId> all = prompt;
    all.insert(all.end(), result.tokens.begin(), result.tokens.end());
    EXPECT_TRUE(std::ranges::equal(session.tokens(), all)) << result.text;
    EXPECT_EQ(result.n_decoded, result.tokens.size());
    Session other(model, options);
    other.Prefill(prompt);
    for (const TokenId id : result.tokens) other.Decode(id);
    EXPECT_TRUE(std::ranges::equal(session.logits(), other.logits())) << result.text;
  };
  constexpr const char *kChoice = R"(root ::= "yes" | "no")",
                       *kForced = R"(root ::= " hello there my friend, how do you do?")";
  expect(kChoice, {}, 99, StopReason::kEos);
  expect(kForced, {}, 99, StopReason::kEos);
  for (const int64_t n : {1, 3, 5}) expect(kForced, {.max_tokens = n}, 99, StopReason::kLength);
  expect(kForced, {}, 12, StopReason::kInterrupted);
  // In a context of two more tokens, the tokens that fit.
  SessionOptions small = options;
  small.context = prompt.size() + 2;
  Session session(model, small);
  grammar::Constraint constraint(
      std::make_shared<const grammar::Grammar>(grammar::ParseGbnf(kForced)), *model.tokenizer);
  const GenerateResult result =
      Generate(session, prompt, {.constraint = &constraint}, [](std::string_view) { return true; });
  EXPECT_EQ(result.stop_reason, StopReason::kContext);
  EXPECT_EQ(session.position(), small.context);
}

// Forced tokens that exceed a pass: they are the tokenizer's, and the state after them has the same
// bits as if each were read alone.
TEST(ForcedText, IsReadAsTokenByToken) {
  const Model model = Model::Load(test::kDefault);
  const SessionOptions options = {.n_threads = 1, .sampling = {.temperature = 0}};
  const std::string forced =
      " a little girl named Lily went to the park with her dog. She saw a big red ball under the "
      "tree, and she was very happy. Then her mom said:";
  grammar::Constraint constraint(std::make_shared<const grammar::Grammar>(grammar::ParseGbnf(
                                     "root ::= [A-Z] [a-z]+ \"" + forced + "\" [ a-z]{20}")),
                                 *model.tokenizer);
  const std::vector<TokenId> prompt = model.tokenizer->Encode("Once upon a time.");
  Session session(model, options), other(model, options);
  const GenerateResult result =
      Generate(session, prompt, {.constraint = &constraint}, [](std::string_view) { return true; });
  EXPECT_TRUE(test::Has(result.text, forced));
  EXPECT_LT(result.n_passes, result.n_decoded - 20);
  // The tokens of the forced part, as the tokenizer splits the whole text.
  const std::vector<TokenId> whole = model.tokenizer->Encode(forced, {.add_special = false});
  EXPECT_NE(
      std::search(result.tokens.begin(), result.tokens.end(), whole.begin() + 2, whole.end() - 2),
      result.tokens.end());
  other.Prefill(prompt);
  for (size_t i = prompt.size(); i < session.tokens().size(); ++i)
    other.Decode(session.tokens()[i]);
  // The last logits are limited to the allowed tokens; the next are not.
  session.Decode(prompt[0]);
  other.Decode(prompt[0]);
  EXPECT_TRUE(std::ranges::equal(session.logits(), other.logits()));
}

// If few tokens are allowed, only their logits are computed, with the same bits.
TEST(FewLogits, AreThoseOfAll) {
  for (const auto& path : test::SmallModels()) {
    const Model model = Model::Load(path);
    if (!model.config.WritesText()) continue;
    const size_t n = model.tokenizer->vocab().size();
    std::vector<uint64_t> allowed((n + 63) / 64);
    for (size_t id = 3; id < n; id += 29) allowed[id / 64] |= uint64_t{1} << id % 64;
    for (const bool drafts : {false, true}) {
      SessionOptions options = {.context = 64, .n_threads = drafts ? 2 : 1};
      options.draft.on = drafts;
      Session few(model, options), all(model, options);
      const std::vector<TokenId> ids = {1, 2, 3, 4, 5, 6, 7, 8};
      few.Prefill(ids);
      all.Prefill(ids);
      for (const size_t n_known : {1, 3}) {
        few.Decode(std::span(ids).first(n_known), {.allowed = allowed});
        all.Decode(std::span(ids).first(n_known), {.allowed = allowed, .all = true});
        const bool only_allowed = ShouldComputeOnlyAllowed(model, allowed);
        EXPECT_EQ(few.has_logits(), !only_allowed) << path;
        for (size_t id = 0; id < n; ++id) {
          if ((allowed[id / 64] >> id % 64 & 1) != 0) {
            EXPECT_EQ(few.logits()[id], all.logits()[id]) << path << id;
          }
        }
      }
      few.CompleteLogits();
      EXPECT_TRUE(few.has_logits());
      EXPECT_TRUE(std::ranges::equal(few.logits(), all.logits())) << path;
    }
  }
}

// All or few logits, with or without drafts after forced tokens: the text is the same.
TEST(FewLogits, ChangeNoText) {
  const Model model = Model::Load(test::kDefault);
  constexpr std::string_view kList =
      R"(root ::= "[" item ("," item){5} "]"
         item ::= "{\"name\": \"" [A-Z] [a-z]{2,6} "\", \"age\": " [0-9]{1,2} ", \"kind\": \"" ("dog" | "cat") "\"}")";
  const std::vector<TokenId> prompt = model.tokenizer->Encode("Once upon a time.");
  std::string expected;
  for (const float temperature : {0.0f, 0.9f}) {
    expected.clear();
    for (const bool drafts : {false, true}) {
      for (const bool all : {true, false}) {
        SessionOptions options = {
            .context = 512, .n_threads = 1, .sampling = {.seed = 3, .temperature = temperature}};
        options.draft.on = drafts;
        if (drafts) options.draft.fixed = 4;
        Session session(model, options);
        grammar::Constraint constraint(
            std::make_shared<const grammar::Grammar>(grammar::ParseGbnf(kList)), *model.tokenizer);
        GenerateOptions generate = {.constraint = &constraint};
        if (all) generate.on_logits = [](std::span<float>) { return true; };
        const GenerateResult result =
            Generate(session, prompt, generate, [](std::string_view) { return true; });
        if (expected.empty()) expected = result.text;
        EXPECT_EQ(result.text, expected);
        EXPECT_TRUE(session.has_logits());
        if (drafts) {  // forced tokens are read together, and drafts after them
          EXPECT_GT(result.drafts.accepted, result.n_generated / 4);
          EXPECT_LT(result.n_passes, result.n_generated * 3 / 4);
        }
      }
    }
    EXPECT_GT(expected.size(), 200u);
  }
}

}  // namespace
}  // namespace engine
