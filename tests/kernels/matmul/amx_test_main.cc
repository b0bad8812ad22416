// The tests of products with batches (gemm_test.cc, experts_test.cc) with AMX, emulated if the CPU
// lacks it. The rest of the AMX path is AVX-512 with BF16, which the CPU must have.
#include <gtest/gtest.h>

#include <cstdio>

#include "kernels/threads/cpu.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/matmul/amx_emulator.h"

int main(int argc, char** argv) {
  // Before all else: the CPU is detected once, when the tests get their names.
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
