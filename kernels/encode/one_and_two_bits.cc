// Blocks of one or two bits a weight, or a ternary digit, with one scale.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "kernels/encode/block_encoders.h"

namespace kernels {
namespace {

constexpr Ladder kQ2Values(std::array<int8_t, 4>{-1, 0, 1, 2});

// d for x ~ -d, 0 or d: the smallest weights become 0. Every number of nonzeros is tried.
float FitTernary(const Source& source, size_t n) {
  std::array<std::pair<float, float>, 256> largest;  // |x| and its importance
  for (size_t i = 0; i < n; ++i) largest[i] = {std::fabs(source.x[i]), source.importance[i]};
  std::sort(largest.begin(), largest.begin() + n, std::greater());
  FitSums sums, best;
  for (size_t i = 0; i < n; ++i) {
    const auto [x, importance] = largest[i];
    sums.Add({importance * x, importance});
    if (sums.Gain() > best.Gain()) best = sums;
  }
  return best.Scale();
}

// The digits of x, each 0, 1 or 2 for -d, 0 and d.
std::array<uint8_t, 256> Digits(const Source& source, uint16_t& half) {
  const float d = Store(FitTernary(source, 256), half);
  std::array<uint8_t, 256> digits;
  for (size_t i = 0; i < 256; ++i) digits[i] = Byte(1 + Nearest(source.x[i], d, -1, 1));
  return digits;
}

}  // namespace

void EncodeBlock(const Source& source, gguf::BlockQ1_0& block) {
  FitSums sums;
  for (size_t i = 0; i < block.kWeights; ++i) {
    sums.Add({source.importance[i] * std::fabs(source.x[i]), source.importance[i]});
  }
  Store(sums.Scale(), block.d);
  for (size_t i = 0; i < block.kWeights; ++i) {
    SetBits(block.qs[i / 8], source.x[i] >= 0 ? 1 : 0, i % 8);
  }
}

void EncodeBlock(const Source& source, gguf::BlockQ2_0& block) {
  const float d = Store(FitLadder(source, block.kWeights, kQ2Values), block.d);
  for (size_t i = 0; i < block.kWeights; ++i) {
    SetBits(block.qs[i / 4], 1 + Nearest(source.x[i], d, -1, 2), 2 * (i % 4));
  }
}

void EncodeBlock(const Source& source, gguf::BlockTQ2_0& block) {
  const std::array<uint8_t, 256> digits = Digits(source, block.d);
  for (size_t i = 0; i < 256; ++i) {
    SetBits(block.qs[32 * (i / 128) + i % 32], digits[i], 2 * (i % 128 / 32));
  }
}

// A byte is the number that its digits form, the first digit the highest, times 256 / 243. It is
// rounded up, since the reader truncates.
void EncodeBlock(const Source& source, gguf::BlockTQ1_0& block) {
  const std::array<uint8_t, 256> digits = Digits(source, block.d);
  const auto pack = [](const uint8_t* first, size_t step, int n) {
    uint32_t number = 0;
    for (int i = 0; i < 5; ++i) number = 3 * number + (i < n ? first[i * step] : 0);
    return Byte((number * 256 + 242) / 243);
  };
  for (size_t i = 0; i < 32; ++i) block.qs[i] = pack(&digits[i], 32, 5);
  for (size_t i = 0; i < 16; ++i) block.qs[32 + i] = pack(&digits[160 + i], 16, 5);
  for (size_t i = 0; i < 4; ++i) block.qh[i] = pack(&digits[240 + i], 4, 4);
}

}  // namespace kernels
