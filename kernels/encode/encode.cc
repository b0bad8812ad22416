// Encodes rows of floats: calls the encoder of a type for each block.
#include "kernels/encode/encode.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/encode/block_encoders.h"
#include "kernels/half.h"

namespace kernels {
namespace {

using gguf::DType;

constexpr size_t kMaxBlock = 256;
// The smallest weight of an error, relative to the block's largest: columns without inputs so far
// still count.
constexpr float kMinImportance = 1e-4f;

// Writes one block, at any address.
using EncodeFunction = void (*)(const Source& source, std::byte* block);

template <class Block>
void Quantized(const Source& source, std::byte* out) {
  Block block{};
  EncodeBlock(source, block);
  std::memcpy(out, &block, sizeof(block));
}

void F32(const Source& source, std::byte* out) { std::memcpy(out, source.x, sizeof(float)); }

template <uint16_t (*kRound)(float)>
void Half(const Source& source, std::byte* out) {
  const uint16_t half = kRound(*source.x);
  std::memcpy(out, &half, sizeof(half));
}

EncodeFunction FunctionFor(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return F32;
    case DType::kF16:
      return Half<F32ToF16>;
    case DType::kBF16:
      return Half<F32ToBf16>;
#define PRONK_CASE(type) \
  case DType::k##type:   \
    return Quantized<gguf::Block##type>;
      PRONK_ENCODED(PRONK_CASE)
#undef PRONK_CASE
    default:
      return nullptr;
  }
}

// The largest number that does not round to infinity; scales are f16.
float Limit(DType dtype) {
  if (dtype == DType::kF32) return std::numeric_limits<float>::max();
  return dtype == DType::kBF16 ? 0x1.FEp127f : 65504.0f;
}

// The weights of n squared errors, relative to the largest: the importance of the column, if known,
// times a weight by size. A large weight counts more than its share of the squared errors: an
// outlier that a smaller scale clips moves the logits further (README.md has the figures). Let ms
// be the mean square of the weights. The weight by size is ms + x^2 for types of more than five
// bits, its root for types of four and five bits, and 1 for types of fewer bits.
using Importance = std::array<float, kMaxBlock>;
void SetImportance(const float* x, const float* columns, size_t n, double bits,
                   Importance& shares) {
  float largest = 0, max_importance = 0, sum = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float inverse = largest > 0 ? 1 / std::max(largest, 1e-30f) : 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] * inverse * (x[i] * inverse);
  const float mean = std::max(sum / static_cast<float>(n), kMinImportance);
  if (columns != nullptr) max_importance = *std::max_element(columns, columns + n);
  for (size_t i = 0; i < n; ++i) {
    const float column =
        max_importance > 0 ? std::max(columns[i] / max_importance, kMinImportance) : 1.0f;
    const float size = (mean + x[i] * inverse * (x[i] * inverse)) / (mean + 1);
    shares[i] = column * (bits > 5 ? size : bits >= 4 ? std::sqrt(size) : 1.0f);
  }
}

}  // namespace

bool CanEncode(DType dtype) { return FunctionFor(dtype) != nullptr; }

bool EncodeRow(DType dtype, const float* x, size_t n, std::byte* row, const float* importance) {
  const EncodeFunction encode = FunctionFor(dtype);
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  const size_t block = info.block_size;
  assert(encode != nullptr && n % block == 0 && block <= kMaxBlock);
  // This is false for a NaN, too.
  const auto fits = [limit = Limit(dtype)](float weight) { return std::fabs(weight) <= limit; };
  if (!std::all_of(x, x + n, fits)) return false;
  const double bits = 8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(block);
  Importance shares;
  for (size_t i = 0; i < n; i += block, row += info.block_bytes) {
    SetImportance(x + i, importance == nullptr ? nullptr : importance + i, block, bits, shares);
    encode({x + i, shares.data()}, row);
  }
  return true;
}

}  // namespace kernels
