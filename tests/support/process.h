// Runs a program as a user would and keeps what it says.
#ifndef PRONK_TESTS_SUPPORT_PROCESS_H_
#define PRONK_TESTS_SUPPORT_PROCESS_H_

#include <string>
#include <vector>

namespace test {

struct Finished {
  int status;  // exit status; 128 + signal where it was killed
  std::string out;
  std::string err;
};

// args[0] is the program. `input` is its stdin. The environment is ours with PRONK_MODEL unset and
// these changes, each "NAME=VALUE".
Finished RunProgram(const std::vector<std::string>& args, const std::string& input = "",
                    const std::vector<std::string>& environment = {});

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_PROCESS_H_
