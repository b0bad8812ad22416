// What the tests of pronk.h share.
#ifndef PRONK_TESTS_ENGINE_LIBRARY_H_
#define PRONK_TESTS_ENGINE_LIBRARY_H_

#include <string>

#include "engine/pronk.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"

namespace test {

inline const std::string kTiny = DataPath("tiny/llama.gguf");
inline const std::string kDefault = SourceDir() + "/models/default.gguf";

inline pronk::Options Greedy() {
  pronk::Options options;
  options.sampling.temperature = 0;
  options.threads = 1;
  return options;
}

inline pronk::Limits AtMost(int max_tokens) {
  pronk::Limits limits;
  limits.max_tokens = max_tokens;
  return limits;
}

}  // namespace test

#endif  // PRONK_TESTS_ENGINE_LIBRARY_H_
