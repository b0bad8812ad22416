// Blocks of 256 weights whose groups have their own scales: the inverse of types/q2_k-inl.h to
// q6_k-inl.h. Each group gets the scale (and minimum) that fits it best. The scales are rounded to
// multiples of the block's scale, and then the weights are rounded with the result.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/encode/block_encoders.h"

namespace kernels {
namespace {

// Q2_K, Q4_K and Q5_K: x = d * sc[g] * q - dmin * min[g] for the weights of group g.
struct Lines {
  size_t n_groups;
  int levels;  // q is 0 to levels
  int steps;   // sc and min are 0 to steps

  size_t size() const { return 256 / n_groups; }
};
struct Groups {
  uint16_t d = 0, dmin = 0;  // f16
  std::array<int, 16> sc{}, min{};
  std::array<int, 256> q{};
};

// The sums of a regression of x on a = sc * q and b = -min, which gives the best d and dmin of a
// line with steps (sc, min).
struct Regressors {
  float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;

  void Add(const Regressors& other) {
    aa += other.aa;
    ab += other.ab;
    bb += other.bb;
    xa += other.xa;
    xb += other.xb;
  }
  // The decrease of the sum of squares by d and dmin.
  float Gain(float d, float dmin) const {
    return d * (2 * xa - d * aa) + dmin * (2 * xb - dmin * bb) - 2 * d * dmin * ab;
  }
};

Regressors RoundGroup(const Source& source, size_t n, int levels, float d, float dmin, int sc,
                      int min, int* q) {
  const float scale = d * static_cast<float>(sc), offset = dmin * static_cast<float>(min);
  const float inverse = scale > 0 ? 1 / scale : 0;
  const auto top = static_cast<float>(levels);
  float sum_w = 0, sum_q = 0, sum_qq = 0, sum_x = 0, sum_xq = 0;
  for (size_t i = 0; i < n; ++i) {
    const float w = source.importance[i], x = source.x[i];
    const float level = std::clamp(std::nearbyint((x + offset) * inverse), 0.0f, top);
    sum_w += w;
    sum_q += w * level;
    sum_qq += w * level * level;
    sum_x += w * x;
    sum_xq += w * x * level;
    if (q != nullptr) q[i] = Nearest(x + offset, scale, 0, levels);
  }
  const auto s = static_cast<float>(sc), m = static_cast<float>(min);
  return {s * s * sum_qq, -s * m * sum_q, m * m * sum_w, s * sum_xq, -m * sum_x};
}

// Chooses the steps next to `line` that fit the group best.
Regressors ChooseSteps(const Source& source, const Lines& lines, const Line& line, float d,
                       float dmin, int& sc, int& min) {
  const int near_sc = Nearest(line.scale, d, 0, lines.steps);
  const int near_min = Nearest(-line.offset, dmin, 0, lines.steps);
  Regressors best;
  float max_gain = -std::numeric_limits<float>::infinity();
  for (int s = std::max(0, near_sc - 1); s <= std::min(lines.steps, near_sc + 1); ++s) {
    for (int m = std::max(0, near_min - 1); m <= std::min(lines.steps, near_min + 1); ++m) {
      const Regressors sums =
          RoundGroup(source, lines.size(), lines.levels, d, dmin, s, m, nullptr);
      const float gain = sums.Gain(d, dmin);
      if (gain <= max_gain) continue;
      max_gain = gain;
      best = sums;
      sc = s;
      min = m;
    }
  }
  return best;
}

// Sets the d and dmin that fit the rounded weights best, unless rounding them to f16 makes the fit
// worse.
void Refit(const Regressors& all, float& d, float& dmin, Groups& groups) {
  const float determinant = all.aa * all.bb - all.ab * all.ab;
  if (determinant <= 1e-6f * all.aa * all.bb) return;
  uint16_t d_half, dmin_half;
  const float fit_d = Store((all.xa * all.bb - all.xb * all.ab) / determinant, d_half);
  const float fit_dmin = Store((all.xb * all.aa - all.xa * all.ab) / determinant, dmin_half);
  if (fit_d <= 0 || fit_dmin <= 0 || all.Gain(fit_d, fit_dmin) <= all.Gain(d, dmin)) return;
  d = fit_d;
  dmin = fit_dmin;
  groups.d = d_half;
  groups.dmin = dmin_half;
}

Groups EncodeGroups(const Source& source, const Lines& lines) {
  std::array<Line, 16> fits;
  float max_scale = 0, max_min = 0;
  for (size_t g = 0; g < lines.n_groups; ++g) {
    fits[g] = FitLine(source.from(g * lines.size()), lines.size(), lines.levels, 0.0f);
    max_scale = std::max(max_scale, fits[g].scale);
    max_min = std::max(max_min, -fits[g].offset);
  }
  Groups groups;
  float d = Store(max_scale / static_cast<float>(lines.steps), groups.d);
  float dmin = Store(max_min / static_cast<float>(lines.steps), groups.dmin);
  Regressors all;
  for (size_t g = 0; g < lines.n_groups; ++g) {
    all.Add(ChooseSteps(source.from(g * lines.size()), lines, fits[g], d, dmin, groups.sc[g],
                        groups.min[g]));
  }
  if (all.Gain(d, dmin) <= 0) return {};  // too small for f16
  Refit(all, d, dmin, groups);
  for (size_t g = 0; g < lines.n_groups; ++g) {
    const size_t at = g * lines.size();
    RoundGroup(source.from(at), lines.size(), lines.levels, d, dmin, groups.sc[g], groups.min[g],
               &groups.q[at]);
  }
  return groups;
}

// Q4_K and Q5_K share scales and the low four bits, as types/q4_k-inl.h shows them.
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

// Q3_K and Q6_K: x = d * sc[g] * q for the 16 weights of group g.
struct Scales {
  uint16_t d = 0;  // f16
  std::array<int, 16> sc{};
  std::array<int, 256> q{};
};

// q is low to -low - 1, and sc -steps to steps - 1.
Scales EncodeScales(const Source& source, int low, int steps) {
  std::array<float, 16> fits;
  for (size_t g = 0; g < 16; ++g) fits[g] = FitScale(source.from(16 * g), 16, low, -low - 1);
  Scales scales;
  float d = Store(Extreme(fits.data(), 16) / static_cast<float>(-steps), scales.d);
  FitSums all;
  for (size_t g = 0; g < 16; ++g) {
    const Source group = source.from(16 * g);
    scales.sc[g] = ChooseStep(
        Nearest(fits[g], d, -steps, steps - 1), -steps, steps - 1, d, [](int step) { return step; },
        [&](float scale) {
          return RoundedSums(group, 16, low, -low - 1, scale == 0 ? 0 : 1 / scale);
        },
        all);
  }
  d = Refit(all, d, scales.d);
  for (size_t i = 0; i < 256; ++i) {
    scales.q[i] = Nearest(source.x[i], d * static_cast<float>(scales.sc[i / 16]), low, -low - 1);
  }
  return scales;
}

}  // namespace

void EncodeBlock(const Source& source, gguf::BlockQ2_K& block) {
  const Groups groups = EncodeGroups(source, {.n_groups = 16, .levels = 3, .steps = 15});
  block.d = groups.d;
  block.dmin = groups.dmin;
  for (size_t g = 0; g < 16; ++g) block.scales[g] = Byte(groups.sc[g] | groups.min[g] << 4);
  for (size_t i = 0; i < 256; ++i) {
    SetBits(block.qs[32 * (i / 128) + i % 32], groups.q[i], 2 * (i % 128 / 32));
  }
}

void EncodeBlock(const Source& source, gguf::BlockQ3_K& block) {
  const Scales scales = EncodeScales(source, -4, 32);
  block.d = scales.d;
  for (size_t g = 0; g < 16; ++g) {
    const int bits = scales.sc[g] + 32;
    SetBits(block.scales[g % 8], bits & 15, g < 8 ? 0 : 4);
    SetBits(block.scales[8 + g % 4], bits >> 4, 2 * (g / 4));
  }
  for (size_t i = 0; i < 256; ++i) {
    const int q = scales.q[i] + 4;
    SetBits(block.qs[32 * (i / 128) + i % 32], q & 3, 2 * (i % 128 / 32));
    SetBits(block.hmask[i % 32], q >> 2, i / 32);
  }
}

void EncodeBlock(const Source& source, gguf::BlockQ4_K& block) {
  StoreGroups(EncodeGroups(source, {.n_groups = 8, .levels = 15, .steps = 63}), block);
}

void EncodeBlock(const Source& source, gguf::BlockQ5_K& block) {
  const Groups groups = EncodeGroups(source, {.n_groups = 8, .levels = 31, .steps = 63});
  StoreGroups(groups, block);
  for (size_t i = 0; i < 256; ++i) {  // bit g of qh[l] is for weight l of group g
    SetBits(block.qh[i % 32], groups.q[i] >> 4, i / 32);
  }
}

void EncodeBlock(const Source& source, gguf::BlockQ6_K& block) {
  const Scales scales = EncodeScales(source, -32, 128);
  block.d = scales.d;
  for (size_t g = 0; g < 16; ++g) block.scales[g] = static_cast<int8_t>(scales.sc[g]);
  for (size_t i = 0; i < 256; ++i) {
    const int q = scales.q[i] + 32;
    const size_t half = i / 128, k = i % 128 / 32, l = i % 32;
    SetBits(block.ql[64 * half + 32 * (k % 2) + l], q & 15, k < 2 ? 0 : 4);
    SetBits(block.qh[32 * half + l], q >> 4, 2 * k);
  }
}

}  // namespace kernels
