// Runs a check with every instruction set that this build and this CPU have.
#ifndef PRONK_TESTS_KERNELS_EACH_TARGET_H_
#define PRONK_TESTS_KERNELS_EACH_TARGET_H_

#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu.h"

namespace kernels {

template <class Check>
void ForEachTarget(Check check) {
  for (const std::string& target : CpuTargets()) {
    SCOPED_TRACE("target " + target);
    ASSERT_TRUE(LimitCpu(target));
    ASSERT_EQ(CpuTarget(), target);
    check();
  }
  LimitCpu("");
}

}  // namespace kernels

#endif  // PRONK_TESTS_KERNELS_EACH_TARGET_H_
