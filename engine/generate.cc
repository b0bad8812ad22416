#include "engine/generate.h"

#include <algorithm>
#include <utility>

#include "engine/error.h"
#include "engine/stopwatch.h"

namespace engine {
namespace {

using tokenizer::TokenId;

}  // namespace

std::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kEos:
      return "eos";
    case StopReason::kStop:
      return "stop";
    case StopReason::kLength:
      return "length";
    case StopReason::kContext:
      return "context";
    case StopReason::kInterrupted:
      return "interrupted";
  }
  return "";
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
  // Keep the longest tail that a stop text begins with.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) keep = n;
    }
  }
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
  result.n_prompt = prompt.size();
  const Stopwatch prompt_watch;
  const bool read = session.Prefill(prompt, [&](size_t done) {
    if (options.prompt_progress) options.prompt_progress(done, prompt.size());
    return !interrupted();
  });
  result.prompt_seconds = prompt_watch.Seconds();
  if (!read) {
    result.stop_reason = StopReason::kInterrupted;
    return result;
  }

  if (options.bookmarks) session.Bookmark();

  tokenizer::StreamDecoder decoder;
  StopMatcher stop(options.stop_texts);
  bool wanted = true;
  const auto emit = [&](const std::string& text) {
    if (text.empty() || !wanted) return;
    result.text += text;
    wanted = on_text(text);
  };

  const Stopwatch decode_watch;
  for (;;) {
    if (options.max_tokens >= 0 &&
        std::cmp_greater_equal(result.tokens.size(), options.max_tokens)) {
      result.stop_reason = StopReason::kLength;
      break;
    }
    if (interrupted() || !wanted) {
      result.stop_reason = StopReason::kInterrupted;
      break;
    }
    const TokenId id = session.Sample();
    if (vocab.IsEog(id)) {
      result.stop_reason = StopReason::kEos;
      break;
    }
    result.tokens.push_back(id);
    emit(stop.Push(decoder.Push(tokenizer.Piece(id))));
    if (stop.matched()) {
      result.stop_reason = StopReason::kStop;
      break;
    }
    if (session.position() == session.capacity()) {
      result.stop_reason = StopReason::kContext;
      break;
    }
    session.Decode(id);
    ++result.n_decoded;
  }
  result.decode_seconds = decode_watch.Seconds();
  if (options.bookmarks) session.Bookmark();
  emit(stop.Push(decoder.Finish()));
  emit(stop.Finish());
  return result;
}

}  // namespace engine
