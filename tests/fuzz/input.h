// Takes numbers and texts from the front of a fuzzer's bytes. When no bytes are left, numbers are
// zero and texts are empty, so every input means something.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return left_.empty(); }
  uint8_t Byte() {
    const std::string_view byte = Take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  // Reads up to the next line feed and skips it. Lines keep a corpus readable.
  std::string_view Line() {
    const std::string_view line = Take(std::min(left_.find('\n'), left_.size()));
    Take(1);
    return line;
  }
  std::string_view Rest() { return Take(left_.size()); }

 private:
  std::string_view Take(size_t n) {
    const std::string_view taken = left_.substr(0, n);
    left_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view left_;
};

}  // namespace fuzz
