// The search of grid.h. The sums, and each search among points, are vectorized over points.
#include "kernels/encode/grid.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/encode/grid.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// The sums of all points of a grid, for the weights of one part.
struct PointSums {
  alignas(64) float xv[kMaxPoints];
  alignas(64) float vv[kMaxPoints];

  Envelope::Choice at(uint32_t point) const { return {{xv[point], vv[point]}, point}; }
};

void SumPoints(const Grid& grid, const Source& source, PointSums& sums) {
  const D d;
  V w[kMaxDims], wx[kMaxDims];
  for (size_t i = 0; i < grid.dims; ++i) {
    w[i] = hn::Set(d, source.importance[i]);
    wx[i] = hn::Set(d, source.importance[i] * source.x[i]);
  }
  for (size_t p = 0; p < grid.n; p += kLanes) {
    V xv = hn::Zero(d), vv = hn::Zero(d);
    for (size_t i = 0; i < grid.dims; ++i) {
      const V v = hn::LoadU(d, grid.values + i * grid.n + p);
      xv = hn::MulAdd(wx[i], v, xv);
      vv = hn::MulAdd(hn::Mul(w[i], v), v, vv);
    }
    hn::Store(xv, d, sums.xv + p);
    hn::Store(vv, d, sums.vv + p);
  }
}

// The point with the largest xv - scale / 2 * vv; of equal points, the one in the lowest lane.
Envelope::Choice Highest(const PointSums& sums, size_t n, float scale) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const V slope = hn::Set(d, -0.5f * scale);
  V highest = hn::MulAdd(slope, hn::Load(d, sums.vv), hn::Load(d, sums.xv));
  auto point = hn::Iota(du, 0), best = point;
  for (size_t p = kLanes; p < n; p += kLanes) {
    point = hn::Add(point, hn::Set(du, static_cast<uint32_t>(kLanes)));
    const V height = hn::MulAdd(slope, hn::Load(d, sums.vv + p), hn::Load(d, sums.xv + p));
    const auto higher = hn::Gt(height, highest);
    highest = hn::IfThenElse(higher, height, highest);
    best = hn::IfThenElse(hn::RebindMask(du, higher), point, best);
  }
  alignas(64) float heights[kLanes];
  alignas(64) uint32_t points[kLanes];
  hn::Store(highest, d, heights);
  hn::Store(best, du, points);
  size_t lane = 0;
  for (size_t i = 1; i < kLanes; ++i) {
    if (heights[i] > heights[lane]) lane = i;
  }
  return sums.at(points[lane]);
}

// Adds the points that are best for some scale between the best scales of a and b.
void AddBetween(const PointSums& sums, size_t n, const Envelope::Choice& a,
                const Envelope::Choice& b, Envelope& envelope) {
  const float rise = b.sums.xv - a.sums.xv, run = b.sums.vv - a.sums.vv;
  if (run == 0) return;
  const float scale = 2 * rise / run;  // at this scale a and b are equally good
  const Envelope::Choice c = Highest(sums, n, scale);
  const float height = a.sums.xv - 0.5f * scale * a.sums.vv;
  // The margin exceeds rounding errors, so that the recursion ends.
  const bool is_higher = c.sums.xv - 0.5f * scale * c.sums.vv > height + 1e-5f * std::fabs(height);
  if (c.point == a.point || c.point == b.point || !is_higher || !envelope.Add(c)) return;
  AddBetween(sums, n, a, c, envelope);
  AddBetween(sums, n, c, b, envelope);
}

void FindAll(const Grid& grid, const Source& source, size_t n_parts, const float* low,
             const float* high, Envelope* envelopes) {
  PointSums sums;
  for (size_t p = 0; p < n_parts; ++p) {
    SumPoints(grid, source.from(p * grid.dims), sums);
    Envelope& envelope = envelopes[p];
    envelope.Clear();
    const Envelope::Choice a = Highest(sums, grid.n, low[p]), b = Highest(sums, grid.n, high[p]);
    envelope.Add(a);
    if (a.point == b.point) continue;
    envelope.Add(b);
    AddBetween(sums, grid.n, a, b, envelope);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(FindAll);

void FindEnvelopes(const Grid& grid, const Source& source, size_t n_parts, const float* low,
                   const float* high, Envelope* envelopes) {
  HWY_DYNAMIC_DISPATCH(FindAll)(grid, source, n_parts, low, high, envelopes);
}

}  // namespace kernels
#endif  // HWY_ONCE
