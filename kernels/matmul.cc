// Products of matrices: who computes which rows, and in what order they pass through the caches.
// The arithmetic is in gemv_*.cc, chosen by type in gemv.cc.
#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/gemv.h"
#include "kernels/ops.h"
#include "kernels/quantize.h"

namespace kernels {
namespace {

// Threads split rows at multiples of this: a cache line of results.
constexpr size_t kRowGrain = 16;

// Rows that a batch of tokens passes through together, so that they are read from memory once: at
// most so many bytes of them, a good part of the second-level cache, ...
constexpr size_t kPanelBytes = 256 << 10;
// ... and at most so many rows.
constexpr size_t kPanelRows = 64;

size_t Padded(size_t cols) { return (cols + kActivationPad - 1) / kActivationPad * kActivationPad; }

// One token reads a row once, so panels are only as small as the results of `up` on the stack.
constexpr size_t kGatedRows = 512;

size_t PanelRows(const Matrix& w) {
  const size_t rows = kPanelBytes / std::max<size_t>(w.row_bytes(), 1);
  return std::clamp(rows / kRowGrain * kRowGrain, kRowGrain, kPanelRows);
}

size_t Bytes(const Matrix& w) { return w.rows * w.row_bytes(); }

// The first row of `w` that belongs to the part of the work that begins at `byte`. Adjoining parts
// get adjoining rows.
size_t RowAt(const Matrix& w, size_t byte) {
  if (byte >= Bytes(w)) return w.rows;
  return byte / w.row_bytes() / kRowGrain * kRowGrain;
}

void MultiplyRange(const Product& p, size_t begin, size_t end, const Activations& x) {
  const GemvKernel& kernel = FindGemv(p.weights.dtype);
  const size_t panel = x.n_tokens() == 1 ? p.weights.rows : PanelRows(p.weights);
  for (size_t first = begin; first < end; first += panel) {
    const size_t last = std::min(first + panel, end);
    for (size_t t = 0; t < x.n_tokens(); ++t) {
      float* const out = p.out + t * p.out_stride;
      kernel.run(p.weights, first, last, x.row(t), out + first);
      if (p.bias != nullptr) Add(out + first, p.bias + first, last - first);
    }
  }
}

}  // namespace

bool UsesInt8(gguf::DType dtype) { return FindGemv(dtype).int8; }

Activations::Activations(size_t max_tokens, size_t max_cols) {
  const size_t padded = Padded(max_cols);
  q_.resize(max_tokens * padded);
  scales_.resize(max_tokens * (padded / kActivationBlock));
  sums_.resize(max_tokens * (padded / 16));
}

void Activations::Set(const float* x, size_t n_tokens, size_t cols) {
  x_ = x;
  n_tokens_ = n_tokens;
  cols_ = cols;
  quantized_ = false;
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
  size_t total = 0;
  for (const Product& p : products) {
    assert(p.weights.cols == x.cols());
    total += Bytes(p.weights);
    if (UsesInt8(p.weights.dtype)) x.QuantizeOnce(team);
  }
  // A part per thread, equal in bytes rather than rows: types may differ.
  const size_t n_parts = team.size();
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
  const GemvKernel& gate_kernel = FindGemv(gate.dtype);
  const GemvKernel& up_kernel = FindGemv(up.dtype);
  if (gate_kernel.int8 || up_kernel.int8) x.QuantizeOnce(team);
  const size_t panel = x.n_tokens() == 1 ? kGatedRows : std::min(PanelRows(gate), PanelRows(up));
  team.For(gate.rows, kRowGrain, [&](size_t begin, size_t end, size_t /*thread*/) {
    std::array<float, kGatedRows> up_out;
    for (size_t first = begin; first < end; first += panel) {
      const size_t last = std::min(first + panel, end);
      for (size_t t = 0; t < x.n_tokens(); ++t) {
        float* const gate_out = out + t * gate.rows + first;
        gate_kernel.run(gate, first, last, x.row(t), gate_out);
        up_kernel.run(up, first, last, x.row(t), up_out.data());
        SiluMul(gate_out, up_out.data(), last - first);
      }
    }
  });
}

}  // namespace kernels
