// Runs a program as a user would and keeps what it says, and what it took as the system saw it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace test {

struct Finished {
  int status;  // exit status; 128 + signal where it was killed
  std::string out;
  std::string err;
  // Of processor time, with its children's; and the most memory that one of them had at a time, in
  // bytes, with the pages of files that are mapped. (Of a shell, what it started.) No less than
  // this program has itself when it starts the other: the system counts so.
  double seconds = 0;
  size_t peak_bytes = 0;
};

// args[0] is the program. `input` is its stdin. The environment is ours with PRONK_MODEL unset and
// these changes, each "NAME=VALUE".
Finished RunProgram(const std::vector<std::string>& args, const std::string& input = "",
                    const std::vector<std::string>& environment = {});

}  // namespace test
