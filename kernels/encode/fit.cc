// Fits scales, offsets and codes to weights, see block_encoders.h.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/encode/block_encoders.h"
#include "kernels/half.h"

namespace kernels {
namespace {

// Scales to try: they put the largest weight up to this many tenths of a level beyond or before the
// last level. Twice as many scales take twice as long and make the error 1% smaller.
constexpr int kTries = 9;
// Scales to try for non-uniform codebooks: they put the largest weight at these shares of the last
// value.
constexpr float kFirstShare = 0.7f, kLastShare = 1.25f, kShareStep = 0.05f;

// q of x on a line, 0 to levels.
float Level(float x, Line line, int levels) {
  return std::clamp(std::nearbyint((x - line.offset) / line.scale), 0.0f,
                    static_cast<float>(levels));
}

float SquaredError(const Source& source, size_t n, int levels, Line line) {
  float sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const float q = Level(source.x[i], line, levels);
    const float error = source.x[i] - (line.scale * q + line.offset);
    sum += source.importance[i] * error * error;
  }
  return sum;
}

// The line through (q[i], x[i]) with the smallest squared error, q being x rounded by `guess`.
Line Regression(const Source& source, size_t n, int levels, Line guess, float max_offset) {
  float count = 0, sum_q = 0, sum_qq = 0, sum_x = 0, sum_xq = 0;
  for (size_t i = 0; i < n; ++i) {
    const float w = source.importance[i], x = source.x[i];
    const float q = Level(x, guess, levels);
    count += w;
    sum_q += w * q;
    sum_qq += w * q * q;
    sum_x += w * x;
    sum_xq += w * x * q;
  }
  const float determinant = count * sum_qq - sum_q * sum_q;
  if (determinant <= 0) return guess;  // all on one level
  Line line;
  line.scale = (count * sum_xq - sum_x * sum_q) / determinant;
  line.offset = (sum_x - line.scale * sum_q) / count;
  if (line.offset > max_offset) line = {(sum_xq - max_offset * sum_q) / sum_qq, max_offset};
  return line.scale > 0 ? line : guess;
}

}  // namespace

float Extreme(const float* x, size_t n) {
  return *std::max_element(x, x + n, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

int Nearest(float x, float d, int low, int high) {
  const float level = d == 0 ? 0.0f : x / d;
  return static_cast<int>(
      std::nearbyint(std::clamp(level, static_cast<float>(low), static_cast<float>(high))));
}

float Store(float value, uint16_t& half) {
  half = F32ToF16(std::clamp(value, -65504.0f, 65504.0f));
  return F16ToF32(half);
}

float FitScale(const Source& source, size_t n, int low, int high) {
  const float extreme = Extreme(source.x, n);
  if (std::fabs(extreme) < kTiny) return 0;
  FitSums best;
  for (int i = -kTries; i <= kTries; ++i) {
    const float inverse = (static_cast<float>(low) + 0.1f * static_cast<float>(i)) / extreme;
    const FitSums sums = RoundedSums(source, n, low, high, inverse);
    if (sums.Gain() > best.Gain()) best = sums;
  }
  return best.Scale();
}

Line FitLine(const Source& source, size_t n, int levels, float max_offset) {
  const auto [low, high] = std::minmax_element(source.x, source.x + n);
  const float offset = std::min(*low, max_offset), range = *high - offset;
  Line best{range / static_cast<float>(levels), offset};
  if (range < kTiny) return best;
  float min_error = SquaredError(source, n, levels, best);
  for (int i = -kTries; i <= kTries; ++i) {
    const float scale = range / (static_cast<float>(levels) + 0.1f * static_cast<float>(i));
    const Line line = Regression(source, n, levels, {scale, offset}, max_offset);
    const float error = SquaredError(source, n, levels, line);
    if (error >= min_error) continue;
    min_error = error;
    best = line;
  }
  return best;
}

float Refit(const FitSums& sums, float d, uint16_t& half) {
  uint16_t fit_half;
  const float fit = Store(sums.Scale(), fit_half);
  if (sums.Gain(fit) <= sums.Gain(d)) return d;
  half = fit_half;
  return fit;
}

FitSums RoundedSums(const Source& source, size_t n, int low, int high, float inverse) {
  FitSums sums;
  for (size_t i = 0; i < n; ++i) {
    const float q = std::clamp(std::nearbyint(source.x[i] * inverse), static_cast<float>(low),
                               static_cast<float>(high));
    sums.Add({source.importance[i] * source.x[i] * q, source.importance[i] * q * q});
  }
  return sums;
}

FitSums RoundedSums(const Source& source, size_t n, const Ladder& ladder, float d) {
  FitSums sums;
  const float inverse = d == 0 ? 0 : 1 / d;
  for (size_t i = 0; i < n; ++i) {
    const float value = ladder.value(ladder.Index(source.x[i] * inverse));
    sums.Add({source.importance[i] * source.x[i] * value, source.importance[i] * value * value});
  }
  return sums;
}

float FitLadder(const Source& source, size_t n, const Ladder& ladder) {
  const float extreme = Extreme(source.x, n);
  if (std::fabs(extreme) < kTiny) return 0;
  FitSums best;
  for (const float end : {ladder.lowest(), ladder.highest()}) {
    for (float share = kFirstShare; share < kLastShare; share += kShareStep) {
      const FitSums sums = RoundedSums(source, n, ladder, extreme / (share * end));
      if (sums.Gain() > best.Gain()) best = sums;
    }
  }
  return best.Scale();
}

}  // namespace kernels
