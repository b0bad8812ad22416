// Blocks of 256 weights whose parts have scales of their own: the way back from reference_k.cc.
// Each part gets the scale (and minimum) that fits it best; these are rounded to multiples of the
// block's, and then the weights are rounded with what came of it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/encode_blocks.h"
#include "kernels/half.h"

namespace kernels {
namespace {

// Q4_K and Q5_K: x = d * sc[g] * q - dmin * min[g] for the 32 weights of group g.
struct Groups {
  uint16_t d = 0, dmin = 0;        // f16
  std::array<int, 8> sc{}, min{};  // 0 to 63
  std::array<int, 256> q{};        // 0 to levels
};

Groups EncodeGroups(const float* x, int levels) {
  std::array<Line, 8> lines;
  float max_scale = 0, max_min = 0;
  for (size_t g = 0; g < 8; ++g) {
    lines[g] = FitLine(x + 32 * g, 32, levels, 0.0f);
    max_scale = std::max(max_scale, lines[g].scale);
    max_min = std::max(max_min, -lines[g].offset);
  }
  Groups groups;
  groups.d = F32ToF16(max_scale / 63);
  groups.dmin = F32ToF16(max_min / 63);
  const float d = F16ToF32(groups.d), dmin = F16ToF32(groups.dmin);
  for (size_t g = 0; g < 8; ++g) {
    groups.sc[g] = Nearest(lines[g].scale, d, 0, 63);
    groups.min[g] = Nearest(-lines[g].offset, dmin, 0, 63);
    const float scale = d * static_cast<float>(groups.sc[g]);
    const float min = dmin * static_cast<float>(groups.min[g]);
    for (size_t i = 32 * g; i < 32 * g + 32; ++i) {
      groups.q[i] = Nearest(x[i] + min, scale, 0, levels);
    }
  }
  return groups;
}

uint8_t Byte(int bits) { return static_cast<uint8_t>(bits); }

// What the two types have in common: scales and the low four bits, as blocks.h shows them.
template <class Block>
void StoreGroups(const Groups& groups, Block& block) {
  block.d = groups.d;
  block.dmin = groups.dmin;
  for (size_t j = 0; j < 4; ++j) {
    block.scales[j] = Byte(groups.sc[j] | (groups.sc[j + 4] >> 4) << 6);
    block.scales[j + 4] = Byte(groups.min[j] | (groups.min[j + 4] >> 4) << 6);
    block.scales[j + 8] = Byte((groups.sc[j + 4] & 15) | (groups.min[j + 4] & 15) << 4);
  }
  for (size_t i = 0; i < 4; ++i) {
    for (size_t l = 0; l < 32; ++l) {
      block.qs[32 * i + l] =
          Byte((groups.q[64 * i + l] & 15) | (groups.q[64 * i + 32 + l] & 15) << 4);
    }
  }
}

}  // namespace

void EncodeBlock(const float* x, gguf::BlockQ4_K& block) {
  StoreGroups(EncodeGroups(x, 15), block);
}

void EncodeBlock(const float* x, gguf::BlockQ5_K& block) {
  const Groups groups = EncodeGroups(x, 31);
  StoreGroups(groups, block);
  for (size_t i = 0; i < 256; ++i) {  // bit g of qh[l], for the l-th of group g
    block.qh[i % 32] = Byte(block.qh[i % 32] | (groups.q[i] >> 4) << (i / 32));
  }
}

void EncodeBlock(const float* x, gguf::BlockQ6_K& block) {
  std::array<float, 16> scales;
  for (size_t g = 0; g < 16; ++g) scales[g] = FitScale(x + 16 * g, 16, -32, 31);
  const float extreme = *std::max_element(
      scales.begin(), scales.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  block.d = F32ToF16(extreme / -128);
  const float d = F16ToF32(block.d);
  for (size_t g = 0; g < 16; ++g) {
    block.scales[g] = static_cast<int8_t>(Nearest(scales[g], d, -128, 127));
  }
  for (size_t i = 0; i < 256; ++i) {
    const float scale = d * static_cast<float>(block.scales[i / 16]);
    const int q = Nearest(x[i], scale, -32, 31) + 32;
    const size_t half = i / 128, k = i % 128 / 32, l = i % 32;
    uint8_t& low = block.ql[64 * half + 32 * (k % 2) + l];
    low = Byte(low | (q & 15) << (k < 2 ? 0 : 4));
    uint8_t& high = block.qh[32 * half + l];
    high = Byte(high | (q >> 4) << (2 * k));
  }
}

}  // namespace kernels
