// Numbers as text.
#ifndef PRONK_CLI_OUTPUT_FORMAT_H_
#define PRONK_CLI_OUTPUT_FORMAT_H_

#include <string>

namespace cli {

// printf into a string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::string HumanBytes(double bytes);  // "1.17 GB", "640 KB"

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_FORMAT_H_
