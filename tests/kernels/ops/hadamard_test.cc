#include "kernels/ops/hadamard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

// Each number is a sum of log2(n) steps, scaled once: a rounding of the sum's terms in each.
TEST(Hadamard, IsTheDefinition) {
  ForEachTarget([] {
    for (size_t n = 1; n <= 2048; n *= 2) {
      const std::vector<float> x = NormalFloats(n, 1);
      double squares = 0;
      for (const float v : x) squares += double{v} * double{v};
      std::vector<float> out = x;
      out.push_back(kSentinel);
      Hadamard(out.data(), n);
      const double tolerance = kEps * (std::log2(static_cast<double>(n)) + 2) * std::sqrt(squares);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(out[i], HadamardReference(x.data(), n, i), tolerance) << n;
      }
      ASSERT_EQ(out[n], kSentinel);
      Hadamard(out.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], x[i], 2 * tolerance) << n;
    }
  });
}

}  // namespace
}  // namespace kernels
