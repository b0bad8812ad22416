// How threads divide the products of heads, see head_products.h.
//
// Heads share nothing, and a head's matrix is small (64 KB as Q8_0). So a thread prepares the input
// of a head's product itself, in its own memory, and there is one barrier.
//
// - Up to MaxRowTokens() tokens: the rows of all heads are one range of work. Every thread that
//   gets rows of a head rounds that head's vectors, 128 numbers of each token.
// - More tokens: a thread takes a head, or some heads that share their input, with up to
//   kHeadTokens tokens at a time, by panels.
#include "kernels/attention/head_products.h"

#include <algorithm>
#include <array>

#include "kernels/matmul/gemm.h"
#include "kernels/matmul/registry.h"
#include "kernels/matmul/rows.h"

namespace kernels {
namespace {

// The tokens of whole tiles in any form. The packed tiles stay in a thread's cache, and a panel of
// weights is unpacked once for all tiles.
constexpr size_t kHeadTokens = 192;
static_assert(kHeadTokens % kMaxTileTokens == 0);

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

size_t TilesBytes(size_t max_tokens, size_t cols) {
  if (max_tokens <= kDefaultMaxRowTokens) return 0;
  size_t max_bytes = 0;
  for (const BatchForm form : {BatchForm::kFloats, BatchForm::kInt8, BatchForm::kBf16}) {
    max_bytes = std::max(max_bytes, BatchBytes(form, std::min(max_tokens, kHeadTokens), cols));
  }
  return RoundUp(max_bytes, kCacheLine);
}

size_t ThreadBytes(size_t max_tokens, size_t cols) {
  const size_t rows = RowsScratchBytes(std::min(max_tokens, kMaxRowTokens), cols);
  return max_tokens <= kDefaultMaxRowTokens ? rows : std::max(rows, PanelScratchBytes(cols));
}

}  // namespace

HeadScratch::HeadScratch(size_t max_tokens, size_t cols, size_t max_threads)
    : max_tokens_(max_tokens),
      rounded_(max_threads * kMaxRowTokens, cols),
      tiles_bytes_(TilesBytes(max_tokens, cols)),
      thread_bytes_(ThreadBytes(max_tokens, cols)),
      tiles_(max_threads * tiles_bytes_),
      threads_(max_threads * thread_bytes_) {}

size_t HeadScratch::BytesFor(size_t max_tokens, size_t cols, size_t max_threads) {
  return RoundedRows::BytesFor(max_threads * kMaxRowTokens, cols) +
         max_threads * (TilesBytes(max_tokens, cols) + ThreadBytes(max_tokens, cols));
}

// One call of HeadProducts().
struct HeadPass {
  const ExpertStack& weights;
  const HeadVectors<const float>& x;
  const HeadVectors<float>& out;
  HeadScratch& s;

  void Begin() { s.rounded_.SetCols(weights.first.cols); }
  std::span<std::byte> scratch(size_t thread) {
    return {s.threads_.get() + thread * s.thread_bytes_, s.thread_bytes_};
  }

  // Multiplies rows [begin, end) of a head's matrix with all tokens, at most MaxRowTokens().
  void SmallBatch(size_t head, size_t begin, size_t end, size_t n_tokens, size_t thread) {
    std::array<ActivationRow, kMaxRowTokens> rows;
    for (size_t t = 0; t < n_tokens; ++t) {
      const float* const in = x.at(t, head);
      rows[t] = {in, nullptr, nullptr, nullptr};
      if (!UsesInt8(weights.first)) continue;
      const size_t row = thread * kMaxRowTokens + t;
      s.rounded_.Round(row, 0, weights.first.cols, in);
      rows[t] = s.rounded_.row(row, in);
    }
    RowsInput input{{rows.data(), n_tokens}, scratch(thread)};
    LinearRows(weights.expert(head), weights.expert_bias(head), begin, end, input,
               out.at(0, head) + begin, out.token_stride);
  }

  // Multiplies all rows of the heads [head, end), which share their input, with up to kHeadTokens
  // tokens.
  void Batch(size_t head, size_t end, size_t first_token, size_t n_tokens, size_t thread) {
    const BatchForm form = BatchFormFor(weights.first);
    std::byte* const tiles = s.tiles_.get() + thread * s.tiles_bytes_;
    const size_t tile_tokens = BatchTileTokens(form);
    for (size_t first = 0; first < n_tokens; first += tile_tokens) {
      std::array<ActivationRow, kMaxTileTokens> rows;
      const size_t n = std::min(tile_tokens, n_tokens - first);
      for (size_t i = 0; i < n; ++i) {
        rows[i] = {x.at(first_token + first + i, head), nullptr, nullptr, nullptr};
      }
      PackTile(form, {rows.data(), n}, weights.first.cols, first / tile_tokens, tiles);
    }
    for (; head < end; ++head) {
      const Matrix matrix = weights.expert(head);
      KernelsOf(matrix).panels(matrix, 0, matrix.rows, {form, tiles, n_tokens, weights.first.cols},
                               {.out = out.at(first_token, head),
                                .stride = out.token_stride,
                                .bias = weights.expert_bias(head)},
                               scratch(thread));
    }
  }
};

void HeadProducts(ThreadPool& pool, const ExpertStack& weights, const HeadVectors<const float>& x,
                  size_t n_tokens, const HeadVectors<float>& out, HeadScratch& scratch) {
  HeadPass pass{weights, x, out, scratch};
  pass.Begin();
  const size_t n_rows = weights.first.rows, n_heads = weights.n_experts;
  if (n_tokens <= MaxRowTokens(weights.first)) {
    return pool.For(n_heads * n_rows, kRowGrain, [&](size_t begin, size_t end, size_t thread) {
      for (size_t head = begin / n_rows; head * n_rows < end; ++head) {
        const size_t first = head * n_rows;  // the head's first row, in the range of all rows
        pass.SmallBatch(head, std::max(begin, first) - first, std::min(end - first, n_rows),
                        n_tokens, thread);
      }
    });
  }
  const size_t n_token_ranges = (n_tokens + kHeadTokens - 1) / kHeadTokens;
  const size_t max_together = x.head_stride == 0 ? n_heads * n_token_ranges / (4 * pool.size()) : 1;
  const size_t together = std::clamp<size_t>(max_together, 1, n_heads);
  const size_t n_items = (n_heads + together - 1) / together * n_token_ranges;
  pool.ForDynamic(n_items, 1, [&](size_t begin, size_t end, size_t thread) {
    for (size_t item = begin; item < end; ++item) {
      const size_t token = item % n_token_ranges * kHeadTokens,
                   head = item / n_token_ranges * together;
      pass.Batch(head, std::min(head + together, n_heads), token,
                 std::min(kHeadTokens, n_tokens - token), thread);
    }
  });
}

}  // namespace kernels
