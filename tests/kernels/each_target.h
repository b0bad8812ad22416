// Runs a check with every instruction set that this build and this CPU have, or with one.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/threads/cpu.h"

namespace kernels {

// The only target to test; empty: all.
inline std::string only_target;

template <class Check>
void ForEachTarget(Check check) {
  for (const std::string& target : CpuTargets()) {
    if (!only_target.empty() && target != only_target) continue;
    SCOPED_TRACE("target " + target);
    ASSERT_TRUE(LimitCpu(target));
    ASSERT_EQ(CpuTarget(), target);
    check();
  }
  LimitCpu("");
}

}  // namespace kernels
