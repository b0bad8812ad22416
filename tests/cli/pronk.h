// Helpers of the program's tests: they run it, and check its errors.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace test {

// Two layers, 320 tokens, random weights: fast, and its text is noise.
inline const std::string kModel = DataPath("tiny/llama.gguf");

// Chats on a terminal save themselves: here, not among the user's own chats.
inline const TempDir kState;
inline const bool kStateIsSet = setenv("XDG_STATE_HOME", kState.Path("").c_str(), 1) == 0;

using Args = std::vector<std::string>;
inline Args With(Args args, const Args& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

inline Finished Pronk(Args args, const std::string& input = "",
                      const std::vector<std::string>& environment = {}) {
  args.insert(args.begin(), test::Program());
  return RunProgram(args, input, environment);
}

// A line of sh in which $PRONK is the program and $MODEL the tiny model.
inline Finished Shell(const std::string& line, std::vector<std::string> environment = {}) {
  environment.push_back("PRONK=" + test::Program());
  environment.push_back("MODEL=" + kModel);
  return RunProgram({"/bin/sh", "-c", line}, "", environment);
}

// A run that must succeed.
inline Finished Done(Finished run) {
  EXPECT_EQ(run.status, 0) << run.err;
  return run;
}

// How often a text contains this word.
inline size_t Count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
  return n;
}

// Expects one line on stderr that contains this, nothing on stdout.
inline void ExpectError(const Finished& run, int status, const std::string& says) {
  EXPECT_EQ(run.status, status);
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(run.err.starts_with("pronk: ")) << run.err;
  EXPECT_TRUE(Has(run.err, says));
  if (status == 1) {
    EXPECT_EQ(Count(run.err, "\n"), 1u) << run.err;
  }
}

// Expects `before` on stderr and then a line with the written file's path and size; nothing on
// stdout.
inline void ExpectWritten(const Finished& run, const std::string& path,
                          const std::string& before = "") {
  EXPECT_EQ(run.out, "");
  const std::string expected = before + "wrote " + path + ", ";
  EXPECT_EQ(run.err.substr(0, expected.size()), expected);
  EXPECT_EQ(run.err.find('\n', before.size()), run.err.size() - 1) << run.err;
}

}  // namespace test
