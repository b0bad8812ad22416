// The instruction sets of the CPU. A caller that knows them (.ci/run, for emulated CPUs) gives
// their names in PRONK_EXPECTED_TARGETS.
#include "kernels/threads/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace kernels {
namespace {

TEST(Cpu, HasTheTargetsThatTheCallerExpects) {
  const char* const expected = std::getenv("PRONK_EXPECTED_TARGETS");
  if (expected == nullptr) GTEST_SKIP() << "PRONK_EXPECTED_TARGETS is not set";
  std::string targets;
  for (const std::string& target : CpuTargets()) targets += (targets.empty() ? "" : " ") + target;
  EXPECT_EQ(targets, expected);
}

// Each target includes the lower targets.
TEST(Cpu, TakesTheBestTargetUnlessLimited) {
  const std::vector<std::string> targets = CpuTargets();
  EXPECT_EQ(CpuTarget(), targets.back());
  ASSERT_TRUE(LimitCpu(targets.front()));
  EXPECT_EQ(CpuTarget(), targets.front());
  EXPECT_FALSE(CpuUses(Extension::kDotProd) || CpuUses(Extension::kAvxVnni));
  LimitCpu("");
  EXPECT_EQ(CpuTarget(), targets.back());
  EXPECT_FALSE(LimitCpu("nothing"));
}

}  // namespace
}  // namespace kernels
