// The nearest points of a grid, for every scale at once: the search of the IQ encoders. Internal to
// kernels/.
//
// If weights x ~ s * v, where v is a point of the grid, the squared error is sum(xx) - 2 s sum(xv)
// + s s sum(vv). The sums that depend on v do not depend on s, so they are computed once for each
// point. The best point for a scale has the largest sum(xv) - s/2 sum(vv): over s each point is a
// line, and the best points are the upper envelope of all lines. The envelope has few corners,
// since each weight goes up its few levels as s goes down. With the corners any number of scales
// can be compared exactly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/encode/block_encoders.h"

namespace kernels {

// Points of `dims` values each, by coordinate: values[dim * n + point].
struct Grid {
  const float* values;
  size_t n;     // a multiple of 16, at most 2048
  size_t dims;  // 4 or 8
};
constexpr size_t kMaxPoints = 2048;
constexpr size_t kMaxDims = 8;

// The points that are best for scales in a range, in no order.
class Envelope {
 public:
  struct Choice {
    FitSums sums;
    uint32_t point;
  };

  void Clear() { n_ = 0; }
  // Returns false if the envelope is full; then the next best point is used.
  bool Add(const Choice& choice) {
    if (n_ == kMax) return false;
    choices_[n_++] = choice;
    return true;
  }
  // The best point for a scale.
  const Choice& Best(float scale) const {
    size_t best = 0;
    for (size_t i = 1; i < n_; ++i) {
      if (choices_[i].sums.Gain(scale) > choices_[best].sums.Gain(scale)) best = i;
    }
    return choices_[best];
  }

 private:
  static constexpr size_t kMax = 24;
  size_t n_ = 0;
  std::array<Choice, kMax> choices_;
};

// Finds envelopes[p] for the p-th `dims` weights, for scales from low[p] to high[p].
void FindEnvelopes(const Grid& grid, const Source& source, size_t n_parts, const float* low,
                   const float* high, Envelope* envelopes);

}  // namespace kernels
