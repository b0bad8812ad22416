// Finds the largest logits of each token and multiplies their rows again, more exactly.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "kernels/matmul/registry.h"
#include "kernels/matmul/rows.h"
#include "kernels/ops/largest.h"

namespace kernels {
namespace {

// A token's results, in spans with their maximums: most spans have no row to refine.
constexpr size_t kSpans = 256;

struct Spans {
  explicit Spans(size_t n_rows) : rows(n_rows), span((n_rows + kSpans - 1) / kSpans) {}
  size_t begin(size_t i) const { return std::min(rows, i * span); }

  size_t rows, span;
  std::array<float, kSpans> maxima;
};

// Collects the rows whose results are at most `margin` below the largest. If they are too many, the
// margin shrinks until only an eighth of kMaxRefined spans reach the limit, which leaves about as
// many rows.
size_t Collect(const float* results, const Spans& spans, float margin,
               std::array<uint32_t, kMaxRefined>& rows) {
  constexpr size_t kSure = kMaxRefined / 8;
  std::array<float, kSpans> sorted = spans.maxima;
  std::nth_element(sorted.begin(), sorted.begin() + kSure - 1, sorted.end(), std::greater<>());
  const float max = *std::max_element(sorted.begin(), sorted.begin() + kSure);
  const float lowest = std::max(max - margin, sorted[kSure - 1]);
  size_t n = 0;
  for (size_t i = 0; i < kSpans; ++i) {
    if (!(spans.maxima[i] >= lowest)) continue;
    for (size_t row = spans.begin(i); row < spans.begin(i + 1); ++row) {
      if (results[row] >= lowest) rows[n++] = static_cast<uint32_t>(row);
      if (n == rows.size()) return n;
    }
  }
  return n;
}

// RefineLargest() for up to kMaxRowTokens tokens.
void RefineTokens(ThreadPool& pool, const Product& product, float margin, Activations& x) {
  const Matrix& w = product.weights;
  x.RoundOnce(pool, w);
  x.SetInputs();
  const auto results = [&](size_t token) { return product.out + token * product.out_stride; };
  const auto find_maxima = [&](Spans& spans, size_t token, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t first = spans.begin(i), n = spans.begin(i + 1) - first;
      const size_t at = FindLargest(results(token) + first, n).index;
      spans.maxima[i] =
          at < n ? results(token)[first + at] : -std::numeric_limits<float>::infinity();
    }
  };
  const auto multiply = [&](size_t token, std::span<const uint32_t> rows, size_t thread) {
    const RowsInput& in = x.inputs(thread);
    const std::array parts = {in.x[token], in.residuals[token]};
    const RowsScratch scratch(in.scratch, parts.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t row = rows[i];
      std::array<float, 2> sums;
      KernelsOf(w).rows(w, row, row + 1, parts, sums.data(), 1, scratch.product,
                        /*prepared=*/i > 0);
      const float bias = product.bias == nullptr ? 0.0f : product.bias[row];
      results(token)[row] = w.scale * (sums[0] + sums[1]) + bias;
    }
  };
  if (x.n_tokens() >= pool.size()) {
    return pool.For(x.n_tokens(), 1, [&](size_t begin, size_t end, size_t thread) {
      for (size_t token = begin; token < end; ++token) {
        Spans spans(w.rows);
        std::array<uint32_t, kMaxRefined> rows;
        find_maxima(spans, token, 0, kSpans);
        const size_t n = Collect(results(token), spans, margin, rows);
        multiply(token, {rows.data(), n}, thread);
      }
    });
  }
  for (size_t token = 0; token < x.n_tokens(); ++token) {
    Spans spans(w.rows);
    std::array<uint32_t, kMaxRefined> rows;
    pool.For(kSpans, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
      find_maxima(spans, token, begin, end);
    });
    const size_t n = Collect(results(token), spans, margin, rows);
    pool.For(n, 1, [&](size_t begin, size_t end, size_t thread) {
      multiply(token, {rows.data() + begin, end - begin}, thread);
    });
  }
}

}  // namespace

void RefineLargest(ThreadPool& pool, const Product& product, float margin, Activations& x) {
  Product part = product;
  part.weights.uses_residual = true;
  if (!x.KeepsResiduals(part.weights)) return;
  const float* const all = x.x(0);
  const size_t n_tokens = x.n_tokens(), cols = x.cols();
  for (size_t first = 0; first < n_tokens; first += kMaxRowTokens) {
    const size_t n = std::min(kMaxRowTokens, n_tokens - first);
    if (n < n_tokens) x.Set(all + first * cols, n, cols);
    part.out = product.out + first * product.out_stride;
    RefineTokens(pool, part, margin, x);
  }
}

}  // namespace kernels
