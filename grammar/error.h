// A grammar or a schema is refused, or a text violates one: a line with the place and the reason.
#ifndef PRONK_GRAMMAR_ERROR_H_
#define PRONK_GRAMMAR_ERROR_H_

#include <stdexcept>

namespace grammar {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_ERROR_H_
