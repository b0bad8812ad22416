// Calls the weight type's product for a range of rows, then adds bias and activation.
#include "kernels/matmul/rows.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/matmul/registry.h"
#include "kernels/ops/rounding.h"
#include "kernels/threads/cpu.h"

namespace kernels {
namespace {

// Applies an activation without a gate to n numbers of each token.
void ActivateAlone(Activation activation, size_t n, size_t n_tokens, float* out, size_t stride) {
  assert(!IsGated(activation));
  for (size_t t = 0; t < n_tokens; ++t) GatedActivation(activation, out + t * stride, nullptr, n);
}

// The product needs four bytes for each number (rows-inl.h), and room for a last step that is
// padded.
size_t ProductScratchBytes(size_t n_tokens, size_t cols) {
  const size_t padded = (cols + kActivationPad - 1) / kActivationPad * kActivationPad;
  return n_tokens * (padded + kActivationPad) * sizeof(float);
}

}  // namespace

size_t RowsScratchBytes(size_t n_tokens, size_t cols) {
  return n_tokens * kBufferedRows * sizeof(float) + ProductScratchBytes(n_tokens, cols);
}

RowsScratch::RowsScratch(std::span<std::byte> scratch, size_t n_tokens)
    : results(reinterpret_cast<float*>(scratch.data())),
      product(scratch.subspan(n_tokens * kBufferedRows * sizeof(float))) {}

namespace {

// A token and its residual are multiplied like two tokens, which share the unpacked weights.
void RowsWithResidual(const Matrix& w, size_t begin, size_t end, RowsInput& in, float* out,
                      size_t stride) {
  const size_t n_tokens = in.x.size(), at_a_time = KernelsOf(w).max_row_tokens / 2;
  const RowsScratch scratch(in.scratch, 2 * std::min(n_tokens, at_a_time));
  in.prepared.reset();
  for (size_t first = begin; first < end; first += kBufferedRows) {
    const size_t last = std::min(first + kBufferedRows, end), n_rows = last - first;
    for (size_t token = 0; token < n_tokens; token += at_a_time) {
      const size_t n = std::min(at_a_time, n_tokens - token);
      std::array<ActivationRow, kMaxRowTokens> parts;
      std::ranges::copy(in.x.subspan(token, n), parts.begin());
      std::ranges::copy(in.residuals.subspan(token, n), parts.begin() + static_cast<ptrdiff_t>(n));
      const bool prepared = first != begin && n == n_tokens;
      KernelsOf(w).rows(w, first, last, {parts.data(), 2 * n}, scratch.results, kBufferedRows,
                        scratch.product, prepared);
      for (size_t t = 0; t < n; ++t) {
        float* const sums = out + (token + t) * stride + first - begin;
        std::copy_n(scratch.results + t * kBufferedRows, n_rows, sums);
        Add(sums, scratch.results + (n + t) * kBufferedRows, n_rows);
      }
    }
  }
}

// Products without residuals: the matrix does not use residuals, or the input has no residuals.
void RowsWithoutResidual(const Matrix& w, size_t begin, size_t end, RowsInput& in, float* out,
                         size_t stride) {
  const std::span<const ActivationRow> x = in.x;
  assert(x.size() <= MaxRowTokens(w) && in.scratch.size() >= RowsScratchBytes(x.size(), w.cols));
  if (begin == end) return;  // the scratch is not prepared
  KernelsOf(w).rows(w, begin, end, x, out, stride, RowsScratch(in.scratch, x.size()).product,
                    in.prepared == w.dtype);
  in.prepared = w.dtype;
}

}  // namespace

void LinearRows(const Matrix& w, const float* bias, size_t begin, size_t end, RowsInput& in,
                float* out, size_t stride) {
  const bool with_residual = UsesResiduals(w) && !in.residuals.empty();
  (with_residual ? RowsWithResidual : RowsWithoutResidual)(w, begin, end, in, out, stride);
  for (size_t t = 0; t < in.x.size(); ++t, out += stride) {
    if (w.scale != 1.0f) Scale(out, w.scale, end - begin);
    if (bias != nullptr) Add(out, bias + begin, end - begin);
  }
}

void GatedRows(const GatedLayer& layer, size_t begin, size_t end, RowsInput& in, float* out,
               size_t stride) {
  if (!layer.has_gate()) {
    LinearRows(layer.up, layer.up_bias, begin, end, in, out, stride);
    return ActivateAlone(layer.activation, end - begin, in.x.size(), out, stride);
  }
  assert(!layer.gate.uses_residual);
  // With a residual `up` needs the scratch itself, so `up` is computed first, and the gate's
  // results are stored there.
  float* const gates = RowsScratch(in.scratch, in.x.size()).results;
  for (size_t first = begin; first < end; first += kBufferedRows) {
    const size_t last = std::min(first + kBufferedRows, end);
    LinearRows(layer.up, layer.up_bias, first, last, in, out, stride);
    LinearRows(layer.gate, layer.gate_bias, first, last, in, gates, kBufferedRows);
    for (size_t t = 0; t < in.x.size(); ++t) {
      float* const gate = gates + t * kBufferedRows;
      GatedActivation(layer.activation, gate, out + t * stride, last - first, layer.limit);
      std::copy_n(gate, last - first, out + t * stride);
    }
    out += last - first;
  }
}

void GatedPanels(const GatedLayer& layer, size_t begin, size_t end, const GemmInput& gate_input,
                 const GemmInput& up_input, float* out, size_t stride,
                 std::span<std::byte> scratch) {
  GemmOutput output{.out = out, .stride = stride, .bias = layer.up_bias};
  if (!layer.has_gate()) {
    KernelsOf(layer.up).panels(layer.up, begin, end, up_input, output, scratch);
    return ActivateAlone(layer.activation, end - begin, up_input.n_tokens, out + begin, stride);
  }
  output.bias = layer.gate_bias;
  KernelsOf(layer.gate).panels(layer.gate, begin, end, gate_input, output, scratch);
  output.bias = layer.up_bias;
  output.gated = layer.activation;
  output.limit = layer.limit;
  KernelsOf(layer.up).panels(layer.up, begin, end, up_input, output, scratch);
}

size_t RowsAtATime(size_t rows, size_t n_threads) {
  constexpr size_t kMaxMicroPanels = 8;
  const size_t parts = CpuUses(Extension::kAmx) ? 4 : 16;
  const size_t micro_panels = rows / (n_threads * parts * kGemmMaxRows);
  return std::clamp<size_t>(micro_panels, 1, kMaxMicroPanels) * kGemmMaxRows;
}

}  // namespace kernels
