// Helpers of pronk bench's tests: a short run, its schema, and a result.
#pragma once

#include "cli/bench/bench.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"

namespace test {

// Runs one test that takes no time, with further flags.
inline Finished Bench(const Args& more) {
  return Pronk(With({"bench", "-m", kModel, "-p", "4", "-n", "0", "-r", "2"}, more));
}

inline Json BenchSchema() {
  return Json::parse(ReadText(SourceDir() + "/tests/cli/bench/bench.schema.json"));
}

// Ten tokens generated three times, near the limit.
inline cli::BenchResult Measured() {
  cli::BenchResult result = {.test = {.n_gen = 10},
                             .cost = {.weights = 1e9},
                             .samples = {{10.0 / 9, {11.5e9}}, {1, {11e9}}, {10.0 / 8, {10e9}}}};
  result.conditions.clock_before = result.conditions.clock_after = 3;
  return result;
}

}  // namespace test
