// Runs a program as a user would, and keeps its output and its use of time and memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace test {

struct Finished {
  int status;  // exit status; 128 + signal where it was killed
  std::string out;
  std::string err;
  // Processor time, including its children's; and the most memory, in bytes, that one of these
  // processes had at a time, with pages of mapped files. (For a shell: of the programs it started.)
  // The system counts at least the memory that this test program has when it starts the process.
  double seconds = 0;
  size_t peak_bytes = 0;
};

// args[0] is the program. `input` is its stdin. The environment is this process's without
// PRONK_MODEL and with these changes, each "NAME=VALUE".
Finished RunProgram(const std::vector<std::string>& args, const std::string& input = "",
                    const std::vector<std::string>& environment = {});

}  // namespace test
