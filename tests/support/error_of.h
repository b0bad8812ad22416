// The message of what a piece of code throws, for tests that check messages.
#ifndef PRONK_TESTS_SUPPORT_ERROR_OF_H_
#define PRONK_TESTS_SUPPORT_ERROR_OF_H_

#include <string>

#include "gguf/error.h"

namespace test {

// "" where nothing is thrown.
template <typename Error = gguf::Error, typename Code>
std::string ErrorOf(Code code) {
  try {
    code();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_ERROR_OF_H_
