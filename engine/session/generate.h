// Generate: completes a prompt, piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer/stop_matcher.h"
#include "engine/answer/thinking.h"
#include "engine/answer/tool_calls.h"
#include "engine/completion.h"
#include "engine/session/session.h"
#include "engine/stopwatch.h"
#include "grammar/constraint.h"
#include "tokenizer/tokenizer.h"

namespace engine {

using pronk::StopReason;
// "eos", "stop", "length", "context" or "interrupted".
std::string_view StopReasonName(StopReason reason);

struct GenerateOptions {
  int64_t max_tokens = -1;  // -1: until the end
  // The session also reads the last tokens, so that it has the whole text and can continue it.
  // Costs a pass.
  bool runs_last = true;
  // Generation ends before any of these texts; they are not part of the result.
  std::vector<std::string> stop_texts = {};
  // The text is a message by itself: its leading space is dropped, and the space that SPM puts
  // before a text that follows nothing. With a grammar, every space is part of the text.
  bool is_answer = false;
  // Receives the numbers of prompt tokens read so far and in total, several times a second and at
  // the end; false stops the reading within milliseconds. prompt_read is called when sampling
  // starts.
  std::function<bool(size_t done, size_t total)> prompt_progress = {};
  std::function<void()> prompt_read = {};
  std::function<bool()> should_stop = {};  // called before every token, and often during a prompt
  // May change the logits of the next token, in the order of ids. Returning false ends the text.
  std::function<bool(std::span<float> logits)> on_logits = {};
  // Receives each token before its text. Returning false ends the text before it.
  std::function<bool(const pronk::Token&)> on_token = {};
  int64_t n_likeliest = -1;  // tokens in Token::likeliest; -1: no log probabilities at all
  bool bookmarks = false;    // bookmarks the ends of prompt and text (Session::Rewind)
  // How the model marks its thinking. Without marks, all output is text.
  ThinkingFormat thinking = {};
  // The most tokens of thinking; -1: any number. At the limit, this message and the end of the
  // thinking are forced. The limit does not apply with a grammar that covers the thinking.
  int64_t thinking_budget = -1;
  std::string thinking_message = {};
  // How the model writes calls (null: as bare objects), and the tools that it may call. Without
  // tools, calls are text.
  const CallForm* calls = nullptr;
  gguf::JsonView tools = {};
  size_t n_calls = 0;  // calls in the conversation so far; new ids count from here
  // Receives the thinking as it is generated; returns false to stop, as on_text does; may be null.
  std::function<bool(std::string_view)> on_thinking = {};
  // A grammar for the answer, from its first token on; null: none. Tokens that it forces are read
  // in one pass, unsampled. The text ends when the grammar allows nothing more.
  grammar::Constraint* constraint = nullptr;
  // The constraint is the grammar of calls: it applies once a call has begun; text before that is
  // free.
  bool constrains_calls = false;
};

struct GenerateResult : pronk::Completion {
  std::vector<tokenizer::TokenId> tokens;  // the generated tokens without the ending token
  size_t n_decoded = 0;                    // how many of `tokens` were run through the model
  size_t n_passes = 0;                     // passes that read these n_decoded tokens
  bool is_unconstrained = true;            // no grammar applied, for example because no call began
  bool has_bad_logits = false;  // some logits were not finite (Sampler::has_met_bad_logits)
  size_t n_threads = 0;         // threads that generated
  size_t n_threads_batch = 0;   // threads that read the prompt
  DraftCounts drafts;           // all 0 without drafts
};

// A text that is generated step by step; the caller reads its tokens:
//
//     generation.RunPrompt(prompt);
//     while (!generation.Next().empty()) generation.RunPicked();
//     generation.Finish()
class Generation {
 public:
  using OnText = std::function<bool(std::string_view)>;
  // The session must outlive the Generation, and nothing else may use it meanwhile.
  Generation(Session& session, GenerateOptions options, OnText on_text);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Reads the prompt, as Generate() describes, and throws the same errors.
  void RunPrompt(std::span<const tokenizer::TokenId> prompt);
  // The tokens to read next, once the previous ones have been read. Empty: the text has ended.
  std::span<const tokenizer::TokenId> Next();
  // Runs these tokens through the model.
  void RunPicked();
  // The tokens that the grammar allows next, as bits; empty: all.
  std::span<const uint64_t> AllowedNext();
  // Passes the rest of the text to on_text, and returns the whole result.
  GenerateResult Finish();

 private:
  void Give(std::string_view text, ThinkingSplitter::Part part);
  struct Picked {
    tokenizer::TokenId id;
    bool is_sampled;  // not forced
  };
  std::optional<StopReason> AddToken();
  std::optional<Picked> Pick();
  bool Report(const Picked& picked);
  void Take(tokenizer::TokenId id);
  std::optional<StopReason> EndAfter(tokenizer::TokenId id);
  bool IsAtMaxTokens() const;
  void StartConstraint();
  void AdvanceGrammar(tokenizer::TokenId id);
  void LimitThinking();
  bool ShouldStop() const { return options_.should_stop && options_.should_stop(); }

  Session& session_;
  GenerateOptions options_;
  OnText on_text_;
  GenerateResult result_;
  std::optional<StopReason> end_;
  tokenizer::StreamDecoder decoder_;
  StopMatcher stop_;
  CallSplitter calls_;
  std::vector<tokenizer::TokenId> marks_;
  std::optional<ThinkingSplitter> splitter_;  // begins at the end of the prompt
  ThinkingSplitter::Sink sink_;
  bool caller_wants_more_ = true;
  bool at_start_ = false;                      // the next character is dropped if it is a space
  grammar::Constraint* constraint_ = nullptr;  // null until it begins or waits for the answer
  bool waits_for_call_ = false;                // the constraint begins with the next call
  int64_t n_thinking_ = 0;                     // tokens
  bool was_ended_ = false;                     // the budget has ended the thinking
  std::vector<float> logits_;                  // the logits that on_logits has changed
  std::deque<tokenizer::TokenId> forced_;      // the next tokens, forced by constraint or budget
  std::vector<tokenizer::TokenId> unread_;     // generated, to be read together
  DraftCounts before_;
  size_t passes_before_ = 0;
  Stopwatch watch_;  // times the prompt, then the rest
};

// Reads the prompt after the session's text, then generates. on_text receives the text piece by
// piece; returning false stops the generation (as an interruption). Whole batches of an interrupted
// prompt stay in the session. An empty prompt continues from the session's logits. Throws
// engine::Error if the session has no logits, or if the prompt does not fit.
GenerateResult Generate(Session& session, std::span<const tokenizer::TokenId> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& on_text);

}  // namespace engine
