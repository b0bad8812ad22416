// Helpers that the tests of pronk_c.h share.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "engine/pronk_c.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"

namespace test {

// A pronk_on_text that appends to a std::string.
inline int Append(const char* text, size_t n_bytes, void* user) {
  static_cast<std::string*>(user)->append(text, n_bytes);
  return 0;
}

class LibraryForC : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pronk_model_open(kDefault.c_str(), &model_), PRONK_OK); }
  void TearDown() override { pronk_model_free(model_); }
  pronk_model* model_ = nullptr;
};

}  // namespace test
