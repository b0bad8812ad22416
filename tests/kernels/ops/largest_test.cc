// Compares FindLargest() and FindAtLeast() with plain searches, also among NaNs and infinities.
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
      for (float& v : x) {  // few different numbers, so that many are equal
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

TEST(FindAtLeast, FindsWhatAPlainSearchFinds) {
  std::mt19937 random(2);
  for (const size_t n : {0, 1, 15, 16, 63, 64, 65, 128, 1003}) {
    for (const int one_of : {1, 3, 100}) {  // how many of the numbers are large
      std::vector<float> x(n);
      for (float& v : x) {
        v = random() % static_cast<unsigned>(one_of) == 0 ? 2.5f + static_cast<float>(random() % 2)
                                                          : static_cast<float>(random() % 3) - 1;
        if (random() % 30 == 0) v = random() % 2 == 0 ? NAN : INFINITY;
      }
      std::vector<int32_t> expected;
      for (size_t i = 0; i < n; ++i) {
        if (x[i] >= 2.5f) expected.push_back(static_cast<int32_t>(i));
      }
      ForEachTarget([&] {
        std::vector<int32_t> found(n);  // ASan detects writes beyond the end
        found.resize(FindAtLeast(x.data(), n, 2.5f, found.data()));
        EXPECT_EQ(found, expected) << n;
      });
    }
  }
}

}  // namespace
}  // namespace kernels
