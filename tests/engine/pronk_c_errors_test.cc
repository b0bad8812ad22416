// The library for C: an argument that is wrong, NULL or out of range gives a status and a line.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/pronk.h"
#include "engine/pronk_c.h"
#include "tests/engine/library_for_c.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/regex.h"

namespace {

using test::Append;
using test::kDefault;
using test::LibraryForC;

TEST_F(LibraryForC, SaysWhatIsWrong) {
  EXPECT_EQ(pronk_version(), pronk::Version());
  pronk_model* none = nullptr;
  EXPECT_EQ(pronk_model_open("no/such.gguf", &none), PRONK_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
  EXPECT_NE(std::strstr(pronk_error(), "no/such.gguf"), nullptr);
  pronk_session* session = nullptr;
  const auto error = [&](const char* options) {
    EXPECT_EQ(pronk_session_open(model_, options, &session), PRONK_WRONG_USE) << options;
    return std::string(pronk_error());
  };
  EXPECT_EQ(error("warmth=1"), "there is no option 'warmth'");
  EXPECT_EQ(error("threads"), "'threads': expected NAME=VALUE");
  EXPECT_EQ(error("top_p=2"), "top_p: expected a number from 0 to 1, found 2");
  EXPECT_EQ(error("cache_bits=9"), "cache_bits: expected 4, 8, 16 or 32, found 9");
  EXPECT_TRUE(error("steps=top_q").starts_with("steps: 'top_q' is none of"));
  EXPECT_EQ(pronk_session_open(model_, "draft=\"no such.gguf\"", &session), PRONK_NOT_FOUND);
  EXPECT_EQ(error("draft=\"x"), "'draft=x': its quotes have no end");
  EXPECT_EQ(session, nullptr);
  pronk_embedder* embedder = nullptr;
  EXPECT_EQ(pronk_embedder_open(model_, nullptr, nullptr, &embedder), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_embedder_open(model_, "max", nullptr, &embedder), PRONK_WRONG_USE);
}

TEST_F(LibraryForC, NullIsAStatus) {
  size_t n = 0;
  pronk_model* model = nullptr;
  pronk_session* session = nullptr;
  EXPECT_EQ(pronk_model_open(nullptr, &model), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_model_open(kDefault.c_str(), nullptr), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_session_open(nullptr, nullptr, &session), PRONK_WRONG_USE);
  EXPECT_STREQ(pronk_error(), "an argument is NULL");
  EXPECT_EQ(pronk_session_complete(nullptr, "a", nullptr, nullptr, nullptr, nullptr),
            PRONK_WRONG_USE);
  EXPECT_EQ(pronk_session_clear(nullptr), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_batch_step(nullptr, nullptr, nullptr), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_batch_size(nullptr), 0u);
  EXPECT_EQ(pronk_chat_say(nullptr, "a", nullptr, nullptr, nullptr, nullptr), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_model_metadata(model_, nullptr, nullptr, 0, &n), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_model_tokenize(model_, "a", 1, 0, nullptr, 0, nullptr), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_model_tokenize(model_, "a", 1, 0, nullptr, 9, &n), PRONK_OK);  // no room at all
  EXPECT_EQ(pronk_model_token(nullptr, "bos"), -1);
  EXPECT_EQ(pronk_model_ends(nullptr, 1), 0);
  pronk_model_free(nullptr);
  pronk_session_free(nullptr);
  ASSERT_EQ(pronk_session_open(model_, nullptr, &session), PRONK_OK);
  pronk_limits limits = {};  // without its size
  EXPECT_EQ(pronk_session_complete(session, "a", &limits, nullptr, nullptr, nullptr),
            PRONK_WRONG_USE);
  // A program of an earlier version has fewer fields.
  limits.size = offsetof(pronk_limits, grammar);
  limits.max_tokens = 2;
  limits.grammar = reinterpret_cast<const pronk_grammar*>(&limits);
  pronk_completion result = PRONK_COMPLETION_INIT;
  result.size = offsetof(pronk_completion, prompt_seconds);
  result.prompt_seconds = -1;
  EXPECT_EQ(pronk_session_complete(session, "a", &limits, nullptr, nullptr, &result), PRONK_OK);
  EXPECT_EQ(result.n_generated, 2u);
  EXPECT_EQ(result.prompt_seconds, -1);
  pronk_session_free(session);
}

// Zero for each argument, after a handle or in its place.
template <class... Args>
pronk_status CallWithZeros(pronk_status (*function)(Args...)) {
  return function(Args{}...);
}
template <class Handle, class First, class... Args>
pronk_status CallWithZeros(pronk_status (*function)(First, Args...), Handle* handle) {
  return function(handle, Args{}...);
}

// Every function of the header: NULL for a required argument gives a status, with or without a
// handle, and never a crash.
TEST_F(LibraryForC, EveryFunctionTakesNull) {
  std::set<std::string> called;
  const auto expect = [&](const char* name, pronk_status without, pronk_status with) {
    called.insert(name);
    EXPECT_EQ(without, PRONK_WRONG_USE) << name;
    EXPECT_TRUE(with == PRONK_WRONG_USE || with == PRONK_OK) << name << ": " << with;
  };
  pronk_session* session = nullptr;
  pronk_batch* batch = nullptr;
  pronk_chat* chat = nullptr;
  pronk_embedder* embedder = nullptr;
  ASSERT_EQ(pronk_session_open(model_, "threads=1", &session), PRONK_OK);
  ASSERT_EQ(pronk_batch_open(model_, 1, &batch), PRONK_OK);
  ASSERT_EQ(pronk_chat_open(model_, nullptr, "threads=1", &chat), PRONK_OK);
  ASSERT_EQ(pronk_embedder_open(model_, "mean", "threads=1", &embedder), PRONK_OK);
#define PRONK_EXPECT(function, handle) \
  expect(#function, CallWithZeros(function), CallWithZeros(function, handle))
  PRONK_EXPECT(pronk_model_metadata, model_);
  PRONK_EXPECT(pronk_model_metadata_key, model_);
  PRONK_EXPECT(pronk_model_facts, model_);
  PRONK_EXPECT(pronk_model_render, model_);
  PRONK_EXPECT(pronk_model_tokenize_chat, model_);
  PRONK_EXPECT(pronk_model_chat_template, model_);
  PRONK_EXPECT(pronk_model_tokenize, model_);
  PRONK_EXPECT(pronk_model_detokenize, model_);
  PRONK_EXPECT(pronk_session_open, model_);
  PRONK_EXPECT(pronk_batch_open, model_);
  PRONK_EXPECT(pronk_chat_open, model_);
  PRONK_EXPECT(pronk_embedder_open, model_);
  PRONK_EXPECT(pronk_reranker_open, model_);
  PRONK_EXPECT(pronk_session_complete, session);
  PRONK_EXPECT(pronk_session_complete_ids, session);
  PRONK_EXPECT(pronk_session_score, session);
  PRONK_EXPECT(pronk_session_copy, session);
  PRONK_EXPECT(pronk_session_truncate, session);
  PRONK_EXPECT(pronk_session_memory, session);
  PRONK_EXPECT(pronk_session_tokens, session);
  PRONK_EXPECT(pronk_session_logits, session);
  PRONK_EXPECT(pronk_session_clear, session);
  PRONK_EXPECT(pronk_session_save, session);
  PRONK_EXPECT(pronk_session_load, session);
  PRONK_EXPECT(pronk_batch_add, batch);
  PRONK_EXPECT(pronk_batch_add_chat, batch);
  PRONK_EXPECT(pronk_batch_step, batch);
  PRONK_EXPECT(pronk_chat_say, chat);
  PRONK_EXPECT(pronk_chat_answer, chat);
  PRONK_EXPECT(pronk_chat_history, chat);
  PRONK_EXPECT(pronk_chat_set_history, chat);
  PRONK_EXPECT(pronk_chat_set_tools, chat);
  PRONK_EXPECT(pronk_chat_set_tool_choice, chat);
  PRONK_EXPECT(pronk_chat_count, chat);
  PRONK_EXPECT(pronk_chat_set_thinking, chat);
  PRONK_EXPECT(pronk_chat_set_thinking_budget, chat);
  PRONK_EXPECT(pronk_chat_on_thinking, chat);
  PRONK_EXPECT(pronk_chat_clear, chat);
  PRONK_EXPECT(pronk_chat_memory, chat);
  PRONK_EXPECT(pronk_chat_save, chat);
  PRONK_EXPECT(pronk_chat_load, chat);
  PRONK_EXPECT(pronk_embedder_embed, embedder);
  expect("pronk_reranker_score", CallWithZeros(pronk_reranker_score), PRONK_OK);
  expect("pronk_model_open", CallWithZeros(pronk_model_open), PRONK_OK);
  expect("pronk_model_open_exact", CallWithZeros(pronk_model_open_exact), PRONK_OK);
  expect("pronk_grammar_json_schema", CallWithZeros(pronk_grammar_json_schema), PRONK_OK);
  expect("pronk_grammar_json_object", CallWithZeros(pronk_grammar_json_object), PRONK_OK);
  expect("pronk_grammar_gbnf", CallWithZeros(pronk_grammar_gbnf), PRONK_OK);
#undef PRONK_EXPECT
  pronk_session_free(session);
  pronk_batch_free(batch);
  pronk_chat_free(chat);
  pronk_embedder_free(embedder);
  std::set<std::string> declared;
  const std::string header = test::ReadText(test::SourceDir() + "/engine/pronk_c.h");
  for (const auto& groups : test::FindAll(header, "\npronk_status (pronk_[a-z_]+)\\("))
    declared.insert(groups[1]);
  EXPECT_EQ(called, declared);
}

// Nonsensical numbers: each is refused before it makes the library read or write anything.
TEST_F(LibraryForC, NumbersOutOfRange) {
  const auto expect = [](pronk_status status, const char* says) {
    EXPECT_EQ(status, PRONK_WRONG_USE) << says;
    EXPECT_STREQ(pronk_error(), says);
  };
  size_t n = 7;
  int32_t ids[4] = {1, 2, 3, 4};
  const auto tokenize = [&](size_t n_bytes, unsigned reading) {
    return pronk_model_tokenize(model_, "a", n_bytes, reading, ids, 4, &n);
  };
  expect(tokenize(1, 16), "reading: there is no flag 16");
  expect(tokenize(1, ~0u), "reading: there is no flag 4294967280");
  expect(tokenize(1, PRONK_READ_BOS | PRONK_READ_NO_BOS),
         "reading: PRONK_READ_BOS excludes PRONK_READ_NO_BOS");
  expect(tokenize(SIZE_MAX, 0), "n_bytes: expected at most 1073741824, found 18446744073709551615");
  expect(pronk_model_detokenize(model_, ids, SIZE_MAX / 2, 0, nullptr, 0, &n),
         "n_ids: expected at most 1073741824, found 9223372036854775807");
  EXPECT_EQ(n, 7u);
  for (const int32_t id : {-1, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(pronk_model_ends(model_, id), 0);
    EXPECT_EQ(pronk_model_detokenize(model_, &id, 1, 0, nullptr, 0, &n), PRONK_OK) << id;
    EXPECT_EQ(n, 0u);
  }
  EXPECT_EQ(pronk_model_metadata_key(model_, SIZE_MAX, nullptr, 0, &n), PRONK_ABSENT);
  EXPECT_EQ(pronk_model_tokenize(model_, "a", 1, 0, ids, SIZE_MAX, &n), PRONK_OK);  // has room

  pronk_session* session = nullptr;
  ASSERT_EQ(pronk_session_open(model_, "context=64 threads=1", &session), PRONK_OK);
  std::string text;
  const auto complete = [&](const pronk_limits& limits, pronk_completion* result = nullptr) {
    return pronk_session_complete(session, "a", &limits, Append, &text, result);
  };
  const auto limits = [](auto change) {
    pronk_limits changed = PRONK_LIMITS_INIT;
    change(changed);
    return changed;
  };
  using L = pronk_limits;
  const std::string range = "expected a number from -1 to 1073741824, found ";
  expect(complete(limits([](L& l) { l.max_tokens = -2; })),
         ("max_tokens: " + range + "-2").c_str());
  expect(complete(limits([](L& l) { l.max_tokens = INT32_MIN; })),
         ("max_tokens: " + range + "-2.14748365e+09").c_str());
  expect(complete(limits([](L& l) { l.n_likeliest = -1; })),
         "n_likeliest: expected at least 0, found -1");
  expect(complete(limits([](L& l) { l.reading = 64; })), "reading: there is no flag 64");
  const int32_t bad = INT32_MAX;
  EXPECT_EQ(pronk_session_complete_ids(session, &bad, 1, nullptr, nullptr, nullptr, nullptr),
            PRONK_WRONG_USE);
  expect(pronk_session_complete_ids(session, ids, SIZE_MAX, nullptr, nullptr, nullptr, nullptr),
         "n_ids: expected at most 1073741824, found 18446744073709551615");
  const auto score = [&](size_t n_ids, int n_likeliest, unsigned reading) {
    const auto on_token = [](const pronk_token*, void*) { return 0; };
    return pronk_session_score(session, nullptr, ids, n_ids, n_likeliest, reading, on_token,
                               nullptr);
  };
  expect(score(2, -1, 0), "n_likeliest: expected a number from 0 to 1073741824, found -1");
  expect(score(2, 1, 32), "reading: there is no flag 32");
  expect(score(SIZE_MAX, 1, 0), "n_ids: expected at most 1073741824, found 18446744073709551615");
  EXPECT_EQ(score(2, 1 << 30, 0), PRONK_OK);  // more than the vocabulary has
  EXPECT_EQ(pronk_session_truncate(session, SIZE_MAX), PRONK_OK);

  pronk_batch* batch = nullptr;
  expect(pronk_batch_open(model_, -1, &batch),
         "threads: expected a number from 0 to 1024, found -1");
  EXPECT_EQ(batch, nullptr);
  pronk_chat* chat = nullptr;
  ASSERT_EQ(pronk_chat_open(model_, nullptr, "threads=1", &chat), PRONK_OK);
  expect(pronk_chat_set_thinking_budget(chat, -2, nullptr),
         "thinking budget: expected a number from -1 to 1073741824, found -2");
  EXPECT_EQ(pronk_chat_set_tool_choice(chat, "perhaps"), PRONK_WRONG_USE);
  EXPECT_EQ(pronk_chat_set_thinking(chat, "a little"), PRONK_WRONG_USE);
  pronk_chat_free(chat);

  // Sizes of structures: not set, random, and between two fields.
  const char* const json = R"([{"role": "user", "content": "a"}])";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{12}, size_t{5000}, SIZE_MAX}) {
    SCOPED_TRACE(size);
    const auto expect_size = [&](pronk_status status, size_t known) {
      expect(status, ("a structure's size: expected " + std::to_string(known) + ", found " +
                      std::to_string(size) + ": PRONK_..._INIT sets it")
                         .c_str());
    };
    expect_size(complete(limits([&](L& l) { l.size = size; })), sizeof(pronk_limits));
    pronk_completion result = PRONK_COMPLETION_INIT;
    result.size = size;
    expect_size(complete(limits([](L& l) { l.max_tokens = 1; }), &result), sizeof(result));
    pronk_facts facts = PRONK_FACTS_INIT;
    facts.size = size;
    expect_size(pronk_model_facts(model_, &facts), sizeof(facts));
    pronk_memory_use memory = PRONK_MEMORY_USE_INIT;
    memory.size = size;
    expect_size(pronk_session_memory(session, &memory), sizeof(memory));
    pronk_rendering rendering = PRONK_RENDERING_INIT;
    rendering.size = size;
    expect_size(pronk_model_render(model_, json, &rendering, nullptr, 0, &n), sizeof(rendering));
  }
  EXPECT_EQ(text, "");  // nothing was generated
  // A later version's structure is accepted if the unknown fields are 0.
  struct {
    pronk_limits known = PRONK_LIMITS_INIT;
    void* later = nullptr;
  } newer;
  newer.known.size = sizeof(newer);
  newer.known.max_tokens = 1;
  EXPECT_EQ(complete(newer.known), PRONK_OK);
  newer.later = &newer;
  expect(complete(newer.known),
         "a structure has fields that this version of the library does not know");
  for (const int64_t now : {INT64_MIN, INT64_MAX, int64_t{253'402'300'800}}) {
    pronk_rendering rendering = PRONK_RENDERING_INIT;
    rendering.chat_template = "{{ strftime_now('%Y') }}";
    rendering.now = now;
    EXPECT_EQ(pronk_model_render(model_, json, &rendering, nullptr, 0, &n), PRONK_WRONG_USE);
    rendering.now = 253'402'300'799;
    EXPECT_EQ(pronk_model_render(model_, json, &rendering, nullptr, 0, &n), PRONK_OK);
    EXPECT_EQ(n, 4u);
  }
  pronk_session_free(session);
  const char* const texts[] = {"a", nullptr};
  pronk_embedder* embedder = nullptr;
  ASSERT_EQ(pronk_embedder_open(model_, "mean", nullptr, &embedder), PRONK_OK);
  expect(pronk_embedder_embed(embedder, texts, 2, nullptr, 0, &n), "text 1 is NULL");
  expect(pronk_embedder_embed(embedder, texts, SIZE_MAX, nullptr, 0, &n),
         "n_texts: expected at most 1073741824, found 18446744073709551615");
  pronk_embedder_free(embedder);
}

// A buffer receives the part that fits; the size is the full size.

}  // namespace
