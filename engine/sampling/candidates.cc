// The sampling steps, from the logits of a pass to the few candidates that a token is drawn from.
#include "engine/sampling/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "kernels/ops/largest.h"
#include "kernels/ops/sum_of_exp.h"

namespace engine {
namespace {

// Not a function: sorting would call it by a pointer.
constexpr auto MoreLikely = [](const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

}  // namespace

float Comparable(float logit) {
  constexpr float kMax = std::numeric_limits<float>::max();
  return std::isnan(logit) ? -kMax : std::clamp(logit, -kMax, kMax);
}

void Candidates::Assign(std::span<const float> logits) {
  row_ = logits;
  changes_.clear();
  constexpr size_t kUsual = 4096;  // once: more grow as they come
  changes_.reserve(std::min(logits.size(), kUsual));
  earlier_.reserve(changes_.capacity());
  best_.reset();
  n_dropped_ = 0;
  is_row_ = by_id_ = true;
  n_sorted_ = 0;
}

std::vector<Candidate>& Candidates::List() {
  if (!std::exchange(is_row_, false)) return items_;
  items_.resize(row_.size());
  for (size_t i = 0; i < row_.size(); ++i) {
    items_[i] = {static_cast<tokenizer::TokenId>(i), row_[i]};
  }
  for (const Candidate& c : changes_) items_[static_cast<size_t>(c.id)] = c;
  if (n_dropped_ > 0) std::erase_if(items_, [](auto& c) { return c.logit == kDropped; });
  return items_;
}

template <class Run, class Changed>
void Candidates::EachPart(Run run, Changed change) const {
  size_t begin = 0;
  for (const Candidate& c : changes_) {
    const auto id = static_cast<size_t>(c.id);
    if (begin < id) run(begin, row_.subspan(begin, id - begin));
    change(c);
    begin = id + 1;
  }
  if (begin < row_.size()) run(begin, row_.subspan(begin));
}

bool Candidates::AllFinite() {
  if (!is_row_) {
    return std::ranges::all_of(items_, [](const Candidate& c) { return std::isfinite(c.logit); });
  }
  const auto [index, all_finite] = kernels::FindLargest(row_.data(), row_.size());
  if (index < row_.size()) best_ = {static_cast<tokenizer::TokenId>(index), row_[index]};
  return all_finite;
}

void Candidates::NoteChanged(Candidate changed) {
  if (!best_) return;
  if (MoreLikely(changed, *best_)) {
    best_ = changed;
  } else if (changed.id == best_->id && changed.logit < best_->logit) {
    best_.reset();
  }
}

void Candidates::AddBiases(std::span<const std::pair<tokenizer::TokenId, float>> biases) {
  constexpr auto kId = &std::pair<tokenizer::TokenId, float>::first;
  size_t n_dropped = 0;
  ChangeThose(biases, kId, [&](Candidate& c) {
    for (const auto& [id, bias] : std::ranges::equal_range(biases, c.id, {}, kId)) c.logit += bias;
    if (std::isfinite(c.logit)) return;
    c.logit = kDropped;
    ++n_dropped;
  });
  if (is_row_) {
    n_dropped_ += n_dropped;
  } else if (n_dropped > 0) {
    RemoveIf([](auto& c) { return c.logit == kDropped; });
  }
}

void Candidates::Assign(std::span<const float> logits, std::span<const uint64_t> allowed) {
  items_.clear();
  n_sorted_ = 0;
  is_row_ = false;
  by_id_ = true;
  for (size_t word = 0; word < allowed.size(); ++word) {
    for (uint64_t bits = allowed[word]; bits != 0; bits &= bits - 1) {
      const size_t i = 64 * word + static_cast<size_t>(std::countr_zero(bits));
      if (i >= logits.size()) return;
      items_.push_back({static_cast<tokenizer::TokenId>(i), logits[i]});
    }
  }
}

Candidate Candidates::Best() {
  if (is_row_ && !best_) {
    const auto take = [&](const Candidate& c) {
      if (c.logit != kDropped && (!best_ || MoreLikely(c, *best_))) best_ = c;
    };
    const auto search = [&](size_t first, std::span<const float> logits) {
      const size_t i = kernels::FindLargest(logits.data(), logits.size()).index;
      if (i < logits.size()) take({static_cast<tokenizer::TokenId>(first + i), logits[i]});
    };
    EachPart(search, take);
  }
  if (is_row_ && best_) return *best_;
  List();
  if (n_sorted_ > 0) return items_[0];
  Candidate best = items_[0];
  for (const Candidate& c : items_) {  // hardly ever more than one comparison
    if (c.logit >= best.logit && MoreLikely(c, best)) best = c;
  }
  return best;
}

void Candidates::SortTop(size_t n) {
  n = std::min(n, size());
  if (n <= n_sorted_) return;
  List();
  const auto at = [&](size_t i) { return items_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::partial_sort(at(n_sorted_), at(n), items_.end(), MoreLikely);
  n_sorted_ = n;
  by_id_ = false;
}

size_t Candidates::SortAtLeast(float least) {
  List();
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(n_sorted_);
  const auto end =
      std::partition(begin, items_.end(), [&](const Candidate& c) { return c.logit >= least; });
  std::sort(begin, end, MoreLikely);
  by_id_ = false;
  return n_sorted_ = static_cast<size_t>(end - items_.begin());
}

void Candidates::KeepTop(size_t n) {
  // A row's n most likely are at least the n-th of the maxima of its parts.
  constexpr size_t kParts = 256;
  if (is_row_ && n > 0 && n < kParts && kParts < row_.size()) {
    logits_.clear();
    const auto add = [&](size_t, std::span<const float> run) {
      while (!run.empty()) {
        const auto part = run.first(std::min(run.size(), row_.size() / kParts));
        const size_t i = kernels::FindLargest(part.data(), part.size()).index;
        if (i < part.size()) logits_.push_back(part[i]);
        run = run.subspan(part.size());
      }
    };
    EachPart(add, [&](const Candidate& c) { logits_.push_back(c.logit); });
    if (n <= logits_.size()) {
      std::nth_element(logits_.begin(), logits_.begin() + static_cast<std::ptrdiff_t>(n - 1),
                       logits_.end(), std::greater<>());
      KeepAtLeast(logits_[n - 1]);
    }
  }
  SortTop(n);
  Truncate(n);
}

void Candidates::KeepAtLeast(float least) {
  if (!is_row_) return RemoveIf([&](const Candidate& c) { return c.logit < least; });
  is_row_ = false;
  items_.clear();
  std::array<int32_t, 1024> found;
  const auto search = [&](size_t first, std::span<const float> run) {
    while (!run.empty()) {
      const auto some = run.first(std::min(run.size(), found.size()));
      const size_t n = kernels::FindAtLeast(some.data(), some.size(), least, found.data());
      for (size_t k = 0; k < n; ++k) {
        const auto i = static_cast<size_t>(found[k]);
        items_.push_back({static_cast<tokenizer::TokenId>(first + i), some[i]});
      }
      first += some.size();
      run = run.subspan(some.size());
    }
  };
  EachPart(search, [&](const Candidate& c) {
    if (c.logit >= least && c.logit != kDropped) items_.push_back(c);
  });
}

void Candidates::Truncate(size_t n) {
  items_.resize(std::min(n, items_.size()));
  n_sorted_ = std::min(n_sorted_, items_.size());
}

std::span<Candidates::Ranked> Candidates::Ranking() {
  ranking_.resize(List().size());
  return ranking_;
}

void Candidates::KeepRanked(size_t n) {
  const auto kept = std::span(ranking_).first(n);
  std::sort(kept.begin(), kept.end(), [](auto& a, auto& b) { return a.index < b.index; });
  for (size_t i = 0; i < n; ++i) items_[i] = items_[kept[i].index];
  items_.resize(n);
}

double Candidates::SumOfExp(float max) {
  double sum = 0;
  if (is_row_) {
    EachPart(
        [&](size_t, std::span<const float> run) {
          sum += kernels::SumOfExp(run.data(), run.size(), max);
        },
        [&](const Candidate& c) { sum += std::exp(static_cast<double>(c.logit) - max); });
    return sum;
  }
  logits_.resize(items_.size());
  std::ranges::transform(items_, logits_.begin(), &Candidate::logit);
  return kernels::SumOfExp(logits_.data(), logits_.size(), max);
}

std::span<const double> Candidates::Probabilities() {
  const double max = Best().logit;
  probabilities_.resize(List().size());
  double sum = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    sum += probabilities_[i] = std::exp(static_cast<double>(items_[i].logit) - max);
  }
  for (double& p : probabilities_) p /= sum;
  return probabilities_;
}

void ApplyPenalties(Candidates& candidates, std::span<tokenizer::TokenId> recent,
                    const Penalties& penalties) {
  std::sort(recent.begin(), recent.end());
  candidates.ChangeThose(recent, std::identity(), [&](Candidate& c) {
    const auto [first, last] = std::equal_range(recent.begin(), recent.end(), c.id);
    if (first == last) return;
    c.logit = c.logit > 0 ? c.logit / penalties.repeat : c.logit * penalties.repeat;
    c.logit -= penalties.frequency * static_cast<float>(last - first) + penalties.presence;
    c.logit = Comparable(c.logit);  // options may be extreme
  });
}

void TopK(Candidates& candidates, int k) {
  if (k <= 0) return;
  candidates.KeepTop(static_cast<size_t>(k));
}

void TopP(Candidates& candidates, float p) {
  if (p >= 1.0f) return;
  const double max = candidates.Best().logit;
  const double total = candidates.SumOfExp(static_cast<float>(max));
  // Candidates with less than (1 - p) / n each make less than 1 - p together, so the nucleus is
  // among the others. Half of that, for rounding.
  const double share = std::min(1.0 - p, 1.0) / (2.0 * static_cast<double>(candidates.size()));
  candidates.KeepAtLeast(static_cast<float>(max + std::log(share * total)));
  // A nucleus is usually small: sort less likely ones only until it is found.
  double sum = 0;
  size_t kept = 0;
  for (double likely = (1.0 - p) / 16; kept < candidates.size(); likely /= 8) {
    const size_t sorted =
        candidates.SortAtLeast(static_cast<float>(max + std::log(likely * total)));
    while (kept < sorted) {
      sum += std::exp(candidates[kept++].logit - max) / total;
      if (sum >= p) return candidates.Truncate(kept);
    }
  }
}

void MinP(Candidates& candidates, float min_p) {
  if (min_p <= 0.0f) return;
  // p >= min_p * p_max, in logits; min_p above 1 must still leave the best.
  const float max = candidates.Best().logit;
  candidates.KeepAtLeast(std::min(max, max + std::log(min_p)));
}

void Typical(Candidates& candidates, float p) {
  if (p >= 1.0f) return;
  const std::span<const double> probabilities = candidates.Probabilities();
  double entropy = 0;
  for (const double q : probabilities) entropy -= q > 0 ? q * std::log(q) : 0;

  const std::span<Candidates::Ranked> ranked = candidates.Ranking();
  for (size_t i = 0; i < ranked.size(); ++i) {
    ranked[i] = {std::abs(-std::log(probabilities[i]) - entropy), probabilities[i], i};
  }
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.index < b.index;
  });
  double sum = 0;
  size_t n = 0;
  while (n < ranked.size() && sum < p) sum += ranked[n++].probability;
  candidates.KeepRanked(std::max<size_t>(n, 1));
}

void TopNSigma(Candidates& candidates, float n) {
  if (n <= 0.0f) return;
  const auto count = static_cast<double>(candidates.size());
  double mean = 0, squares = 0;
  for (const Candidate& c : candidates.items()) mean += c.logit / count;
  for (const Candidate& c : candidates.items()) squares += (c.logit - mean) * (c.logit - mean);
  const double max = candidates.Best().logit;
  const double least = max - n * std::sqrt(squares / count);
  candidates.RemoveIf([&](const Candidate& c) { return c.logit < std::min(least, max); });
}

void Xtc(Candidates& candidates, float threshold) {
  const std::span<const double> probabilities = candidates.Probabilities();
  const auto is_top = [&](double p) { return p >= threshold; };
  const auto n = static_cast<size_t>(std::ranges::count_if(probabilities, is_top));
  if (n < 2) return;
  candidates.SortTop(n);
  const Candidate least = candidates.items()[n - 1];
  candidates.RemoveIf([&](const Candidate& c) { return MoreLikely(c, least); });
}

void CutSurprise(Candidates& candidates, double mu) {
  const std::span<const double> probabilities = candidates.Probabilities();
  // -log2 p <= mu, in logits.
  const double max = candidates.Best().logit;
  const double best = *std::max_element(probabilities.begin(), probabilities.end());
  const double least = std::min(max, max - (mu + std::log2(best)) * std::log(2.0));
  candidates.RemoveIf([&](const Candidate& c) { return c.logit < least; });
}

void DynamicTemperature(Candidates& candidates, float low, float high, float exponent) {
  if (candidates.size() < 2) return;
  double entropy = 0;
  for (const double p : candidates.Probabilities()) entropy -= p > 0 ? p * std::log(p) : 0;
  const double share = entropy / std::log(static_cast<double>(candidates.size()));
  const double t = low + (high - low) * std::pow(std::clamp(share, 0.0, 1.0), exponent);
  Temperature(candidates, std::max(static_cast<float>(t), kColdest));
}

void Temperature(Candidates& candidates, float temperature) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].logit = Comparable(candidates[i].logit / temperature);
  }
}

}  // namespace engine
