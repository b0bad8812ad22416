// Published models, where tests/real/fetch put them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace test {

// The path of a model in $PRONK_REAL_MODELS, else in ~/.cache/pronk/real; "" if it is not there.
inline std::string RealModel(const std::string& name) {
  const char* const folder = std::getenv("PRONK_REAL_MODELS");
  const char* const home = std::getenv("HOME");
  const std::filesystem::path path =
      folder != nullptr
          ? std::filesystem::path(folder) / name
          : std::filesystem::path(home != nullptr ? home : "") / ".cache/pronk/real" / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

// In a test: the path as a constant, or the test is skipped.
#define PRONK_REAL_MODEL(path, name)                \
  const std::string path = ::test::RealModel(name); \
  if (path.empty()) GTEST_SKIP() << "'tests/real/fetch " << (name) << "' gets this model"

}  // namespace test
