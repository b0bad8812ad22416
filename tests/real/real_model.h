// Finds the published models that tests/real/fetch downloaded.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace test {

// Returns the path of a model in $PRONK_REAL_MODELS, if set, or in ~/.cache/pronk/real. Returns ""
// if the model is absent.
inline std::string RealModel(const std::string& name) {
  const char* const folder = std::getenv("PRONK_REAL_MODELS");
  const char* const home = std::getenv("HOME");
  const std::filesystem::path path =
      folder != nullptr
          ? std::filesystem::path(folder) / name
          : std::filesystem::path(home != nullptr ? home : "") / ".cache/pronk/real" / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

// Declares `path` as a constant in a test, or skips the test if the model is absent.
#define PRONK_REAL_MODEL(path, name)                \
  const std::string path = ::test::RealModel(name); \
  if (path.empty()) GTEST_SKIP() << "'tests/real/fetch " << (name) << "' gets this model"

}  // namespace test
