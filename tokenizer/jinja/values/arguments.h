// The arguments of a filter, test, method or function, matched to its parameters.
#ifndef PRONK_TOKENIZER_JINJA_VALUES_ARGUMENTS_H_
#define PRONK_TOKENIZER_JINJA_VALUES_ARGUMENTS_H_

#include <initializer_list>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

class Params {
 public:
  // `names`: the parameters in order, of which the first `required` must be given. Throws
  // TemplateError if arguments are missing, too many or have unknown names.
  Params(std::string_view function, const Arguments& args,
         std::initializer_list<std::string_view> names, size_t required = 0);

  // Null if argument i was not given.
  const Value* Get(size_t i) const { return values_[i]; }
  // Get, except that None counts as not given, as for Python's optional parameters.
  const Value* GetSome(size_t i) const;
  Value Or(size_t i, Value absent) const;
  bool Flag(size_t i) const;  // false if absent
  int64_t Integer(size_t i, int64_t absent) const;
  // A string; throws for other types.
  const Text& String(size_t i) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_ARGUMENTS_H_
