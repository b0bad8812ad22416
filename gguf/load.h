// Reads a number at any address. GGUF numbers are little-endian, as are the supported machines.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace gguf {

static_assert(std::endian::native == std::endian::little, "pronk needs a little-endian machine");

template <typename T>
T Load(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace gguf
