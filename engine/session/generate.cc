// The loop that reads a prompt and generates, under a grammar and a budget of thinking if they are
// given. engine/answer finds stop texts, thinking and calls. Read, in this order:
//
//     Generate(), at the end    the loop
//     RunPrompt()               runs the prompt through the model
//     Next(), AddToken()        pick a token, forced or sampled, and add it to the text
//     RunPicked()               runs the picked tokens through the model
#include "engine/session/generate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/error.h"
#include "engine/sampling/log_probabilities.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr double kReportSeconds = 0.05;  // between two reports of a prompt's progress

// The last tokens of a prompt, in which a template may begin the thinking.
constexpr size_t kPromptEnd = 32;

std::string EndOfText(const Session& session) {
  std::string text;
  const std::span<const TokenId> tokens = session.tokens();
  for (const TokenId id : tokens.last(std::min(kPromptEnd, tokens.size()))) {
    text += session.model().tokenizer->Piece(id, /*special=*/true);
  }
  return text;
}

DraftCounts CountsOf(const Session& session) {
  return session.speculation() != nullptr ? session.speculation()->counts() : DraftCounts();
}

// Ids for calls that have none: nine letters and digits, as Mistral requires.
void NameCalls(std::vector<tokenizer::ToolCall>& calls, size_t n_before) {
  for (tokenizer::ToolCall& call : calls) {
    std::string number = std::to_string(++n_before);
    number.insert(0, 5 - std::min<size_t>(number.size(), 5), '0');
    if (call.id.empty()) call.id = "call" + number;
  }
}

}  // namespace

std::string_view StopReasonName(StopReason reason) {
  constexpr std::string_view kNames[] = {"eos", "stop", "length", "context", "interrupted"};
  static_assert(std::size(kNames) == static_cast<size_t>(StopReason::kInterrupted) + 1);
  return kNames[static_cast<size_t>(reason)];
}

Generation::Generation(Session& session, GenerateOptions options, OnText on_text)
    : session_(session),
      options_(std::move(options)),
      on_text_(std::move(on_text)),
      stop_(options_.stop_texts),
      calls_(options_.calls, options_.tools),
      marks_(MarkTokens(options_.thinking.tokens, *session.model().tokenizer)),
      sink_([this](std::string_view text, ThinkingSplitter::Part part) {
        Give(part == ThinkingSplitter::Part::kAnswer ? calls_.Push(text) : std::string(text), part);
      }) {
  if (options_.calls == nullptr) return;
  const std::vector<TokenId> more = MarkTokens(options_.calls->Marks(), *session.model().tokenizer);
  marks_.insert(marks_.end(), more.begin(), more.end());
}

void Generation::RunPrompt(std::span<const TokenId> prompt) {
  if (prompt.empty() && !session_.has_logits())
    throw Error("the prompt is empty, and this model has no token to begin with");
  const size_t begin = session_.position();
  watch_ = {};
  double reported = 0;
  const auto report = [&](size_t done) {
    return !options_.prompt_progress || options_.prompt_progress(done, prompt.size());
  };
  const bool read = session_.Prefill(prompt, [&](size_t done) {
    if (ShouldStop()) return false;
    const double now = watch_.Seconds();
    if (now < reported + kReportSeconds) return true;
    reported = now;
    return report(done);
  });
  result_.prompt_seconds = watch_.Seconds();
  result_.n_prompt = session_.position() - begin;
  result_.n_unread = prompt.size() - result_.n_prompt;
  if (!read || !report(prompt.size())) {
    end_ = StopReason::kInterrupted;
    return;
  }
  if (options_.bookmarks) session_.Bookmark();
  if (options_.prompt_read) options_.prompt_read();

  splitter_.emplace(options_.thinking, EndOfText(session_));
  if (options_.constraint != nullptr) StartConstraint();
  const tokenizer::Vocabulary& vocab = session_.model().tokenizer->vocab();
  const auto is_control = [&](TokenId id) { return vocab.IsControl(id); };
  at_start_ = (options_.constraint == nullptr || options_.constrains_calls) &&
              (options_.is_answer ||
               (vocab.add_space_prefix && std::ranges::all_of(session_.tokens(), is_control)));
  before_ = CountsOf(session_);
  passes_before_ = session_.n_passes();
  watch_ = {};
}

std::span<const TokenId> Generation::Next() {
  result_.n_decoded += unread_.size();
  unread_.clear();
  while (!end_) {
    end_ = AddToken();
    if (forced_.empty()) break;
  }
  if (end_ && !options_.runs_last) unread_.clear();
  return unread_;
}

// Adds a token to the text and, unless it is an end or completes a stop text, to the tokens to
// read. Returns the stop reason if the text ends before it or after it.
std::optional<StopReason> Generation::AddToken() {
  if (IsAtMaxTokens()) return StopReason::kLength;
  if (ShouldStop() || !caller_wants_more_) return StopReason::kInterrupted;
  const std::optional<Picked> picked = Pick();
  if (!picked) return StopReason::kInterrupted;
  if (session_.model().tokenizer->vocab().IsEog(picked->id)) return StopReason::kEos;
  if (!Report(*picked)) return StopReason::kInterrupted;
  Take(picked->id);
  return EndAfter(picked->id);
}

// The next token, forced or sampled. Empty if the caller ends the text.
std::optional<Generation::Picked> Generation::Pick() {
  if (forced_.empty()) LimitThinking();
  if (!forced_.empty()) {
    const TokenId id = forced_.front();
    forced_.pop_front();
    return Picked{id, /*is_sampled=*/false};
  }
  std::span<const float> logits = session_.logits();
  if (options_.on_logits) {
    logits_.assign(logits.begin(), logits.end());
    if (!options_.on_logits(logits_)) return std::nullopt;
    logits = logits_;
  }
  const auto allowed =
      constraint_ != nullptr ? constraint_->Allowed() : std::span<const uint64_t>();
  return Picked{session_.Sample(logits, allowed), /*is_sampled=*/true};
}

// Shows a token to the caller. Returns false if the text ends before it.
bool Generation::Report(const Picked& picked) {
  if (!options_.on_token) return true;
  pronk::Token token = {picked.id, watch_.Seconds(), NAN, {}};
  if (picked.is_sampled && options_.n_likeliest >= 0)
    SetLogProbabilities(token, session_.logits(), static_cast<size_t>(options_.n_likeliest));
  return options_.on_token(token);
}

// Adds a token to the result, its text to the thinking or the answer, and advances the grammar.
void Generation::Take(TokenId id) {
  result_.tokens.push_back(id);
  const bool is_mark = std::find(marks_.begin(), marks_.end(), id) != marks_.end();
  const std::string piece = session_.model().tokenizer->Piece(id, /*special=*/is_mark);
  splitter_->Push(stop_.Push(decoder_.Push(piece)), sink_);
  if (stop_.matched()) return;
  AdvanceGrammar(id);
  if (constraint_ == nullptr || constraint_->done() || !forced_.empty()) return;
  const std::vector<TokenId> forced = constraint_->Forced();
  forced_.assign(forced.begin(), forced.end());
}

// Lets the session read a taken token, if necessary. Returns the stop reason if the text ends after
// it.
std::optional<StopReason> Generation::EndAfter(TokenId id) {
  if (stop_.matched()) return StopReason::kStop;
  const bool is_done = constraint_ != nullptr && constraint_->done();
  const bool is_last = is_done || IsAtMaxTokens();
  if (is_last && !options_.runs_last) return is_done ? StopReason::kEos : StopReason::kLength;
  const bool has_room = session_.MakeRoom(unread_.size() + 1);
  if (has_room) unread_.push_back(id);
  if (is_done) return StopReason::kEos;
  if (!has_room) return StopReason::kContext;
  return std::nullopt;
}

bool Generation::IsAtMaxTokens() const {
  return options_.max_tokens >= 0 &&
         std::cmp_greater_equal(result_.tokens.size(), options_.max_tokens);
}

// A grammar applies from the start of the answer: immediately, unless the model thinks first. A
// grammar of calls applies from the start of a call.
void Generation::StartConstraint() {
  options_.constraint->Restart();
  waits_for_call_ = options_.constrains_calls;
  if (waits_for_call_) return;
  constraint_ = options_.constraint;
  const ThinkingSplitter::Place place = splitter_->place();
  if (place == ThinkingSplitter::Place::kThinking) constraint_->Wait();
  if (place != ThinkingSplitter::Place::kEither) return;
  for (const TokenId id : marks_) {
    const std::string mark = session_.model().tokenizer->Piece(id, /*special=*/true);
    if (options_.thinking.open.starts_with(mark)) constraint_->MayWait(id);
  }
}

// Advances the grammar by a generated token, whose text the splitters have already received.
void Generation::AdvanceGrammar(TokenId id) {
  if (constraint_ != nullptr) {
    constraint_->Accept(id);
    if (!constraint_->waiting() || splitter_->place() != ThinkingSplitter::Place::kAnswer) return;
    constraint_->Begin();
    constraint_->AcceptSpelt(result_.text + calls_.held() + stop_.held());
  } else if (waits_for_call_ && calls_.has_begun()) {
    waits_for_call_ = false;
    try {
      options_.constraint->AcceptSpelt(calls_.held() + stop_.held());
      constraint_ = options_.constraint;
    } catch (const grammar::Error&) {  // a call with another spelling stays free
    }
  }
}

// Counts a token of thinking that is about to be sampled, or forces the end of the thinking.
void Generation::LimitThinking() {
  if (options_.thinking_budget < 0 || !splitter_->is_thinking()) return;
  if (constraint_ != nullptr && constraint_->grammar()->covers_thinking()) return;
  if (n_thinking_ < options_.thinking_budget) {
    ++n_thinking_;
    return;
  }
  const tokenizer::Tokenizer& tokenizer = *session_.model().tokenizer;
  const auto force = [&](const std::vector<TokenId>& ids) {
    forced_.insert(forced_.end(), ids.begin(), ids.end());
  };
  if (!was_ended_) force(tokenizer.Encode(options_.thinking_message, {.add_special = false}));
  const std::string end = EndOfThinking(options_.thinking, std::exchange(was_ended_, true));
  force(tokenizer.Encode(end, {.add_special = false, .parse_special = true}));
}

std::span<const uint64_t> Generation::AllowedNext() {
  if (constraint_ == nullptr || end_) return {};
  try {
    return constraint_->Allowed();
  } catch (const grammar::Error&) {  // reported if a token is sampled
    return {};
  }
}

// Forced tokens are read together, in passes so small that each token's result has the same bits as
// in a pass of its own.
void Generation::RunPicked() {
  for (std::span<const TokenId> rest = unread_; !rest.empty();) {
    // Until the text ends, AddToken() asks whether to stop. After the end only a continuation needs
    // the last tokens, so an interruption may skip them.
    if (end_ && ShouldStop()) return;
    const auto pass = rest.first(std::min(rest.size(), kMaxDecodeTokens));
    rest = rest.subspan(pass.size());
    session_.Decode(pass, {.allowed = rest.empty() ? AllowedNext() : std::span<const uint64_t>(),
                           .all = options_.on_logits || options_.n_likeliest >= 0});
  }
}

// Passes text of the thinking or of the answer to the caller.
void Generation::Give(std::string_view text, ThinkingSplitter::Part part) {
  if (!caller_wants_more_ || text.empty()) return;
  const bool is_answer = part == ThinkingSplitter::Part::kAnswer;
  if (is_answer && std::exchange(at_start_, false) && text.starts_with(' ')) {
    text.remove_prefix(1);
    if (text.empty()) return;
  }
  (is_answer ? result_.text : result_.thinking) += text;
  if (is_answer || options_.on_thinking) {
    caller_wants_more_ = (is_answer ? on_text_ : options_.on_thinking)(text);
  }
}

GenerateResult Generation::Finish() {
  result_.stop_reason = *end_;
  result_.n_generated = result_.tokens.size();
  result_.is_unconstrained = constraint_ == nullptr;
  result_.has_bad_logits = session_.has_met_bad_logits();
  result_.n_threads = session_.n_threads();
  result_.n_threads_batch = session_.n_threads_batch();
  if (!splitter_) return std::move(result_);  // the prompt was not read
  result_.generate_seconds = watch_.Seconds();
  result_.drafts = CountsOf(session_) - before_;
  result_.n_passes = session_.n_passes() - passes_before_;
  session_.CompleteLogits();
  if (options_.bookmarks) session_.Bookmark();
  splitter_->Push(stop_.Push(decoder_.Finish()) + stop_.Finish(), sink_);
  splitter_->Finish(sink_);
  Give(calls_.Finish(result_.tool_calls), ThinkingSplitter::Part::kAnswer);
  NameCalls(result_.tool_calls, options_.n_calls);
  return std::move(result_);
}

GenerateResult Generate(Session& session, std::span<const TokenId> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& on_text) {
  Generation generation(session, options, on_text);
  generation.RunPrompt(prompt);
  while (!generation.Next().empty()) generation.RunPicked();
  return generation.Finish();
}

}  // namespace engine
