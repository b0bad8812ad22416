// Messages in parts: texts and whole numbers, one after the other.
#ifndef PRONK_GGUF_MESSAGE_H_
#define PRONK_GGUF_MESSAGE_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "gguf/error.h"

namespace gguf {

template <class... Parts>
std::string Message(const Parts&... parts) {
  std::string text;
  const auto add = [&](const auto& part) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(parts), ...);
  return text;
}

// Throws Error about a file: its path and the message.
template <class... Parts>
[[noreturn]] void Fail(std::string_view path, const Parts&... parts) {
  throw Error(Message(PrintablePath(path), ": ", parts...));
}

}  // namespace gguf

#endif  // PRONK_GGUF_MESSAGE_H_
