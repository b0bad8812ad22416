// Generations that a grammar keeps to what it allows.
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

// A model that would write something else, kept to a grammar.
class ConstrainedModel : public testing::Test {
 protected:
  static GenerateResult Say(const std::vector<test::ScriptedToken>& script, std::string_view gbnf,
                            const std::string& prompt = "Q", const std::string& chat_template = "",
                            int64_t max_tokens = -1) {
    const std::vector<std::byte> bytes = test::ScriptedModel(script, "");
    const Model model = Model::From(gguf::File::Parse("scripted.gguf", bytes));
    Session session(model, {.n_threads = 1, .sampler = {.temperature = 0}});
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
  // A prompt in which it has begun to, and one in which it is not to.
  const std::vector<test::ScriptedToken> rest = {
      {"hm"}, {"</think>", tokenizer::TokenType::kUserDefined}, {"six"}};
  EXPECT_EQ(Say(rest, R"(root ::= "six")", "<think>", "<think></think>").thinking, "hm");
  EXPECT_EQ(Say(rest, R"(root ::= "six")", "<think> </think>", "<think></think>").thinking, "");
}

// A forced stretch longer than a pass: its tokens are the tokenizer's, and the state after it has
// the bits that it has after each of them alone.
TEST(ForcedText, IsReadAsTokenByToken) {
  const Model model = Model::Load(test::kDefault);
  const SessionOptions options = {.n_threads = 1, .sampler = {.temperature = 0}};
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
  const std::vector<TokenId> whole = model.tokenizer->Encode(forced, {.add_bos = false});
  EXPECT_NE(
      std::search(result.tokens.begin(), result.tokens.end(), whole.begin() + 2, whole.end() - 2),
      result.tokens.end());
  other.Prefill(prompt);
  for (size_t i = prompt.size(); i < session.tokens().size(); ++i)
    other.Decode(session.tokens()[i]);
  EXPECT_TRUE(std::ranges::equal(session.logits(), other.logits()));
}

}  // namespace
}  // namespace engine
