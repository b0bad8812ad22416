#include "kernels/rows.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/cpu.h"
#include "kernels/dispatch.h"

namespace kernels {

void MultiplyRows(const Matrix& w, const float* bias, size_t begin, size_t end,
                  const ActivationRow& x, float* out) {
  KernelsFor(w.dtype).gemv(w, begin, end, x, out);
  if (w.scale != 1.0f) Scale(out, w.scale, end - begin);
  if (bias != nullptr) Add(out, bias + begin, end - begin);
}

void GatedRows(const GatedLayer& layer, size_t begin, size_t end, const ActivationRow& x,
               float* out) {
  assert(end - begin <= kGatedRows);
  std::array<float, kGatedRows> up;
  MultiplyRows(layer.gate, layer.gate_bias, begin, end, x, out);
  MultiplyRows(layer.up, layer.up_bias, begin, end, x, up.data());
  GatedActivation(layer.activation, out, up.data(), end - begin);
}

void GatedPanels(const GatedLayer& layer, size_t begin, size_t end, const GemmInput& gate_input,
                 const GemmInput& up_input, float* out, size_t stride,
                 std::span<std::byte> scratch) {
  GemmOutput output{.out = out, .stride = stride, .bias = layer.gate_bias};
  KernelsFor(layer.gate.dtype).gemm(layer.gate, begin, end, gate_input, output, scratch);
  output.bias = layer.up_bias;
  output.gated = layer.activation;
  KernelsFor(layer.up.dtype).gemm(layer.up, begin, end, up_input, output, scratch);
}

size_t RowsInCache(const Matrix& w) {
  constexpr size_t kBytes = 256 << 10;  // a good part of the second-level cache
  constexpr size_t kRows = 64;
  const size_t rows = kBytes / std::max<size_t>(w.row_bytes(), 1);
  return std::clamp(rows / kRowGrain * kRowGrain, kRowGrain, kRows);
}

size_t RowsAtATime(size_t rows, size_t n_threads) {
  constexpr size_t kMostGroups = 8;
  const size_t shares = CpuUses(Extension::kAmx) ? 4 : 16;
  const size_t groups = rows / (n_threads * shares * kGemmMaxRows);
  return std::clamp<size_t>(groups, 1, kMostGroups) * kGemmMaxRows;
}

}  // namespace kernels
