// Faults of the input or the machine (of a file: gguf::Error): one line with problem and remedy.
#ifndef PRONK_ENGINE_ERROR_H_
#define PRONK_ENGINE_ERROR_H_

#include <stdexcept>
#include <string_view>

#include "gguf/error.h"

namespace engine {

class Error : public std::runtime_error {
 public:
  // The message is the parts, texts and numbers.
  template <class... Parts>
  explicit Error(std::string_view first, const Parts&... more)
      : std::runtime_error(gguf::Message(first, more...)) {}
};

// A text does not fit into the context.
class TooLong : public Error {
 public:
  using Error::Error;
};

}  // namespace engine

#endif  // PRONK_ENGINE_ERROR_H_
