// Blocks whose weights are points of a grid: the inverse of types/iq1*, iq2* and iq3*.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/encode/points.h"
#include "kernels/types/shared/tables.h"

namespace kernels {
namespace {

// The points as floats, by coordinate.
template <size_t n_dims, size_t n, size_t n_levels>
constexpr std::array<float, n_dims * n> Values(const std::array<uint16_t, n>& grid,
                                               const std::array<int8_t, n_levels>& levels,
                                               float shift = 0) {
  std::array<float, n_dims * n> values{};
  for (size_t i = 0; i < n_dims; ++i) {
    for (size_t p = 0; p < n; ++p) {
      const int dim = static_cast<int>(i);
      const int level = n_dims == 8 ? LevelOf8(grid[p], dim) : LevelOf4(grid[p], dim);
      values[i * n + p] = static_cast<float>(levels[static_cast<size_t>(level)]) + shift;
    }
  }
  return values;
}

constexpr float kDelta = 0.125f;  // the shift of IQ1's points
constexpr auto kIq1Above = Values<8>(kIq1Grid, kIq1Levels, kDelta);
constexpr auto kIq1Below = Values<8>(kIq1Grid, kIq1Levels, -kDelta);
constexpr auto kIq2xxs = Values<8>(kIq2xxsGrid, kIq2Levels);
constexpr auto kIq2xs = Values<8>(kIq2xsGrid, kIq2Levels);
constexpr auto kIq2s = Values<8>(kIq2sGrid, kIq2Levels);
constexpr auto kIq3xxs = Values<4>(kIq3xxsGrid, kIq3xxsLevels);
constexpr auto kIq3s = Values<4>(kIq3sGrid, kIq3sLevels);

constexpr Grid kIq1Grids[] = {{kIq1Above.data(), 2048, 8}, {kIq1Below.data(), 2048, 8}};
constexpr Grid kIq2xxsPoints[] = {{kIq2xxs.data(), 256, 8}};
constexpr Grid kIq2xsPoints[] = {{kIq2xs.data(), 512, 8}};
constexpr Grid kIq2sPoints[] = {{kIq2s.data(), 1024, 8}};
constexpr Grid kIq3xxsPoints[] = {{kIq3xxs.data(), 256, 4}};
constexpr Grid kIq3sPoints[] = {{kIq3s.data(), 512, 4}};

constexpr PointScheme kIq1sScheme = {kIq1Grids, 32, 1 + kDelta, 1, 8, Signs::kInGrid, 32};
constexpr PointScheme kIq1mScheme = {kIq1Grids, 16, 1 + kDelta, 1, 8, Signs::kInGrid, 8};
constexpr PointScheme kIq2xxsScheme = {kIq2xxsPoints, 32, 43, 0.125f, 16, Signs::kEven};
constexpr PointScheme kIq2xsScheme = {kIq2xsPoints, 16, 43, 0.125f, 16, Signs::kEven};
constexpr PointScheme kIq2sScheme = {kIq2sPoints, 16, 43, 0.125f, 16, Signs::kFree};
constexpr PointScheme kIq3xxsScheme = {kIq3xxsPoints, 32, 62, 0.25f, 16, Signs::kEven};
constexpr PointScheme kIq3sScheme = {kIq3sPoints, 32, 15, 1, 16, Signs::kFree};

// Four times seven bits of signs (the eighth is their parity), and k on top.
uint32_t SignsAndStep(const PointBlock& points, size_t group) {
  uint32_t word = points.k[group] << 28;
  for (size_t l = 0; l < 4; ++l) word |= (points.signs[4 * group + l] & 127) << (7 * l);
  return word;
}

// Packs two steps to a byte, the first step in the low nibble.
template <size_t n>
void SetSteps(const PointBlock& points, uint8_t (&scales)[n]) {
  for (size_t i = 0; i < n; ++i) scales[i] = Byte(points.k[2 * i] | points.k[2 * i + 1] << 4);
}

}  // namespace

void EncodeBlock(const Source& source, gguf::BlockIQ2_XXS& block) {
  const PointBlock points = EncodePoints(source, kIq2xxsScheme);
  block.d = points.d;
  for (size_t g = 0; g < 8; ++g) {
    uint32_t indices = 0;
    for (size_t l = 0; l < 4; ++l) indices |= points.point[4 * g + l] << (8 * l);
    const uint32_t words[] = {indices, SignsAndStep(points, g)};
    std::memcpy(block.qs + 4 * g, words, sizeof(words));
  }
}

void EncodeBlock(const Source& source, gguf::BlockIQ2_XS& block) {
  const PointBlock points = EncodePoints(source, kIq2xsScheme);
  block.d = points.d;
  for (size_t p = 0; p < 32; ++p) {
    block.qs[p] = static_cast<uint16_t>(points.point[p] | (points.signs[p] & 127) << 9);
  }
  SetSteps(points, block.scales);
}

void EncodeBlock(const Source& source, gguf::BlockIQ2_S& block) {
  const PointBlock points = EncodePoints(source, kIq2sScheme);
  block.d = points.d;
  for (size_t p = 0; p < 32; ++p) {
    block.qs[p] = Byte(points.point[p]);
    block.signs[p] = Byte(points.signs[p]);
    SetBits(block.qh[p / 4], points.point[p] >> 8, 2 * (p % 4));
  }
  SetSteps(points, block.scales);
}

void EncodeBlock(const Source& source, gguf::BlockIQ3_XXS& block) {
  const PointBlock points = EncodePoints(source, kIq3xxsScheme);
  block.d = points.d;
  for (size_t p = 0; p < 64; ++p) block.qs[p] = Byte(points.point[p]);
  for (size_t g = 0; g < 8; ++g) {
    const uint32_t word = SignsAndStep(points, g);
    std::memcpy(block.signs_scales + 4 * g, &word, sizeof(word));
  }
}

void EncodeBlock(const Source& source, gguf::BlockIQ3_S& block) {
  const PointBlock points = EncodePoints(source, kIq3sScheme);
  block.d = points.d;
  for (size_t p = 0; p < 64; ++p) {
    block.qs[p] = Byte(points.point[p]);
    SetBits(block.qh[p / 8], points.point[p] >> 8, p % 8);
  }
  for (size_t j = 0; j < 32; ++j) block.signs[j] = Byte(points.signs[j]);
  SetSteps(points, block.scales);
}

void EncodeBlock(const Source& source, gguf::BlockIQ1_S& block) {
  const PointBlock points = EncodePoints(source, kIq1sScheme);
  block.d = points.d;
  for (size_t g = 0; g < 8; ++g) {
    uint32_t bits = points.k[g] << 12 | points.grid[4 * g] << 15;
    for (size_t l = 0; l < 4; ++l) {
      const uint32_t point = points.point[4 * g + l];
      block.qs[4 * g + l] = Byte(point);
      bits |= (point >> 8) << (3 * l);
    }
    block.qh[g] = static_cast<uint16_t>(bits);
  }
}

void EncodeBlock(const Source& source, gguf::BlockIQ1_M& block) {
  const PointBlock points = EncodePoints(source, kIq1mScheme);
  for (size_t p = 0; p < 32; ++p) {
    const uint32_t nibble = points.point[p] >> 8 | points.grid[p] << 3;
    block.qs[p] = Byte(points.point[p]);
    SetBits(block.qh[p / 2], nibble, 4 * (p % 2));
  }
  for (size_t i = 0; i < 4; ++i) {
    uint32_t bits = (points.d >> (4 * i) & 15u) << 12;
    for (size_t j = 0; j < 4; ++j) bits |= points.k[4 * i + j] << (3 * j);
    block.scales[i] = static_cast<uint16_t>(bits);
  }
}

}  // namespace kernels
