// Faults of the input or the machine (of a file: gguf::Error): one line with problem and remedy.
#ifndef PRONK_ENGINE_ERROR_H_
#define PRONK_ENGINE_ERROR_H_

#include <stdexcept>

namespace engine {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A text does not fit into the context.
class TooLong : public Error {
 public:
  using Error::Error;
};

}  // namespace engine

#endif  // PRONK_ENGINE_ERROR_H_
