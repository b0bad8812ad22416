// A directory for one test's files, deleted with its contents at the end of the scope.
#pragma once

#include <unistd.h>  // mkdtemp() on macOS

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace test {

inline void WriteBytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "pronk-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  // The path of a file in the directory.
  std::string Path(const std::string& name) const { return (path_ / name).string(); }

  // The number of files and directories in it.
  size_t CountFiles() const {
    const std::filesystem::directory_iterator files(path_);
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

  // Writes a file in the directory and returns its path.
  std::string Write(const std::string& name, std::span<const std::byte> bytes) const {
    const std::string path = Path(name);
    WriteBytes(path, bytes);
    return path;
  }
  std::string Write(const std::string& name, std::string_view text) const {
    return Write(name, std::as_bytes(std::span(text)));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace test
