// The tests of products with batches (gemm_test.cc, experts_test.cc) with AMX, emulated where the
// CPU has none. The rest of the AMX path is AVX-512 with BF16, which the CPU must have.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/matmul.h"
#include "tests/kernels/amx_emulator.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

TEST(Amx, HasTheBitsOfVnni) {
  constexpr size_t kRows = 40, kCols = 768, kTokens = 29;
  const std::vector<float> input = NormalFloats(kTokens * kCols, 1);
  Team team(1);
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (!UsesInt8(info.type)) continue;
    SCOPED_TRACE(info.name);
    const RandomMatrix weights(info.type, kRows, kCols, 2);
    const auto multiply = [&](const char* target) {
      EXPECT_TRUE(LimitCpu(target));
      Activations x(kTokens, kCols);
      x.Set(input.data(), kTokens, kCols);
      std::vector<float> out(kTokens * kRows, NAN);
      const Product product{weights.view(), out.data(), kRows};
      team.Run([&] { MatMul(team, {&product, 1}, x); });
      return out;
    };
    EXPECT_EQ(multiply("amx"), multiply("avx512vnni"));
  }
}

}  // namespace
}  // namespace kernels

int main(int argc, char** argv) {
  // First of all: what the CPU has is asked once, and naming the tests asks for it.
  kernels::EmulateForTest(kernels::Extension::kAmx);
  testing::InitGoogleTest(&argc, argv);
  if (!kernels::LimitCpu("amx")) {
    std::puts("no AVX-512 with BF16, no tests");
    testing::GTEST_FLAG(filter) = "-*";
  }
  kernels::test::EmulateAmx();
  kernels::only_target = "amx";
  return RUN_ALL_TESTS();
}
