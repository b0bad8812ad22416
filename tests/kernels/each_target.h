// Runs a check with every instruction set that this build and this CPU have, or with one set.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/threads/cpu.h"

namespace kernels {

// The only target to test; empty: all.
inline std::string only_target;

template <class Check>
void WithTarget(const std::string& target, Check check) {
  SCOPED_TRACE("target " + target);
  ASSERT_TRUE(LimitCpu(target));
  ASSERT_EQ(CpuTarget(), target);
  check();
  LimitCpu("");
}

template <class Check>
void ForEachTarget(Check check) {
  for (const std::string& target : CpuTargets()) {
    if (only_target.empty() || target == only_target) WithTarget(target, check);
  }
}

// Runs the check with target number i, for tests of many cases, which take the targets in turn.
template <class Check>
void ForATarget(size_t i, Check check) {
  const std::vector<std::string> targets = CpuTargets();
  WithTarget(only_target.empty() ? targets[i % targets.size()] : only_target, check);
}

}  // namespace kernels
