// The grids of tables.h expanded to a byte per weight, to unpack many weights at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/types/shared/tables.h"

namespace kernels {

// Eight bytes per entry, weight 0 lowest: scale * level + shift.
template <size_t n, size_t n_levels>
constexpr std::array<uint64_t, n> BytesOf8(const std::array<uint16_t, n>& grid,
                                           const std::array<int8_t, n_levels>& levels, int scale,
                                           int shift) {
  std::array<uint64_t, n> bytes{};
  for (size_t k = 0; k < n; ++k) {
    for (int i = 0; i < 8; ++i) {
      const int value = scale * levels[static_cast<size_t>(LevelOf8(grid[k], i))] + shift;
      bytes[k] |= static_cast<uint64_t>(value) << (8 * i);
    }
  }
  return bytes;
}

// Four bytes per entry.
template <size_t n>
constexpr std::array<uint32_t, n> BytesOf4(const std::array<uint16_t, n>& grid,
                                           const std::array<int8_t, 8>& levels) {
  std::array<uint32_t, n> bytes{};
  for (size_t k = 0; k < n; ++k) {
    for (int i = 0; i < 4; ++i) {
      const int value = levels[static_cast<size_t>(LevelOf4(grid[k], i))];
      bytes[k] |= static_cast<uint32_t>(value) << (8 * i);
    }
  }
  return bytes;
}

inline constexpr std::array kIq1BytesPlus9 = BytesOf8(kIq1Grid, kIq1Levels, 8, 9);
inline constexpr std::array kIq2xxsBytes = BytesOf8(kIq2xxsGrid, kIq2Levels, 1, 0);
inline constexpr std::array kIq2xsBytes = BytesOf8(kIq2xsGrid, kIq2Levels, 1, 0);
inline constexpr std::array kIq2sBytes = BytesOf8(kIq2sGrid, kIq2Levels, 1, 0);
inline constexpr std::array kIq3xxsBytes = BytesOf4(kIq3xxsGrid, kIq3xxsLevels);
inline constexpr std::array kIq3sBytes = BytesOf4(kIq3sGrid, kIq3sLevels);

// A byte of ones for each bit.
inline constexpr std::array<uint64_t, 256> kSignBytes = [] {
  std::array<uint64_t, 256> bytes{};
  for (size_t k = 0; k < 256; ++k) {
    for (size_t i = 0; i < 8; ++i) bytes[k] |= (k >> i & 1) * (uint64_t{255} << (8 * i));
  }
  return bytes;
}();

}  // namespace kernels
