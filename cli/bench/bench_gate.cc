// Decides whether a program is slower than another program or an earlier run.
//
// Speeds vary in proportion to their size, so logarithms are compared.
#include <algorithm>
#include <cmath>

#include "cli/bench/bench.h"
#include "cli/output/text.h"

namespace cli {
namespace {

// The probability that |t| of Student's distribution is at most t (Abramowitz, Stegun 26.7.3-4).
double WithinT(double t, size_t freedom) {
  const double n = static_cast<double>(freedom);
  const double angle = std::atan(t / std::sqrt(n)), c = std::cos(angle) * std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double sum = 0, term = odd ? std::cos(angle) : 1;
  for (size_t i = odd ? 3 : 2; i <= freedom; i += 2) {
    sum += term;
    term *= c * static_cast<double>(i - 1) / static_cast<double>(i);
  }
  return odd ? 2 / M_PI * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

// The t that Student's |t| exceeds with probability `error`.
double StudentT(double error, size_t freedom) {
  double low = 0, high = 1e9;
  while (high - low > 1e-9 * high) {
    const double t = low < 1 ? (low + high) / 2 : std::sqrt(low * high);
    (WithinT(t, freedom) < 1 - error ? low : high) = t;
  }
  return high;
}

double SquaredLogDeviations(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return SquaredDeviations(values);
}

// How many of the smallest, and of the largest, means of two differences lie outside of Wilcoxon's
// interval for n differences; 0: no interval has so small an error.
size_t WilcoxonRank(size_t n, double error) {
  // The probability of each sum of ranks, if half of the signs are negative.
  std::vector<double> p = {1};
  for (size_t rank = 1; rank <= n; ++rank) {
    p.resize(p.size() + rank);
    for (size_t sum = p.size(); sum-- > 0;)
      p[sum] = (p[sum] + (sum < rank ? 0 : p[sum - rank])) / 2;
  }
  size_t k = 0;
  for (double below = p[0]; below <= error / 2; below += p[k]) ++k;
  return k;
}

}  // namespace

// Equal programs differ for two reasons. Repetitions vary: the pooled deviation measures that.
// Repetitions of one run are seconds apart and alike, so the median counts as no more certain than
// one of them. And the machine is faster or slower at another time: the limits of reading and of
// computing and the share of CPU time measure that. The two are added, since repetitions on a
// changing machine see several of its states, but too little of each.
Comparison CompareSamples(const BenchSamples& before, const BenchSamples& now, double error) {
  const double ratio = MedianOf(now.ts) / MedianOf(before.ts);
  if (before.ts.size() + now.ts.size() < 3) return {ratio, 0, HUGE_VAL, before.ts};
  const size_t freedom = before.ts.size() + now.ts.size() - 2;
  const double variance = (SquaredLogDeviations(before.ts) + SquaredLogDeviations(now.ts)) /
                          static_cast<double>(freedom);
  const double within = StudentT(error, freedom) * std::sqrt(2 * variance);
  const auto drift = [](double then, double later) {
    return then > 0 && later > 0 ? std::log(later / then) : 0;
  };
  const double between =
      std::hypot(drift(before.limit, now.limit), drift(before.dot_limit, now.dot_limit),
                 drift(before.cores, now.cores));
  const double spread = std::exp(within + between);
  return {ratio, ratio / spread, ratio * spread, before.ts};
}

// The two runs of a pair are seconds apart, so the machine's drift cancels in their difference, and
// equal programs have differences that are as often above 0 as below. Wilcoxon's interval assumes
// no more; its middle is Hodges' and Lehmann's estimate.
Comparison ComparePairs(const std::vector<double>& other, const std::vector<double>& now,
                        double error) {
  std::vector<double> means;
  for (size_t i = 0; i < now.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      means.push_back(std::log(now[i] * now[j] / (other[i] * other[j])) / 2);
    }
  }
  std::sort(means.begin(), means.end());
  const double ratio = std::exp(MedianOf(means));
  const size_t k = WilcoxonRank(now.size(), error);
  if (k == 0) return {ratio, 0, HUGE_VAL, other};
  return {ratio, std::exp(means[k - 1]), std::exp(means[means.size() - k]), other};
}

std::string Comparison::Text() const {
  if (!HasInterval()) return Figures(ratio, 4) + " (too few to tell)";
  return Figures(ratio, 4) + " (" + Figures(low, 4) + "-" + Figures(high, 4) + ")";
}

std::string Comparison::Word() const {
  if (low > 1) return "faster";
  return verdict == Verdict::kSlower      ? "slower"
         : verdict == Verdict::kNotSlower ? "not slower"
                                          : "could not tell";
}

bool Gate::WantsMore(size_t n, const Compare& compare, Comparison& result) {
  constexpr size_t kMax = 384;  // about a tenth of the scatter of single samples is left
  const double seconds = watch_.Seconds();
  const bool over = n >= kMax || seconds > seconds_;
  if (n < next_ && !over) return true;
  next_ = 2 * n;
  const double look = static_cast<double>(++looks_);
  const double error = kGateError / static_cast<double>(n_tests_) / (look * (look + 1));
  result = compare(error);  // the shares 1/2, 1/6, 1/12 and so on have the sum 1
  result.verdict = result.For(detect_);
  // An interval narrows as the square root of the number of pairs. It decides at the latest if it
  // reaches from the ratio to the further one of 1 and the slowest speed that is not slower.
  const double ratio = std::log(result.ratio);
  const double needed = std::max(ratio - std::log1p(-detect_), -ratio);
  const double narrower = std::log(result.high / result.low) / 2 / needed;
  const bool is_known = std::isfinite(narrower) && result.verdict == Verdict::kUnknown;
  result.seconds_more = is_known ? seconds * std::max(narrower * narrower - 1, 1.0) : 0;
  return result.verdict == Verdict::kUnknown && !over;
}

}  // namespace cli
