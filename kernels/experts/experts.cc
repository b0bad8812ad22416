// The products of a layer of experts.
//
// Slots, one for each token and each of its experts, are sorted by expert, so that an expert's
// inputs and hidden vectors form a batch:
//
//   slots      expert 0: tokens 3 7 | expert 2: tokens 0 3 5 | ...
//   gate, up   x[token] -> hidden[slot], rounded to int8 by the thread that computed it
//   down       hidden[slot] -> out[token] += weight * result
//
// Threads split the rows of all gates and ups together. down is computed in one of two ways. Both
// add up a token's results in the order of its experts, whichever thread computes them:
//
// - Up to kMaxInvariantTokens tokens: the rows of all downs are one range of work, too; then the
//   results are combined. That takes three barriers. If each thread had its own rows of out, one
//   barrier less would do, but a thread would read only a few rows of every expert: 37 instead of
//   43 GB/s, measured with two threads and 8 experts of three matrices with 1024 rows of 288 bytes.
// - More tokens: each thread computes some rows of out for all experts and tokens, so that no
//   results have to be kept (33 MB for 512 tokens of Qwen3 30B). Experts with more than
//   kDefaultMaxRowTokens tokens use panels (gemm.h); their inputs and hidden vectors are packed
//   before.
#include "kernels/experts/experts.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/matmul/registry.h"
#include "kernels/matmul/rows.h"

namespace kernels {
namespace {

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// A tile of packed inputs, in the order of the form.
size_t TileBytes(BatchForm form, size_t cols) {
  return RoundUp(BatchBytes(form, BatchTileTokens(form), cols), kCacheLine);
}

// Bytes a thread needs for rows or panels of `cols` columns.
size_t ThreadBytes(size_t max_tokens, size_t cols) {
  const size_t rows = RowsScratchBytes(std::min(max_tokens, kDefaultMaxRowTokens), cols);
  return max_tokens <= kMaxInvariantTokens ? rows : std::max(rows, PanelScratchBytes(cols));
}

// Bytes of the tiles of n_slots slots in any form; each expert's last tile may be partial.
size_t TilesBytes(size_t n_slots, size_t n_experts, size_t cols) {
  size_t max_bytes = 0;
  for (const BatchForm form : {BatchForm::kFloats, BatchForm::kInt8, BatchForm::kBf16}) {
    const size_t partial = std::min(n_experts, n_slots / (kDefaultMaxRowTokens + 1));
    const size_t n_tiles = n_slots / BatchTileTokens(form) + partial;
    max_bytes = std::max(max_bytes, n_tiles * TileBytes(form, cols));
  }
  return max_bytes;
}

// Numbers of out that a thread combines at a time.
constexpr size_t kCombineGrain = 256;

// Rows of down that a thread takes at a time in a large batch.
size_t RowsOfDown(size_t rows, size_t n_threads) {
  constexpr size_t kParts = 8;
  return std::max<size_t>(rows / (n_threads * kParts * kGemmMaxRows), 1) * kGemmMaxRows;
}

}  // namespace

Matrix ExpertStack::expert(size_t e) const {
  Matrix matrix = first;
  matrix.data += e * (stride != 0 ? stride : first.rows) * first.row_bytes();
  if (scales != nullptr) matrix.scale = scales[e];
  return matrix;
}

const float* ExpertStack::expert_bias(size_t e) const {
  return bias == nullptr ? nullptr : bias + e * first.rows;
}

ExpertScratch::ExpertScratch(size_t max_tokens, size_t n_experts, size_t n_used, size_t n_embd,
                             size_t n_ff, size_t max_threads)
    : slot_tokens_(max_tokens * n_used),
      slot_weights_(max_tokens * n_used),
      first_slots_(n_experts + 1),
      first_tiles_(n_experts + 1),
      active_(n_experts),
      input_(max_tokens, n_embd),
      hidden_(max_tokens * n_used * n_ff),
      rounded_(max_tokens * n_used, n_ff),
      results_(std::min(max_tokens, kMaxInvariantTokens) * n_used * n_embd),
      thread_bytes_(ThreadBytes(max_tokens, std::max(n_embd, n_ff))),
      threads_(max_threads * thread_bytes_) {
  if (max_tokens <= kMaxInvariantTokens) return;
  const size_t cols = std::max(n_embd, n_ff);
  tiles_ = Buffer<std::byte>(TilesBytes(max_tokens * n_used, n_experts, cols));
}

size_t ExpertScratch::BytesFor(size_t max_tokens, size_t n_experts, size_t n_used, size_t n_embd,
                               size_t n_ff, size_t max_threads) {
  const size_t n_slots = max_tokens * n_used;
  const size_t cols = std::max(n_embd, n_ff);
  size_t bytes =
      n_slots * (sizeof(uint32_t) + sizeof(float)) + (3 * n_experts + 2) * sizeof(uint32_t) +
      RoundedRows::BytesFor(max_tokens, n_embd) + n_slots * n_ff * sizeof(float) +
      RoundedRows::BytesFor(n_slots, n_ff) + max_threads * ThreadBytes(max_tokens, cols) +
      std::min(max_tokens, kMaxInvariantTokens) * n_used * n_embd * sizeof(float);
  if (max_tokens > kMaxInvariantTokens) bytes += TilesBytes(n_slots, n_experts, cols);
  return bytes;
}

// One call of Experts().
class ExpertPass {
 public:
  ExpertPass(ThreadPool& pool, const ExpertLayer& layer, const float* x, size_t n_tokens,
             float* out, ExpertScratch& scratch)
      : pool_(pool), layer_(layer), x_(x), n_tokens_(n_tokens), out_(out), s_(scratch) {}
  // Sorts slots by expert, then by token.
  void Sort(const uint32_t* experts, const float* weights, size_t n_used) {
    uint32_t* const first = s_.first_slots_.get();
    std::fill_n(first, n_experts() + 1, 0u);
    for (size_t i = 0; i < n_tokens_ * n_used; ++i) {
      assert(experts[i] < n_experts());
      ++first[experts[i] + 1];
    }
    const uint32_t max_slots = *std::max_element(first, first + n_experts() + 1);
    for (size_t e = 0; e < n_experts(); ++e) {
      if (first[e + 1] != 0) s_.active_.get()[n_active_++] = static_cast<uint32_t>(e);
      first[e + 1] += first[e];
    }
    for (size_t i = 0; i < n_tokens_ * n_used; ++i) {
      const uint32_t slot = first[experts[i]]++;
      s_.slot_tokens_.get()[slot] = static_cast<uint32_t>(i / n_used);
      s_.slot_weights_.get()[slot] = weights[i];
    }
    // Each expert's entry has moved on to the next expert's first slot.
    std::copy_backward(first, first + n_experts(), first + n_experts() + 1);
    first[0] = 0;
    // Gate and up must read the same form.
    const WeightKind up = layer_.up.first;
    const WeightKind gate = layer_.has_gate() ? layer_.gate.first : up;
    panels_ =
        !Alone() && max_slots > kDefaultMaxRowTokens && BatchFormFor(gate) == BatchFormFor(up);
    int8_input_ = UsesInt8(gate) || UsesInt8(up);
    int8_hidden_ = UsesInt8(layer_.down.first);
  }

  void GateAndUp() {
    s_.input_.SetCols(n_embd());
    if (int8_input_) s_.input_.RoundAll(pool_, x_, n_tokens_);
    if (int8_hidden_) s_.rounded_.SetCols(n_ff());
    const auto rows = [&](size_t e, size_t begin, size_t end, size_t thread) {
      GateAndUpRows(e, begin, end, thread);
    };
    if (Alone()) return ForRowsOfAll(n_ff(), kActivationBlock, rows);
    Pack(layer_.up.first, n_embd(), [&](size_t slot) { return InputRow(slot); });
    const size_t grain = RowsAtATime(n_active_ * n_ff(), pool_.size());
    const size_t n_parts = (n_ff() + grain - 1) / grain;
    pool_.ForDynamic(n_active_ * n_parts, 1, [&](size_t begin, size_t end, size_t thread) {
      for (size_t item = begin; item < end; ++item) {
        const size_t first = item % n_parts * grain;
        rows(s_.active_.get()[item / n_parts], first, std::min(first + grain, n_ff()), thread);
      }
    });
  }

  void Down() {
    if (Alone()) {
      ForRowsOfAll(n_embd(), kRowGrain, [&](size_t e, size_t begin, size_t end, size_t thread) {
        DownResults(e, begin, end, thread);
      });
      return pool_.For(n_embd(), kCombineGrain,
                       [&](size_t begin, size_t end, size_t /*thread*/) { Combine(begin, end); });
    }
    Pack(layer_.down.first, n_ff(), [&](size_t slot) { return HiddenRow(slot); });
    const size_t grain = RowsOfDown(n_embd(), pool_.size());
    pool_.ForDynamic(n_embd(), grain, [&](size_t begin, size_t end, size_t thread) {
      Clear(begin, end);
      for (size_t i = 0; i < n_active_; ++i) DownRows(s_.active_.get()[i], begin, end, thread);
    });
  }

 private:
  size_t n_experts() const { return layer_.up.n_experts; }
  size_t n_embd() const { return layer_.up.first.cols; }
  size_t n_ff() const { return layer_.up.first.rows; }
  size_t first_slot(size_t e) const { return s_.first_slots_.get()[e]; }
  size_t n_slots(size_t e) const { return first_slot(e + 1) - first_slot(e); }
  float* hidden(size_t slot) { return s_.hidden_.get() + slot * n_ff(); }
  std::span<std::byte> scratch(size_t thread) {
    return {s_.threads_.get() + thread * s_.thread_bytes_, s_.thread_bytes_};
  }

  bool Alone() const { return n_tokens_ <= kMaxInvariantTokens; }
  bool ByPanels(size_t e) const { return panels_ && n_slots(e) > kDefaultMaxRowTokens; }
  ActivationRow InputRow(size_t slot) const {
    const size_t token = s_.slot_tokens_.get()[slot];
    const float* const x = x_ + token * n_embd();
    return int8_input_ ? s_.input_.row(token, x) : ActivationRow{x, nullptr, nullptr, nullptr};
  }
  ActivationRow HiddenRow(size_t slot) {
    const float* const x = hidden(slot);
    return int8_hidden_ ? s_.rounded_.row(slot, x) : ActivationRow{x, nullptr, nullptr, nullptr};
  }

  // Calls each(first slot, rows) for up to kDefaultMaxRowTokens of an expert's slots at a time,
  // with the vectors that row(slot) gives.
  template <class Row, class Each>
  void ForSlots(size_t e, Row row, Each each) const {
    std::array<ActivationRow, kDefaultMaxRowTokens> rows;
    for (size_t first = first_slot(e); first < first_slot(e + 1); first += kDefaultMaxRowTokens) {
      const size_t n = std::min(kDefaultMaxRowTokens, first_slot(e + 1) - first);
      for (size_t i = 0; i < n; ++i) rows[i] = row(first + i);
      each(first, std::span<const ActivationRow>(rows.data(), n));
    }
  }

  // Calls work(e, begin, end, thread) for parts of the n_rows rows of every expert that has slots.
  template <class Work>
  void ForRowsOfAll(size_t n_rows, size_t grain, Work work) {
    const uint32_t* const active = s_.active_.get();
    pool_.For(n_active_ * n_rows, grain, [&](size_t begin, size_t end, size_t thread) {
      while (begin < end) {
        const size_t first = begin % n_rows;
        const size_t n = std::min(n_rows - first, end - begin);
        work(active[begin / n_rows], first, first + n, thread);
        begin += n;
      }
    });
  }

  // Packs the vectors that row(slot) gives, for products by panels with weights of this kind.
  template <class Row>
  void Pack(WeightKind kind, size_t cols, Row row) {
    if (!panels_) return;
    const BatchForm form = BatchFormFor(kind);
    const size_t tile_tokens = BatchTileTokens(form);
    uint32_t* const first = s_.first_tiles_.get();
    first[0] = 0;
    for (size_t e = 0; e < n_experts(); ++e) {
      const size_t n_tiles = ByPanels(e) ? (n_slots(e) + tile_tokens - 1) / tile_tokens : 0;
      first[e + 1] = first[e] + static_cast<uint32_t>(n_tiles);
    }
    pool_.ForDynamic(first[n_experts()], 1, [&](size_t begin, size_t end, size_t /*thread*/) {
      for (size_t tile = begin; tile < end; ++tile) {
        const uint32_t* const after = std::upper_bound(first, first + n_experts() + 1, tile);
        const size_t e = static_cast<size_t>(after - first) - 1;
        const size_t t = (tile - first[e]) * tile_tokens;
        std::array<ActivationRow, kMaxTileTokens> rows;
        const size_t n = std::min(tile_tokens, n_slots(e) - t);
        for (size_t i = 0; i < n; ++i) rows[i] = row(first_slot(e) + t + i);
        PackTile(form, {rows.data(), n}, cols, tile - first[e],
                 s_.tiles_.get() + first[e] * TileBytes(form, cols));
      }
    });
  }

  GemmInput Packed(size_t e, WeightKind kind, size_t cols) const {
    const BatchForm form = BatchFormFor(kind);
    const size_t first = s_.first_tiles_.get()[e];
    return {form, s_.tiles_.get() + first * TileBytes(form, cols), n_slots(e), cols};
  }

  // Computes rows [begin, end) of an expert's gate and up for all its slots.
  void GateAndUpRows(size_t e, size_t begin, size_t end, size_t thread) {
    GatedLayer gated{
        {},          layer_.up.expert(e), nullptr, layer_.up.expert_bias(e), layer_.activation,
        layer_.limit};
    if (layer_.has_gate()) {
      gated.gate = layer_.gate.expert(e);
      gated.gate_bias = layer_.gate.expert_bias(e);
    }
    const size_t first_slot = this->first_slot(e), last_slot = first_slot + n_slots(e);
    if (ByPanels(e)) {
      const GemmInput input = Packed(e, gated.up, n_embd());
      GatedPanels(gated, begin, end, input, input, hidden(first_slot), n_ff(), scratch(thread));
    } else {
      ForSlots(
          e, [&](size_t slot) { return InputRow(slot); },
          [&](size_t first, std::span<const ActivationRow> x) {
            RowsInput in{x, scratch(thread)};
            GatedRows(gated, begin, end, in, hidden(first) + begin, n_ff());
          });
    }
    if (!int8_hidden_) return;
    for (size_t slot = first_slot; slot < last_slot; ++slot) {
      s_.rounded_.Round(slot, begin, end, hidden(slot));
    }
  }

  void DownRows(size_t e, size_t begin, size_t end, size_t thread) {
    const Matrix down = layer_.down.expert(e);
    const float* const bias = layer_.down.expert_bias(e);
    const uint32_t* const tokens = s_.slot_tokens_.get();
    const float* const weights = s_.slot_weights_.get();
    if (ByPanels(e)) {
      const GemmInput input = Packed(e, down, n_ff());
      const GemmOutput output{.out = out_,
                              .stride = n_embd(),
                              .bias = bias,
                              .tokens = tokens + first_slot(e),
                              .factors = weights + first_slot(e)};
      return KernelsOf(down).panels(down, begin, end, input, output, scratch(thread));
    }
    const auto multiply = [&](size_t slot, std::span<const ActivationRow> x) {
      RowsInput in{x, scratch(thread)};
      float* const results = RowsScratch(in.scratch, x.size()).results;
      for (size_t first = begin; first < end; first += kBufferedRows) {
        const size_t last = std::min(first + kBufferedRows, end);
        LinearRows(down, bias, first, last, in, results, kBufferedRows);
        for (size_t i = 0; i < x.size(); ++i) {
          AddScaled(out_ + tokens[slot + i] * n_embd() + first, weights[slot + i],
                    results + i * kBufferedRows, last - first);
        }
      }
    };
    ForSlots(
        e, [&](size_t slot) { return HiddenRow(slot); }, multiply);
  }

  // Computes rows [begin, end) of expert e's output matrix, to results_.
  void DownResults(size_t e, size_t begin, size_t end, size_t thread) {
    const auto multiply = [&](size_t slot, std::span<const ActivationRow> x) {
      RowsInput in{x, scratch(thread)};
      LinearRows(layer_.down.expert(e), layer_.down.expert_bias(e), begin, end, in,
                 s_.results_.get() + slot * n_embd() + begin, n_embd());
    };
    ForSlots(
        e, [&](size_t slot) { return HiddenRow(slot); }, multiply);
  }

  // Sets numbers [begin, end) of out to zero for all tokens.
  void Clear(size_t begin, size_t end) {
    for (size_t t = 0; t < n_tokens_; ++t) {
      std::fill(out_ + t * n_embd() + begin, out_ + t * n_embd() + end, 0.0f);
    }
  }

  // out = the sum of results_ for numbers [begin, end) of all tokens.
  void Combine(size_t begin, size_t end) {
    Clear(begin, end);
    for (size_t slot = 0; slot < first_slot(n_experts()); ++slot) {
      float* const out = out_ + s_.slot_tokens_.get()[slot] * n_embd() + begin;
      const float* const result = s_.results_.get() + slot * n_embd() + begin;
      AddScaled(out, s_.slot_weights_.get()[slot], result, end - begin);
    }
  }

  ThreadPool& pool_;
  const ExpertLayer& layer_;
  const float* x_;
  size_t n_tokens_;
  float* out_;
  ExpertScratch& s_;
  size_t n_active_ = 0;
  bool int8_input_ = false, int8_hidden_ = false;
  bool panels_ = false;  // some experts use panels
};

void Experts(ThreadPool& pool, const ExpertLayer& layer, const float* x, size_t n_tokens,
             const uint32_t* experts, const float* weights, size_t n_used, ExpertScratch& scratch,
             float* out) {
  assert(!layer.has_gate() || (layer.up.first.rows == layer.gate.first.rows &&
                               layer.up.first.cols == layer.gate.first.cols));
  assert(layer.down.first.rows == layer.up.first.cols &&
         layer.down.first.cols == layer.up.first.rows);
  ExpertPass pass(pool, layer, x, n_tokens, out, scratch);
  pass.Sort(experts, weights, n_used);
  pass.GateAndUp();
  pass.Down();
}

}  // namespace kernels
