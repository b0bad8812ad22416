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

#include "engine/pronk.h"

struct pronk_model : pronk::Model {
  pronk::SpecialTokens special = special_tokens();
};
struct pronk_grammar : pronk::Grammar {};
struct pronk_session : pronk::Session {};
struct pronk_batch : pronk::Batch {};
struct pronk_chat : pronk::Chat {};
struct pronk_embedder : pronk::Embedder {};
struct pronk_reranker : pronk::Reranker {};

namespace {

// Of a fixed size: there may be no memory for another.
std::array<char, 1024>& LastError() {
  thread_local std::array<char, 1024> text = {};
  return text;
}

pronk_status Fail(const char* what, pronk_status status) {
  std::snprintf(LastError().data(), LastError().size(), "%s", what);
  return status;
}

// Calls a function that needs these pointers, and turns what it throws into a status.
template <class Function, class... Pointers>
pronk_status Try(Function function, const Pointers*... needed) {
  if ((!needed || ...)) return Fail("an argument is NULL", PRONK_WRONG_USE);
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

// A handle of a value that may take long to make, or fail.
template <class Handle, class Make, class... Pointers>
pronk_status New(Handle** handle, Make make, const Pointers*... needed) {
  if (handle != nullptr) *handle = nullptr;
  return Try([&] { *handle = new Handle{make()}; }, handle, needed...);
}

// What a structure has of the fields that are known here; the others are zero.
template <class Struct>
Struct Known(const Struct& from) {
  Struct known = {};
  if (from.size < sizeof(from.size)) throw pronk::Error("a structure's size is 0: it was not set");
  std::memcpy(&known, &from, std::min(from.size, sizeof(known)));
  return known;
}

template <class Items, class Item>
void Give(const Items& items, Item* to, size_t room, size_t* n) {
  if (to != nullptr) std::copy_n(items.begin(), std::min(items.size(), room), to);
  *n = items.size();
}

// "temperature=0.5 draft=\"my model.gguf\""
pronk::Options ReadOptions(const char* text) {
  pronk::Options options;
  std::string word;
  const auto set = [&] {
    const size_t equals = word.find('=');
    if (word.empty()) return;
    if (equals == std::string::npos) throw pronk::Error("'" + word + "': expected NAME=VALUE");
    pronk::Set(options, word.substr(0, equals), word.substr(equals + 1));
    word.clear();
  };
  bool is_quoted = false;
  for (const char* c = text == nullptr ? "" : text; *c != 0; ++c) {
    if (*c == '\\' && is_quoted && c[1] != 0) {
      word += *++c;
    } else if (*c == '"') {
      is_quoted = !is_quoted;
    } else if (*c == ' ' && !is_quoted) {
      set();
    } else {
      word += *c;
    }
  }
  if (is_quoted) throw pronk::Error("'" + word + "': its quotes have no end");
  set();
  return options;
}

pronk::Pooling ReadPooling(const char* name) {
  if (name == nullptr) return pronk::Pooling::kOfFile;
  const std::pair<std::string_view, pronk::Pooling> named[] = {{"mean", pronk::Pooling::kMean},
                                                               {"first", pronk::Pooling::kFirst},
                                                               {"last", pronk::Pooling::kLast}};
  for (const auto& [text, pooling] : named) {
    if (text == name) return pooling;
  }
  throw pronk::Error("there is no pooling '" + std::string(name) + "'");
}

pronk::Reading ReadReading(unsigned flags) {
  pronk::Reading reading;
  const auto has = [&](unsigned flag) { return (flags & flag) != 0; };
  reading.joined = !has(PRONK_READ_APART);
  if (has(PRONK_READ_BOS | PRONK_READ_NO_BOS)) reading.bos = has(PRONK_READ_BOS);
  reading.special = has(PRONK_READ_SPECIAL);
  return reading;
}

pronk::Rendering ReadRendering(const pronk_rendering* rendering_or_null) {
  pronk::Rendering rendering;
  if (rendering_or_null == nullptr) return rendering;
  const pronk_rendering from = Known(*rendering_or_null);
  const auto text = [](const char* given) { return std::string(given == nullptr ? "" : given); };
  rendering.chat_template = text(from.chat_template);
  rendering.tools = text(from.tools);
  rendering.variables = text(from.variables);
  if (from.now != 0) rendering.now = from.now;
  rendering.begins_answer = from.continues == 0;
  return rendering;
}

bool Give(const pronk::Token& token, pronk_on_token to, void* user) {
  std::vector<pronk_likely> likeliest;
  likeliest.reserve(token.likeliest.size());
  for (const auto& [id, log] : token.likeliest) likeliest.push_back({id, log});
  const pronk_token given = {token.id, token.seconds, token.log_probability, likeliest.data(),
                             likeliest.size()};
  return to(&given, user) == 0;
}

pronk::Limits ReadLimits(const pronk_limits* limits_or_null, void* user) {
  pronk::Limits limits;
  if (limits_or_null == nullptr) return limits;
  const pronk_limits known = Known(*limits_or_null), *const from = &known;
  if (from->max_tokens != 0) limits.max_tokens = from->max_tokens == -1 ? 0 : from->max_tokens;
  if (from->grammar != nullptr) limits.grammar = *from->grammar;
  for (const char* const* stop = from->stops; stop != nullptr && *stop != nullptr; ++stop) {
    limits.stops.emplace_back(*stop);
  }
  if (from->on_prompt != nullptr) {
    limits.on_prompt = [user, call = from->on_prompt](size_t n_read, size_t n) {
      return call(n_read, n, user) == 0;
    };
  }
  limits.reading = ReadReading(from->reading);
  if (from->on_token != nullptr) {
    limits.n_likeliest = from->n_likeliest == 0 ? -1 : from->n_likeliest;
    limits.on_token = [user, call = from->on_token](const pronk::Token& token) {
      return Give(token, call, user);
    };
  }
  if (from->on_logits != nullptr) {
    limits.on_logits = [user, call = from->on_logits](float* logits, size_t n) {
      return call(logits, n, user) == 0;
    };
  }
  return limits;
}

std::vector<pronk::Message> MessagesIn(const char* json) {
  if (json == nullptr) return {};
  return pronk::ParseMessages(json);
}

pronk::OnText Caller(pronk_on_text on_text, void* user) {
  if (on_text == nullptr) return {};
  return [=](std::string_view text) { return on_text(text.data(), text.size(), user) == 0; };
}

// As much of a structure as the program's has room for.
template <class Struct>
void Give(Struct whole, Struct* to) {
  if (to == nullptr) return;
  whole.size = Known(*to).size;
  std::memcpy(to, &whole, std::min(whole.size, sizeof(whole)));
}

void Give(const pronk::Completion& from, pronk_completion* to) {
  Give(pronk_completion{0, static_cast<pronk_stop_reason>(from.stop_reason), from.n_prompt,
                        from.n_unread, from.n_generated, from.prompt_seconds, from.generate_seconds,
                        from.n_dropped},
       to);
}

void Give(const pronk::MemoryUse& from, pronk_memory_use* to) {
  Give(pronk_memory_use{0, from.weights, from.cache, from.scratch}, to);
}

}  // namespace

const char* pronk_error() { return LastError().data(); }
const char* pronk_version() {
  static const std::string version = pronk::Version();
  return version.c_str();
}

pronk_status pronk_model_open(const char* path, pronk_model** model) {
  return New(
      model, [&] { return pronk::Model(path); }, path);
}
pronk_status pronk_model_open_exact(const char* path, pronk_model** model) {
  return New(
      model, [&] { return pronk::Model(path, /*exact=*/true); }, path);
}
void pronk_model_free(pronk_model* model) { delete model; }
pronk_status pronk_model_metadata(const pronk_model* model, const char* key, char* text,
                                  size_t room, size_t* n) {
  return Try(
      [&] {
        const auto value = model->Metadata(key);
        if (!value) return PRONK_ABSENT;
        Give(*value, text, room, n);
        return PRONK_OK;
      },
      model, key, n);
}
pronk_status pronk_model_metadata_key(const pronk_model* model, size_t i, char* text, size_t room,
                                      size_t* n) {
  return Try(
      [&] {
        const std::vector<std::string> keys = model->MetadataKeys();
        if (i >= keys.size()) return PRONK_ABSENT;
        Give(keys[i], text, room, n);
        return PRONK_OK;
      },
      model, n);
}
pronk_status pronk_model_facts(const pronk_model* model, pronk_facts* facts) {
  return Try(
      [&] {
        Give(pronk_facts{0, model->context_length(), model->size_in_bytes(), model->n_parameters(),
                         model->vocabulary_size(), model->embedding_length()},
             facts);
      },
      model, facts);
}
pronk_status pronk_model_render(const pronk_model* model, const char* messages,
                                const pronk_rendering* rendering, char* text, size_t room,
                                size_t* n) {
  return Try(
      [&] {
        Give(model->Render(pronk::ParseMessages(messages), ReadRendering(rendering)), text, room,
             n);
      },
      model, messages, n);
}
pronk_status pronk_model_tokenize_chat(const pronk_model* model, const char* messages,
                                       const pronk_rendering* rendering, int32_t* ids, size_t room,
                                       size_t* n) {
  return Try(
      [&] {
        Give(model->TokenizeChat(pronk::ParseMessages(messages), ReadRendering(rendering)), ids,
             room, n);
      },
      model, messages, n);
}
pronk_status pronk_model_chat_template(const pronk_model* model, char* text, size_t room,
                                       size_t* n) {
  return Try([&] { Give(model->chat_template(), text, room, n); }, model, n);
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
  return Try(
      [&] {
        Give(model->Tokenize(std::string_view(text, n_bytes), ReadReading(reading)), ids, room, n);
      },
      model, text, n);
}
pronk_status pronk_model_detokenize(const pronk_model* model, const int32_t* ids, size_t n_ids,
                                    int special, char* text, size_t room, size_t* n) {
  return Try(
      [&] {
        Give(model->Detokenize({ids, ids + n_ids}, special != 0), text, room, n);
      },
      model, ids, n);
}

pronk_status pronk_grammar_json_schema(const char* schema, pronk_grammar** grammar) {
  return New(
      grammar, [&] { return pronk::Grammar::JsonSchema(schema); }, schema);
}
pronk_status pronk_grammar_json_object(pronk_grammar** grammar) {
  return New(grammar, [] { return pronk::Grammar::JsonObject(); });
}
pronk_status pronk_grammar_gbnf(const char* rules, pronk_grammar** grammar) {
  return New(
      grammar, [&] { return pronk::Grammar::Gbnf(rules); }, rules);
}
void pronk_grammar_free(pronk_grammar* grammar) { delete grammar; }

pronk_status pronk_session_open(const pronk_model* model, const char* options,
                                pronk_session** session) {
  return New(
      session, [&] { return pronk::Session(*model, ReadOptions(options)); }, model);
}
void pronk_session_free(pronk_session* session) { delete session; }
pronk_status pronk_session_complete(pronk_session* session, const char* prompt,
                                    const pronk_limits* limits, pronk_on_text on_text, void* user,
                                    pronk_completion* result) {
  return Try(
      [&] {
        Give(session->Complete(prompt, Caller(on_text, user), ReadLimits(limits, user)), result);
      },
      session, prompt);
}
pronk_status pronk_session_complete_ids(pronk_session* session, const int32_t* ids, size_t n_ids,
                                        const pronk_limits* limits, pronk_on_text on_text,
                                        void* user, pronk_completion* result) {
  return Try(
      [&] {
        Give(session->Complete(std::vector<int32_t>(ids, ids + n_ids), Caller(on_text, user),
                               ReadLimits(limits, user)),
             result);
      },
      session, ids);
}
pronk_status pronk_session_score(pronk_session* session, const char* text, const int32_t* ids,
                                 size_t n_ids, int n_likeliest, unsigned reading,
                                 pronk_on_token on_token, void* user) {
  return Try(
      [&] {
        if ((text == nullptr && ids == nullptr) || on_token == nullptr)
          throw pronk::Error("an argument is NULL");
        const pronk::Prompt prompt = ids == nullptr
                                         ? pronk::Prompt(text)
                                         : pronk::Prompt(std::vector<int32_t>(ids, ids + n_ids));
        for (const pronk::Token& token :
             session->Score(prompt, n_likeliest, ReadReading(reading))) {
          if (!Give(token, on_token, user)) return;
        }
      },
      session);
}
pronk_status pronk_session_copy(const pronk_session* session, pronk_session** copy) {
  return New(
      copy, [&] { return session->Copy(); }, session);
}
pronk_status pronk_session_truncate(pronk_session* session, size_t n_tokens) {
  return Try([&] { session->Truncate(n_tokens); }, session);
}
pronk_status pronk_session_memory(const pronk_session* session, pronk_memory_use* memory) {
  return Try([&] { Give(session->memory(), memory); }, session, memory);
}
pronk_status pronk_session_tokens(const pronk_session* session, int32_t* ids, size_t room,
                                  size_t* n) {
  return Try([&] { Give(session->tokens(), ids, room, n); }, session, n);
}
pronk_status pronk_session_logits(const pronk_session* session, float* logits, size_t room,
                                  size_t* n) {
  return Try([&] { Give(session->logits(), logits, room, n); }, session, n);
}
pronk_status pronk_session_clear(pronk_session* session) {
  return Try([&] { session->Clear(); }, session);
}
pronk_status pronk_session_save(pronk_session* session, const char* path) {
  return Try([&] { session->Save(path); }, session, path);
}
pronk_status pronk_session_load(pronk_session* session, const char* path) {
  return Try([&] { session->Load(path); }, session, path);
}

pronk_status pronk_batch_open(const pronk_model* model, int threads, pronk_batch** batch) {
  return New(
      batch, [&] { return pronk::Batch(*model, threads); }, model);
}
void pronk_batch_free(pronk_batch* batch) { delete batch; }
pronk_status pronk_batch_add(pronk_batch* batch, pronk_session* session, const char* prompt,
                             const pronk_limits* limits, pronk_on_text on_text, void* user,
                             size_t* number) {
  return Try(
      [&] {
        const size_t added =
            batch->Add(*session, prompt, Caller(on_text, user), ReadLimits(limits, user));
        if (number != nullptr) *number = added;
      },
      batch, session, prompt);
}
pronk_status pronk_batch_add_chat(pronk_batch* batch, pronk_chat* chat, const char* messages,
                                  const pronk_limits* limits, pronk_on_text on_text, void* user,
                                  size_t* number) {
  return Try(
      [&] {
        const size_t added = batch->Add(*chat, MessagesIn(messages), Caller(on_text, user),
                                        ReadLimits(limits, user));
        if (number != nullptr) *number = added;
      },
      batch, chat);
}
pronk_status pronk_batch_step(pronk_batch* batch, pronk_on_end on_end, void* user) {
  return Try(
      [&] {
        for (const auto& [number, completion] : batch->Step()) {
          pronk_completion result = PRONK_COMPLETION_INIT;
          Give(completion, &result);
          if (on_end != nullptr) on_end(number, &result, user);
        }
      },
      batch);
}
size_t pronk_batch_size(const pronk_batch* batch) { return batch == nullptr ? 0 : batch->size(); }

pronk_status pronk_chat_open(const pronk_model* model, const char* system, const char* options,
                             pronk_chat** chat) {
  return New(
      chat,
      [&] { return pronk::Chat(*model, system == nullptr ? "" : system, ReadOptions(options)); },
      model);
}
void pronk_chat_free(pronk_chat* chat) { delete chat; }
pronk_status pronk_chat_say(pronk_chat* chat, const char* text, const pronk_limits* limits,
                            pronk_on_text on_text, void* user, pronk_completion* result) {
  return Try(
      [&] { Give(chat->Say(text, Caller(on_text, user), ReadLimits(limits, user)), result); }, chat,
      text);
}
pronk_status pronk_chat_answer(pronk_chat* chat, const char* messages, const pronk_limits* limits,
                               pronk_on_text on_text, void* user, pronk_completion* result) {
  return Try(
      [&] {
        Give(chat->Answer(MessagesIn(messages), Caller(on_text, user), ReadLimits(limits, user)),
             result);
      },
      chat);
}
pronk_status pronk_chat_history(const pronk_chat* chat, char* json, size_t room, size_t* n) {
  return Try([&] { Give(pronk::MessagesJson(chat->History()), json, room, n); }, chat, n);
}
pronk_status pronk_chat_set_history(pronk_chat* chat, const char* json) {
  return Try([&] { chat->SetHistory(pronk::ParseMessages(json)); }, chat, json);
}
pronk_status pronk_chat_set_tools(pronk_chat* chat, const char* json) {
  return Try([&] { chat->SetTools(json); }, chat, json);
}
pronk_status pronk_chat_set_tool_choice(pronk_chat* chat, const char* choice) {
  return Try([&] { chat->SetToolChoice(choice); }, chat, choice);
}
pronk_status pronk_chat_count(pronk_chat* chat, const char* text, size_t* n) {
  return Try([&] { *n = chat->Count(text); }, chat, text, n);
}
pronk_status pronk_chat_set_thinking(pronk_chat* chat, const char* level) {
  return Try([&] { chat->SetThinking(level); }, chat, level);
}
pronk_status pronk_chat_set_thinking_budget(pronk_chat* chat, int tokens, const char* message) {
  return Try([&] { chat->SetThinkingBudget(tokens, message == nullptr ? "" : message); }, chat);
}
pronk_status pronk_chat_on_thinking(pronk_chat* chat, pronk_on_text on_thinking, void* user) {
  return Try([&] { chat->OnThinking(Caller(on_thinking, user)); }, chat);
}
pronk_status pronk_chat_clear(pronk_chat* chat) {
  return Try([&] { chat->Clear(); }, chat);
}
pronk_status pronk_chat_memory(const pronk_chat* chat, pronk_memory_use* memory) {
  return Try([&] { Give(chat->memory(), memory); }, chat, memory);
}
pronk_status pronk_chat_save(pronk_chat* chat, const char* path) {
  return Try([&] { chat->Save(path); }, chat, path);
}
pronk_status pronk_chat_load(pronk_chat* chat, const char* path) {
  return Try([&] { chat->Load(path); }, chat, path);
}

pronk_status pronk_embedder_open(const pronk_model* model, const char* pooling, const char* options,
                                 pronk_embedder** embedder) {
  return New(
      embedder, [&] { return pronk::Embedder(*model, ReadPooling(pooling), ReadOptions(options)); },
      model);
}
void pronk_embedder_free(pronk_embedder* embedder) { delete embedder; }
pronk_status pronk_embedder_embed(pronk_embedder* embedder, const char* const* texts,
                                  size_t n_texts, float* vectors, size_t room, size_t* n) {
  return Try(
      [&] {
        std::vector<float> all;
        for (const auto& row : embedder->Embed({texts, texts + n_texts})) {
          all.insert(all.end(), row.begin(), row.end());
        }
        Give(all, vectors, room, n);
      },
      embedder, texts, n);
}

pronk_status pronk_reranker_open(const pronk_model* model, const char* options,
                                 pronk_reranker** reranker) {
  return New(
      reranker, [&] { return pronk::Reranker(*model, ReadOptions(options)); }, model);
}
void pronk_reranker_free(pronk_reranker* reranker) { delete reranker; }
pronk_status pronk_reranker_score(pronk_reranker* reranker, const char* query,
                                  const char* const* texts, size_t n_texts, float* scores) {
  return Try(
      [&] {
        const std::vector<float> found = reranker->Score(query, {texts, texts + n_texts});
        std::copy(found.begin(), found.end(), scores);
      },
      reranker, query, texts, scores);
}
