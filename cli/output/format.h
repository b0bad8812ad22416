// printf into a string.
#ifndef PRONK_CLI_OUTPUT_FORMAT_H_
#define PRONK_CLI_OUTPUT_FORMAT_H_

#include <string>

namespace cli {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_FORMAT_H_
