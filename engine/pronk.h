// pronk as a library: open a model once, then complete texts and hold conversations with it.
// Installed as <pronk/pronk.h>; needs only C++17's standard library. In C it is pronk_c.h.
//
//   pronk::Model model("story.gguf");
//   pronk::Session session(model);
//   session.Complete("Once upon a time", [](std::string_view piece) { std::cout << piece; });
//
// Every failure is thrown as pronk::Error, with a kind and a one-line message; an exception from a
// callback passes through unchanged. A model is immutable: any number of sessions and chats may
// share it, each used by one thread at a time. To use an object while another thread or its own
// callback uses it is an Error. If a process has used several threads, its children after fork()
// may use only one; to use more is an Error.
#pragma once

#ifdef __cplusplus

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/completion.h"
#include "engine/sampling/sampling.h"
#include "tokenizer/message.h"

namespace pronk {

// Such as "0.1.0". A program works with later versions of the same major version; before 1.0.0, of
// the same minor version.
std::string Version();

enum class ErrorKind {
  kWrongUse,     // an argument or an order of calls that makes no sense
  kNotFound,     // there is no such file
  kNotAModel,    // the file is not a GGUF file
  kRefused,      // the file is damaged, of an unknown kind, or does not belong to the model
  kContextFull,  // the text does not fit into the context
  kNoMemory,
  kBadGrammar,  // a grammar or a JSON schema is not valid
  kBadTemplate,
  kCancelled,
  kOther,
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, ErrorKind kind = ErrorKind::kWrongUse)
      : std::runtime_error(what), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// How a text becomes tokens.
struct Reading {
  // Tokenize together with the text so far: a prompt may come in any number of calls, and a word
  // split between two calls gets the tokens of the whole word. false: tokenize by itself.
  bool joined = true;
  // Whether the token that begins a text (BOS) comes first. Default: at the beginning of a text, if
  // the model's file asks for it.
  std::optional<bool> bos = {};
  // Whether "<|im_end|>" in the text is parsed as a control token; otherwise it is ten characters.
  bool special = false;
};

// Tokens that are not text; -1: the vocabulary has none.
struct SpecialTokens {
  std::int32_t bos, eos, eot, unk, sep;  // begin and end of text, end of turn, unknown, separator
  std::vector<std::int32_t> ends;        // every token that ends a generated text
};

// How a chat template renders a conversation.
struct Rendering {
  std::string chat_template = {};        // the template's source; "": the model's own template
  std::string tools = {};                // the argument of Chat::SetTools()
  std::string variables = {};            // a JSON object: {"enable_thinking": false}
  std::optional<std::int64_t> now = {};  // the template's date, in seconds since 1970; empty: now
  bool begins_answer = true;             // the text ends where the answer begins
};

class Model {
 public:
  // Opens and checks a GGUF file, or the first file of a split model. The files must not change
  // afterwards: weights are read when first used. exact: uses the weights as stored and computes
  // everything else in 32-bit floats, as if the file held floats. This is several times slower and
  // ignores Options::cache_bits.
  explicit Model(const std::string& path, bool exact = false);
  // Copies share the model. Moving copies, so that a moved-from Model stays usable.
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;

  std::string architecture() const;    // "llama", "qwen3", ...
  std::size_t context_length() const;  // tokens of the longest text in training
  std::size_t size_in_bytes() const;   // the size of its weights
  std::size_t n_parameters() const;    // numbers in its tensors
  std::size_t vocabulary_size() const;
  std::size_t embedding_length() const;  // numbers in a token's vector
  // The ids of a text by itself.
  std::vector<std::int32_t> Tokenize(std::string_view text, const Reading& reading = {}) const;
  // The text of ids. special: the text includes the spellings of control tokens.
  std::string Detokenize(const std::vector<std::int32_t>& ids, bool special = false) const;
  SpecialTokens special_tokens() const;
  // A value of the file's metadata as text, with a line for each element of an array. Empty if the
  // file lacks the key.
  std::optional<std::string> Metadata(std::string_view key) const;
  std::vector<std::string> MetadataKeys() const;
  // The source of the chat template that Chat uses (Jinja).
  std::string chat_template() const;
  // A conversation as the model sees it: as text, and as ids, in which control tokens that a
  // message spells are plain text.
  std::string Render(const std::vector<Message>& messages, const Rendering& rendering = {}) const;
  std::vector<std::int32_t> TokenizeChat(const std::vector<Message>& messages,
                                         const Rendering& rendering = {}) const;

 private:
  friend class Batch;
  friend class Session;
  friend class Chat;
  friend class Embedder;
  friend class Reranker;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Constrains a text to JSON, with or without a schema, or to any grammar. Any number of sessions
// may share a Grammar.
class Grammar {
 public:
  Grammar() = default;  // any text
  // JSON that this schema accepts; throws for a keyword that is not supported. As the standard
  // says, objects may have properties that the schema does not name unless it forbids them.
  static Grammar JsonSchema(const std::string& schema);
  static Grammar JsonObject();
  static Grammar Gbnf(const std::string& rules);  // llama.cpp's format; the start rule is "root"

 private:
  friend class Batch;
  friend class Session;
  friend class Chat;
  struct Impl;
  explicit Grammar(Impl impl);
  std::shared_ptr<const Impl> impl_;
};

struct Options {
  std::size_t context = 0;  // tokens; 0: grows with the text, up to the model's training context
  int threads = 0;          // 0: the fastest number, found by measuring; prompts use all cores
  int cache_bits = 16;      // bits of a number in the key-value cache: 32, 16, 8 or 4
  Sampling sampling = {};
  // A small model with the same vocabulary, or an assistant made for this model (Gemma 4's), that
  // drafts tokens. May speed up generation; does not change the text.
  std::optional<Model> draft = {};
  std::string chat_template = {};  // the source of a chat template that replaces the model's
};

// Sets an option by name ("threads", "temperature", "dry.base"), for settings that come as text.
// The program's flags are options, too ("--top-k" is "top_k"). A value is a number, "true" or
// "false", the steps as "top_k;top_p;temperature", or the path of a draft model. For a list, each
// call adds one element: "15043+1.5" to logit_bias, a text to dry.breakers. Throws if the option
// does not exist or the value is not valid for it.
void Set(Options& options, std::string_view name, const std::string& value);
void Set(Options& options, std::string_view name, double number);

// A callback that may return false to stop; one that returns void never stops.
template <class... Args>
class Callback {
 public:
  Callback() = default;
  template <class Function,
            class = std::enable_if_t<std::is_invocable_v<Function&, Args...> &&
                                     !std::is_same_v<std::decay_t<Function>, Callback<Args...>>>>
  Callback(Function function)  // NOLINT(google-explicit-constructor): stands in for the function
      : call_([function = std::move(function)](Args... args) mutable {
          if constexpr (std::is_void_v<decltype(function(args...))>) {
            function(args...);
            return true;
          } else {
            return static_cast<bool>(function(args...));
          }
        }) {}
  bool operator()(Args... args) const { return !call_ || call_(args...); }
  explicit operator bool() const { return static_cast<bool>(call_); }

 private:
  std::function<bool(Args...)> call_;
};
// Receives text as it is generated, in whole UTF-8 characters.
using OnText = Callback<std::string_view>;
// Receives the numbers of prompt tokens read so far and in total, about 20 times a second and at
// the end. Returning false stops the reading within 0.2 s, whatever the model's size. A prompt is
// read in batches of 512 tokens; complete batches stay in the session, and Completion counts their
// tokens.
using OnPrompt = Callback<std::size_t, std::size_t>;

using OnToken = Callback<const Token&>;  // returning false ends the text before this token
// May change the logits of the next token, indexed by token id, before it is sampled. A grammar
// still applies afterwards. Returning false ends the text.
using OnLogits = Callback<float*, std::size_t>;

// A text to be read, or the ids of its tokens.
struct Prompt {
  Prompt(const char* spelt) : text(spelt) {}         // NOLINT(google-explicit-constructor)
  Prompt(const std::string& spelt) : text(spelt) {}  // NOLINT(google-explicit-constructor)
  Prompt(std::string_view spelt) : text(spelt) {}    // NOLINT(google-explicit-constructor)
  Prompt(std::vector<std::int32_t> tokens)           // NOLINT(google-explicit-constructor)
      : ids(std::move(tokens)) {}

  std::string_view text = {};
  std::optional<std::vector<std::int32_t>> ids = {};  // used as they are; Reading has no effect
};

struct Limits {
  int max_tokens = -1;                  // -1: until the text ends or the context is full
  std::vector<std::string> stops = {};  // the text ends before any of these
  Grammar grammar = {};                 // constrains the text, but not thinking before it
  OnPrompt on_prompt = {};              // receives the prompt's progress, and may stop its reading
  Reading reading = {};                 // how a session's prompt is read
  OnToken on_token = {};
  int n_likeliest = -1;  // tokens in Token::likeliest; -1: no log probabilities at all
  OnLogits on_logits = {};
};

// Bytes that a session has reserved. Pages that were never written take no memory.
struct MemoryUse {
  std::size_t weights;  // the model's weights, which sessions share
  std::size_t cache;    // keys, values and recurrent states
  std::size_t scratch;  // the buffers of a pass
};

// A conversation as a JSON array of {"role": ..., "content": ...}, the format that other programs
// use, with "reasoning_content" for thinking, "tool_call_id", and "tool_calls": [{"id": ...,
// "type": "function", "function": {"name": ..., "arguments": {...}}}].
std::vector<Message> ParseMessages(const std::string& json);
std::string MessagesJson(const std::vector<Message>& messages);

// One text: prompts and completions, from beginning to end.
class Session {
 public:
  explicit Session(const Model& model, const Options& options = {});
  Session(Session&&) = default;
  Session& operator=(Session&&) = default;

  // Reads the prompt right after the text so far (Limits::reading), then generates. After Clear()
  // or Truncate(), a prefix shared with the earlier text is not read again.
  Completion Complete(const Prompt& prompt, const OnText& on_text = {}, const Limits& limits = {});
  // Reads a prompt and generates nothing. Returns each of its tokens, with its log probability
  // given the tokens before it (none for the first token of a text) and the n likeliest tokens at
  // its position.
  std::vector<Token> Score(const Prompt& prompt, int n_likeliest = 0, const Reading& reading = {});
  // Begins a new text.
  void Clear();
  // Keeps the first n tokens of the text, or all if it has fewer.
  void Truncate(std::size_t n);
  // A session with the same text and its own memory. The two sessions continue independently.
  Session Copy() const;
  MemoryUse memory() const;
  // The text so far.
  std::vector<std::int32_t> tokens() const;
  // The logits of the next token, one for each token of the vocabulary: probabilities are
  // proportional to their exponentials. Empty if nothing has been read.
  std::vector<float> logits() const;
  // Save() writes the session to a file, and Load() restores it with the same model and context. A
  // long prompt is then read only once (for example by Complete() with a limit of 0 tokens).
  void Save(const std::string& path);
  void Load(const std::string& path);

 private:
  friend class Batch;
  struct Impl;
  explicit Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;  // a batch may share it
};

class Chat;

// Completes the texts of several sessions of one model together: one pass over its weights computes
// the next tokens of up to 16 texts. A session writes, bit for bit, what it would write alone.
class Batch {
 public:
  explicit Batch(const Model& model, int threads = 0);  // threads: 0: the fast cores
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;

  // Reads the prompt, as Session::Complete() does first. The session then belongs to the batch
  // until its text has ended. Returns the number of the text: 0, 1, ...
  std::size_t Add(Session& session, const Prompt& prompt, const OnText& on_text = {},
                  const Limits& limits = {});
  // Adds the answer that Chat::Answer() would give.
  std::size_t Add(Chat& chat, const std::vector<Message>& messages, const OnText& on_text = {},
                  const Limits& limits = {});
  // Extends every text by at least one token. Returns the texts that ended, with their numbers. An
  // exception from a callback ends only its text; the next call continues the other texts.
  std::vector<std::pair<std::size_t, Completion>> Step();
  // The number of texts that Step() has not returned yet.
  std::size_t size() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A conversation in the format of the model's chat template. When the context is full, the oldest
// turns are dropped; a turn is a question and all messages up to the next question.
// Completion::n_dropped counts the dropped messages.
class Chat {
 public:
  // system: the system message; "": the conversation has none.
  explicit Chat(const Model& model, std::string system = "", const Options& options = {});
  Chat(Chat&&) = default;
  Chat& operator=(Chat&&) = default;

  Completion Say(const std::string& text, const OnText& on_text = {}, const Limits& limits = {});
  // Adds messages and answers the last one, whose role is "user" or "tool". Without messages, it
  // answers the last message of History(), for example after a callback stopped an answer before
  // its first word. Only new tokens are read. To return the result of a tool call:
  //     chat.Answer({{"tool", "22 degrees", answer.tool_calls[0].id}});
  Completion Answer(const std::vector<Message>& messages = {}, const OnText& on_text = {},
                    const Limits& limits = {});
  // The whole conversation, including dropped messages and the system message. After SetHistory(),
  // Answer() answers its last message; a prefix shared with the previous conversation is not read
  // again.
  std::vector<Message> History() const;
  void SetHistory(const std::vector<Message>& messages);
  // Sets the functions that the model may call from the next answer on: a JSON array of {"type":
  // "function", "function": {"name": ..., "description": ..., "parameters": SCHEMA}}; "": no
  // functions. Throws if a schema is not supported (as Grammar::JsonSchema). If the model's
  // template reads no tools, the system message explains them. The model writes a call in the
  // format of its family, or as a bare object {"name": ..., "arguments": {...}} that names a
  // declared function, in a block of code or not. Once a call has begun, its arguments must follow
  // the schema. With Limits::grammar, an answer consists of calls or follows the grammar.
  void SetTools(const std::string& json);
  // Sets whether the model calls functions: "auto" (the default, also after SetTools), "none" (the
  // model does not see the tools), "required", or the name of the function that it must call.
  void SetToolChoice(const std::string& choice);
  // The number of tokens in the conversation, without dropped messages, if the user said this text
  // next. If it exceeds the context, Say() drops more of the oldest messages.
  std::size_t Count(const std::string& text);
  // Sets whether the model thinks before it answers ("on", "off") or how much it thinks ("low",
  // "medium", "high"). Throws if its template has no such switch.
  void SetThinking(const std::string& level);
  // Limits the thinking in an answer to this many tokens; 0: no thinking; -1: no limit. At the
  // limit, the message and the mark that ends the thinking are inserted as if the model had written
  // them, and the answer follows.
  void SetThinkingBudget(int tokens, const std::string& message = "");
  // Receives the thinking as it is generated.
  void OnThinking(const OnText& on_thinking);
  // Begins a new conversation.
  void Clear();
  MemoryUse memory() const;
  // As in Session. A prefix that a conversation shares with the file is not read again.
  void Save(const std::string& path);
  void Load(const std::string& path);

 private:
  friend class Batch;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// How a text's tokens become one vector. kOfFile: as the model's file says.
enum class Pooling { kOfFile, kMean, kFirst, kLast };

// Turns texts into vectors, with an embedding model, or with any model and a given pooling. Vectors
// have length 1 unless the file says otherwise. If the file has a default prompt, it precedes each
// text. The closer two texts are in meaning, the larger the dot product of their vectors is.
class Embedder {
 public:
  explicit Embedder(const Model& model, Pooling pooling = Pooling::kOfFile,
                    const Options& options = {});
  Embedder(Embedder&&) = default;
  Embedder& operator=(Embedder&&) = default;

  // Returns a vector for each text. One call with many texts is faster than a call for each text.
  std::vector<std::vector<float>> Embed(const std::vector<std::string>& texts);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Scores how well texts answer a query, with a reranking model.
class Reranker {
 public:
  explicit Reranker(const Model& model, const Options& options = {});
  Reranker(Reranker&&) = default;
  Reranker& operator=(Reranker&&) = default;

  // Returns a score for each text; a higher score is better.
  std::vector<float> Score(const std::string& query, const std::vector<std::string>& texts);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pronk

#else
#include <pronk/pronk_c.h>
#endif
