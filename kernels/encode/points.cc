// The search: for each group the scale that fits it best, then the block's scale, of which the
// groups' scales are odd multiples. The envelopes of grid.h give the best points of every scale.
#include "kernels/encode/points.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/encode/block_encoders.h"

namespace kernels {
namespace {

// Scales that are tried for a group: from 1 / kWidest to kWidest times the scale at which its
// largest weight is the largest point's value.
constexpr float kWidest = 1.7f, kScaleStep = 1.07f;
// Scales of a block that are tried, relative to the scale at which the largest group has the last
// step.
constexpr float kFirstUnit = 0.8f, kLastUnit = 1.26f, kUnitStep = 0.04f;

// Moves the signs of the weights to a bit each, where the grid has magnitudes only. If the number
// of minus signs must be even and is odd, the weight with the least effect gets the wrong sign.
void SplitSigns(const Source& source, Signs signs, float* x, std::array<uint32_t, 32>& bits) {
  std::copy_n(source.x, 256, x);
  if (signs == Signs::kInGrid) return;
  for (size_t j = 0; j < 32; ++j) {
    size_t weakest = 8 * j;
    for (size_t i = 8 * j; i < 8 * j + 8; ++i) {
      if (x[i] < 0) bits[j] |= 1u << i % 8;
      x[i] = std::fabs(x[i]);
      if (source.importance[i] * x[i] < source.importance[weakest] * x[weakest]) weakest = i;
    }
    if (signs == Signs::kFree || std::popcount(bits[j]) % 2 == 0) continue;
    bits[j] ^= 1u << weakest % 8;
    x[weakest] = -x[weakest];
  }
}

class Search {
 public:
  Search(const Source& source, const PointScheme& scheme)
      : scheme_(scheme), parts_(256 / scheme.grids[0].dims), n_groups_(256 / scheme.group) {
    std::array<float, 64> low, high;
    for (size_t p = 0; p < parts_; ++p) {
      const size_t g = p * n_groups_ / parts_;
      const float* const x = source.x + g * scheme.group;
      // A group of nearly zeros still gets a scale that the type can hold.
      plain_[g] =
          std::max(std::fabs(Extreme(x, scheme.group)), 1e-3f * std::fabs(Extreme(source.x, 256))) /
          scheme.top;
      low[p] = plain_[g] / kWidest;
      high[p] = plain_[g] * kWidest;
    }
    for (size_t i = 0; i < scheme.grids.size(); ++i) {
      FindEnvelopes(scheme.grids[i], source, parts_, low.data(), high.data(), envelopes_[i].data());
    }
  }

  // Chooses scales and points.
  void Run(PointBlock& block) {
    float largest = 0;
    for (size_t g = 0; g < n_groups_; ++g) {
      fits_[g] = FitGroup(g);
      largest = std::max(largest, fits_[g]);
    }
    const float unit = largest / static_cast<float>(2 * scheme_.n_steps - 1) / scheme_.unit;
    float max_gain = 0;
    for (float share = kFirstUnit; share < kLastUnit; share += kUnitStep) {
      Try(share * unit, max_gain, block);
    }
    Try(fit_d_, max_gain, block);
  }

 private:
  // Returns the sums of a group's best points for a scale; `block`, if not null, gets the points.
  FitSums Points(size_t g, float scale, PointBlock* block) const {
    const size_t per_group = parts_ / n_groups_;
    const size_t same = scheme_.same_grid != 0 ? scheme_.same_grid / scheme_.grids[0].dims : 1;
    FitSums all;
    for (size_t p = g * per_group; p < (g + 1) * per_group; p += same) {
      FitSums best;
      for (uint32_t i = 0; i < scheme_.grids.size(); ++i) {
        FitSums sums;
        for (size_t j = p; j < p + same; ++j) sums.Add(envelopes_[i][j].Best(scale).sums);
        if (i > 0 && sums.Gain(scale) <= best.Gain(scale)) continue;
        best = sums;
        for (size_t j = p; block != nullptr && j < p + same; ++j) {
          block->point[j] = envelopes_[i][j].Best(scale).point;
          block->grid[j] = i;
        }
      }
      all.Add(best);
    }
    return all;
  }

  float FitGroup(size_t g) const {
    FitSums best;
    for (float scale = plain_[g] / kWidest; scale < plain_[g] * kWidest; scale *= kScaleStep) {
      const FitSums sums = Points(g, scale, nullptr);
      if (sums.Gain() > best.Gain()) best = sums;
    }
    return best.Scale();
  }

  // Chooses steps for a block's scale and keeps them if they are the best so far.
  void Try(float value, float& max_gain, PointBlock& block) {
    uint16_t half;
    const float unit = scheme_.unit * Store(value, half);
    if (unit <= 0) return;
    std::array<int, 16> steps{};
    FitSums all;
    for (size_t g = 0; g < n_groups_; ++g) {
      const int last = scheme_.n_steps - 1;
      steps[g] = ChooseStep(
          Nearest((fits_[g] - unit) / 2, unit, 0, last), 0, last, unit,
          [](int k) { return 2 * k + 1; }, [&](float scale) { return Points(g, scale, nullptr); },
          all);
    }
    if (all.Gain(unit) <= max_gain) return;
    max_gain = all.Gain(unit);
    block.d = half;
    fit_d_ = all.Scale() / scheme_.unit;
    for (size_t g = 0; g < n_groups_; ++g) {
      block.k[g] = static_cast<uint32_t>(steps[g]);
      Points(g, unit * static_cast<float>(2 * steps[g] + 1), &block);
    }
  }

  const PointScheme& scheme_;
  size_t parts_, n_groups_;
  std::array<float, 16> plain_{};  // scales at which the largest weight is the largest value
  std::array<float, 16> fits_{};   // the best scales
  float fit_d_ = 0;                // the best d for the last choice
  std::array<std::array<Envelope, 64>, 2> envelopes_;
};

}  // namespace

PointBlock EncodePoints(const Source& source, const PointScheme& scheme) {
  PointBlock block;
  if (std::fabs(Extreme(source.x, 256)) < kTiny) return block;
  std::array<float, 256> x;
  SplitSigns(source, scheme.signs, x.data(), block.signs);
  Search({x.data(), source.importance}, scheme).Run(block);
  return block;
}

}  // namespace kernels
