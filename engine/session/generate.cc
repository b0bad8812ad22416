#include "engine/session/generate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/error.h"
#include "engine/stopwatch.h"

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

// The grammar starts with the answer: at once, unless the model thinks first.
void Start(grammar::Constraint& constraint, const ThinkingSplitter& splitter,
           const ThinkingFormat& format, const std::vector<TokenId>& marks,
           const tokenizer::Tokenizer& tokenizer) {
  constraint.Restart();
  const ThinkingSplitter::Place place = splitter.place();
  if (place == ThinkingSplitter::Place::kThinking) constraint.Wait();
  if (place != ThinkingSplitter::Place::kEither) return;
  for (const TokenId id : marks) {
    if (format.open.starts_with(tokenizer.Piece(id, /*special=*/true))) constraint.MayWait(id);
  }
}

// Takes a generated token; `answer` is all of the answer, which may begin with it.
void Follow(grammar::Constraint& constraint, TokenId id, const ThinkingSplitter& splitter,
            std::string_view answer) {
  constraint.Accept(id);
  if (!constraint.waiting() || splitter.place() != ThinkingSplitter::Place::kAnswer) return;
  constraint.Begin();
  constraint.AcceptText(answer);
}

}  // namespace

std::string_view StopReasonName(StopReason reason) {
  constexpr std::string_view kNames[] = {"eos", "stop", "length", "context", "interrupted"};
  static_assert(std::size(kNames) == static_cast<size_t>(StopReason::kInterrupted) + 1);
  return kNames[static_cast<size_t>(reason)];
}

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::string StopMatcher::Push(std::string_view text) {
  if (matched_) return "";
  held_ += text;
  size_t match = std::string::npos;
  for (const std::string& stop : stops_) match = std::min(match, held_.find(stop));
  if (match != std::string::npos) {
    matched_ = true;
    return std::exchange(held_, "").substr(0, match);
  }
  // Hold back the longest tail that a stop text begins with.
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, BegunMark(held_, stop));
  std::string safe = held_.substr(0, held_.size() - keep);
  held_.erase(0, safe.size());
  return safe;
}

std::string StopMatcher::Finish() { return std::exchange(held_, ""); }

GenerateResult Generate(Session& session, std::span<const TokenId> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& on_text) {
  const tokenizer::Tokenizer& tokenizer = *session.model().tokenizer;
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  const auto interrupted = [&] { return options.interrupted && options.interrupted(); };
  if (prompt.empty() && !session.has_logits())
    throw Error("the prompt is empty, and this model has no token to begin with");

  GenerateResult result;
  const size_t begin = session.position();
  const Stopwatch prompt_watch;
  double reported = 0;
  const auto report = [&](size_t done) {
    return !options.prompt_progress || options.prompt_progress(done, prompt.size());
  };
  const bool read = session.Prefill(prompt, [&](size_t done) {
    if (interrupted()) return false;
    const double now = prompt_watch.Seconds();
    if (now < reported + kReportSeconds) return true;
    reported = now;
    return report(done);
  });
  result.prompt_seconds = prompt_watch.Seconds();
  result.n_prompt = session.position() - begin;
  result.n_unread = prompt.size() - result.n_prompt;
  if (!read || !report(prompt.size())) {
    result.stop_reason = StopReason::kInterrupted;
    return result;
  }

  if (options.bookmarks) session.Bookmark();
  if (options.prompt_read) options.prompt_read();

  tokenizer::StreamDecoder decoder;
  StopMatcher stop(options.stop_texts);
  const std::vector<TokenId> marks = MarkTokens(options.thinking, tokenizer);
  ThinkingSplitter splitter(options.thinking, EndOfText(session));
  bool wanted = true;
  const auto sink = [&](std::string_view text, ThinkingSplitter::Part part) {
    if (!wanted) return;
    const bool is_answer = part == ThinkingSplitter::Part::kAnswer;
    (is_answer ? result.text : result.thinking) += text;
    if (is_answer || options.on_thinking)
      wanted = (is_answer ? on_text : options.on_thinking)(text);
  };

  grammar::Constraint* const constraint = options.constraint;
  if (constraint != nullptr) Start(*constraint, splitter, options.thinking, marks, tokenizer);
  std::vector<TokenId> forced;  // by the constraint, in reverse
  std::vector<TokenId> unread;  // generated, to be read together
  const DraftCounts before = CountsOf(session);
  const size_t batches_before = session.n_batches();
  const Stopwatch decode_watch;
  // Generates one token; returns the stop reason if it is the last.
  const auto step = [&]() -> std::optional<StopReason> {
    if (options.max_tokens >= 0 &&
        std::cmp_greater_equal(result.tokens.size(), options.max_tokens)) {
      return StopReason::kLength;
    }
    if (interrupted() || !wanted) return StopReason::kInterrupted;
    TokenId id = -1;
    if (forced.empty()) {
      id = session.Sample(constraint != nullptr ? constraint->Allowed()
                                                : std::span<const uint64_t>());
    } else {
      id = forced.back();
      forced.pop_back();
    }
    if (vocab.IsEog(id)) return StopReason::kEos;
    result.tokens.push_back(id);
    const bool is_mark = std::find(marks.begin(), marks.end(), id) != marks.end();
    splitter.Push(stop.Push(decoder.Push(tokenizer.Piece(id, /*special=*/is_mark))), sink);
    if (stop.matched()) return StopReason::kStop;
    if (constraint != nullptr) {
      Follow(*constraint, id, splitter, result.text);
      if (constraint->done()) return StopReason::kEos;
      if (forced.empty()) {
        forced = constraint->Forced();
        std::reverse(forced.begin(), forced.end());
      }
    }
    unread.push_back(id);
    if (session.capacity() - session.position() < unread.size()) return StopReason::kContext;
    if (!forced.empty()) return std::nullopt;
    if (unread.size() == 1) {
      session.Decode(id);
    } else {
      session.Prefill(unread);
    }
    result.n_decoded += unread.size();
    unread.clear();
    return std::nullopt;
  };
  std::optional<StopReason> reason;
  while (!reason) reason = step();
  result.stop_reason = *reason;
  result.decode_seconds = decode_watch.Seconds();
  result.drafts = CountsOf(session) - before;
  result.n_passes = session.n_batches() - batches_before;
  result.n_threads = session.n_threads();
  result.n_threads_batch = session.n_threads_batch();
  if (options.bookmarks) session.Bookmark();
  splitter.Push(stop.Push(decoder.Finish()) + stop.Finish(), sink);
  splitter.Finish(sink);
  return result;
}

}  // namespace engine
