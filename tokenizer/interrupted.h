// Thrown by what can take long (tokenizing a text, rendering a template) when the caller
// interrupts.
#ifndef PRONK_TOKENIZER_INTERRUPTED_H_
#define PRONK_TOKENIZER_INTERRUPTED_H_

#include <stdexcept>

namespace tokenizer {

class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_INTERRUPTED_H_
