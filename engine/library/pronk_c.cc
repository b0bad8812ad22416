// The library for C: each function calls its namesake of pronk.h, and turns errors into a status.
#include "engine/pronk_c.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/library/pronk_c_values.h"
#include "engine/pronk.h"

using library::Caller;
using library::Give;
using library::ReadBytes;
using library::ReadIds;
using library::ReadLimits;
using library::ReadMessages;
using library::ReadOptions;
using library::ReadPooling;
using library::ReadReading;
using library::ReadRendering;
using library::ReadTexts;

namespace {

// The text of the thread's last error. Its size is fixed, since memory may be exhausted.
std::array<char, 1024>& LastError() {
  thread_local std::array<char, 1024> text = {};
  return text;
}

pronk_status Fail(const char* what, pronk_status status) {
  std::snprintf(LastError().data(), LastError().size(), "%s", what);
  return status;
}

// Whether the pointers that a function needs are not NULL.
struct Needed {
  template <class... Pointers>
  Needed(const Pointers*... pointers)  // NOLINT(google-explicit-constructor): a list in braces
      : are_there((pointers && ...)) {}
  bool are_there;
};

// Calls a function, and turns an exception into a status.
template <class Function>
pronk_status Try(Needed needed, Function function) {
  if (!needed.are_there) return Fail("an argument is NULL", PRONK_WRONG_USE);
  try {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      return PRONK_OK;
    } else {
      return function();
    }
  } catch (const pronk::Error& error) {
    static_assert(PRONK_FAILED - PRONK_WRONG_USE == static_cast<int>(pronk::ErrorKind::kOther));
    return Fail(error.what(),
                static_cast<pronk_status>(PRONK_WRONG_USE + static_cast<int>(error.kind())));
  } catch (const std::bad_alloc&) {
    return Fail("out of memory", PRONK_NO_MEMORY);
  } catch (const std::exception& error) {
    return Fail(error.what(), PRONK_FAILED);
  } catch (...) {
    return Fail("the caller's function threw something", PRONK_FAILED);
  }
}

// Makes a handle of a value whose construction may take long or fail.
template <class Handle, class Make>
pronk_status New(Handle** handle, Needed needed, Make make) {
  if (handle != nullptr) *handle = nullptr;
  needed.are_there &= handle != nullptr;
  return Try(needed, [&] { *handle = new Handle{make()}; });
}

// Calls a function that returns a Completion, after checking that `result` can hold it.
template <class Complete>
void CompleteInto(pronk_completion* result, Complete complete) {
  if (result != nullptr) library::CheckedSize(*result);
  Give(complete(), result);
}

}  // namespace

const char* pronk_error() { return LastError().data(); }
const char* pronk_version() {
  static const std::string version = pronk::Version();
  return version.c_str();
}

pronk_status pronk_model_open(const char* path, pronk_model** model) {
  return New(model, {path}, [&] { return pronk::Model(path); });
}
pronk_status pronk_model_open_exact(const char* path, pronk_model** model) {
  return New(model, {path}, [&] { return pronk::Model(path, /*exact=*/true); });
}
void pronk_model_free(pronk_model* model) { delete model; }
pronk_status pronk_model_metadata(const pronk_model* model, const char* key, char* text,
                                  size_t room, size_t* n) {
  return Try({model, key, n}, [&] {
    const auto value = model->Metadata(key);
    if (!value) return PRONK_ABSENT;
    Give(*value, text, room, n);
    return PRONK_OK;
  });
}
pronk_status pronk_model_metadata_key(const pronk_model* model, size_t i, char* text, size_t room,
                                      size_t* n) {
  return Try({model, n}, [&] {
    const std::vector<std::string> keys = model->MetadataKeys();
    if (i >= keys.size()) return PRONK_ABSENT;
    Give(keys[i], text, room, n);
    return PRONK_OK;
  });
}
pronk_status pronk_model_facts(const pronk_model* model, pronk_facts* facts) {
  return Try({model, facts}, [&] {
    Give(pronk_facts{0, model->context_length(), model->size_in_bytes(), model->n_parameters(),
                     model->vocabulary_size(), model->embedding_length()},
         facts);
  });
}
pronk_status pronk_model_render(const pronk_model* model, const char* messages,
                                const pronk_rendering* rendering, char* text, size_t room,
                                size_t* n) {
  return Try({model, messages, n}, [&] {
    Give(model->Render(pronk::ParseMessages(messages), ReadRendering(rendering)), text, room, n);
  });
}
pronk_status pronk_model_tokenize_chat(const pronk_model* model, const char* messages,
                                       const pronk_rendering* rendering, int32_t* ids, size_t room,
                                       size_t* n) {
  return Try({model, messages, n}, [&] {
    Give(model->TokenizeChat(pronk::ParseMessages(messages), ReadRendering(rendering)), ids, room,
         n);
  });
}
pronk_status pronk_model_chat_template(const pronk_model* model, char* text, size_t room,
                                       size_t* n) {
  return Try({model, n}, [&] { Give(model->chat_template(), text, room, n); });
}
int32_t pronk_model_token(const pronk_model* model, const char* name) {
  if (model == nullptr || name == nullptr) return -1;
  const pronk::SpecialTokens& tokens = model->special;
  const std::pair<std::string_view, std::int32_t> named[] = {{"bos", tokens.bos},
                                                             {"eos", tokens.eos},
                                                             {"eot", tokens.eot},
                                                             {"unk", tokens.unk},
                                                             {"sep", tokens.sep}};
  for (const auto& [token, id] : named) {
    if (token == name) return id;
  }
  return -1;
}
int pronk_model_ends(const pronk_model* model, int32_t id) {
  if (model == nullptr) return 0;
  const std::vector<std::int32_t>& ends = model->special.ends;
  return std::count(ends.begin(), ends.end(), id) > 0 ? 1 : 0;
}
pronk_status pronk_model_tokenize(const pronk_model* model, const char* text, size_t n_bytes,
                                  unsigned reading, int32_t* ids, size_t room, size_t* n) {
  return Try({model, text, n}, [&] {
    Give(model->Tokenize(ReadBytes(text, n_bytes), ReadReading(reading)), ids, room, n);
  });
}
pronk_status pronk_model_detokenize(const pronk_model* model, const int32_t* ids, size_t n_ids,
                                    int special, char* text, size_t room, size_t* n) {
  return Try({model, ids, n},
             [&] { Give(model->Detokenize(ReadIds(ids, n_ids), special != 0), text, room, n); });
}

pronk_status pronk_grammar_json_schema(const char* schema, pronk_grammar** grammar) {
  return New(grammar, {schema}, [&] { return pronk::Grammar::JsonSchema(schema); });
}
pronk_status pronk_grammar_json_object(pronk_grammar** grammar) {
  return New(grammar, {}, [] { return pronk::Grammar::JsonObject(); });
}
pronk_status pronk_grammar_gbnf(const char* rules, pronk_grammar** grammar) {
  return New(grammar, {rules}, [&] { return pronk::Grammar::Gbnf(rules); });
}
void pronk_grammar_free(pronk_grammar* grammar) { delete grammar; }

pronk_status pronk_session_open(const pronk_model* model, const char* options,
                                pronk_session** session) {
  return New(session, {model}, [&] { return pronk::Session(*model, ReadOptions(options)); });
}
void pronk_session_free(pronk_session* session) { delete session; }
pronk_status pronk_session_complete(pronk_session* session, const char* prompt,
                                    const pronk_limits* limits, pronk_on_text on_text, void* user,
                                    pronk_completion* result) {
  return Try({session, prompt}, [&] {
    CompleteInto(result, [&] {
      return session->Complete(prompt, Caller(on_text, user), ReadLimits(limits, user));
    });
  });
}
pronk_status pronk_session_complete_ids(pronk_session* session, const int32_t* ids, size_t n_ids,
                                        const pronk_limits* limits, pronk_on_text on_text,
                                        void* user, pronk_completion* result) {
  return Try({session, ids}, [&] {
    CompleteInto(result, [&] {
      return session->Complete(ReadIds(ids, n_ids), Caller(on_text, user),
                               ReadLimits(limits, user));
    });
  });
}
pronk_status pronk_session_score(pronk_session* session, const char* text, const int32_t* ids,
                                 size_t n_ids, int n_likeliest, unsigned reading,
                                 pronk_on_token on_token, void* user) {
  return Try({session}, [&] {
    if ((text == nullptr && ids == nullptr) || on_token == nullptr)
      throw pronk::Error("an argument is NULL");
    const pronk::Prompt prompt =
        ids == nullptr ? pronk::Prompt(text) : pronk::Prompt(ReadIds(ids, n_ids));
    for (const pronk::Token& token : session->Score(prompt, n_likeliest, ReadReading(reading))) {
      if (!Give(token, on_token, user)) return;
    }
  });
}
pronk_status pronk_session_copy(const pronk_session* session, pronk_session** copy) {
  return New(copy, {session}, [&] { return session->Copy(); });
}
pronk_status pronk_session_truncate(pronk_session* session, size_t n_tokens) {
  return Try({session}, [&] { session->Truncate(n_tokens); });
}
pronk_status pronk_session_memory(const pronk_session* session, pronk_memory_use* memory) {
  return Try({session, memory}, [&] { Give(session->memory(), memory); });
}
pronk_status pronk_session_tokens(const pronk_session* session, int32_t* ids, size_t room,
                                  size_t* n) {
  return Try({session, n}, [&] { Give(session->tokens(), ids, room, n); });
}
pronk_status pronk_session_logits(const pronk_session* session, float* logits, size_t room,
                                  size_t* n) {
  return Try({session, n}, [&] { Give(session->logits(), logits, room, n); });
}
pronk_status pronk_session_clear(pronk_session* session) {
  return Try({session}, [&] { session->Clear(); });
}
pronk_status pronk_session_save(pronk_session* session, const char* path) {
  return Try({session, path}, [&] { session->Save(path); });
}
pronk_status pronk_session_load(pronk_session* session, const char* path) {
  return Try({session, path}, [&] { session->Load(path); });
}

pronk_status pronk_batch_open(const pronk_model* model, int threads, pronk_batch** batch) {
  return New(batch, {model}, [&] { return pronk::Batch(*model, threads); });
}
void pronk_batch_free(pronk_batch* batch) { delete batch; }
pronk_status pronk_batch_add(pronk_batch* batch, pronk_session* session, const char* prompt,
                             const pronk_limits* limits, pronk_on_text on_text, void* user,
                             size_t* number) {
  return Try({batch, session, prompt}, [&] {
    const size_t added =
        batch->Add(*session, prompt, Caller(on_text, user), ReadLimits(limits, user));
    if (number != nullptr) *number = added;
  });
}
pronk_status pronk_batch_add_chat(pronk_batch* batch, pronk_chat* chat, const char* messages,
                                  const pronk_limits* limits, pronk_on_text on_text, void* user,
                                  size_t* number) {
  return Try({batch, chat}, [&] {
    const size_t added =
        batch->Add(*chat, ReadMessages(messages), Caller(on_text, user), ReadLimits(limits, user));
    if (number != nullptr) *number = added;
  });
}
pronk_status pronk_batch_step(pronk_batch* batch, pronk_on_end on_end, void* user) {
  return Try({batch}, [&] {
    for (const auto& [number, completion] : batch->Step()) {
      pronk_completion result = PRONK_COMPLETION_INIT;
      Give(completion, &result);
      if (on_end != nullptr) on_end(number, &result, user);
    }
  });
}
size_t pronk_batch_size(const pronk_batch* batch) { return batch == nullptr ? 0 : batch->size(); }

pronk_status pronk_chat_open(const pronk_model* model, const char* system, const char* options,
                             pronk_chat** chat) {
  return New(chat, {model}, [&] {
    return pronk::Chat(*model, system == nullptr ? "" : system, ReadOptions(options));
  });
}
void pronk_chat_free(pronk_chat* chat) { delete chat; }
pronk_status pronk_chat_say(pronk_chat* chat, const char* text, const pronk_limits* limits,
                            pronk_on_text on_text, void* user, pronk_completion* result) {
  return Try({chat, text}, [&] {
    CompleteInto(result,
                 [&] { return chat->Say(text, Caller(on_text, user), ReadLimits(limits, user)); });
  });
}
pronk_status pronk_chat_answer(pronk_chat* chat, const char* messages, const pronk_limits* limits,
                               pronk_on_text on_text, void* user, pronk_completion* result) {
  return Try({chat}, [&] {
    CompleteInto(result, [&] {
      return chat->Answer(ReadMessages(messages), Caller(on_text, user), ReadLimits(limits, user));
    });
  });
}
pronk_status pronk_chat_history(const pronk_chat* chat, char* json, size_t room, size_t* n) {
  return Try({chat, n}, [&] { Give(pronk::MessagesJson(chat->History()), json, room, n); });
}
pronk_status pronk_chat_set_history(pronk_chat* chat, const char* json) {
  return Try({chat, json}, [&] { chat->SetHistory(pronk::ParseMessages(json)); });
}
pronk_status pronk_chat_set_tools(pronk_chat* chat, const char* json) {
  return Try({chat, json}, [&] { chat->SetTools(json); });
}
pronk_status pronk_chat_set_tool_choice(pronk_chat* chat, const char* choice) {
  return Try({chat, choice}, [&] { chat->SetToolChoice(choice); });
}
pronk_status pronk_chat_count(pronk_chat* chat, const char* text, size_t* n) {
  return Try({chat, text, n}, [&] { *n = chat->Count(text); });
}
pronk_status pronk_chat_set_thinking(pronk_chat* chat, const char* level) {
  return Try({chat, level}, [&] { chat->SetThinking(level); });
}
pronk_status pronk_chat_set_thinking_budget(pronk_chat* chat, int tokens, const char* message) {
  return Try({chat}, [&] { chat->SetThinkingBudget(tokens, message == nullptr ? "" : message); });
}
pronk_status pronk_chat_on_thinking(pronk_chat* chat, pronk_on_text on_thinking, void* user) {
  return Try({chat}, [&] { chat->OnThinking(Caller(on_thinking, user)); });
}
pronk_status pronk_chat_clear(pronk_chat* chat) {
  return Try({chat}, [&] { chat->Clear(); });
}
pronk_status pronk_chat_memory(const pronk_chat* chat, pronk_memory_use* memory) {
  return Try({chat, memory}, [&] { Give(chat->memory(), memory); });
}
pronk_status pronk_chat_save(pronk_chat* chat, const char* path) {
  return Try({chat, path}, [&] { chat->Save(path); });
}
pronk_status pronk_chat_load(pronk_chat* chat, const char* path) {
  return Try({chat, path}, [&] { chat->Load(path); });
}

pronk_status pronk_embedder_open(const pronk_model* model, const char* pooling, const char* options,
                                 pronk_embedder** embedder) {
  return New(embedder, {model},
             [&] { return pronk::Embedder(*model, ReadPooling(pooling), ReadOptions(options)); });
}
void pronk_embedder_free(pronk_embedder* embedder) { delete embedder; }
pronk_status pronk_embedder_embed(pronk_embedder* embedder, const char* const* texts,
                                  size_t n_texts, float* vectors, size_t room, size_t* n) {
  return Try({embedder, texts, n}, [&] {
    std::vector<float> all;
    for (const auto& row : embedder->Embed(ReadTexts(texts, n_texts))) {
      all.insert(all.end(), row.begin(), row.end());
    }
    Give(all, vectors, room, n);
  });
}

pronk_status pronk_reranker_open(const pronk_model* model, const char* options,
                                 pronk_reranker** reranker) {
  return New(reranker, {model}, [&] { return pronk::Reranker(*model, ReadOptions(options)); });
}
void pronk_reranker_free(pronk_reranker* reranker) { delete reranker; }
pronk_status pronk_reranker_score(pronk_reranker* reranker, const char* query,
                                  const char* const* texts, size_t n_texts, float* scores) {
  return Try({reranker, query, texts, scores}, [&] {
    const std::vector<float> found = reranker->Score(query, ReadTexts(texts, n_texts));
    std::copy(found.begin(), found.end(), scores);
  });
}
