// Helpers that the tests of pronk.h share.
#pragma once

#include <string>

#include "engine/pronk.h"
#include "tests/support/data.h"

namespace test {

inline const std::string kTiny = DataPath("tiny/llama.gguf");

inline pronk::Options Greedy() { return {.threads = 1, .sampling = {.temperature = 0}}; }

inline pronk::Limits AtMost(int max_tokens) { return {.max_tokens = max_tokens}; }

}  // namespace test
