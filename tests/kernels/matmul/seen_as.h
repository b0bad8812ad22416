// The input of a product as the kernels read it, rounded to the form of the batch.
#ifndef PRONK_TESTS_KERNELS_MATMUL_SEEN_AS_H_
#define PRONK_TESTS_KERNELS_MATMUL_SEEN_AS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/half.h"
#include "kernels/matmul/matmul.h"
#include "kernels/ops/quantize.h"

namespace kernels {

struct Seen {
  std::vector<float> x;
  BatchForm form;
  // The largest step of the rounding. An input that differs in the last bits may be off by one.
  double step = 0;
};

inline Seen SeenAs(BatchForm form, std::vector<float> input) {
  Seen seen{std::move(input), form};
  const size_t n = seen.x.size();
  if (form == BatchForm::kInt8) {
    std::vector<int8_t> q(n);
    std::vector<float> scales(n / 32);
    std::vector<int16_t> sums(n / 16);
    QuantizeActivations(seen.x.data(), n, q.data(), scales.data(), sums.data());
    for (size_t i = 0; i < n; ++i) {
      seen.x[i] = scales[i / 32] * static_cast<float>(q[i]);
      seen.step = std::max(seen.step, double{scales[i / 32]});
    }
  }
  if (form == BatchForm::kBf16) {
    for (float& v : seen.x) {
      seen.step = std::max(seen.step, std::abs(double{v}) / 128);
      v = Bf16ToF32(F32ToBf16(v));
    }
  }
  return seen;
}

}  // namespace kernels

#endif  // PRONK_TESTS_KERNELS_MATMUL_SEEN_AS_H_
