// The library's sessions: texts that are cut, copied, scored and steered; and a model's properties.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/pronk.h"
#include "engine/session/embedder.h"
#include "engine/session/embedder_input.h"
#include "engine/session/encode.h"
#include "gguf/file.h"
#include "tests/engine/library.h"
#include "tests/support/error_of.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace {

using test::AtMost;
using test::Greedy;
using test::kDefault;
using test::kTiny;
using Ids = std::vector<std::int32_t>;

// The natural logarithms of the softmax.
std::vector<double> LogSoftmax(const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  std::vector<double> result;
  for (const float logit : logits) result.push_back(logit - std::log(sum));
  return result;
}

TEST(LibrarySession, ReadsIds) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const std::string text = session.Complete("Once upon a time", {}, AtMost(20)).text;
  session.Clear();
  const Ids ids = model.Tokenize("Once upon a time");
  EXPECT_EQ(session.Complete(ids, {}, AtMost(20)).text, text);
  session.Clear();
  session.Complete(Ids(ids.begin(), ids.begin() + 2), {}, AtMost(0));
  EXPECT_EQ(session.Complete(Ids(ids.begin() + 2, ids.end()), {}, AtMost(20)).text, text);
  EXPECT_EQ(test::ErrorOf<pronk::Error>([&] { session.Complete(Ids{-1}); }),
            "token id -1 is not in the vocabulary of 4274");
}

// Read tokens are not read again, whichever way the text goes back.
TEST(LibrarySession, KeepsTheBeginningThatItKnows) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const std::size_t n = model.Tokenize("Once upon a time").size();
  const pronk::Completion first = session.Complete("Once upon a time", {}, AtMost(10));
  EXPECT_EQ(first.n_prompt, n);
  session.Clear();
  EXPECT_TRUE(session.tokens().empty());
  EXPECT_TRUE(session.logits().empty());
  const pronk::Completion again = session.Complete("Once upon a time", {}, AtMost(10));
  EXPECT_EQ(again.n_prompt, 1u);  // its logits are needed
  EXPECT_EQ(again.text, first.text);
  session.Truncate(3);
  EXPECT_EQ(session.tokens().size(), 3u);
  EXPECT_EQ(session.logits().size(), model.vocabulary_size());
  session.Complete(" a time", {}, AtMost(0));
  EXPECT_EQ(session.tokens(), model.Tokenize("Once upon a time"));
  EXPECT_EQ(session.Complete("", {}, AtMost(10)).text, first.text);
  session.Truncate(1000);  // all of it stays
  EXPECT_EQ(session.tokens().size(), n + 10);
  // A text whose tokens begin another text is a text by itself.
  session.Truncate(n);
  const std::vector<float> logits = session.logits();
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(),
            model.Tokenize("Once upon a time" + first.text)[n]);
}

// Recurrent layers cannot go back to every position: forgotten tokens are read again.
TEST(LibrarySession, TruncatesARecurrentText) {
  const pronk::Model model(test::DataPath("hybrids/mamba.gguf"));
  pronk::Session session(model, Greedy()), other(model, Greedy());
  const Ids all = {1, 5, 9, 7, 3, 8}, begin = {1, 5, 9};
  session.Complete(all, {}, AtMost(0));
  session.Truncate(3);
  other.Complete(begin, {}, AtMost(0));
  EXPECT_EQ(session.tokens(), begin);
  EXPECT_EQ(session.logits(), other.logits());
}

TEST(LibrarySession, CopiesGoOnByThemselves) {
  const pronk::Model model(kDefault);
  pronk::Options options = {.threads = 1, .sampling = {.seed = 4, .temperature = 1}};
  pronk::Session session(model, options);
  session.Complete("Once upon a time", {}, AtMost(5));
  pronk::Session copy = session.Copy();
  EXPECT_EQ(copy.tokens(), session.tokens());
  EXPECT_EQ(copy.logits(), session.logits());
  const std::string text = session.Complete("", {}, AtMost(12)).text;
  EXPECT_EQ(copy.Complete("", {}, AtMost(12)).text, text);  // the same random numbers
  copy.Clear();
  EXPECT_GT(session.tokens().size(), 12u);
  // A copy of a session without logits, after Score(), has no logits.
  pronk::Session scored(model, Greedy()), read(model, Greedy());
  scored.Score("Once upon a time there was");
  pronk::Session of_scored = scored.Copy();
  const Ids all = of_scored.tokens();
  of_scored.Complete(" a girl", {}, AtMost(3));
  of_scored.Truncate(all.size());
  read.Complete(all, {}, AtMost(0));
  EXPECT_EQ(of_scored.logits(), read.logits());
  EXPECT_EQ(pronk::Session(model, options).Copy().tokens(), Ids{});
}

TEST(LibrarySession, ReplacesNoModel) {
  const test::TempDir dir;
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  session.Complete("Once", {}, AtMost(0));
  const std::string other = dir.Write("other.gguf", "GGUF, perhaps a model");
  EXPECT_TRUE(test::Has(test::ErrorOf<pronk::Error>([&] { session.Save(other); }),
                        "it is not overwritten"));
  EXPECT_EQ(test::ReadText(other), "GGUF, perhaps a model");
  try {
    pronk::ParseMessages("{");
    FAIL();
  } catch (const pronk::Error& error) {
    EXPECT_EQ(error.kind(), pronk::ErrorKind::kWrongUse);
  }
}

// If a text does not fit, the previous text stays, even if layers cannot go back.
TEST(LibrarySession, AScoreThatDoesNotFitForgetsNothing) {
  for (const std::string& path : {kDefault, test::DataPath("hybrids/falcon-h1.gguf").string()}) {
    const pronk::Model model(path);
    pronk::Options options = Greedy();
    options.context = 32;
    pronk::Session session(model, options);
    const Ids begin = {1, 5, 9, 7};
    session.Complete(begin, {}, AtMost(0));
    EXPECT_THROW(session.Score(Ids(40, 6)), pronk::Error) << path;
    EXPECT_EQ(session.tokens(), begin) << path;
  }
}

// Expected scores come from the logits after each beginning of the text.
TEST(LibrarySession, ScoresAText) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const Ids ids = model.Tokenize("Tom saw a goat.");
  const std::vector<pronk::Token> scored = session.Score("Tom saw a goat.", 3);
  ASSERT_EQ(scored.size(), ids.size());
  EXPECT_TRUE(std::isnan(scored[0].log_probability));
  pronk::Session other(model, Greedy());
  for (std::size_t i = 1; i < ids.size(); ++i) {
    other.Complete(Ids{ids[i - 1]}, {}, AtMost(0));
    const std::vector<double> expected = LogSoftmax(other.logits());
    EXPECT_EQ(scored[i].id, ids[i]);
    EXPECT_NEAR(scored[i].log_probability, expected[static_cast<std::size_t>(ids[i])], 1e-3);
    ASSERT_EQ(scored[i].likeliest.size(), 3u);
    EXPECT_NEAR(scored[i].likeliest[0].log_probability,
                *std::max_element(expected.begin(), expected.end()), 1e-3);
  }
  EXPECT_EQ(session.tokens(), ids);
  // After a text, whose last logits give the first token's probability.
  session.Clear();
  session.Complete(Ids(ids.begin(), ids.begin() + 2), {}, AtMost(0));
  const std::vector<pronk::Token> rest = session.Score(Ids(ids.begin() + 2, ids.end()));
  ASSERT_EQ(rest.size(), ids.size() - 2);
  for (std::size_t i = 0; i < rest.size(); ++i)
    EXPECT_NEAR(rest[i].log_probability, scored[i + 2].log_probability, 1e-3) << i;
  EXPECT_EQ(session.Complete("", {}, AtMost(4)).text,
            other.Complete(Ids{ids.back()}, {}, AtMost(4)).text);
  EXPECT_THROW(session.Score("x", -1), pronk::Error);
}

TEST(LibrarySession, LogitsMayBeChanged) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const Ids goat = model.Tokenize(" goat", {true, false});
  pronk::Limits limits = AtMost(3);
  limits.on_logits = [&](float* logits, std::size_t n) {
    EXPECT_EQ(n, model.vocabulary_size());
    logits[goat[0]] = 1e9f;
  };
  limits.n_likeliest = 1;
  std::vector<float> own;  // log probabilities are the model's
  limits.on_token = [&](const pronk::Token& token) { own.push_back(token.log_probability); };
  EXPECT_EQ(session.Complete("Once upon a time", {}, limits).n_generated, 3u);
  const Ids tokens = session.tokens();
  EXPECT_EQ(Ids(tokens.end() - 3, tokens.end()), Ids(3, goat[0]));
  EXPECT_LT(own[0], -1);
  limits.on_logits = [](float*, std::size_t) { return false; };
  EXPECT_EQ(session.Complete("", {}, limits).stop_reason, pronk::StopReason::kInterrupted);
}

TEST(LibraryModel, ShowsItsSizes) {
  const pronk::Model model(kDefault);
  const gguf::File file = gguf::File::Open(kDefault);
  std::size_t n = 0;
  for (const gguf::TensorView& tensor : file.tensors()) n += tensor.elements();
  EXPECT_EQ(model.n_parameters(), n);
  EXPECT_EQ(model.vocabulary_size(), 4274u);
  EXPECT_EQ(model.embedding_length(), 256u);
  const std::vector<std::string> keys = model.MetadataKeys();
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "general.architecture"), 1);
  for (const std::string& key : keys) EXPECT_TRUE(model.Metadata(key).has_value()) << key;
  // 6 layers of 1536 positions, with keys and values of 4 heads of 32 numbers in 16 bits.
  const pronk::MemoryUse use = pronk::Session(model, Greedy()).memory();
  EXPECT_EQ(use.weights, model.size_in_bytes());
  EXPECT_GE(use.cache, 6u * 1536 * 2 * 4 * 32 * 2);
  EXPECT_EQ(use.scratch, 0u);  // nothing was read
}

constexpr char kTemplate[] =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if tools %}{{ tools[0].function.name }}{% endif %}{{ strftime_now('%Y') }}{{ mode }}"
    "{% if add_generation_prompt %}[answer]{% endif %}";

TEST(LibraryModel, RendersConversations) {
  const pronk::Model model(kDefault);
  const std::vector<pronk::Message> messages = {{"system", "Be kind."}, {"user", "<s>Hi"}};
  pronk::Rendering rendering;
  rendering.chat_template = kTemplate;
  rendering.now = 86400;  // the second day of 1970
  EXPECT_EQ(model.Render(messages, rendering), "<s>[system]Be kind.[user]<s>Hi1970[answer]");
  // The user's <s> is three characters, the template's is a token.
  const Ids ids = model.TokenizeChat(messages, rendering);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), model.special_tokens().bos), 1);
  rendering.begins_answer = false;
  rendering.variables = R"({"mode": "calm"})";
  rendering.tools = R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])";
  EXPECT_EQ(model.Render(messages, rendering), "<s>[system]Be kind.[user]<s>Hif1970calm");
  rendering.variables = "[]";
  EXPECT_THROW(model.Render(messages, rendering), pronk::Error);
  rendering.chat_template = "{% if %}";
  EXPECT_THROW(model.Render(messages, rendering), pronk::Error);
  // The session and the chat see the same tokens.
  pronk::Options options = Greedy();
  options.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  rendering = {};
  rendering.chat_template = options.chat_template;
  pronk::Session session(model, Greedy());
  pronk::Chat chat(model, "", options);
  EXPECT_EQ(
      session.Complete(model.TokenizeChat({{"user", "Once upon a"}}, rendering), {}, AtMost(9))
          .text,
      " " + chat.Say("Once upon a", {}, AtMost(9)).text);
}

// Chats in a batch, each with the same answer as alone; calls and histories, too.
TEST(LibraryChat, AnswersInABatch) {
  const pronk::Model model(kDefault);
  std::vector<pronk::Chat> alone, together;
  const std::vector<std::string> questions = {"What is a goat?", "Why?", "Who is Tom?"};
  pronk::Batch batch(model, 1);
  for (const std::string& question : questions) {
    alone.emplace_back(model, "", Greedy());
    together.emplace_back(model, "", Greedy());
    batch.Add(together.back(), {{"user", question}}, {}, AtMost(9));
  }
  EXPECT_THROW(together[0].Say("And you?"), pronk::Error);  // the batch has it
  std::vector<std::string> texts(questions.size());
  while (batch.size() > 0) {
    for (const auto& [number, completion] : batch.Step()) texts[number] = completion.text;
  }
  for (std::size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(texts[i], alone[i].Say(questions[i], {}, AtMost(9)).text);
    EXPECT_EQ(pronk::MessagesJson(together[i].History()), pronk::MessagesJson(alone[i].History()));
    EXPECT_EQ(together[i].Say("And you?", {}, AtMost(5)).text,
              alone[i].Say("And you?", {}, AtMost(5)).text);
  }
}

// If the reading of a question was stopped, the question is kept and can be answered.
TEST(LibraryChat, KeepsAQuestionThatWasStopped) {
  const pronk::Model model(kDefault);
  pronk::Chat chat(model, "", Greedy()), other(model, "", Greedy());
  std::string question = "Tom saw";
  for (int i = 0; i < 600; ++i) question += " it";
  pronk::Limits limits = AtMost(5);
  limits.on_prompt = [](std::size_t, std::size_t) { return false; };
  const pronk::Completion stopped = chat.Say(question, {}, limits);
  EXPECT_EQ(stopped.stop_reason, pronk::StopReason::kInterrupted);
  EXPECT_EQ(stopped.n_prompt + stopped.n_unread, other.Count(question));
  ASSERT_EQ(chat.History().size(), 1u);
  EXPECT_EQ(chat.History()[0].content, question);
  const pronk::Completion answer = chat.Answer({}, {}, AtMost(5));
  EXPECT_EQ(answer.text, other.Say(question, {}, AtMost(5)).text);
  EXPECT_LE(answer.n_prompt, stopped.n_unread + 1);
  EXPECT_EQ(chat.History().size(), 2u);
}

// Compares with the engine's scores, up to the rounding of larger batches. Another test compares
// this model's scores with another implementation's (embedder_test.cc).
TEST(Library, RanksTexts) {
  const pronk::Model model(test::DataPath("vectors/bert-rank.gguf"));
  pronk::Reranker reranker(model);
  const std::vector<std::string> texts = {"ab", "cd, e.", "a\nb"};
  const std::vector<float> scores = reranker.Score("ef", texts);
  ASSERT_EQ(scores.size(), 3u);
  const engine::Model own = engine::Model::Load(test::DataPath("vectors/bert-rank.gguf"));
  engine::Embedder embedder(own, {.n_threads = 1, .kv_type = kernels::KvType::kF32},
                            engine::Pooling::kRank);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<std::vector<std::int32_t>> pair = {
        engine::EncodePair(own, "ef", texts[i], 100)};
    embedder.Embed(pair, [&](std::size_t, std::size_t, std::span<const float> row) {
      EXPECT_NEAR(row[0], scores[i], 1e-5);
      return true;
    });
  }
  EXPECT_THROW(pronk::Reranker{pronk::Model(kTiny)}, pronk::Error);
}

}  // namespace
