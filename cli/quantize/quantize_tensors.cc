#include "cli/quantize/quantize_tensors.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "gguf/error.h"
#include "kernels/encode/encode.h"
#include "kernels/matmul/reference.h"

namespace cli {

std::span<const std::byte> Converter::Next(const PlannedTensor& planned,
                                           std::span<const float> factors, uint64_t& done) {
  const gguf::TensorView& tensor = *planned.tensor;
  const uint64_t n = std::min(kPiece, tensor.elements() - done);
  bytes_.resize(gguf::RowBytes(planned.type, n));
  std::atomic<bool> all_fit = true;
  team_.Run([&] {
    team_.ForDynamic((n + kPart - 1) / kPart, 1, [&](size_t begin, size_t end, size_t) {
      for (size_t part = begin; part < end; ++part) {
        const uint64_t at = part * kPart;
        std::byte* const to = bytes_.data() + gguf::RowBytes(planned.type, at);
        if (!EncodePart(planned, factors, done + at, std::min(kPart, n - at), to)) all_fit = false;
      }
    });
  });
  if (!all_fit) {
    throw gguf::Error(gguf::PrintablePath(file_.path()) + ": tensor " + gguf::Quoted(tensor.name) +
                      ": expected weights that " + std::string(gguf::Info(planned.type).name) +
                      " can hold, found some that are no numbers or too large");
  }
  done += n;
  bytes_read_ += gguf::RowBytes(tensor.dtype, n);
  progress_.Update(bytes_read_ / 1'000'000, file_.tensor_bytes() / 1'000'000);
  return bytes_;
}

// Goes row by row where columns have weights of their own, or matrices factors.
bool Converter::EncodePart(const PlannedTensor& planned, std::span<const float> factors,
                           uint64_t first, uint64_t n, std::byte* to) const {
  const gguf::TensorView& tensor = *planned.tensor;
  std::array<float, kPart> weights;
  kernels::DequantizeRow(tensor.dtype, At(tensor, first), n, weights.data());
  if (importance_ == nullptr && factors.empty()) {
    return kernels::EncodeRow(planned.type, weights.data(), n, to);
  }
  const uint64_t cols = tensor.cols();
  for (uint64_t i = 0; i < n;) {
    const uint64_t row = (first + i) / cols, col = (first + i) % cols;
    const uint64_t count = std::min(cols - col, n - i), matrix = row / tensor.dims[1];
    const float* const columns =
        importance_ != nullptr ? importance_->Columns(tensor, matrix) : nullptr;
    if (!factors.empty()) {
      for (uint64_t j = i; j < i + count; ++j) weights[j] /= factors[matrix];
    }
    if (!kernels::EncodeRow(planned.type, &weights[i], count, to + gguf::RowBytes(planned.type, i),
                            columns != nullptr ? columns + col : nullptr)) {
      return false;
    }
    i += count;
  }
  return true;
}

std::vector<float> Converter::Factors(const gguf::TensorView& tensor) {
  constexpr float kLargest = 448.0f * 6.0f;  // of a scale, times that of a 4-bit float
  const uint64_t per_matrix = tensor.cols() * tensor.dims[1];
  std::vector<float> factors(tensor.elements() / per_matrix);
  std::vector<float> weights(tensor.cols());
  for (uint64_t row = 0; row < tensor.rows(); ++row) {
    kernels::DequantizeRow(tensor.dtype, tensor.row(row), weights.size(), weights.data());
    float& largest = factors[row / tensor.dims[1]];
    for (const float weight : weights) largest = std::max(largest, std::fabs(weight));
  }
  for (float& factor : factors) {
    factor = factor > 0 && std::isfinite(factor) ? factor / kLargest : 1.0f;
  }
  return factors;
}

}  // namespace cli
