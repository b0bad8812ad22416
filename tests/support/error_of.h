// The message of an exception that code throws, and a check of a text's contents.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "gguf/error.h"

namespace test {

// "" if the code throws nothing.
template <typename Error = gguf::Error, typename Code>
std::string ErrorOf(Code code) {
  try {
    code();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// For EXPECT_TRUE and EXPECT_FALSE; a failure prints the whole text.
inline testing::AssertionResult Has(std::string_view text, std::string_view part) {
  return testing::AssertionResult(text.find(part) != std::string_view::npos)
         << "\"" << part << "\" in:\n"
         << text;
}

}  // namespace test
