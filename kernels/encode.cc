// Rows by their type, and the choice of scales.
#include "kernels/encode.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/encode_blocks.h"
#include "kernels/half.h"

namespace kernels {
namespace {

using gguf::DType;

// Scales that are tried: the plain one with its largest weight at so many tenths of a level beyond
// the last one, or before it. Twice as many take twice as long and make the error 1% smaller.
constexpr int kTries = 6;
// Weights that are smaller in all are stored as zeros: f16 has no scale for them.
constexpr float kTiny = 1e-9f;

// Writes one block, wherever it lies.
using EncodeFunction = void (*)(const float* x, std::byte* block);

template <class Block>
void Quantized(const float* x, std::byte* out) {
  Block block{};
  EncodeBlock(x, block);
  std::memcpy(out, &block, sizeof(block));
}

void F16(const float* x, std::byte* out) {
  const uint16_t half = F32ToF16(*x);
  std::memcpy(out, &half, sizeof(half));
}

void Bf16(const float* x, std::byte* out) {
  const uint16_t half = F32ToBf16(*x);
  std::memcpy(out, &half, sizeof(half));
}

EncodeFunction FunctionFor(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return F16;
    case DType::kBF16:
      return Bf16;
    case DType::kQ4_0:
      return Quantized<gguf::BlockQ4_0>;
    case DType::kQ4_1:
      return Quantized<gguf::BlockQ4_1>;
    case DType::kQ5_0:
      return Quantized<gguf::BlockQ5_0>;
    case DType::kQ5_1:
      return Quantized<gguf::BlockQ5_1>;
    case DType::kQ8_0:
      return Quantized<gguf::BlockQ8_0>;
    case DType::kQ4_K:
      return Quantized<gguf::BlockQ4_K>;
    case DType::kQ5_K:
      return Quantized<gguf::BlockQ5_K>;
    case DType::kQ6_K:
      return Quantized<gguf::BlockQ6_K>;
    default:
      return nullptr;
  }
}

// q of x on a line, 0 to levels.
float Level(float x, Line line, int levels) {
  return std::clamp(std::nearbyint((x - line.offset) / line.scale), 0.0f,
                    static_cast<float>(levels));
}

float SquaredError(const float* x, int n, int levels, Line line) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    const float q = Level(x[i], line, levels);
    const float error = x[i] - (line.scale * q + line.offset);
    sum += error * error;
  }
  return sum;
}

// The line through (q[i], x[i]) with the smallest squared error, q being x rounded by `guess`.
Line Regression(const float* x, int n, int levels, Line guess, float max_offset) {
  float sum_q = 0, sum_qq = 0, sum_x = 0, sum_xq = 0;
  for (int i = 0; i < n; ++i) {
    const float q = Level(x[i], guess, levels);
    sum_q += q;
    sum_qq += q * q;
    sum_x += x[i];
    sum_xq += x[i] * q;
  }
  const auto count = static_cast<float>(n);
  const float determinant = count * sum_qq - sum_q * sum_q;
  if (determinant <= 0) return guess;  // all on one level
  Line line;
  line.scale = (count * sum_xq - sum_x * sum_q) / determinant;
  line.offset = (sum_x - line.scale * sum_q) / count;
  if (line.offset > max_offset) line = {(sum_xq - max_offset * sum_q) / sum_qq, max_offset};
  return line.scale > 0 ? line : guess;
}

}  // namespace

int Nearest(float x, float d, int low, int high) {
  const float level = d == 0 ? 0.0f : x / d;
  return static_cast<int>(
      std::nearbyint(std::clamp(level, static_cast<float>(low), static_cast<float>(high))));
}

float FitScale(const float* x, int n, int low, int high) {
  const float extreme =
      *std::max_element(x, x + n, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  if (std::fabs(extreme) < kTiny) return 0;
  // With the best scale for given q, sum(xq) / sum(qq), the squared error is
  // sum(xx) - sum(xq)^2 / sum(qq).
  float best = 0, most = 0;
  for (int i = -kTries; i <= kTries; ++i) {
    const float inverse = (static_cast<float>(low) + 0.1f * static_cast<float>(i)) / extreme;
    float sum_xq = 0, sum_qq = 0;
    for (int j = 0; j < n; ++j) {
      const float q = std::clamp(std::nearbyint(x[j] * inverse), static_cast<float>(low),
                                 static_cast<float>(high));
      sum_xq += x[j] * q;
      sum_qq += q * q;
    }
    if (sum_xq * sum_xq <= most * sum_qq) continue;
    most = sum_xq * sum_xq / sum_qq;
    best = sum_xq / sum_qq;
  }
  return best;
}

Line FitLine(const float* x, int n, int levels, float max_offset) {
  const auto [low, high] = std::minmax_element(x, x + n);
  const float offset = std::min(*low, max_offset), range = *high - offset;
  Line best{range / static_cast<float>(levels), offset};
  if (range < kTiny) return best;
  float least = SquaredError(x, n, levels, best);
  for (int i = -kTries; i <= kTries; ++i) {
    const float scale = range / (static_cast<float>(levels) + 0.1f * static_cast<float>(i));
    const Line line = Regression(x, n, levels, {scale, offset}, max_offset);
    const float error = SquaredError(x, n, levels, line);
    if (error >= least) continue;
    least = error;
    best = line;
  }
  return best;
}

bool EncodeRow(DType dtype, const float* x, size_t n, std::byte* row) {
  const EncodeFunction encode = FunctionFor(dtype);
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  assert(encode != nullptr && n % info.block_size == 0);
  // The largest numbers that do not round to infinity; scales are f16.
  const float limit = dtype == DType::kBF16 ? 0x1.FEp127f : 65504.0f;
  const auto fits = [limit](float weight) { return std::fabs(weight) <= limit; };  // not a NaN
  if (!std::all_of(x, x + n, fits)) return false;
  for (size_t i = 0; i < n; i += info.block_size) encode(x + i, row + gguf::RowBytes(dtype, i));
  return true;
}

}  // namespace kernels
