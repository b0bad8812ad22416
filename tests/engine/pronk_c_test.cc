// The library for C writes the text of the library for C++.
#include "engine/pronk_c.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/pronk.h"
#include "tests/engine/library_for_c.h"
#include "tests/support/paths.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace {

using test::Append;
using test::kDefault;
using test::LibraryForC;

TEST_F(LibraryForC, WritesTheSameText) {
  pronk::Options options = {.threads = 1, .sampling = {.temperature = 0}};
  pronk::Limits limits = {.max_tokens = 12, .stops = {"little"}};
  const pronk::Completion expected =
      pronk::Session(pronk::Model(kDefault), options).Complete("Once upon a time", {}, limits);
  EXPECT_EQ(expected.stop_reason, pronk::StopReason::kStop);

  pronk_session* session = nullptr;
  ASSERT_EQ(pronk_session_open(model_, "temperature=0  threads=1", &session), PRONK_OK);
  const char* const stops[] = {"little", nullptr};
  pronk_limits same = PRONK_LIMITS_INIT;
  same.max_tokens = 12;
  same.stops = stops;
  std::string text;
  pronk_completion result = PRONK_COMPLETION_INIT;
  EXPECT_EQ(pronk_session_complete(session, "Once upon a time", &same, Append, &text, &result),
            PRONK_OK);
  EXPECT_EQ(text, expected.text);
  EXPECT_EQ(result.stop_reason, PRONK_STOP_MATCH);
  EXPECT_EQ(result.n_prompt, expected.n_prompt);
  size_t n = 0;
  EXPECT_EQ(pronk_session_logits(session, nullptr, 0, &n), PRONK_OK);
  EXPECT_GT(n, 1000u);
  EXPECT_EQ(pronk_session_clear(session), PRONK_OK);
  EXPECT_EQ(pronk_session_logits(session, nullptr, 0, &n), PRONK_OK);
  EXPECT_EQ(n, 0u);
  const auto stop = [](const char*, size_t, void*) { return 1; };
  EXPECT_EQ(pronk_session_complete(session, "Once", nullptr, stop, nullptr, &result), PRONK_OK);
  EXPECT_EQ(result.stop_reason, PRONK_STOP_INTERRUPTED);
  pronk_session_free(session);
}

TEST_F(LibraryForC, Answers) {
  pronk_grammar* grammar = nullptr;
  pronk_chat* chat = nullptr;
  ASSERT_EQ(pronk_grammar_gbnf("root ::= \"yes\" | \"no\"", &grammar), PRONK_OK);
  ASSERT_EQ(pronk_chat_open(model_, nullptr, nullptr, &chat), PRONK_OK);
  pronk_limits limits = PRONK_LIMITS_INIT;
  limits.grammar = grammar;
  size_t n = 0;
  std::string text;
  pronk_completion result = PRONK_COMPLETION_INIT;
  EXPECT_EQ(pronk_chat_count(chat, "Is a goat an animal?", &n), PRONK_OK);
  EXPECT_EQ(pronk_chat_say(chat, "Is a goat an animal?", &limits, Append, &text, &result),
            PRONK_OK);
  EXPECT_TRUE(text == "yes" || text == "no") << text;
  EXPECT_EQ(n, result.n_prompt);
  pronk_grammar_free(grammar);
  ASSERT_EQ(pronk_grammar_json_schema(R"({"const": 12})", &grammar), PRONK_OK);
  pronk_limits number = PRONK_LIMITS_INIT;
  number.grammar = grammar;
  text.clear();
  EXPECT_EQ(pronk_chat_say(chat, "How old?", &number, Append, &text, nullptr), PRONK_OK);
  EXPECT_EQ(text, "12");
  pronk_chat_free(chat);
  pronk_grammar_free(grammar);
  EXPECT_EQ(pronk_grammar_json_schema("{", &grammar), PRONK_BAD_GRAMMAR);
}

// A callback watches the prompt and stops it; then a file restores the read part.
TEST_F(LibraryForC, WatchesAPromptAndKeepsAChat) {
  const test::TempDir dir;
  const std::string file = dir.Path("chat");
  pronk_chat* chat = nullptr;
  ASSERT_EQ(pronk_chat_open(model_, nullptr, nullptr, &chat), PRONK_OK);
  pronk_limits limits = PRONK_LIMITS_INIT;
  limits.max_tokens = 1;
  limits.on_prompt = [](size_t n_read, size_t n, void* user) {
    static_cast<std::string*>(user)->append(n_read == n ? "." : "-");
    return 0;
  };
  std::string seen;
  pronk_completion first = PRONK_COMPLETION_INIT, second = PRONK_COMPLETION_INIT;
  const char* const question = "Is a goat an animal?";
  EXPECT_EQ(pronk_chat_say(chat, question, &limits, nullptr, &seen, &first), PRONK_OK);
  EXPECT_EQ(seen.back(), '.');
  EXPECT_EQ(pronk_chat_save(chat, file.c_str()), PRONK_OK);
  EXPECT_EQ(pronk_chat_load(chat, file.c_str()), PRONK_OK);
  EXPECT_EQ(pronk_chat_clear(chat), PRONK_OK);
  EXPECT_EQ(pronk_chat_say(chat, question, &limits, nullptr, &seen, &second), PRONK_OK);
  EXPECT_LT(second.n_prompt, first.n_prompt);
  EXPECT_EQ(pronk_chat_load(chat, "no/such"), PRONK_NOT_FOUND);
  EXPECT_EQ(pronk_chat_clear(chat), PRONK_OK);
  limits.on_prompt = [](size_t, size_t, void*) { return 1; };
  EXPECT_EQ(pronk_chat_say(chat, "And a stone?", &limits, nullptr, nullptr, &second), PRONK_OK);
  EXPECT_EQ(second.stop_reason, PRONK_STOP_INTERRUPTED);
  pronk_chat_free(chat);
}

TEST_F(LibraryForC, KeepsASession) {
  const test::TempDir dir;
  const std::string file = dir.Path("session");
  pronk_session *first = nullptr, *second = nullptr;
  ASSERT_EQ(pronk_session_open(model_, nullptr, &first), PRONK_OK);
  ASSERT_EQ(pronk_session_open(model_, nullptr, &second), PRONK_OK);
  pronk_limits none = PRONK_LIMITS_INIT;
  none.max_tokens = -1;
  ASSERT_EQ(pronk_session_complete(first, "Once upon", &none, nullptr, nullptr, nullptr), PRONK_OK);
  EXPECT_EQ(pronk_session_save(first, file.c_str()), PRONK_OK);
  EXPECT_EQ(pronk_session_load(second, "no/such"), PRONK_NOT_FOUND);
  EXPECT_EQ(pronk_session_load(second, file.c_str()), PRONK_OK);
  size_t n_first = 0, n_second = 0;
  EXPECT_EQ(pronk_session_tokens(first, nullptr, 0, &n_first), PRONK_OK);
  EXPECT_EQ(pronk_session_tokens(second, nullptr, 0, &n_second), PRONK_OK);
  EXPECT_EQ(n_first, 3u);  // with BOS
  EXPECT_EQ(n_second, n_first);
  pronk_session_free(first);
  pronk_session_free(second);
}

// The data that a batch reports of a text.
struct Heard {
  std::string text;
  std::vector<int32_t> ids;
  pronk_completion end = PRONK_COMPLETION_INIT;
};

// Texts in a batch are the same as alone. Each token is reported, and the reading flags apply.
TEST_F(LibraryForC, WritesTextsTogether) {
  pronk_limits limits = PRONK_LIMITS_INIT;
  limits.max_tokens = 8;
  limits.n_likeliest = 2;
  limits.reading = PRONK_READ_NO_BOS | PRONK_READ_SPECIAL;
  limits.on_token = [](const pronk_token* token, void* user) {
    EXPECT_EQ(token->n_likeliest, 2u);
    EXPECT_GE(token->likeliest[0].log_probability, token->log_probability);
    static_cast<Heard*>(user)->ids.push_back(token->id);
    return 0;
  };
  const auto hear = [](const char* text, size_t n_bytes, void* user) {
    static_cast<Heard*>(user)->text.append(text, n_bytes);
    return 0;
  };
  Heard alone, together[2];
  pronk_session *first = nullptr, *second = nullptr;
  pronk_batch* batch = nullptr;
  ASSERT_EQ(pronk_session_open(model_, "temperature=0", &first), PRONK_OK);
  ASSERT_EQ(pronk_session_open(model_, "seed=4", &second), PRONK_OK);
  const char* const prompt = "<s>Once upon";
  EXPECT_EQ(pronk_session_complete(first, prompt, &limits, hear, &alone, &alone.end), PRONK_OK);
  EXPECT_EQ(alone.ids.size(), 8u);
  EXPECT_EQ(alone.end.n_prompt, 3u);
  EXPECT_EQ(pronk_session_clear(first), PRONK_OK);
  ASSERT_EQ(pronk_batch_open(model_, 1, &batch), PRONK_OK);
  size_t number = 7;
  EXPECT_EQ(pronk_batch_add(batch, second, "The", &limits, hear, &together[0], nullptr), PRONK_OK);
  EXPECT_EQ(pronk_batch_add(batch, first, prompt, &limits, hear, &together[1], &number), PRONK_OK);
  EXPECT_EQ(number, 1u);
  EXPECT_EQ(pronk_batch_add(batch, first, prompt, &limits, hear, nullptr, nullptr),
            PRONK_WRONG_USE);
  while (pronk_batch_size(batch) > 0) {
    const auto end = [](size_t i, const pronk_completion* result, void* user) {
      static_cast<Heard*>(user)[i].end = *result;
    };
    ASSERT_EQ(pronk_batch_step(batch, end, together), PRONK_OK);
  }
  EXPECT_EQ(together[1].text, alone.text);
  EXPECT_EQ(together[1].ids, alone.ids);
  EXPECT_EQ(together[1].end.stop_reason, PRONK_STOP_LENGTH);
  EXPECT_EQ(together[0].end.n_prompt, 1u);  // without BOS
  // on_end may be NULL.
  limits.on_token = [](const pronk_token*, void*) { return 1; };
  ASSERT_EQ(pronk_session_clear(first), PRONK_OK);
  ASSERT_EQ(pronk_batch_add(batch, first, "Once", &limits, hear, &alone, nullptr), PRONK_OK);
  while (pronk_batch_size(batch) > 0)
    ASSERT_EQ(pronk_batch_step(batch, nullptr, nullptr), PRONK_OK);
  EXPECT_EQ(together[1].text, alone.text);
  // After a text: joined with it, or apart.
  const auto n_tokens = [&](unsigned reading) {
    pronk_limits none = PRONK_LIMITS_INIT;
    none.max_tokens = -1;
    size_t n = 0;
    EXPECT_EQ(pronk_session_clear(first), PRONK_OK);
    EXPECT_EQ(pronk_session_complete(first, "Once up", &none, nullptr, nullptr, nullptr), PRONK_OK);
    none.reading = reading;
    EXPECT_EQ(pronk_session_complete(first, "on a", &none, nullptr, nullptr, nullptr), PRONK_OK);
    EXPECT_EQ(pronk_session_tokens(first, nullptr, 0, &n), PRONK_OK);
    return n;
  };
  EXPECT_LT(n_tokens(0), n_tokens(PRONK_READ_APART));
  EXPECT_EQ(n_tokens(PRONK_READ_APART | PRONK_READ_BOS), n_tokens(PRONK_READ_APART) + 1);
  pronk_batch_free(batch);
  pronk_session_free(first);
  pronk_session_free(second);
  EXPECT_EQ(pronk_batch_open(model_, -1, &batch), PRONK_WRONG_USE);
}

TEST_F(LibraryForC, TellsThinkingFromTheAnswer) {
  const test::TempDir dir;
  const auto mark = tokenizer::TokenType::kUserDefined;
  const std::string file =
      dir.Write("model.gguf",
                test::ScriptedModel({{"<think>", mark}, {"hm"}, {"</think>", mark}, {"Yes"}},
                                    "{{ messages[-1].content }}"
                                    "{% if enable_thinking is false %}<think></think>{% endif %}"));
  pronk_model* model = nullptr;
  pronk_chat* chat = nullptr;
  ASSERT_EQ(pronk_model_open(file.c_str(), &model), PRONK_OK);
  ASSERT_EQ(pronk_chat_open(model, nullptr, "temperature=0", &chat), PRONK_OK);
  std::string thinking, text;
  EXPECT_EQ(pronk_chat_on_thinking(chat, Append, &thinking), PRONK_OK);
  EXPECT_EQ(pronk_chat_say(chat, "Why?", nullptr, Append, &text, nullptr), PRONK_OK);
  EXPECT_EQ(thinking + " " + text, "hm Yes");
  EXPECT_EQ(pronk_chat_set_thinking_budget(chat, 0, nullptr), PRONK_OK);
  thinking.clear();
  EXPECT_EQ(pronk_chat_say(chat, "Why?", nullptr, Append, &text, nullptr), PRONK_OK);
  EXPECT_EQ(thinking + " " + text, " YesYes");
  EXPECT_EQ(pronk_chat_set_thinking_budget(chat, -2, ""), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_chat_set_thinking(chat, "off"), PRONK_OK);
  EXPECT_EQ(pronk_chat_set_thinking(chat, "low"), PRONK_WRONG_USE);
  pronk_chat_free(chat);
  pronk_model_free(model);
}

TEST_F(LibraryForC, EmbedsByANamedPooling) {
  const auto vector = [&](const char* pooling) {
    pronk_embedder* embedder = nullptr;
    EXPECT_EQ(pronk_embedder_open(model_, pooling, nullptr, &embedder), PRONK_OK);
    const char* const text = "a goat";
    size_t n = 0;
    std::vector<float> numbers(256);
    EXPECT_EQ(pronk_embedder_embed(embedder, &text, 1, numbers.data(), numbers.size(), &n),
              PRONK_OK);
    EXPECT_EQ(n, numbers.size());
    pronk_embedder_free(embedder);
    return numbers;
  };
  const auto mean = vector("mean"), last = vector("last");
  EXPECT_NE(mean, last);
  EXPECT_EQ(
      last,
      pronk::Embedder(pronk::Model(kDefault), pronk::Pooling::kLast).Embed({"a goat"}).front());
}

TEST_F(LibraryForC, TakesAConversation) {
  pronk_chat* chat = nullptr;
  ASSERT_EQ(pronk_chat_open(model_, nullptr, "temperature=0", &chat), PRONK_OK);
  const std::string question = R"([{"role": "user", "content": "What is a goat?"}])";
  pronk_limits limits = PRONK_LIMITS_INIT;
  limits.max_tokens = 4;
  std::string texts[2];
  EXPECT_EQ(pronk_chat_answer(chat, question.c_str(), &limits, Append, &texts[0], nullptr),
            PRONK_OK);
  EXPECT_EQ(pronk_chat_set_history(chat, question.c_str()), PRONK_OK);
  pronk_completion result = PRONK_COMPLETION_INIT;
  EXPECT_EQ(pronk_chat_answer(chat, nullptr, &limits, Append, &texts[1], &result), PRONK_OK);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(result.n_dropped, 0u);
  std::string json(1000, '.');
  size_t n = 0;
  EXPECT_EQ(pronk_chat_history(chat, json.data(), json.size(), &n), PRONK_OK);
  json.resize(n);
  EXPECT_EQ(pronk::ParseMessages(json).back().content, texts[0]);
  EXPECT_EQ(pronk_chat_set_history(chat, "[1]"), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_chat_set_tools(chat, "[1]"), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_chat_set_tool_choice(chat, "required"), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_chat_set_tool_choice(chat, "none"), PRONK_OK);
  pronk_chat_free(chat);
}

TEST_F(LibraryForC, FillsBuffers) {
  size_t n = 0;
  std::vector<int32_t> ids(3, -7);
  EXPECT_EQ(pronk_model_tokenize(model_, "a goat", 6, 0, ids.data(), 1, &n), PRONK_OK);
  EXPECT_EQ(ids[0], pronk_model_token(model_, "bos"));
  EXPECT_EQ(ids[1], -7);
  ids.resize(n);
  EXPECT_EQ(pronk_model_tokenize(model_, "a goat", 6, 0, ids.data(), n, &n), PRONK_OK);
  std::string text(20, '.');
  EXPECT_EQ(pronk_model_detokenize(model_, ids.data(), n, 0, text.data(), 20, &n), PRONK_OK);
  EXPECT_EQ(text.substr(0, n), "a goat");
  EXPECT_EQ(pronk_model_metadata(model_, "general.architecture", text.data(), 20, &n), PRONK_OK);
  EXPECT_EQ(text.substr(0, n), "llama");
  EXPECT_EQ(pronk_model_metadata(model_, "no.such", text.data(), 20, &n), PRONK_ABSENT);
  EXPECT_EQ(pronk_model_chat_template(model_, nullptr, 0, &n), PRONK_OK);
  EXPECT_GT(n, 10u);
  EXPECT_EQ(pronk_model_token(model_, "such"), -1);
  EXPECT_EQ(pronk_model_ends(model_, pronk_model_token(model_, "eos")), 1);
  EXPECT_EQ(pronk_model_ends(model_, ids[1]), 0);
}

}  // namespace
