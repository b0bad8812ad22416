// pronk for C, and for every language that calls C: the functions of pronk.h, on handles. Included
// by <pronk/pronk.h> where the compiler is for C. libpronk.so has all symbols.
//
//   pronk_model* model;
//   if (pronk_model_open("story.gguf", &model) != PRONK_OK) puts(pronk_error());
//
// Free each handle with its function, in any order: an object keeps alive the objects that it
// needs. Any number of threads may use a model or a grammar; any other handle is for one thread at
// a time. Texts are UTF-8. A result that does not fit into its buffer is truncated; *n becomes its
// full size, and a buffer with room 0 may be NULL. NULL for a handle, a text or a result is
// PRONK_WRONG_USE, unless the function gives it a meaning. Unknown flags, numbers out of range and
// counts above 2^30 are PRONK_WRONG_USE, too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pronk_model pronk_model;
typedef struct pronk_grammar pronk_grammar;
typedef struct pronk_session pronk_session;
typedef struct pronk_batch pronk_batch;
typedef struct pronk_chat pronk_chat;
typedef struct pronk_embedder pronk_embedder;
typedef struct pronk_reranker pronk_reranker;

typedef enum pronk_status {
  PRONK_OK,
  PRONK_ABSENT,  // there is no such item; not a failure
  // Failures, as in pronk::ErrorKind. pronk_error() describes them.
  PRONK_WRONG_USE,     // an argument or an order of calls that makes no sense
  PRONK_NOT_FOUND,     // there is no such file
  PRONK_NOT_A_MODEL,   // the file is not a GGUF file
  PRONK_REFUSED,       // the file is damaged, of an unknown kind, or not the model's
  PRONK_CONTEXT_FULL,  // the text does not fit into the context
  PRONK_NO_MEMORY,
  PRONK_BAD_GRAMMAR,  // a grammar or a JSON schema is not valid
  PRONK_BAD_TEMPLATE,
  PRONK_CANCELLED,
  PRONK_FAILED  // anything else
} pronk_status;

// One line about the last call of this thread that failed.
const char* pronk_error(void);
const char* pronk_version(void);

// pronk::Reading as flags, combined with |. 0: the prompt is tokenized together with the text so
// far, and BOS begins a text if the file asks for it.
enum {
  PRONK_READ_APART = 1,  // the prompt is tokenized by itself
  PRONK_READ_BOS = 2,
  PRONK_READ_NO_BOS = 4,
  PRONK_READ_SPECIAL = 8  // spellings such as "<|im_end|>" are parsed as control tokens
};

// Structures begin with their size, which the macros set: it tells a newer library which fields the
// program has; an older library refuses fields that it does not know, unless they are 0. A field of
// 0 means the default.
typedef struct pronk_facts {
  size_t size;
  size_t context_length;  // tokens of the longest text in training
  size_t n_bytes, n_parameters, vocabulary_size, embedding_length;
} pronk_facts;
#define PRONK_FACTS_INIT \
  { sizeof(pronk_facts), 0, 0, 0, 0, 0 }

typedef struct pronk_rendering {  // as pronk::Rendering
  size_t size;
  const char* chat_template;  // NULL: the model's own
  const char* tools;          // the argument of pronk_chat_set_tools(), or NULL
  const char* variables;      // a JSON object, or NULL
  int64_t now;                // seconds since 1970; 0: now
  int continues;              // nonzero: the text does not begin an answer
} pronk_rendering;
#define PRONK_RENDERING_INIT \
  { sizeof(pronk_rendering), NULL, NULL, NULL, 0, 0 }

typedef struct pronk_memory_use {  // bytes, as pronk::MemoryUse
  size_t size;
  size_t weights, cache, scratch;
} pronk_memory_use;
#define PRONK_MEMORY_USE_INIT \
  { sizeof(pronk_memory_use), 0, 0, 0 }

// As pronk::Model.
pronk_status pronk_model_open(const char* path, pronk_model** model);
pronk_status pronk_model_open_exact(const char* path, pronk_model** model);
void pronk_model_free(pronk_model* model);
// A value of the file's metadata as text; PRONK_ABSENT if the file lacks the key.
pronk_status pronk_model_metadata(const pronk_model* model, const char* key, char* text,
                                  size_t room, size_t* n);
// The i-th key; PRONK_ABSENT beyond the last.
pronk_status pronk_model_metadata_key(const pronk_model* model, size_t i, char* text, size_t room,
                                      size_t* n);
pronk_status pronk_model_facts(const pronk_model* model, pronk_facts* facts);
// Messages as pronk::ParseMessages() reads them; rendering may be NULL.
pronk_status pronk_model_render(const pronk_model* model, const char* messages,
                                const pronk_rendering* rendering, char* text, size_t room,
                                size_t* n);
pronk_status pronk_model_tokenize_chat(const pronk_model* model, const char* messages,
                                       const pronk_rendering* rendering, int32_t* ids, size_t room,
                                       size_t* n);
pronk_status pronk_model_chat_template(const pronk_model* model, char* text, size_t room,
                                       size_t* n);
// The id of the token named "bos", "eos", "eot", "unk" or "sep"; -1 if the vocabulary has none.
int32_t pronk_model_token(const pronk_model* model, const char* name);
// Whether a text ends with this token.
int pronk_model_ends(const pronk_model* model, int32_t id);
// reading: PRONK_READ_...
pronk_status pronk_model_tokenize(const pronk_model* model, const char* text, size_t n_bytes,
                                  unsigned reading, int32_t* ids, size_t room, size_t* n);
// special: nonzero: the text includes the spellings of control tokens.
pronk_status pronk_model_detokenize(const pronk_model* model, const int32_t* ids, size_t n_ids,
                                    int special, char* text, size_t room, size_t* n);

// As pronk::Grammar.
pronk_status pronk_grammar_json_schema(const char* schema, pronk_grammar** grammar);
pronk_status pronk_grammar_json_object(pronk_grammar** grammar);
pronk_status pronk_grammar_gbnf(const char* rules, pronk_grammar** grammar);
void pronk_grammar_free(pronk_grammar* grammar);

// Receives text as it is generated; returning nonzero ends the text.
typedef int (*pronk_on_text)(const char* text, size_t n_bytes, void* user);

// Receives the numbers of prompt tokens read so far and in total; returning nonzero stops the
// reading.
typedef int (*pronk_on_prompt)(size_t n_read, size_t n, void* user);

typedef struct pronk_likely {
  int32_t id;
  float log_probability;
} pronk_likely;
typedef struct pronk_token {  // as pronk::Token
  int32_t id;
  double seconds;
  float log_probability;          // NaN: not computed
  const pronk_likely* likeliest;  // valid during the call
  size_t n_likeliest;
} pronk_token;
// May change the logits of the next token, indexed by token id; returning nonzero ends the text.
typedef int (*pronk_on_logits)(float* logits, size_t n, void* user);
// Receives each token before its text; returning nonzero ends the text before that token.
typedef int (*pronk_on_token)(const pronk_token* token, void* user);

typedef struct pronk_limits {
  size_t size;
  int max_tokens;                // 0: until the text ends or the context is full; -1: no token
  const pronk_grammar* grammar;  // constrains the text, or NULL
  const char* const* stops;      // the text ends before any of these, up to a NULL; or NULL
  pronk_on_prompt on_prompt;     // or NULL; called with on_text's user
  unsigned reading;              // PRONK_READ_...: how a session's prompt is read
  pronk_on_token on_token;       // or NULL; called with on_text's user
  int n_likeliest;               // tokens in likeliest; 0: no log probabilities at all
  pronk_on_logits on_logits;     // or NULL; called with on_text's user
} pronk_limits;
#define PRONK_LIMITS_INIT \
  { sizeof(pronk_limits), 0, NULL, NULL, NULL, 0, NULL, 0, NULL }

typedef enum pronk_stop_reason {  // as pronk::StopReason
  PRONK_STOP_EOS,                 // the text is complete
  PRONK_STOP_MATCH,               // the text reached one of the stops
  PRONK_STOP_LENGTH,              // the text has max_tokens tokens
  PRONK_STOP_CONTEXT,             // the context is full
  PRONK_STOP_INTERRUPTED          // a callback ended the text
} pronk_stop_reason;

typedef struct pronk_completion {
  size_t size;
  pronk_stop_reason stop_reason;
  size_t n_prompt, n_unread;  // tokens read, and not read after an interruption
  size_t n_generated;         // tokens
  double prompt_seconds, generate_seconds;
  size_t n_dropped;  // oldest messages of a chat that the model no longer sees
} pronk_completion;
#define PRONK_COMPLETION_INIT \
  { sizeof(pronk_completion), PRONK_STOP_EOS, 0, 0, 0, 0, 0, 0 }

// As pronk::Session. The options are words like "temperature=0.5 threads=2", with the names and
// values of pronk::Set(). Quotes keep spaces, as in draft="my model.gguf"; within quotes, a
// backslash makes the next character literal. NULL: every option has its default. limits, on_text
// and result may be NULL, too.
pronk_status pronk_session_open(const pronk_model* model, const char* options,
                                pronk_session** session);
void pronk_session_free(pronk_session* session);
pronk_status pronk_session_complete(pronk_session* session, const char* prompt,
                                    const pronk_limits* limits, pronk_on_text on_text, void* user,
                                    pronk_completion* result);
// Completes a prompt of token ids.
pronk_status pronk_session_complete_ids(pronk_session* session, const int32_t* ids, size_t n_ids,
                                        const pronk_limits* limits, pronk_on_text on_text,
                                        void* user, pronk_completion* result);
// As pronk::Session::Score(): on_token receives each token of the text. Give either text, or ids
// with their number n_ids; the other one is NULL.
pronk_status pronk_session_score(pronk_session* session, const char* text, const int32_t* ids,
                                 size_t n_ids, int n_likeliest, unsigned reading,
                                 pronk_on_token on_token, void* user);
pronk_status pronk_session_copy(const pronk_session* session, pronk_session** copy);
pronk_status pronk_session_truncate(pronk_session* session, size_t n_tokens);
pronk_status pronk_session_memory(const pronk_session* session, pronk_memory_use* memory);
pronk_status pronk_session_tokens(const pronk_session* session, int32_t* ids, size_t room,
                                  size_t* n);
pronk_status pronk_session_logits(const pronk_session* session, float* logits, size_t room,
                                  size_t* n);
pronk_status pronk_session_clear(pronk_session* session);
pronk_status pronk_session_save(pronk_session* session, const char* path);
pronk_status pronk_session_load(pronk_session* session, const char* path);

// As pronk::Batch. `number` may be NULL. on_end receives each text that has ended; it may be NULL.
typedef void (*pronk_on_end)(size_t number, const pronk_completion* result, void* user);
pronk_status pronk_batch_open(const pronk_model* model, int threads, pronk_batch** batch);
void pronk_batch_free(pronk_batch* batch);
pronk_status pronk_batch_add(pronk_batch* batch, pronk_session* session, const char* prompt,
                             const pronk_limits* limits, pronk_on_text on_text, void* user,
                             size_t* number);
pronk_status pronk_batch_add_chat(pronk_batch* batch, pronk_chat* chat, const char* messages,
                                  const pronk_limits* limits, pronk_on_text on_text, void* user,
                                  size_t* number);
pronk_status pronk_batch_step(pronk_batch* batch, pronk_on_end on_end, void* user);
size_t pronk_batch_size(const pronk_batch* batch);

// As pronk::Chat; system may be NULL.
pronk_status pronk_chat_open(const pronk_model* model, const char* system, const char* options,
                             pronk_chat** chat);
void pronk_chat_free(pronk_chat* chat);
pronk_status pronk_chat_say(pronk_chat* chat, const char* text, const pronk_limits* limits,
                            pronk_on_text on_text, void* user, pronk_completion* result);
// messages: JSON as pronk::ParseMessages() reads it. NULL: no new messages; the last message of the
// history is answered. The answer's tool calls are in the last message of the history.
pronk_status pronk_chat_answer(pronk_chat* chat, const char* messages, const pronk_limits* limits,
                               pronk_on_text on_text, void* user, pronk_completion* result);
pronk_status pronk_chat_history(const pronk_chat* chat, char* json, size_t room, size_t* n);
pronk_status pronk_chat_set_history(pronk_chat* chat, const char* json);
pronk_status pronk_chat_set_tools(pronk_chat* chat, const char* json);
// "auto", "none", "required" or a function's name.
pronk_status pronk_chat_set_tool_choice(pronk_chat* chat, const char* choice);
pronk_status pronk_chat_count(pronk_chat* chat, const char* text, size_t* n);
pronk_status pronk_chat_set_thinking(pronk_chat* chat, const char* level);
// message may be NULL.
pronk_status pronk_chat_set_thinking_budget(pronk_chat* chat, int tokens, const char* message);
// on_thinking receives the thinking before each answer from now on; NULL: no function receives it.
pronk_status pronk_chat_on_thinking(pronk_chat* chat, pronk_on_text on_thinking, void* user);
pronk_status pronk_chat_clear(pronk_chat* chat);
pronk_status pronk_chat_memory(const pronk_chat* chat, pronk_memory_use* memory);
pronk_status pronk_chat_save(pronk_chat* chat, const char* path);
pronk_status pronk_chat_load(pronk_chat* chat, const char* path);

// As pronk::Embedder; pooling is "mean", "first", "last", or NULL for the file's pooling.
// pronk_embedder_embed() writes one vector after the other, *n numbers in total.
pronk_status pronk_embedder_open(const pronk_model* model, const char* pooling, const char* options,
                                 pronk_embedder** embedder);
void pronk_embedder_free(pronk_embedder* embedder);
pronk_status pronk_embedder_embed(pronk_embedder* embedder, const char* const* texts,
                                  size_t n_texts, float* vectors, size_t room, size_t* n);

// As pronk::Reranker: a score for each text.
pronk_status pronk_reranker_open(const pronk_model* model, const char* options,
                                 pronk_reranker** reranker);
void pronk_reranker_free(pronk_reranker* reranker);
pronk_status pronk_reranker_score(pronk_reranker* reranker, const char* query,
                                  const char* const* texts, size_t n_texts, float* scores);

#ifdef __cplusplus
}
#endif
