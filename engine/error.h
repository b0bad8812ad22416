// Errors of the input or the machine (of a file: gguf::Error): one line with problem and remedy.
#pragma once

#include "gguf/error.h"

namespace engine {

class Error : public gguf::Fault {
 public:
  using Fault::Fault;
};

// A text does not fit into the context.
class TooLong : public Error {
 public:
  using Error::Error;
};

// The machine lacks memory for the request.
class NoMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace engine
