// What every reader of files in this project throws: one line that says which file, where in it
// (offset or key), what was expected and what was found.
#ifndef PRONK_GGUF_ERROR_H_
#define PRONK_GGUF_ERROR_H_

#include <stdexcept>

namespace gguf {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gguf

#endif  // PRONK_GGUF_ERROR_H_
