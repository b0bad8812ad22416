// The library's public interface: it streams what it returns, ends where it is asked to, and throws
// one type.
#include "engine/pronk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace {

const std::string kTiny = test::DataPath("tiny/llama.gguf");
const std::string kDefault = test::SourceDir() + "/models/default.gguf";

pronk::Options Greedy() {
  pronk::Options options;
  options.sampling.temperature = 0;
  options.threads = 1;
  return options;
}

pronk::Limits AtMost(int max_tokens) {
  pronk::Limits limits;
  limits.max_tokens = max_tokens;
  return limits;
}

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

// A text that starts over is the same; one that continues reads only what is new.
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
  EXPECT_THROW(pronk::Model(test::SourceDir() + "/README.md"), pronk::Error);
  const pronk::Model model(kTiny);
  pronk::Options options = Greedy();
  options.context = 4;
  pronk::Session session(model, options);
  EXPECT_THROW(session.Complete("a b c d e f g h i j k l m n o p"), pronk::Error);
  options.context = size_t{1} << 60;
  EXPECT_THROW(pronk::Session(model, options), pronk::Error);
}

// A full session has room for no token, not for the default number.
TEST(Library, AFullContextRefusesMore) {
  const pronk::Model model(kDefault);
  pronk::Options options = Greedy();
  options.context = 8;
  pronk::Session session(model, options);
  EXPECT_EQ(session.Complete("Once upon a time").end, pronk::End::kContext);
  EXPECT_EQ(session.Complete("").end, pronk::End::kContext);
  try {
    session.Complete(std::string(1000, 'x'));
    FAIL();
  } catch (const pronk::Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("room for 0 "), std::string::npos)
        << error.what();
  }
}

TEST(Library, SessionsKeepTheirModel) {
  auto model = std::make_unique<pronk::Model>(kTiny);
  pronk::Session session(*model, Greedy());
  pronk::Chat chat(*model, "", Greedy());
  model.reset();
  EXPECT_EQ(session.Complete("Hello", {}, AtMost(3)).n_generated, 3u);
  EXPECT_LE(chat.Say("Hello", {}, AtMost(3)).n_generated, 3u);
}

// Only what is new is read, until the conversation starts over.
TEST(Library, RemembersAConversation) {
  const pronk::Model model(kDefault);
  pronk::Chat chat(model, "You are kind.", Greedy());
  const pronk::Completion first = chat.Say("What is a goat?", {}, AtMost(8));
  const pronk::Completion second = chat.Say("What is a goat?", {}, AtMost(8));
  EXPECT_LT(second.n_prompt, first.n_prompt + 8 + first.n_generated);
  chat.Clear();
  EXPECT_EQ(chat.Say("What is a goat?", {}, AtMost(8)).text, first.text);
}

TEST(Library, WritesWhatAGrammarAllows) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  pronk::Limits limits = AtMost(40);
  limits.grammar = pronk::Grammar::JsonSchema(R"({"properties": {"age": {"type": "integer",
      "minimum": 3, "maximum": 5}}, "required": ["age"], "additionalProperties": false})");
  for (int i = 0; i < 2; ++i) {  // the second uses the cache of the grammar
    const pronk::Completion completion = session.Complete("Once upon a time", {}, limits);
    EXPECT_EQ(completion.end, pronk::End::kText) << completion.text;
    EXPECT_EQ(completion.text.front(), '{');
    EXPECT_EQ(completion.text.back(), '}');
    EXPECT_NE(completion.text.find_first_of("345"), std::string::npos);
    session.Clear();
  }
  limits.grammar = pronk::Grammar::Gbnf(R"(root ::= "yes" | "no")");
  pronk::Chat chat(model, "", Greedy());
  const std::string answer = chat.Say("Is a goat an animal?", {}, limits).text;
  EXPECT_TRUE(answer == "yes" || answer == "no") << answer;
  limits.grammar = {};
  EXPECT_EQ(chat.Say("Is a goat an animal?", {}, limits).text.find("yes"), std::string::npos);
  EXPECT_THROW(pronk::Grammar::JsonSchema(R"({"uniqueItems": true})"), pronk::Error);
  EXPECT_THROW(pronk::Grammar::Gbnf("root ::= other"), pronk::Error);
  limits.grammar = pronk::Grammar::JsonObject();
  EXPECT_EQ(session.Complete("Once", {}, limits).text.front(), '{');
}

// Each has an effect: the text is another one, or is the most likely one.
TEST(Library, HasAllSamplers) {
  const pronk::Model model(kDefault);
  const auto text = [&](const auto& change) {
    pronk::Options options;
    options.threads = 1;
    options.sampling.seed = 3;
    options.sampling.temperature = 3;
    options.sampling.top_k = 0;
    options.sampling.top_p = 1;
    options.sampling.min_p = 0;
    change(options.sampling);
    return pronk::Session(model, options).Complete("Once upon a time", {}, AtMost(60)).text;
  };
  const std::string usual = text([](pronk::Sampling&) {});
  const std::string likely = text([](pronk::Sampling& s) { s.temperature = 0; });
  EXPECT_EQ(usual, text([](pronk::Sampling&) {}));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_k = 1; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_p = 1e-6f; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.min_p = 1; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_n_sigma = 1e-6f; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.typical = 0.1f; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.xtc_probability = 1, s.xtc_threshold = 0; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.temperature_range = 2; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.mirostat = {true, 1, 0.1f}; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.steps = {"top_k"}; }));
  const auto greedy = [&](const auto& change) {
    return text([&](pronk::Sampling& s) {
      s.temperature = 0;
      change(s);
    });
  };
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.repeat_penalty = 3; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.frequency_penalty = 90; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.presence_penalty = 90; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) {
              s.dry.multiplier = 50;
              s.dry.allowed_length = 0;
              s.dry.breakers.clear();
            }));
  const std::int32_t first =
      model.Tokenize("Once upon a time" + likely)[model.Tokenize("Once upon a time").size()];
  EXPECT_NE(likely, greedy([&](pronk::Sampling& s) { s.logit_bias = {{first, -1e9f}}; }));
  EXPECT_THROW(text([](pronk::Sampling& s) { s.steps = {"top_q"}; }), pronk::Error);
  EXPECT_THROW(text([](pronk::Sampling& s) { s.logit_bias = {{-1, 1.0f}}; }), pronk::Error);
  EXPECT_THROW(text([](pronk::Sampling& s) {
                 s.dry = {1, 2, 2, -1, {"no token has this"}};
               }),
               pronk::Error);
}

TEST(Library, KeepsWhatWasRead) {
  const test::TempDir dir;
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  EXPECT_THROW(session.Save(dir.Path("state")), pronk::Error);  // there is nothing yet
  session.Complete("Once upon a time", {}, AtMost(0));
  session.Save(dir.Path("state"));
  const std::string text = session.Complete("", {}, AtMost(20)).text;
  pronk::Session other(model, Greedy());
  other.Load(dir.Path("state"));
  const pronk::Completion completion = other.Complete("", {}, AtMost(20));
  EXPECT_EQ(completion.text, text);
  EXPECT_EQ(completion.n_prompt, 0u);
  EXPECT_THROW(other.Load(kDefault), pronk::Error);

  pronk::Chat chat(model, "You are kind.", Greedy());
  const pronk::Completion first = chat.Say("What is a goat?", {}, AtMost(8));
  chat.Save(dir.Path("chat"));
  pronk::Chat next(model, "You are kind.", Greedy());
  next.Load(dir.Path("chat"));
  const pronk::Completion second = next.Say("What is a goat?", {}, AtMost(8));
  EXPECT_EQ(second.text, first.text);
  EXPECT_LT(second.n_prompt, first.n_prompt);
}

// The same text, guessed by the model itself.
TEST(Library, MayDraftWithAnotherModel) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  pronk::Options options = Greedy();
  options.draft = pronk::Model(kDefault);
  pronk::Session drafting(model, options);
  options.draft.reset();  // the session keeps it
  EXPECT_EQ(drafting.Complete("Once upon a time", {}, AtMost(30)).text,
            session.Complete("Once upon a time", {}, AtMost(30)).text);
  options.draft = pronk::Model(kTiny);
  EXPECT_THROW(pronk::Session(model, options), pronk::Error);
}

TEST(Library, TellsThinkingFromTheAnswer) {
  const test::TempDir dir;
  const std::vector<test::ScriptedToken> script = {{"<think>", tokenizer::TokenType::kUserDefined},
                                                   {"hm"},
                                                   {"</think>", tokenizer::TokenType::kUserDefined},
                                                   {"Yes"}};
  const pronk::Model model(dir.Write(
      "model.gguf",
      test::ScriptedModel(script,
                          "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking "
                          "is defined and enable_thinking is false %}<think></think>{% endif %}")));
  pronk::Chat chat(model, "", Greedy());
  std::string heard;
  chat.OnThinking([&](std::string_view text) { heard += text; });
  const pronk::Completion answer = chat.Say("Why?");
  EXPECT_EQ(answer.text, "Yes");
  EXPECT_EQ(answer.thinking, "hm");
  EXPECT_EQ(heard, "hm");
  chat.SetThinking("off");
  EXPECT_THROW(chat.SetThinking("low"), pronk::Error);
  EXPECT_THROW(pronk::Chat(pronk::Model(kDefault)).SetThinking("on"), pronk::Error);
}

TEST(Library, TellsItsVersion) {
  const std::string version = pronk::Version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
}

}  // namespace
