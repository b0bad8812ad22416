// Where tests find their files: small ones in tests/data, larger golden data in a folder beside the
// checkout where it exists.
#ifndef PRONK_TESTS_SUPPORT_DATA_H_
#define PRONK_TESTS_SUPPORT_DATA_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

inline std::string DataPath(const std::string& name) {
  return std::string(PRONK_SOURCE_DIR) + "/tests/data/" + name;
}

// A file of the shared folder ($PRONK_SHARED, else ../shared), or "" where there is none.
inline std::string SharedPath(const std::string& name) {
  const char* from_environment = std::getenv("PRONK_SHARED");
  const std::string folder =
      from_environment != nullptr ? from_environment : std::string(PRONK_SOURCE_DIR) + "/../shared";
  const std::string path = folder + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Raw little-endian floats.
inline std::vector<float> ReadFloats(const std::string& path) {
  const std::string bytes = ReadText(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  bytes.copy(reinterpret_cast<char*>(floats.data()), floats.size() * sizeof(float));
  return floats;
}

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_DATA_H_
