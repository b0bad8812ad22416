// The common part of the encoders of IQ1, IQ2 and IQ3: points of a grid for parts of the block,
// scales for groups of parts. Internal to kernels/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/encode/grid.h"

namespace kernels {

enum class Signs { kInGrid, kFree, kEven };

// x = d * unit * (2k + 1) * point * sign, with one k for each `group` weights.
struct PointScheme {
  std::span<const Grid> grids;  // one, or two to choose from
  size_t group;                 // 16 or 32
  float top;                    // the largest value of a point
  float unit;
  int n_steps;  // k is 0 to n_steps - 1
  Signs signs;
  size_t same_grid = 0;  // weights that share the choice of a grid
};

struct PointBlock {
  uint16_t d = 0;                    // f16
  std::array<uint32_t, 16> k{};      // [group]
  std::array<uint32_t, 64> point{};  // [part of 4 or 8 weights]
  std::array<uint32_t, 64> grid{};   // index of the grid, by part
  std::array<uint32_t, 32> signs{};  // bit i of signs[j] negates weight 8j + i
};

// Chooses a PointBlock for 256 weights.
PointBlock EncodePoints(const Source& source, const PointScheme& scheme);

}  // namespace kernels
