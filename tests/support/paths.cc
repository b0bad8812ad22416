#include "tests/support/paths.h"

namespace test {

const std::string& SourceDir() {
  static const std::string path = PRONK_SOURCE_DIR;
  return path;
}

const std::string& Program() {
  static const std::string path = PRONK_BINARY;
  return path;
}

}  // namespace test
