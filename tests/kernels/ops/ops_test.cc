// The small operations on every instruction set, at every length around the vectors' sizes.
#include "kernels/ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/ops/rounding.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/ops/activation_reference.h"
#include "tests/kernels/random_weights.h"
#include "tests/support/guarded_bytes.h"

namespace kernels {
namespace {

// Vectors have 4 to 16 floats; loops take up to four vectors.
const std::vector<size_t> kLengths = {1,  2,  3,  4,  5,  7,  8,  9,   15,
                                      16, 17, 31, 33, 63, 64, 65, 130, 999};

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  ForEachTarget([] {
    for (const size_t n : kLengths) {
      const std::vector<float> x = NormalFloats(n, 1);
      const std::vector<float> weight = NormalFloats(n, 2);
      std::vector<double> reference(n);
      RmsNormReference(x.data(), weight.data(), 1e-5f, n, reference.data());
      std::vector<float> out(n + 1, kSentinel);
      RmsNorm(x.data(), weight.data(), 1e-5f, n, out.data());
      std::vector<float> in_place = x;
      RmsNorm(in_place.data(), weight.data(), 1e-5f, n, in_place.data());
      for (size_t i = 0; i < n; ++i) {
        const double expected = reference[i];
        // Additions of n / 4 squares in the longest chain, halved by the root, and five operations.
        const double roundings = static_cast<double>(n) / 8 + 5;
        ASSERT_NEAR(out[i], expected, kEps / 2 * roundings * std::abs(expected)) << n;
        ASSERT_EQ(in_place[i], out[i]);
      }
      ASSERT_EQ(out[n], kSentinel);
    }
  });
}

TEST(RmsNorm, TakesNoWeightsForOnes) {
  ForEachTarget([] {
    for (const size_t n : kLengths) {
      const std::vector<float> x = NormalFloats(n, 1), ones(n, 1.0f);
      std::vector<double> reference(n), expected(n);
      RmsNormReference(x.data(), nullptr, 1e-5f, n, reference.data());
      RmsNormReference(x.data(), ones.data(), 1e-5f, n, expected.data());
      EXPECT_EQ(reference, expected);
      std::vector<float> out(n + 1, kSentinel), with_ones = out;
      RmsNorm(x.data(), nullptr, 1e-5f, n, out.data());
      RmsNorm(x.data(), ones.data(), 1e-5f, n, with_ones.data());
      EXPECT_EQ(out, with_ones) << n;
    }
  });
}

// Weights are read where the file has them, and that may be its end.
TEST(RmsNorm, ReadsNothingPastTheEnd) {
  ForEachTarget([] {
    for (const size_t n : kLengths) {
      const std::vector<float> x = NormalFloats(n, 1), weight = NormalFloats(n, 2);
      const test::GuardedBytes last_x(std::as_bytes(std::span(x)));
      const test::GuardedBytes last_weight(std::as_bytes(std::span(weight)));
      std::vector<float> out(n), expected(n);
      RmsNorm(x.data(), weight.data(), 1e-5f, n, expected.data());
      RmsNorm(reinterpret_cast<const float*>(last_x.data()),
              reinterpret_cast<const float*>(last_weight.data()), 1e-5f, n, out.data());
      EXPECT_EQ(out, expected) << n;
    }
  });
}

TEST(LayerNorm, IsTheDefinition) {
  ForEachTarget([] {
    for (const size_t n : kLengths) {
      std::vector<float> x = NormalFloats(n, 1);
      const std::vector<float> weight = NormalFloats(n, 2);
      for (float& number : x) number += 3;
      std::vector<float> out(n + 1, kSentinel);
      std::vector<double> expected(n);
      LayerNormReference(x.data(), weight.data(), 1e-2f, n, expected.data());
      LayerNorm(x.data(), weight.data(), 1e-2f, n, out.data());
      // A mean of n numbers around 3, rounded, and differences that are divided by 0.1 or more.
      const double of_x = 60 * kEps * (4 + static_cast<double>(n) / 16);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(out[i], expected[i], of_x * std::abs(weight[i]) + 1e-30) << n;
      }
      ASSERT_EQ(out[n], kSentinel);
      LayerNorm(x.data(), weight.data(), 1e-2f, n, x.data());
      EXPECT_TRUE(std::equal(x.begin(), x.end(), out.begin()));
    }
  });
}

TEST(ApplyXielu, IsTheDefinition) {
  const Xielu xielu = {0.9f, 1.3f, 0.5f, -1e-6f};
  ForEachTarget([&] {
    for (const size_t n : kLengths) {
      std::vector<float> x = NormalFloats(n, 1);
      for (size_t i = 0; i < n; ++i) x[i] *= i % 3 == 0 ? 30.0f : i % 3 == 1 ? 1.0f : 1e-3f;
      std::vector<float> out = x;
      out.push_back(kSentinel);
      ApplyXielu(xielu, out.data(), n);
      for (size_t i = 0; i < n; ++i) {
        const double max_error = (x[i] * x[i] + std::abs(x[i])) * 8 * kEps;
        ASSERT_NEAR(out[i], XieluReference(xielu, x[i]), max_error) << x[i];
      }
      ASSERT_EQ(out[n], kSentinel);
    }
    float x[] = {0.0f, NAN, -1e30f};
    ApplyXielu(xielu, x, 3);
    EXPECT_NEAR(x[0], 0.0f, 2e-6f);
    EXPECT_TRUE(std::isnan(x[1]));
    EXPECT_GT(x[2], 0.0f);
  });
}

TEST(Rope, TurnsPairs) {
  constexpr size_t kHeads = 3;
  ForEachTarget([] {
    for (const RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalves}) {
      for (const size_t n_rot : {2, 4, 6, 10, 16, 18, 32, 34, 64, 66, 128}) {
        const size_t head_dim = n_rot + 5;
        const std::vector<float> original = NormalFloats(kHeads * head_dim, 1);
        std::vector<float> cos(n_rot / 2), sin(n_rot / 2);
        for (size_t i = 0; i < n_rot / 2; ++i) {
          cos[i] = std::cos(static_cast<float>(i) + 0.3f);
          sin[i] = std::sin(static_cast<float>(i) + 0.3f);
        }
        std::vector<float> heads = original;
        Rope(heads.data(), kHeads, head_dim, n_rot, cos.data(), sin.data(), pairs);
        for (size_t h = 0; h < kHeads; ++h) {
          std::vector<double> expected(head_dim);
          RopeReference(original.data() + h * head_dim, head_dim, n_rot, cos.data(), sin.data(),
                        pairs, expected.data());
          for (size_t i = 0; i < n_rot; ++i) {
            const size_t other = pairs == RopePairs::kAdjacent ? i ^ 1 : (i + n_rot / 2) % n_rot;
            const float* const head = original.data() + h * head_dim;
            const double tolerance = 2 * kEps * (std::abs(head[i]) + std::abs(head[other]));
            ASSERT_NEAR(heads[h * head_dim + i], expected[i], tolerance);
          }
          for (size_t i = n_rot; i < head_dim; ++i) {
            ASSERT_EQ(heads[h * head_dim + i], original[h * head_dim + i]);
          }
        }
      }
    }
  });
}

TEST(GatedActivation, IsTheDefinition) {
  for (const Activation activation : kActivations) {
    ForEachTarget([&] {
      for (const size_t n : kLengths) {
        std::vector<float> gate = NormalFloats(n, 1), up = NormalFloats(n, 2);
        for (size_t i = 0; i < n; ++i) gate[i] *= i % 3 == 0 ? 60.0f : 2.0f;
        for (size_t i = 0; i < n; ++i) up[i] *= i % 4 == 0 ? 10.0f : 1.0f;
        std::vector<float> out = gate;
        out.push_back(kSentinel);
        GatedActivation(activation, out.data(), up.data(), n);
        for (size_t i = 0; i < n; ++i) {
          const GatedExpected e = ExpectGated(activation, gate[i], up[i]);
          ASSERT_NEAR(out[i], e.value, e.tolerance) << gate[i] << ", " << up[i];
        }
        ASSERT_EQ(out[n], kSentinel);
      }
    });
  }
}

TEST(GatedActivation, NeedsNoUpWithoutAGate) {
  ForEachTarget([] {
    for (const size_t n : kLengths) {
      const std::vector<float> x = NormalFloats(n, 1);
      std::vector<float> out = x;
      out.push_back(kSentinel);
      GatedActivation(Activation::kReluSquared, out.data(), nullptr, n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], x[i] < 0 ? 0.0f : x[i] * x[i]);
      ASSERT_EQ(out[n], kSentinel);
      std::copy(x.begin(), x.end(), out.begin());
      GatedActivation(Activation::kGeluAlone, out.data(), nullptr, n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(out[i], GatedReference(Activation::kGelu, x[i], 1), 2e-6);
      }
      ASSERT_EQ(out[n], kSentinel);
    }
  });
}

TEST(GatedActivation, KeepsItsLimitsAndNaN) {
  static constexpr float kInf = std::numeric_limits<float>::infinity();
  ForEachTarget([] {
    for (const Activation activation : kActivations) {
      float gate[] = {0.0f, NAN, 1.0f, 1e30f, -1e30f};
      const float up[] = {1.0f, 1.0f, NAN, 1.0f, 1.0f};
      GatedActivation(activation, gate, up, 5);
      EXPECT_NEAR(gate[0], GatedReference(activation, 0, 1), 1e-6);
      EXPECT_TRUE(std::isnan(gate[1]));
      EXPECT_EQ(std::isnan(gate[2]), IsGated(activation));
      if (activation == Activation::kReluSquared || activation == Activation::kGatedReluSquared) {
        EXPECT_EQ(gate[3], kInf);
      } else {
        const GatedExpected e = ExpectGated(activation, 1e30, 1);
        EXPECT_NEAR(gate[3], e.value, e.tolerance);
      }
      EXPECT_NEAR(gate[4], 0.0f, 1e-7f);
    }
    float gate[] = {7.0f, 8.0f, kInf, 7.0f, 7.0f};
    const float up[] = {7.0f, 9.0f, kInf, -7.0f, -kInf};
    GatedActivation(Activation::kSwigluOai, gate, up, 5);
    EXPECT_EQ(gate[1], gate[0]);
    EXPECT_EQ(gate[2], gate[0]);
    EXPECT_EQ(gate[4], gate[3]);
    float limited[] = {3.0f, 3.0f, -2.0f, kInf};
    const float ups[] = {1.0f, 9.0f, -9.0f, kInf};
    const std::vector<float> gates(limited, limited + 4);
    GatedActivation(Activation::kLimitedSilu, limited, ups, 4, 1.5f);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(limited[i], GatedReference(Activation::kLimitedSilu, gates[i], ups[i], 1.5),
                  1e-6);
    }
    EXPECT_EQ(limited[3], 2.25f);
  });
}

TEST(AddScaled, RoundsOnce) {
  ForEachTarget([] {
    for (const size_t n : kLengths) {
      const std::vector<float> x = NormalFloats(n, 1), y = NormalFloats(n, 2);
      std::vector<float> out = x, scaled = x;
      out.push_back(kSentinel);
      scaled.push_back(kSentinel);
      AddScaled(out.data(), 0.3f, y.data(), n);
      Scale(scaled.data(), 0.3f, n);
      for (size_t i = 0; i < n; ++i) {
        const double expected = double{x[i]} + double{0.3f} * double{y[i]};
        const double magnitude = std::abs(double{x[i]}) + std::abs(0.3 * double{y[i]});
        ASSERT_NEAR(out[i], expected, kEps * magnitude);
        ASSERT_EQ(scaled[i], x[i] * 0.3f);
      }
      ASSERT_EQ(out[n], kSentinel);
      ASSERT_EQ(scaled[n], kSentinel);
    }
  });
}

TEST(Add, Adds) {
  ForEachTarget([] {
    for (const size_t n : kLengths) {
      const std::vector<float> x = NormalFloats(n, 1), y = NormalFloats(n, 2);
      std::vector<float> out = x;
      out.push_back(kSentinel);
      Add(out.data(), y.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], x[i] + y[i]);
      ASSERT_EQ(out[n], kSentinel);
    }
  });
}

// Numbers, zeros, numbers that are too small, and values that are not numbers.
TEST(RoundActivations, RoundsByTheLargestOfEach32) {
  ForEachTarget([] {
    std::vector<float> x = NormalFloats(160, 1), scales(5);
    for (size_t i = 32; i < 96; ++i) x[i] *= i < 64 ? 0 : 1e-37f;
    x[100] = NAN, x[140] = INFINITY;
    std::vector<int8_t> q(160);
    std::vector<int16_t> sums(10);
    RoundActivations(x.data(), 160, q.data(), scales.data(), sums.data());
    for (size_t i = 0; i < 96; ++i) {
      float max = 0;
      for (size_t k = 0; k < 32; ++k) max = std::max(max, std::abs(x[i / 32 * 32 + k]));
      ASSERT_EQ(scales[i / 32], max / 127);
      ASSERT_EQ(q[i], i < 32 ? std::nearbyint(x[i] * (127 / max)) : 0);
      sums[i / 16] = static_cast<int16_t>(sums[i / 16] - q[i]);
    }
    EXPECT_EQ(std::count(sums.begin(), sums.begin() + 6, 0), 6);
    EXPECT_TRUE(std::isnan(scales[3]) && std::isnan(scales[4]));
  });
}

}  // namespace
}  // namespace kernels
