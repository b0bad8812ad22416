// The longest repeated suffix before each token, in linear time.
#include "engine/sampling/dry_penalty.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/error.h"
#include "gguf/error.h"

namespace engine {

using tokenizer::TokenId;

constexpr auto kToken = &std::pair<TokenId, size_t>::first;  // the token of a repetition

std::vector<TokenId> TokensWith(const std::vector<std::string>& texts,
                                const tokenizer::Tokenizer& tokenizer) {
  std::vector<bool> found(texts.size());
  std::vector<TokenId> ids;
  for (size_t i = 0; i < tokenizer.vocab().size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string piece = tokenizer.Piece(id);
    bool holds = false;
    for (size_t t = 0; t < texts.size(); ++t) {
      if (piece.find(texts[t]) == std::string::npos) continue;
      found[t] = holds = true;
    }
    if (holds) ids.push_back(id);
  }
  for (size_t t = 0; t < texts.size(); ++t) {
    if (!found[t]) throw Error("no token of this model holds ", gguf::Quoted(texts[t]));
  }
  return ids;
}

// Let r[0], r[1], ... be the text reversed. The tokens before r[k - 1] repeat the text's end over
// the common prefix of r[k..] and r[0..], of length matches[k]. The Z algorithm (Gusfield 1997)
// finds it for all k in linear time; [left, right) is the rightmost match so far.
void DryPenalty::FindRepetitions(std::span<const TokenId> text, std::span<const TokenId> breakers) {
  const size_t n = text.size();
  const auto r = [&](size_t i) { return text[n - 1 - i]; };
  const auto is_breaker = [&](TokenId id) {
    return std::binary_search(breakers.begin(), breakers.end(), id);
  };
  size_t max_length = 0;  // no breaker is part of a repetition
  while (max_length < n && !is_breaker(r(max_length))) ++max_length;
  repetitions_.clear();
  matches_.assign(n, 0);
  size_t left = 0, right = 0;
  for (size_t k = 1; k < n; ++k) {
    size_t m = k < right ? std::min(matches_[k - left], right - k) : 0;
    while (k + m < n && r(m) == r(k + m)) ++m;
    matches_[k] = m;
    if (k + m > right) {
      left = k;
      right = k + m;
    }
    if (std::min(m, max_length) > 0 && !is_breaker(r(k - 1))) {
      repetitions_.emplace_back(r(k - 1), std::min(m, max_length));
    }
  }
  // Keep the longest of each token.
  std::ranges::sort(repetitions_, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  repetitions_.erase(std::unique(repetitions_.begin(), repetitions_.end(), same),
                     repetitions_.end());
}

void DryPenalty::Apply(Candidates& candidates, std::span<const TokenId> text,
                       const pronk::Dry& options, std::span<const TokenId> breakers) {
  if (!options.IsOn()) return;
  if (options.last_n > 0) {
    text = text.last(std::min(text.size(), static_cast<size_t>(options.last_n.value)));
  }
  FindRepetitions(text, breakers);
  const double multiplier = options.multiplier, base = options.base;
  candidates.ChangeListed(repetitions_, kToken, [&](Candidate& c) {
    const auto at = std::ranges::lower_bound(repetitions_, c.id, {}, kToken);
    if (at == repetitions_.end() || at->first != c.id) return;
    const double excess = static_cast<double>(at->second) - options.allowed_length;
    if (excess < 0) return;
    c.logit = Comparable(c.logit - static_cast<float>(multiplier * std::pow(base, excess)));
  });
}

}  // namespace engine
