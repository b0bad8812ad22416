// The library's public interface: it streams the text that it returns, and ends where requested.
#include "engine/pronk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/file.h"
#include "tests/engine/library.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace {

using test::AtMost;
using test::Greedy;
using test::kDefault;
using test::kTiny;

TEST(Library, StreamsWhatItReturns) {
  const pronk::Model model(kDefault);
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_EQ(std::to_string(model.context_length()), model.Metadata("llama.context_length"));
  EXPECT_EQ(model.size_in_bytes(), gguf::File::Open(kDefault).tensor_bytes());
  pronk::Session session(model, Greedy());
  std::string streamed;
  const pronk::Completion completion = session.Complete(
      "Once upon a time", [&](std::string_view text) { streamed += text; }, AtMost(20));
  EXPECT_EQ(completion.text, streamed);
  EXPECT_FALSE(streamed.empty());
  EXPECT_EQ(completion.stop_reason, pronk::StopReason::kLength);
  EXPECT_EQ(completion.n_generated, 20u);
  EXPECT_EQ(completion.n_prompt, model.Tokenize("Once upon a time").size());
}

// A text that starts again is the same; a text that continues reads only new tokens.
TEST(Library, GoesOnWhereItWas) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const std::string all = session.Complete("Once upon a time", {}, AtMost(20)).text;
  session.Clear();
  EXPECT_EQ(session.Complete("Once upon a time", {}, AtMost(20)).text, all);

  pronk::Session moved = std::move(session);
  EXPECT_EQ(moved.Complete(" And then", {}, AtMost(5)).n_generated, 5u);
}

// A prompt in several calls, cut within a word or before a space, has the tokens and the text of
// one call.
TEST(Library, APromptInPartsIsOne) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const std::string prompt = "Once upon a time, Nora saw h\xC3\xA9r goat";
  const pronk::Completion whole = session.Complete(prompt, {}, AtMost(5));
  for (std::size_t cut = 0; cut <= prompt.size(); cut += 3) {
    session.Clear();
    session.Complete(prompt.substr(0, cut), {}, AtMost(0));
    EXPECT_EQ(session.Complete(prompt.substr(cut), {}, AtMost(5)).text, whole.text) << cut;
  }
  // A generated text is continued like any text: no space is put before the rest of a word.
  session.Clear();
  const std::string begun = session.Complete("Once upon a time", {}, AtMost(3)).text;
  const std::string next = session.Complete("s", {}, AtMost(9)).text;
  session.Clear();
  EXPECT_EQ(session.Complete("Once upon a time" + begun + "s", {}, AtMost(9)).text, next);
}

TEST(Library, TheCallerChoosesHowItIsRead) {
  const pronk::Model model(kDefault);
  using Ids = std::vector<std::int32_t>;
  const Ids usual = model.Tokenize("a goat"), rest(usual.begin() + 1, usual.end());
  EXPECT_EQ(model.Tokenize("a goat", {true, false}), rest);
  EXPECT_EQ(model.Tokenize("a goat", {true, true}), usual);
  EXPECT_EQ(model.Tokenize("<s>a goat", {true, false, true}), usual);
  EXPECT_EQ(model.Detokenize(model.Tokenize("<s>a goat")), "<s>a goat");  // as text
  pronk::Session session(model, Greedy());
  pronk::Limits limits = AtMost(0);
  EXPECT_EQ(session.Complete("goa", {}, limits).n_prompt, model.Tokenize("goa").size());
  limits.reading = {false, true};
  EXPECT_EQ(session.Complete("t", {}, limits).n_prompt, model.Tokenize("t").size());
}

TEST(Library, EndsWhereItIsAskedTo) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  int n_pieces = 0;
  const auto three = [&](std::string_view) { return ++n_pieces < 3; };
  EXPECT_EQ(session.Complete("Once upon a time", three).stop_reason,
            pronk::StopReason::kInterrupted);
  EXPECT_EQ(n_pieces, 3);
  session.Clear();
  const pronk::Completion stopped = session.Complete("Once upon a time", {}, {50, {"."}});
  EXPECT_EQ(stopped.stop_reason, pronk::StopReason::kStop);
  EXPECT_FALSE(test::Has(stopped.text, "."));
}

// A full session has room for no token, not for the default number.
TEST(Library, APromptCanBeWatchedAndStopped) {
  const pronk::Model model(kDefault);
  pronk::Options options = Greedy();
  options.context = 4000;
  pronk::Session session(model, options);
  std::string prompt = "Tom saw";
  for (int i = 0; i < 3000; ++i) prompt += " it";
  pronk::Limits limits = AtMost(1);
  std::vector<std::pair<std::size_t, std::size_t>> seen;
  limits.on_prompt = [&](std::size_t read, std::size_t all) {
    seen.emplace_back(read, all);
    return false;
  };
  const pronk::Completion stopped = session.Complete(prompt, {}, limits);
  EXPECT_EQ(stopped.stop_reason, pronk::StopReason::kInterrupted);
  const std::size_t n = model.Tokenize(prompt).size();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].second, n);
  EXPECT_LT(seen[0].first, n);  // a batch or more may be read before the first call
  EXPECT_LE(stopped.n_prompt, seen[0].first);
  // The read part stays, so only the rest is read. A void function does not stop it; the last call
  // reports that the whole rest is read.
  session.Clear();
  limits.on_prompt = [&](std::size_t read, std::size_t) { seen.emplace_back(read, 0); };
  EXPECT_LE(stopped.n_unread, n);
  EXPECT_EQ(session.Complete(prompt, {}, limits).n_prompt, stopped.n_unread);
  EXPECT_EQ(seen.back().first, stopped.n_unread);
  session.Clear();
  limits.on_prompt = [](std::size_t, std::size_t) -> bool { throw 42; };
  EXPECT_THROW(session.Complete(prompt, {}, limits), int);
}

TEST(Library, TellsEachToken) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  session.Complete("Once upon a", {}, AtMost(0));
  const std::vector<float> logits = session.logits();
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit);
  pronk::Limits limits = AtMost(6);
  std::vector<pronk::Token> tokens;
  limits.on_token = [&](const pronk::Token& token) { tokens.push_back(token); };
  session.Complete("", {}, limits);
  ASSERT_EQ(tokens.size(), 6u);
  EXPECT_TRUE(std::isnan(tokens[0].log_probability));  // not requested
  session.Clear();
  tokens.clear();
  limits.n_likeliest = 1 << 20;
  const pronk::Completion all = session.Complete("Once upon a", {}, limits);
  std::vector<std::int32_t> ids;
  double before = 0;
  for (const pronk::Token& token : tokens) {
    ids.push_back(token.id);
    ASSERT_EQ(token.likeliest.size(), logits.size());
    EXPECT_EQ(token.likeliest[0].id, token.id);  // the sampling is greedy
    EXPECT_EQ(token.likeliest[0].log_probability, token.log_probability);
    EXPECT_GE(token.likeliest[1].log_probability, token.likeliest[2].log_probability);
    EXPECT_GE(token.seconds, before);
    before = token.seconds;
  }
  EXPECT_EQ(model.Detokenize(ids), all.text);
  const pronk::Token::Likely& third = tokens[0].likeliest[2];
  const double logit = logits[static_cast<std::size_t>(third.id)];
  EXPECT_NEAR(third.log_probability, logit - std::log(sum), 1e-5);
  // A token comes before its text, and may end the text.
  std::string heard;
  limits.on_token = [n = 0](const pronk::Token&) mutable { return ++n < 3; };
  session.Clear();
  const pronk::Completion two = session.Complete(
      "Once upon a", [&](std::string_view text) { heard += text; }, limits);
  EXPECT_EQ(two.stop_reason, pronk::StopReason::kInterrupted);
  EXPECT_EQ(heard, model.Detokenize({ids[0], ids[1]}));
  EXPECT_EQ(two.n_generated, 2u);
  // Text that only looked like the beginning of a stop belongs to earlier tokens.
  heard.clear();
  limits.stops = {model.Detokenize({ids[0], ids[1], ids[2]})};
  session.Clear();
  EXPECT_EQ(session
                .Complete(
                    "Once upon a", [&](std::string_view text) { heard += text; }, limits)
                .stop_reason,
            pronk::StopReason::kInterrupted);
  EXPECT_EQ(heard, model.Detokenize({ids[0], ids[1]}));
  limits.stops.clear();
  limits.grammar = pronk::Grammar::Gbnf("root ::= \"a\"");
  limits.on_token = [](const pronk::Token&) { return false; };
  session.Clear();
  EXPECT_EQ(session.Complete("Once upon", {}, limits).stop_reason, pronk::StopReason::kInterrupted);
  limits.on_token = [](const pronk::Token&) -> bool { throw 42; };
  EXPECT_THROW(session.Complete("Once", {}, limits), int);
  limits.n_likeliest = -2;
  EXPECT_THROW(session.Complete("Once", {}, limits), pronk::Error);
}

// Tokens that a grammar forces are not sampled.
TEST(Library, ForcedTokensHaveNoProbability) {
  pronk::Limits limits = {
      .grammar = pronk::Grammar::Gbnf("root ::= (\"a\" | \"b\") \" goat and a dog\""),
      .n_likeliest = 2};
  std::vector<bool> sampled;
  limits.on_token = [&](const pronk::Token& token) {
    sampled.push_back(!std::isnan(token.log_probability));
    EXPECT_EQ(token.likeliest.size(), sampled.back() ? 2u : 0u);
  };
  pronk::Session(pronk::Model(kDefault), Greedy()).Complete("This is", {}, limits);
  EXPECT_GT(sampled.size(), 2u);
  EXPECT_TRUE(sampled.front());
  EXPECT_FALSE(sampled.back());
}

TEST(Library, AFullContextRefusesMore) {
  const pronk::Model model(kDefault);
  pronk::Options options = Greedy();
  options.context = 8;
  pronk::Session session(model, options);
  EXPECT_EQ(session.Complete("Once upon a time").stop_reason, pronk::StopReason::kContext);
  EXPECT_EQ(session.Complete("").stop_reason, pronk::StopReason::kContext);
  EXPECT_TRUE(
      test::Has(test::ErrorOf<pronk::Error>([&] { session.Complete(std::string(1000, 'x')); }),
                "room for 0 "));
}

TEST(Library, ShowsWhatIsInTheFileAndTheSession) {
  const pronk::Model model(kDefault);
  EXPECT_EQ(model.Metadata("general.architecture"), "llama");
  EXPECT_EQ(model.Metadata("llama.embedding_length"), "256");
  EXPECT_EQ(model.Metadata("llama.attention.layer_norm_rms_epsilon"), "1e-05");
  EXPECT_EQ(model.Metadata("no.such.key"), std::nullopt);
  const std::string tokens = model.Metadata("tokenizer.ggml.tokens").value();
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), '\n'), 4273);
  EXPECT_TRUE(test::Has(model.chat_template(), "messages"));

  const pronk::SpecialTokens special = model.special_tokens();
  std::vector<std::int32_t> ids = model.Tokenize("A goat.");
  EXPECT_EQ(ids[0], special.bos);
  EXPECT_EQ(std::count(special.ends.begin(), special.ends.end(), special.eos), 1);
  EXPECT_EQ(model.Detokenize(ids), "A goat.");
  EXPECT_EQ(model.Detokenize({special.bos}, true), "<s>");

  pronk::Session session(model, Greedy());
  EXPECT_TRUE(session.logits().empty());
  session.Complete("A goat.", {}, AtMost(0));
  EXPECT_EQ(session.tokens(), ids);
  const std::vector<float> logits = session.logits();
  session.Complete("", {}, AtMost(1));
  ids.push_back(
      static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  EXPECT_EQ(session.tokens(), ids);
}

TEST(Library, SessionsKeepTheirModel) {
  auto model = std::make_unique<pronk::Model>(kTiny);
  pronk::Session session(*model, Greedy());
  pronk::Chat chat(*model, "", Greedy());
  model.reset();
  EXPECT_EQ(session.Complete("Hello", {}, AtMost(3)).n_generated, 3u);
  EXPECT_LE(chat.Say("Hello", {}, AtMost(3)).n_generated, 3u);
}

TEST(Library, WritesWhatAGrammarAllows) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  pronk::Limits limits = AtMost(40);
  limits.grammar =
      pronk::Grammar::JsonSchema(R"({"type": "object", "properties": {"age": {"type": "integer",
      "minimum": 3, "maximum": 5}}, "required": ["age"], "additionalProperties": false})");
  for (int i = 0; i < 2; ++i) {  // the second uses the cache of the grammar
    const pronk::Completion completion = session.Complete("Once upon a time", {}, limits);
    EXPECT_EQ(completion.stop_reason, pronk::StopReason::kEos) << completion.text;
    EXPECT_EQ(completion.text.front(), '{');
    EXPECT_EQ(completion.text.back(), '}');
    EXPECT_NE(completion.text.find_first_of("345"), std::string::npos);
    session.Clear();
  }
  limits.grammar = pronk::Grammar::Gbnf(R"(root ::= "yes" | "no")");
  session.Complete("Is a goat an animal? ", {}, limits);
  const std::string text = model.Detokenize(session.tokens());
  EXPECT_TRUE(text.ends_with("yes") || text.ends_with("no")) << text;
  session.Clear();
  pronk::Chat chat(model, "", Greedy());
  const std::string answer = chat.Say("Is a goat an animal?", {}, limits).text;
  EXPECT_TRUE(answer == "yes" || answer == "no") << answer;
  limits.grammar = {};
  EXPECT_FALSE(test::Has(chat.Say("Is a goat an animal?", {}, limits).text, "yes"));
  EXPECT_THROW(pronk::Grammar::JsonSchema(R"({"$dynamicRef": "#x"})"), pronk::Error);
  EXPECT_THROW(pronk::Grammar::Gbnf("root ::= other"), pronk::Error);
  limits.grammar = pronk::Grammar::JsonObject();
  EXPECT_EQ(session.Complete("Once", {}, limits).text.front(), '{');
}

TEST(Library, KeepsWhatWasRead) {
  const test::TempDir dir;
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  EXPECT_THROW(session.Save(dir.Path("state")), pronk::Error);  // there is no text yet
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
  const pronk::Completion first = chat.Say("Tell me a story about a goat.", {}, AtMost(8));
  chat.Save(dir.Path("chat"));
  pronk::Chat next(model, "You are kind.", Greedy());
  next.Load(dir.Path("chat"));
  const pronk::Completion second = next.Say("Tell me a story about a goat.", {}, AtMost(8));
  EXPECT_EQ(second.text, first.text);
  EXPECT_EQ(second.n_prompt, 1u);  // the last token, whose logits the file lacks
}

// The model drafts for itself, and its text does not change.
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

TEST(Library, TurnsTextsIntoVectors) {
  const pronk::Model model(kTiny);
  pronk::Embedder embedder(model, pronk::Pooling::kMean);
  const auto vectors = embedder.Embed({"a text", "another", "a text"});
  ASSERT_EQ(vectors.size(), 3u);
  float length = 0, product = 0;
  for (size_t i = 0; i < vectors[0].size(); ++i) {
    length += vectors[0][i] * vectors[0][i];
    product += vectors[0][i] * vectors[1][i];
  }
  EXPECT_NEAR(length, 1, 1e-5);
  EXPECT_LT(product, 0.999f);
  EXPECT_EQ(vectors[0], vectors[2]);
  EXPECT_THROW(pronk::Embedder{model}, pronk::Error);  // its file names no pooling
  EXPECT_THROW(embedder.Embed({std::string(100000, 'x')}), pronk::Error);
}

TEST(Library, TellsItsVersion) {
  const std::string version = pronk::Version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
}

}  // namespace
