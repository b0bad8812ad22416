// printf into a string.
#ifndef PRONK_ENGINE_CLI_FORMAT_H_
#define PRONK_ENGINE_CLI_FORMAT_H_

#include <string>

namespace cli {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_FORMAT_H_
