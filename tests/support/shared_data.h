// The folder with larger golden data that may lie beside the checkout (../shared). Tests read it
// where it exists, and tests/data always.
#ifndef PRONK_TESTS_SUPPORT_SHARED_DATA_H_
#define PRONK_TESTS_SUPPORT_SHARED_DATA_H_

#include <cstdlib>
#include <filesystem>

namespace test {

// Committed data: tests/data/NAME.
inline std::filesystem::path DataPath(const std::filesystem::path& name) {
  return std::filesystem::path(PRONK_SOURCE_DIR) / "tests" / "data" / name;
}

// A file or folder in ../shared, or in the folder that the environment variable PRONK_SHARED names.
// It may not exist.
inline std::filesystem::path SharedPath(const std::filesystem::path& name) {
  const char* const folder = std::getenv("PRONK_SHARED");
  if (folder != nullptr) return std::filesystem::path(folder) / name;
  return std::filesystem::path(PRONK_SOURCE_DIR).parent_path() / "shared" / name;
}

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_SHARED_DATA_H_
