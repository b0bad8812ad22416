// Weights of a folder as floats, from any stored type.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/hf/out_tensor.h"
#include "gguf/load.h"
#include "kernels/half.h"

namespace engine {
namespace {

using gguf::DType;

// Changes a number of a vector, computed in double and rounded once.
float Changed(double x, Change change) {
  if (change == Change::kPlusOne) return static_cast<float>(x + 1);
  return static_cast<float>(change == Change::kExp ? std::exp(x) : -std::exp(x));
}
bool IsOfNumbers(Change change) {
  return change == Change::kPlusOne || change == Change::kMinusExp || change == Change::kExp;
}

// n weights of one unit, each converted from its bytes by `load`.
template <class Number, class Load>
void ReadBy(const Unit& unit, uint64_t n, Change change, Load load, float* out) {
  const std::byte* const bytes = unit.from->data.data() + unit.first * sizeof(Number);
  const auto at = [&](uint64_t i) {
    return load(gguf::Load<Number>(bytes + i * unit.stride * sizeof(Number)));
  };
  if (!IsOfNumbers(change)) {
    for (uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(at(i));
    return;
  }
  for (uint64_t i = 0; i < n; ++i) out[i] = Changed(static_cast<double>(at(i)), change);
}

// Calls f(i, row, col) for the n weights of a unit; row counts through all matrices of a stack.
template <class F>
void ForEachPlace(const Unit& unit, uint64_t n, F f) {
  const uint64_t cols = unit.from->shape.back();
  uint64_t row = unit.first / cols, col = unit.first % cols;
  for (uint64_t i = 0; i < n; ++i) {
    f(i, row, col);
    col += unit.stride;
    if (col < cols) continue;
    row += col / cols;
    col %= cols;
  }
}

void ReadTernary(const Unit& unit, uint64_t n, float* out) {
  const SafeTensor& from = *unit.from;
  const uint64_t cols = from.shape[1], quarter = from.shape[0] / 4;
  uint64_t here = UINT64_MAX, start = 0, shift = 0;  // position in the row
  ForEachPlace(unit, n, [&](uint64_t i, uint64_t row, uint64_t col) {
    if (row != here) {
      here = row;
      start = row % quarter * cols;
      shift = 2 * (row / quarter);
    }
    const int code = std::to_integer<int>(from.data[start + col]) >> shift & 3;
    out[i] = code < 3 ? from.factor * static_cast<float>(code - 1)
                      : std::numeric_limits<float>::quiet_NaN();
  });
}

// 1 sign, 4 exponent (bias 7) and 3 fraction bits, no infinities (Micikevicius et al. 2022, FP8).
std::array<float, 256> F8Values() {
  std::array<float, 256> values{};
  for (int byte = 0; byte < 256; ++byte) {
    const int exponent = byte >> 3 & 15, fraction = byte & 7;
    float value = std::ldexp(static_cast<float>(exponent == 0 ? fraction : 8 + fraction),
                             std::max(exponent, 1) - 10);
    if (exponent == 15 && fraction == 7) value = std::numeric_limits<float>::quiet_NaN();
    values[static_cast<size_t>(byte)] = byte < 128 ? value : -value;
  }
  return values;
}

void ReadF8(const Unit& unit, uint64_t n, float* out) {
  static const std::array<float, 256> kValues = F8Values();
  const SafeTensor& from = *unit.from;
  const uint64_t cols = from.shape.back(), rows = from.shape[from.shape.size() - 2];
  const uint64_t across = (cols - 1) / from.block_cols + 1, down = (rows - 1) / from.block_rows + 1;
  uint64_t here = UINT64_MAX, first = 0;  // row, its first block
  uint64_t block = UINT64_MAX;
  float scale = 0;
  ForEachPlace(unit, n, [&](uint64_t i, uint64_t row, uint64_t col) {
    if (row != here) {
      here = row;
      first = (row / rows * down + row % rows / from.block_rows) * across;
    }
    if (first + col / from.block_cols != block) {
      block = first + col / from.block_cols;
      scale = NumberAt(*from.scales, block);
    }
    out[i] = scale * kValues[std::to_integer<size_t>(from.data[row * cols + col])];
  });
}

}  // namespace

void ReadNumbers(const Unit& unit, uint64_t n, Change change, float* out) {
  if (unit.from->packing != Packing::kNone) {
    (unit.from->packing == Packing::kTernary ? ReadTernary : ReadF8)(unit, n, out);
    if (!IsOfNumbers(change)) return;
    for (uint64_t i = 0; i < n; ++i) out[i] = Changed(static_cast<double>(out[i]), change);
    return;
  }
  const auto as_it_is = [](auto x) { return x; };
  const DType type = *unit.from->floats;
  if (type == DType::kF64) return ReadBy<double>(unit, n, change, as_it_is, out);
  if (type == DType::kF32) return ReadBy<float>(unit, n, change, as_it_is, out);
  if (type == DType::kF16) return ReadBy<uint16_t>(unit, n, change, kernels::F16ToF32, out);
  ReadBy<uint16_t>(unit, n, change, kernels::Bf16ToF32, out);
}

float NumberAt(const SafeTensor& tensor, uint64_t i) {
  float number = 0;
  ReadNumbers({&tensor, i}, 1, Change::kNone, &number);
  return number;
}

}  // namespace engine
