// The predefined names of a template; ../functions defines them.
#ifndef PRONK_TOKENIZER_JINJA_INTERPRETER_BUILTINS_H_
#define PRONK_TOKENIZER_JINJA_INTERPRETER_BUILTINS_H_

#include <cstddef>
#include <string_view>
#include <utility>

#include "tokenizer/jinja/interpreter/interpreter.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {

// Filters, and methods, which have the same form.
using FilterFn = Value (*)(Interpreter& in, const Value& input, const Arguments& args);
using TestFn = bool (*)(Interpreter& in, const Value& input, const Arguments& args);
using TypeTestFn = bool (*)(const Value& input);  // looks at no more than the type

template <typename Fn>
using Named = std::pair<std::string_view, Fn>;

// The function of that name in a table, or null.
template <typename Fn, size_t n>
Fn FindNamed(const Named<Fn> (&table)[n], std::string_view name) {
  for (const auto& [known, fn] : table) {
    if (known == name) return fn;
  }
  return nullptr;
}

// What changes a text and has no parameters.
template <Text (*map)(const Text&)>
Value MapText(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("a function without parameters", args, {});
  return map(Str(in.rt(), input));
}

// Null if there is none of that name.
FilterFn FindFilter(std::string_view name);
FilterFn FindTextFilter(std::string_view name);  // only those that return text or numbers
// Methods of dictionaries, too: keys and items.
Value ListFilter(Interpreter& in, const Value& input, const Arguments& args);
Value ItemsFilter(Interpreter& in, const Value& input, const Arguments& args);
TypeTestFn FindTypeTest(std::string_view name);
TestFn FindTest(std::string_view name);  // the others
FilterFn FindStringMethod(std::string_view name);
FilterFn FindContainerMethod(const Value& self, std::string_view name);  // lists and dictionaries

// range, namespace, dict, joiner, raise_exception, strftime_now.
void AddGlobals(Interpreter& in);

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_INTERPRETER_BUILTINS_H_
