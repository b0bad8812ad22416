// Compares FindLargest() with a plain search, also among NaNs and infinities.
#include "kernels/ops/largest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/kernels/each_target.h"

namespace kernels {
namespace {

TEST(FindLargest, FindsWhatAPlainSearchFinds) {
  std::mt19937 random(1);
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<float> special = {NAN, INFINITY, -INFINITY, kMax, -kMax, 0.0f, -0.0f};
  for (const size_t n : {0, 1, 3, 15, 16, 17, 64, 100, 1003}) {
    for (int round = 0; round < 60; ++round) {
      std::vector<float> x(n);
      for (float& v : x) {  // few different ones, so that many are equal
        v = static_cast<float>(random() % 40) - 50;
        if (round % 3 == 1 && random() % 20 == 0) v = special[random() % special.size()];
        if (round % 3 == 2) v = special[random() % 3];
      }
      Largest expected = {n, true};
      for (size_t i = 0; i < n; ++i) {
        if (!std::isfinite(x[i])) {
          expected.all_finite = false;
        } else if (expected.index == n || x[i] > x[expected.index]) {
          expected.index = i;
        }
      }
      ForEachTarget([&] {
        const Largest found = FindLargest(x.data(), n);
        EXPECT_EQ(found.index, expected.index) << n;
        EXPECT_EQ(found.all_finite, expected.all_finite) << n;
      });
    }
  }
}

}  // namespace
}  // namespace kernels
