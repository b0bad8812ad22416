// Products of matrices: assigns rows to threads and orders them for the caches. The arithmetic is
// in rows-inl.h for up to MaxRowTokens() tokens and in gemm-inl.h for batches.
#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <cassert>

#include "kernels/matmul/registry.h"
#include "kernels/matmul/rows.h"
#include "kernels/threads/cpu.h"

namespace kernels {
namespace {

using gguf::DType;

size_t Index(BatchForm form) { return static_cast<size_t>(form); }

// The forms that batches may need on this CPU.
std::vector<BatchForm> BatchForms() {
  std::vector<BatchForm> forms = {BatchForm::kFloats};
  if (!CpuUses(Extension::kAmx)) forms.push_back(BatchForm::kInt8);
  if (CpuUses(Extension::kBf16)) forms.push_back(BatchForm::kBf16);
  return forms;
}

size_t Bytes(const Matrix& w) { return w.rows * w.row_bytes(); }

// The first row of `w` that belongs to the part of the work that begins at `byte`. Adjoining parts
// get adjoining rows.
size_t RowAt(const Matrix& w, size_t byte) {
  if (byte >= Bytes(w)) return w.rows;
  return byte / w.row_bytes() / kRowGrain * kRowGrain;
}

size_t ScratchBytes(size_t max_tokens, size_t max_cols) {
  // Products with the residual have two vectors for each token.
  const size_t rows_bytes = RowsScratchBytes(std::min(2 * max_tokens, kMaxRowTokens), max_cols);
  return max_tokens > kDefaultMaxRowTokens ? std::max(rows_bytes, PanelScratchBytes(max_cols))
                                           : rows_bytes;
}

// The most numbers that PackResiduals() writes for all tiles.
size_t ResidualNumbers(size_t max_tokens, size_t cols) {
  const size_t tile_tokens = BatchTileTokens(BatchForm::kInt8);
  return (max_tokens + tile_tokens - 1) / tile_tokens * (1 + cols / 32);
}

// Threads take panels as they become free, since cores may differ in speed. With few tokens
// memory matters more, so a thread's panels are adjacent: while it packs one, it prefetches the
// next.
void ForPanels(ThreadPool& pool, size_t n_tokens, size_t n, size_t grain, ThreadPool::Work work) {
  constexpr size_t kMaxTokensForAdjoiningPanels = 128;
  return n_tokens <= kMaxTokensForAdjoiningPanels ? pool.For(n, grain, work)
                                                  : pool.ForDynamic(n, grain, work);
}

// MatMul() by panels.
void MultiplyBatch(ThreadPool& pool, std::span<const Product> products, Activations& x) {
  size_t total_rows = 0;
  for (const Product& p : products) {
    total_rows += p.weights.rows;
    x.PackOnce(pool, p.weights);
  }
  const size_t grain = RowsAtATime(total_rows, pool.size());
  size_t n_items = 0;
  for (const Product& p : products) n_items += (p.weights.rows + grain - 1) / grain;
  ForPanels(pool, x.n_tokens(), n_items, 1, [&](size_t begin, size_t end, size_t thread) {
    for (size_t item = begin; item < end; ++item) {
      const Product* p = products.data();
      size_t first = item * grain;  // row of the product
      for (; first >= p->weights.rows; ++p) first -= (p->weights.rows + grain - 1) / grain * grain;
      const size_t last = std::min(first + grain, p->weights.rows);
      const GemmOutput output{.out = p->out, .stride = p->out_stride, .bias = p->bias};
      KernelsOf(p->weights)
          .panels(p->weights, first, last, x.PackOnce(pool, p->weights), output, x.scratch(thread));
    }
  });
}

void GatedBatch(ThreadPool& pool, const GatedLayer& layer, Activations& x, float* out) {
  const GemmInput up_input = x.PackOnce(pool, layer.up);
  const GemmInput gate_input = layer.has_gate() ? x.PackOnce(pool, layer.gate) : up_input;
  const size_t rows = layer.up.rows, grain = RowsAtATime(rows, pool.size());
  ForPanels(pool, x.n_tokens(), rows, grain, [&](size_t begin, size_t end, size_t thread) {
    for (size_t first = begin; first < end; first += grain) {
      GatedPanels(layer, first, std::min(first + grain, end), gate_input, up_input, out, rows,
                  x.scratch(thread));
    }
  });
}

}  // namespace

bool UsesInt8(WeightKind kind) { return KernelsOf(kind).int8; }

bool UsesResiduals(WeightKind kind) { return kind.uses_residual && UsesInt8(kind); }

Activations::Activations(size_t max_tokens, size_t max_cols, size_t max_threads,
                         size_t residual_cols)
    : residual_cols_(residual_cols),
      rounded_(max_tokens, max_cols),
      residuals_(std::min(max_tokens, kMaxRowTokens), residual_cols),
      scratch_bytes_(ScratchBytes(max_tokens, max_cols)),
      scratch_(max_threads * scratch_bytes_),
      tokens_(std::min(max_tokens, kMaxRowTokens)),
      token_residuals_(tokens_.size()),
      inputs_(max_threads) {
  if (max_tokens <= kDefaultMaxRowTokens) return;
  for (const BatchForm form : BatchForms()) {
    packs_[Index(form)] = Buffer<std::byte>(BatchBytes(form, max_tokens, max_cols));
    if (form != BatchForm::kInt8) continue;
    residual_pack_ = Buffer<std::byte>(BatchBytes(form, max_tokens, residual_cols));
    residual_numbers_ = Buffer<uint32_t>(ResidualNumbers(max_tokens, residual_cols));
  }
}

size_t Activations::BytesFor(size_t max_tokens, size_t max_cols, size_t max_threads,
                             size_t residual_cols) {
  size_t bytes = RoundedRows::BytesFor(max_tokens, max_cols) +
                 RoundedRows::BytesFor(std::min(max_tokens, kMaxRowTokens), residual_cols) +
                 max_threads * ScratchBytes(max_tokens, max_cols);
  if (max_tokens <= kDefaultMaxRowTokens) return bytes;
  for (const BatchForm form : BatchForms()) {
    bytes += BatchBytes(form, max_tokens, max_cols);
    if (form != BatchForm::kInt8) continue;
    bytes += BatchBytes(form, max_tokens, residual_cols) +
             ResidualNumbers(max_tokens, residual_cols) * sizeof(uint32_t);
  }
  return bytes;
}

void Activations::Set(const float* x, size_t n_tokens, size_t cols) {
  x_ = x;
  n_tokens_ = n_tokens;
  cols_ = cols;
  is_rounded_ = has_residuals_ = packed_residuals_ = false;
  packed_.fill(false);
  rounded_.SetCols(cols);
  residuals_.SetCols(cols);
}

bool Activations::KeepsResiduals(WeightKind kind) const {
  return UsesResiduals(kind) && cols_ <= residual_cols_;
}

void Activations::SetInputs() {
  for (size_t t = 0; t < n_tokens_; ++t) {
    tokens_[t] = input(t);
    if (has_residuals_) token_residuals_[t] = residuals_.row(t, nullptr);
  }
  for (size_t thread = 0; thread < inputs_.size(); ++thread) {
    inputs_[thread] = {{tokens_.data(), n_tokens_}, scratch(thread)};
    if (has_residuals_) inputs_[thread].residuals = {token_residuals_.data(), n_tokens_};
  }
}

std::span<std::byte> Activations::scratch(size_t thread) {
  return {scratch_.get() + thread * scratch_bytes_, scratch_bytes_};
}

GemmInput Activations::PackOnce(ThreadPool& pool, WeightKind kind) {
  const BatchForm form = BatchFormFor(kind);
  // Rounding to BF16 loses less than int8 does anyway.
  const bool needs_residuals = KeepsResiduals(kind) && form == BatchForm::kInt8;
  std::byte* const blocks = packs_[Index(form)].get();
  bool& is_packed = packed_[Index(form)];
  if (!is_packed || (needs_residuals && !packed_residuals_)) {
    const bool packs = !is_packed;
    is_packed = true;
    packed_residuals_ |= needs_residuals;
    const size_t tile_tokens = BatchTileTokens(form);
    const size_t n_tiles = (n_tokens_ + tile_tokens - 1) / tile_tokens;
    pool.For(n_tiles, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
      for (size_t tile = begin; tile < end; ++tile) {
        if (packs) PackBatch(form, x_, n_tokens_, cols_, tile, blocks);
        if (!needs_residuals) continue;
        PackResiduals(x_, n_tokens_, cols_, tile, blocks, residual_pack_.get(),
                      residual_numbers_.get());
      }
    });
  }
  GemmInput input{form, blocks, n_tokens_, cols_};
  if (needs_residuals) {
    input.residuals = residual_pack_.get();
    input.residual_numbers = residual_numbers_.get();
  }
  return input;
}

ActivationRow Activations::input(size_t token) const {
  const float* const x = x_ + token * cols_;
  return is_rounded_ ? rounded_.row(token, x) : ActivationRow{x, nullptr, nullptr, nullptr};
}

void Activations::RoundOnce(ThreadPool& pool, WeightKind kind) {
  RoundOnce(pool, UsesInt8(kind), KeepsResiduals(kind));
}

void Activations::RoundOnce(ThreadPool& pool, bool int8, bool residuals) {
  if (residuals && !has_residuals_) {
    is_rounded_ = has_residuals_ = true;
    const auto round = [&](size_t begin, size_t end, size_t /*thread*/) {
      for (size_t t = begin; t < end; ++t) rounded_.RoundWithResidual(t, x(t), residuals_);
    };
    // One token takes less time than a barrier, so it is not split.
    return n_tokens_ == 1 ? round(0, 1, 0) : pool.For(n_tokens_, 1, round);
  }
  if (int8 && !is_rounded_) {
    is_rounded_ = true;
    rounded_.RoundAll(pool, x_, n_tokens_);
  }
}

void MatMul(ThreadPool& pool, std::span<const Product> products, Activations& x) {
  const auto by_rows = [&](const Product& p) { return x.n_tokens() <= MaxRowTokens(p.weights); };
  if (!std::all_of(products.begin(), products.end(), by_rows)) {
    return MultiplyBatch(pool, products, x);
  }
  size_t total = 0;
  bool int8 = false, residuals = false;
  for (const Product& p : products) {
    assert(p.weights.cols == x.cols());
    total += Bytes(p.weights);
    int8 |= UsesInt8(p.weights);
    residuals |= x.KeepsResiduals(p.weights);
  }
  x.RoundOnce(pool, int8, residuals);
  x.SetInputs();
  // Parts are equal in bytes rather than in rows, since types may differ.
  const size_t n_parts = pool.size() * ThreadPool::kChunks;
  pool.For(n_parts, 1, [&](size_t begin, size_t end, size_t thread) {
    const size_t first_byte = total * begin / n_parts;
    const size_t last_byte = total * end / n_parts;
    size_t offset = 0;  // where the product begins in the range of all bytes
    for (const Product& p : products) {
      const size_t bytes = Bytes(p.weights);
      if (first_byte < offset + bytes && last_byte > offset) {
        const size_t first = RowAt(p.weights, first_byte - std::min(offset, first_byte));
        LinearRows(p.weights, p.bias, first, RowAt(p.weights, last_byte - offset), x.inputs(thread),
                   p.out + first, p.out_stride);
      }
      offset += bytes;
    }
  });
}

void GatedMatMul(ThreadPool& pool, const GatedLayer& layer, Activations& x, float* out) {
  const Matrix &gate = layer.gate, &up = layer.up;
  assert(!layer.has_gate() || (gate.rows == up.rows && gate.cols == x.cols()));
  assert(up.cols == x.cols());
  const size_t max_row_tokens =
      layer.has_gate() ? std::min(MaxRowTokens(gate), MaxRowTokens(up)) : MaxRowTokens(up);
  if (x.n_tokens() > max_row_tokens) return GatedBatch(pool, layer, x, out);
  x.RoundOnce(pool, up);  // `up` first: only `up` can use the residual
  if (layer.has_gate()) x.RoundOnce(pool, gate);
  x.SetInputs();
  pool.For(up.rows, kRowGrain, [&](size_t begin, size_t end, size_t thread) {
    GatedRows(layer, begin, end, x.inputs(thread), out + begin, up.rows);
  });
}

}  // namespace kernels
