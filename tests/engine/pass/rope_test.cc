// RoPE angles, compared with the papers' formulas computed by hand.
#include "engine/pass/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace engine {
namespace {

RopeConfig Plain() { return {.n_dims = 4, .base = 10000, .original_context = 512}; }

// The angle of a pair, from its cos and sin, and the magnitude of both.
struct Rotation {
  double angle, magnitude;
};
Rotation RotationOf(const RopeAngles& rope, size_t position, size_t pair) {
  std::vector<float> cos(rope.n_pairs()), sin(rope.n_pairs());
  rope.Fill(position, cos.data(), sin.data());
  return {std::atan2(sin[pair], cos[pair]), std::hypot(cos[pair], sin[pair])};
}

TEST(Rope, PlainFrequencies) {
  const RopeAngles rope(Plain(), nullptr);
  ASSERT_EQ(rope.n_pairs(), 2u);
  EXPECT_NEAR(RotationOf(rope, 3, 0).angle, 3.0, 1e-6);        // 3 * 10000^0
  EXPECT_NEAR(RotationOf(rope, 3, 1).angle, 3.0 / 100, 1e-6);  // 3 * 10000^(-2/4)
  EXPECT_NEAR(RotationOf(rope, 3, 1).magnitude, 1.0, 1e-6);
  EXPECT_NEAR(RotationOf(rope, 0, 1).angle, 0.0, 1e-9);
}

TEST(Rope, DivisorsAndLinearScaling) {
  const std::vector<float> divisors = {1, 8};
  EXPECT_NEAR(RotationOf(RopeAngles(Plain(), divisors.data()), 3, 1).angle, 3.0 / 800, 1e-7);
  RopeConfig linear = Plain();
  linear.scaling = RopeScaling::kLinear;
  linear.factor = 4;
  EXPECT_NEAR(RotationOf(RopeAngles(linear, nullptr), 2, 0).angle, 0.5, 1e-6);
  EXPECT_NEAR(RotationOf(RopeAngles(linear, nullptr), 2, 1).angle, 0.005, 1e-8);
}

// With 32 dimensions, base 10000 and 512 positions, the ramp of YaRN runs from pair floor(1.62) = 1
// (32 turns) to pair ceil(7.64) = 8 (one turn): pair 1 is as trained, pair 8 divided by the factor,
// pair 5 3/7 trained.
TEST(Rope, YarnRamp) {
  RopeConfig yarn = Plain();
  yarn.n_dims = 32;
  yarn.scaling = RopeScaling::kYarn;
  yarn.factor = 4;
  const RopeAngles rope(yarn, nullptr);
  const auto trained = [](double pair) { return std::pow(10000.0, -2 * pair / 32); };
  EXPECT_NEAR(RotationOf(rope, 1, 1).angle, trained(1), 1e-6);
  EXPECT_NEAR(RotationOf(rope, 1, 8).angle, trained(8) / 4, 1e-6);
  EXPECT_NEAR(RotationOf(rope, 1, 5).angle, trained(5) * (3.0 / 7 + 4.0 / 7 / 4), 1e-6);
  EXPECT_NEAR(RotationOf(rope, 1, 0).magnitude, 1 + 0.1 * std::log(4.0), 1e-6);
}

}  // namespace
}  // namespace engine
