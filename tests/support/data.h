// The places of test files: small files in tests/data, larger golden data in a folder beside the
// checkout if it exists.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace test {

inline std::filesystem::path DataPath(const std::string& name) {
  return std::filesystem::path(test::SourceDir()) / "tests" / "data" / name;
}

// The model that ships.
inline const std::string kDefault = SourceDir() + "/models/default.gguf";

// A file or folder in $PRONK_SHARED, otherwise in ../shared; empty if it does not exist.
inline std::filesystem::path SharedPath(const std::string& name) {
  const char* const folder = std::getenv("PRONK_SHARED");
  const std::filesystem::path path =
      folder != nullptr ? std::filesystem::path(folder) / name
                        : std::filesystem::path(test::SourceDir()).parent_path() / "shared" / name;
  return std::filesystem::exists(path) ? path : std::filesystem::path();
}

// The models in these folders of tests/data that have at most this many bytes, in a fixed order.
// With vectors/ every architecture has a model; models outside vectors/ write text.
inline std::vector<std::filesystem::path> SmallModels(
    const std::vector<const char*>& folders = {"families", "more", "hybrids"},
    uintmax_t most_bytes = 64'000) {
  std::vector<std::filesystem::path> paths;
  for (const char* const folder : folders) {
    for (const auto& file : std::filesystem::directory_iterator(DataPath(folder))) {
      if (file.path().extension() == ".gguf" && file.file_size() <= most_bytes) {
        paths.push_back(file.path());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The name of a test whose parameter has this name.
inline std::string TestName(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Raw little-endian floats.
inline std::vector<float> ReadFloats(const std::filesystem::path& path) {
  const std::string bytes = ReadText(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  bytes.copy(reinterpret_cast<char*>(floats.data()), floats.size() * sizeof(float));
  return floats;
}

}  // namespace test
