// The names that a template can use without defining them: the form of a function, and of its row
// in the tables of ../functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/interpreter/interpreter.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

class BuiltinCall;

// The owner of the name. A type test reads only the type; a sequence is a list or a tuple.
enum class Owner { kGlobal, kFilter, kTest, kTypeTest, kString, kSequence, kList, kDict };

struct Builtin {
  Owner owner;
  std::string_view name;
  Value (*function)(const BuiltinCall& call);
  // Names in order; names after "|" are optional: "old new | count". "*": the function matches its
  // arguments itself.
  std::string_view parameters = "";
};

// One call, with the arguments matched to the parameters. The evaluator has paid for reading them.
class BuiltinCall {
 public:
  // self: a filter's input, the value of a test, the owner of a method. Throws TemplateError if
  // arguments are missing, too many or have unknown names.
  BuiltinCall(Interpreter& interpreter, const Builtin& builtin, const Value& input,
              const Arguments& arguments);

  // Null if argument i was not given.
  const Value* Get(size_t i) const { return values_[i]; }
  // Get, except that None counts as not given, as for Python's optional parameters.
  const Value* GetSome(size_t i) const;
  Value Or(size_t i, const Value& absent) const {
    return values_[i] != nullptr ? *values_[i] : absent;
  }
  bool Flag(size_t i) const { return values_[i] != nullptr && values_[i]->Truth(); }
  int64_t Integer(size_t i, int64_t absent) const;
  // A string; throws for other types.
  const Text& String(size_t i) const;

  Interpreter& in;
  Runtime& rt;
  const Value& self;
  const Arguments& args;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

// Null if the owner has no such name.
const Builtin* FindBuiltin(Owner owner, std::string_view name);
const Builtin* FindMethod(const Value& self, std::string_view name);

// The tables.
std::span<const Builtin> TextFilters();
std::span<const Builtin> SequenceFilters();
std::span<const Builtin> Methods();
std::span<const Builtin> GlobalsAndTests();

// Also used as methods of dictionaries: keys and items.
Value ListFilter(const BuiltinCall& call);
Value ItemsFilter(const BuiltinCall& call);

}  // namespace tokenizer::jinja
