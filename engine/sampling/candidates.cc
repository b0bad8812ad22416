// Candidates stay a row of floats as long as possible (candidates.h).
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

using tokenizer::TokenId;

// Calls range(begin, end) for each run of bits that are set, of the first n.
template <class Range>
void EachRun(std::span<const uint64_t> bits, size_t n, Range range) {
  size_t begin = 0, end = 0;  // the current run, which may continue
  for (size_t word = 0; word < bits.size(); ++word) {
    for (uint64_t left = bits[word]; left != 0;) {
      const auto low = static_cast<size_t>(std::countr_zero(left));
      const auto length = static_cast<size_t>(std::countr_one(left >> low));
      const size_t first = std::min(64 * word + low, n);
      if (first != end) {
        if (begin < end) range(begin, end);
        begin = first;
      }
      end = std::min(64 * word + low + length, n);
      left = low + length == 64 ? 0 : left >> (low + length) << (low + length);
    }
  }
  if (begin < end) range(begin, end);
}

}  // namespace

float Comparable(float logit) {
  constexpr float kMax = std::numeric_limits<float>::max();
  return std::isnan(logit) ? -kMax : std::clamp(logit, -kMax, kMax);
}

Candidates::Candidates() {
  constexpr size_t kReserved = 4096;  // a longer list grows when needed
  changes_.reserve(kReserved);
  earlier_.reserve(kReserved);
}

void Candidates::Assign(std::span<const float> logits, std::span<const uint64_t> allowed) {
  row_ = logits;
  allowed_ = allowed;
  changes_.clear();
  best_.reset();
  is_row_ = by_id_ = true;
  n_sorted_ = 0;
  n_in_row_ = logits.size();
  if (allowed.empty()) return;
  size_t n_runs = 0;
  n_in_row_ = 0;
  EachRun(allowed, logits.size(), [&](size_t begin, size_t end) {
    ++n_runs;
    n_in_row_ += end - begin;
  });
  if (n_in_row_ < 16 * n_runs) List();  // SIMD needs longer runs
}

bool Candidates::IsInRow(tokenizer::TokenId id) const {
  const auto i = static_cast<size_t>(id);
  if (id < 0 || i >= row_.size()) return false;
  return allowed_.empty() || (i / 64 < allowed_.size() && (allowed_[i / 64] >> i % 64 & 1) != 0);
}

template <class Run, class Changed>
void Candidates::EachPart(Run run, Changed change) const {
  auto next = changes_.begin();
  const auto range = [&](size_t begin, size_t end) {
    for (; next != changes_.end() && static_cast<size_t>(next->id) < end; ++next) {
      const auto id = static_cast<size_t>(next->id);
      if (begin < id) run(begin, row_.subspan(begin, id - begin));
      change(*next);
      begin = id + 1;
    }
    if (begin < end) run(begin, row_.subspan(begin, end - begin));
  };
  if (allowed_.empty()) return range(0, row_.size());
  EachRun(allowed_, row_.size(), range);
}

std::vector<Candidate>& Candidates::List() {
  if (!std::exchange(is_row_, false)) return items_;
  items_.resize(n_in_row_);
  auto item = items_.begin();
  EachPart(
      [&](size_t first, std::span<const float> run) {
        for (const float logit : run) *item++ = {static_cast<TokenId>(first++), logit};
      },
      [&](const Candidate& c) {
        if (c.logit != kDropped) *item++ = c;
      });
  return items_;
}

bool Candidates::DropBroken() {
  if (!is_row_) {
    return std::erase_if(items_, [](const Candidate& c) { return !std::isfinite(c.logit); }) > 0;
  }
  earlier_.clear();  // collects the new changes
  const auto search = [&](size_t first, std::span<const float> run) {
    if (SearchBest(first, run)) return;
    for (size_t i = 0; i < run.size(); ++i) {
      if (!std::isfinite(run[i])) earlier_.push_back({static_cast<TokenId>(first + i), kDropped});
    }
  };
  EachPart(search, [](const Candidate&) {});
  n_in_row_ -= earlier_.size();
  changes_.swap(earlier_);
  return !changes_.empty();
}

// Searches a run of logits, whose first id is `first`, for the most likely candidate. Returns
// whether all logits of the run are finite.
bool Candidates::SearchBest(size_t first, std::span<const float> run) {
  const kernels::Largest found = kernels::FindLargest(run.data(), run.size());
  const size_t i = found.index;
  if (i < run.size()) TakeBest({static_cast<TokenId>(first + i), run[i]});
  return found.all_finite;
}

void Candidates::TakeBest(Candidate candidate) {
  if (!best_ || MoreLikely(candidate, *best_)) best_ = candidate;
}

void Candidates::NoteChanged(Candidate changed) {
  if (!best_) return;
  if (changed.id == best_->id && changed.logit < best_->logit) {
    best_.reset();
  } else {
    TakeBest(changed);
  }
}

void Candidates::AddBiases(std::span<const std::pair<TokenId, float>> biases) {
  constexpr auto kId = &std::pair<TokenId, float>::first;
  size_t n_dropped = 0;
  ChangeListed(biases, kId, [&](Candidate& c) {
    for (auto bias = std::ranges::lower_bound(biases, c.id, {}, kId);
         bias != biases.end() && bias->first == c.id; ++bias) {
      c.logit += bias->second;
    }
    if (std::isfinite(c.logit)) return;
    c.logit = kDropped;
    ++n_dropped;
  });
  if (is_row_) {
    n_in_row_ -= n_dropped;
  } else if (n_dropped > 0) {
    RemoveIf([](auto& c) { return c.logit == kDropped; });
  }
}

Candidate Candidates::Best() {
  if (is_row_ && !best_) {
    EachPart([&](size_t first, std::span<const float> run) { SearchBest(first, run); },
             [&](const Candidate& c) {
               if (c.logit != kDropped) TakeBest(c);
             });
  }
  if (is_row_ && best_) return *best_;
  List();
  if (n_sorted_ > 0) return items_[0];
  Candidate best = items_[0];
  for (const Candidate& c : items_) {  // almost never more than one comparison
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

size_t Candidates::SortAtLeast(float min_logit) {
  List();
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(n_sorted_);
  const auto end =
      std::partition(begin, items_.end(), [&](const Candidate& c) { return c.logit >= min_logit; });
  std::sort(begin, end, MoreLikely);
  by_id_ = false;
  return n_sorted_ = static_cast<size_t>(end - items_.begin());
}

void Candidates::KeepTop(size_t n) {
  // A row's n most likely logits are at least the n-th largest of the maxima of its parts.
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

void Candidates::KeepAtLeast(float min_logit) {
  if (!is_row_) return RemoveIf([&](const Candidate& c) { return c.logit < min_logit; });
  is_row_ = false;
  items_.clear();
  std::array<int32_t, 1024> found;
  const auto search = [&](size_t first, std::span<const float> run) {
    while (!run.empty()) {
      const auto some = run.first(std::min(run.size(), found.size()));
      const size_t n = kernels::FindAtLeast(some.data(), some.size(), min_logit, found.data());
      for (size_t k = 0; k < n; ++k) {
        const auto i = static_cast<size_t>(found[k]);
        items_.push_back({static_cast<TokenId>(first + i), some[i]});
      }
      first += some.size();
      run = run.subspan(some.size());
    }
  };
  EachPart(search, [&](const Candidate& c) {
    if (c.logit >= min_logit && c.logit != kDropped) items_.push_back(c);
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

}  // namespace engine
