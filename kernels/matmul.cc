// Products of matrices: who computes which rows, and in what order they pass through the caches.
// The arithmetic is in gemv_*.cc for single vectors and gemm_*.cc for batches.
#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <new>

#include "kernels/cpu.h"
#include "kernels/dispatch.h"
#include "kernels/ops.h"
#include "kernels/quantize.h"

namespace kernels {
namespace {

using gguf::DType;

// Threads split rows at multiples of this: a cache line of results.
constexpr size_t kRowGrain = 16;

// Rows that a batch of tokens passes through together, so that they are read from memory once: at
// most so many bytes of them, a good part of the second-level cache, ...
constexpr size_t kRangeBytes = 256 << 10;
// ... and at most so many rows.
constexpr size_t kRangeRows = 64;

constexpr size_t kCacheLine = 64;

size_t Index(BatchForm form) { return static_cast<size_t>(form); }

// Those that this CPU may ask for.
std::vector<BatchForm> BatchForms() {
  std::vector<BatchForm> forms = {BatchForm::kFloats, BatchForm::kInt8};
  if (CpuUses(Extension::kBf16)) forms.push_back(BatchForm::kBf16);
  return forms;
}

size_t Padded(size_t cols) { return (cols + kActivationPad - 1) / kActivationPad * kActivationPad; }

// One token reads a row once, so as many rows at a time as results of `up` lie on the stack.
constexpr size_t kGatedRows = 512;

size_t RangeRows(const Matrix& w) {
  const size_t rows = kRangeBytes / std::max<size_t>(w.row_bytes(), 1);
  return std::clamp(rows / kRowGrain * kRowGrain, kRowGrain, kRangeRows);
}

size_t Bytes(const Matrix& w) { return w.rows * w.row_bytes(); }

// The first row of `w` that belongs to the part of the work that begins at `byte`. Adjoining parts
// get adjoining rows.
size_t RowAt(const Matrix& w, size_t byte) {
  if (byte >= Bytes(w)) return w.rows;
  return byte / w.row_bytes() / kRowGrain * kRowGrain;
}

void MultiplyRange(const Product& p, size_t begin, size_t end, const Activations& x) {
  Gemv* const gemv = KernelsFor(p.weights.dtype).gemv;
  const size_t n_rows = x.n_tokens() == 1 ? p.weights.rows : RangeRows(p.weights);
  for (size_t first = begin; first < end; first += n_rows) {
    const size_t last = std::min(first + n_rows, end);
    for (size_t t = 0; t < x.n_tokens(); ++t) {
      float* const out = p.out + t * p.out_stride;
      gemv(p.weights, first, last, x.row(t), out + first);
      if (p.bias != nullptr) Add(out + first, p.bias + first, last - first);
    }
  }
}

// A batch is computed by the panel from kGemmTokens tokens on, if there is a kernel for its types.
bool ByPanels(const Activations& x, DType dtype) {
  return x.n_tokens() >= kGemmTokens && KernelsFor(dtype).gemm != nullptr;
}

// Rows that a thread takes at a time: few enough that all threads are done at about the same time,
// many enough that the activations of a tile are used by several groups of rows, which matters most
// to AMX (see PanelBytes in gemm.cc).
size_t RowsAtATime(size_t rows, size_t n_threads) {
  constexpr size_t kMostGroups = 8;
  const size_t shares = CpuUses(Extension::kAmx) ? 4 : 16;
  const size_t groups = rows / (n_threads * shares * kGemmMaxRows);
  return std::clamp<size_t>(groups, 1, kMostGroups) * kGemmMaxRows;
}

// All products by panels, which threads take as they become free: cores need not be equal.
void MultiplyBatch(Team& team, std::span<const Product> products, Activations& x) {
  size_t total_rows = 0;
  for (const Product& p : products) {
    total_rows += p.weights.rows;
    x.PackOnce(team, p.weights.dtype);
  }
  const size_t grain = RowsAtATime(total_rows, team.size());
  size_t n_items = 0;
  for (const Product& p : products) n_items += (p.weights.rows + grain - 1) / grain;
  team.ForDynamic(n_items, 1, [&](size_t begin, size_t end, size_t thread) {
    for (size_t item = begin; item < end; ++item) {
      const Product* p = products.data();
      size_t first = item * grain;  // row of the product
      for (; first >= p->weights.rows; ++p) {
        first -= (p->weights.rows + grain - 1) / grain * grain;
      }
      const size_t last = std::min(first + grain, p->weights.rows);
      const GemmOutput output{p->out, p->out_stride, p->bias, false};
      const GemmInput input = x.PackOnce(team, p->weights.dtype);
      KernelsFor(p->weights.dtype).gemm(p->weights, first, last, input, output, x.scratch(thread));
    }
  });
}

void GatedBatch(Team& team, const Matrix& gate, const Matrix& up, Activations& x, float* out) {
  const GemmInput gate_input = x.PackOnce(team, gate.dtype);
  const GemmInput up_input = x.PackOnce(team, up.dtype);
  const size_t grain = RowsAtATime(gate.rows, team.size());
  team.ForDynamic(gate.rows, grain, [&](size_t begin, size_t end, size_t thread) {
    const std::span<std::byte> scratch = x.scratch(thread);
    KernelsFor(gate.dtype)
        .gemm(gate, begin, end, gate_input, {out, gate.rows, nullptr, false}, scratch);
    KernelsFor(up.dtype).gemm(up, begin, end, up_input, {out, gate.rows, nullptr, true}, scratch);
  });
}

}  // namespace

bool UsesInt8(DType dtype) { return KernelsFor(dtype).int8; }

Activations::Activations(size_t max_tokens, size_t max_cols, size_t max_threads)
    : scratch_bytes_(PanelScratchBytes(max_cols)) {
  if (max_tokens >= kGemmTokens) {
    for (const BatchForm form : BatchForms()) {
      packs_[Index(form)] = Allocate(BatchBytes(form, max_tokens, max_cols));
    }
    scratch_ = Allocate(max_threads * scratch_bytes_);
  }
  const size_t padded = Padded(max_cols);
  q_.resize(max_tokens * padded);
  scales_.resize(max_tokens * (padded / kActivationBlock));
  sums_.resize(max_tokens * (padded / 16));
}

size_t Activations::BytesFor(size_t max_tokens, size_t max_cols, size_t max_threads) {
  const size_t padded = Padded(max_cols);
  const size_t per_token = padded * sizeof(int8_t) + padded / kActivationBlock * sizeof(float) +
                           padded / 16 * sizeof(int16_t);
  size_t bytes = max_tokens * per_token;
  if (max_tokens < kGemmTokens) return bytes;
  for (const BatchForm form : BatchForms()) bytes += BatchBytes(form, max_tokens, max_cols);
  return bytes + max_threads * PanelScratchBytes(max_cols);
}

void Activations::Set(const float* x, size_t n_tokens, size_t cols) {
  x_ = x;
  n_tokens_ = n_tokens;
  cols_ = cols;
  quantized_ = false;
  packed_.fill(false);
}

void Activations::AlignedDelete::operator()(std::byte* p) const {
  ::operator delete[](p, std::align_val_t(kCacheLine));
}

Activations::Bytes Activations::Allocate(size_t n) {
  return Bytes(new (std::align_val_t(kCacheLine)) std::byte[n]);
}

std::span<std::byte> Activations::scratch(size_t thread) {
  return {scratch_.get() + thread * scratch_bytes_, scratch_bytes_};
}

GemmInput Activations::PackOnce(Team& team, DType dtype) {
  const BatchForm form = BatchFormFor(dtype);
  std::byte* const blocks = packs_[Index(form)].get();
  bool& is_packed = packed_[Index(form)];
  if (!is_packed) {
    is_packed = true;
    const size_t tile_tokens = BatchTileTokens(form);
    const size_t n_tiles = (n_tokens_ + tile_tokens - 1) / tile_tokens;
    team.For(n_tiles, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
      for (size_t tile = begin; tile < end; ++tile) {
        PackBatch(form, x_, n_tokens_, cols_, tile, blocks);
      }
    });
  }
  return {form, blocks, n_tokens_, cols_};
}

ActivationRow Activations::row(size_t token) const {
  const size_t padded = Padded(cols_);
  ActivationRow row{x_ + token * cols_, nullptr, nullptr, nullptr};
  if (quantized_) {
    row.q = q_.data() + token * padded;
    row.scales = scales_.data() + token * (padded / kActivationBlock);
    row.sums = sums_.data() + token * (padded / 16);
  }
  return row;
}

void Activations::QuantizeOnce(Team& team) {
  if (quantized_) return;
  quantized_ = true;
  const size_t padded = Padded(cols_);
  const auto quantize = [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t t = begin; t < end; ++t) {
      int8_t* const q = q_.data() + t * padded;
      float* const scales = scales_.data() + t * (padded / kActivationBlock);
      int16_t* const sums = sums_.data() + t * (padded / 16);
      QuantizeActivations(x_ + t * cols_, cols_, q, scales, sums);
      std::fill(q + cols_, q + padded, int8_t{0});
      std::fill(scales + cols_ / kActivationBlock, scales + padded / kActivationBlock, 0.0f);
      std::fill(sums + cols_ / 16, sums + padded / 16, int16_t{0});
    }
  };
  // One vector takes less time than a meeting of threads.
  if (n_tokens_ == 1) {
    quantize(0, 1, 0);
  } else {
    team.For(n_tokens_, 1, quantize);
  }
}

void MatMul(Team& team, std::span<const Product> products, Activations& x) {
  const bool by_panels = std::all_of(products.begin(), products.end(), [&](const Product& p) {
    return ByPanels(x, p.weights.dtype);
  });
  if (by_panels) return MultiplyBatch(team, products, x);
  size_t total = 0;
  for (const Product& p : products) {
    assert(p.weights.cols == x.cols());
    total += Bytes(p.weights);
    if (UsesInt8(p.weights.dtype)) x.QuantizeOnce(team);
  }
  // Parts equal in bytes rather than rows: types may differ.
  const size_t n_parts = team.size() * Team::kPieces;
  team.For(n_parts, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    const size_t first_byte = total * begin / n_parts;
    const size_t last_byte = total * end / n_parts;
    size_t offset = 0;  // of the product in the range of all bytes
    for (const Product& p : products) {
      const size_t bytes = Bytes(p.weights);
      if (first_byte < offset + bytes && last_byte > offset) {
        const size_t first = RowAt(p.weights, first_byte - std::min(offset, first_byte));
        MultiplyRange(p, first, RowAt(p.weights, last_byte - offset), x);
      }
      offset += bytes;
    }
  });
}

void GatedMatMul(Team& team, const Matrix& gate, const Matrix& up, Activations& x, float* out) {
  assert(gate.rows == up.rows && gate.cols == x.cols() && up.cols == x.cols());
  if (ByPanels(x, gate.dtype) && ByPanels(x, up.dtype)) {
    return GatedBatch(team, gate, up, x, out);
  }
  const TypeKernels &gate_kernels = KernelsFor(gate.dtype), &up_kernels = KernelsFor(up.dtype);
  if (gate_kernels.int8 || up_kernels.int8) x.QuantizeOnce(team);
  const size_t n_rows = x.n_tokens() == 1 ? kGatedRows : std::min(RangeRows(gate), RangeRows(up));
  team.For(gate.rows, kRowGrain, [&](size_t begin, size_t end, size_t /*thread*/) {
    std::array<float, kGatedRows> up_out;
    for (size_t first = begin; first < end; first += n_rows) {
      const size_t last = std::min(first + n_rows, end);
      for (size_t t = 0; t < x.n_tokens(); ++t) {
        float* const gate_out = out + t * gate.rows + first;
        gate_kernels.gemv(gate, first, last, x.row(t), gate_out);
        up_kernels.gemv(up, first, last, x.row(t), up_out.data());
        SiluMul(gate_out, up_out.data(), last - first);
      }
    }
  });
}

}  // namespace kernels
