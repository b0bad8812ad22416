// What can stand after "is".
#include <algorithm>
#include <utility>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/print.h"
#include "tokenizer/jinja/unicode.h"
#include "tokenizer/template_error.h"

namespace tokenizer::jinja {
namespace {

template <CompareOp op>
bool Compares(Interpreter& in, const Value& value, const Arguments& args) {
  const Params params("a comparison", args, {"other"}, 1);
  return CompareValues(in.runtime(), op, value, *params.Get(0));
}

bool RemainderIs(Interpreter& in, int remainder, const Value& value, const Value& divisor) {
  Runtime& rt = in.runtime();
  return Equal(rt, Calculate(rt, BinaryOp::kMod, value, divisor), Value(remainder));
}

// Whether all letters with case have the one that `other` denies, and there is one.
template <bool (*has_case)(char32_t), bool (*other)(char32_t)>
bool AllOfCase(Interpreter& in, const Value& value, const Arguments&) {
  const Text text = Str(in.runtime(), value);
  in.runtime().PayCharacters(text.size());
  bool any = false;
  for (size_t pos = 0; pos < text.size();) {
    const Char c = CharAt(text.view(), pos);
    if (other(c.code)) return false;
    any = any || has_case(c.code);
    pos += c.size;
  }
  return any;
}

using NamedTest = std::pair<std::string_view, TestFn>;
constexpr NamedTest kTests[] = {
    {"==", Compares<CompareOp::kEq>},
    {"eq", Compares<CompareOp::kEq>},
    {"equalto", Compares<CompareOp::kEq>},
    {"!=", Compares<CompareOp::kNe>},
    {"ne", Compares<CompareOp::kNe>},
    {"<", Compares<CompareOp::kLt>},
    {"lt", Compares<CompareOp::kLt>},
    {"lessthan", Compares<CompareOp::kLt>},
    {"<=", Compares<CompareOp::kLe>},
    {"le", Compares<CompareOp::kLe>},
    {">", Compares<CompareOp::kGt>},
    {"gt", Compares<CompareOp::kGt>},
    {"greaterthan", Compares<CompareOp::kGt>},
    {">=", Compares<CompareOp::kGe>},
    {"ge", Compares<CompareOp::kGe>},
    {"in", Compares<CompareOp::kIn>},
    {"boolean", [](Interpreter&, const Value& value, const Arguments&) { return value.IsBool(); }},
    {"callable",
     [](Interpreter&, const Value& value, const Arguments&) {
       return value.IsUndefined() || (value.IsObject() && value.object().IsCallable());
     }},
    {"defined",
     [](Interpreter&, const Value& value, const Arguments&) { return !value.IsUndefined(); }},
    {"divisibleby",
     [](Interpreter& in, const Value& value, const Arguments& args) {
       return RemainderIs(in, 0, value, *Params("divisibleby", args, {"num"}, 1).Get(0));
     }},
    {"escaped", [](Interpreter&, const Value&, const Arguments&) { return false; }},
    {"even", [](Interpreter& in, const Value& value,
                const Arguments&) { return RemainderIs(in, 0, value, Value(2)); }},
    {"false", [](Interpreter&, const Value& value,
                 const Arguments&) { return value.IsBool() && !value.boolean(); }},
    {"filter",
     [](Interpreter&, const Value& value, const Arguments&) {
       return value.IsString() && FindFilter(value.view()) != nullptr;
     }},
    {"float", [](Interpreter&, const Value& value, const Arguments&) { return value.IsFloat(); }},
    {"integer", [](Interpreter&, const Value& value, const Arguments&) { return value.IsInt(); }},
    {"iterable",
     [](Interpreter&, const Value& value, const Arguments&) { return IsIterable(value); }},
    {"lower", AllOfCase<IsLower, IsUpper>},
    {"mapping", [](Interpreter&, const Value& value, const Arguments&) { return value.IsDict(); }},
    {"none", [](Interpreter&, const Value& value, const Arguments&) { return value.IsNone(); }},
    {"number", [](Interpreter&, const Value& value, const Arguments&) { return value.IsNumber(); }},
    {"odd", [](Interpreter& in, const Value& value,
               const Arguments&) { return RemainderIs(in, 1, value, Value(2)); }},
    {"sameas",
     [](Interpreter& in, const Value& value, const Arguments& args) {
       if (value.IsString()) in.runtime().PayReading(value.view().size());
       return value.SameAs(*Params("sameas", args, {"other"}, 1).Get(0));
     }},
    {"sequence",
     [](Interpreter&, const Value& value, const Arguments&) {
       return value.IsString() || value.IsDict() || value.IsUndefined() ||
              (value.IsList() && value.list().CanIndex());
     }},
    {"string", [](Interpreter&, const Value& value, const Arguments&) { return value.IsString(); }},
    {"test",
     [](Interpreter&, const Value& value, const Arguments&) {
       return value.IsString() && FindTest(value.view()) != nullptr;
     }},
    {"true", [](Interpreter&, const Value& value,
                const Arguments&) { return value.IsBool() && value.boolean(); }},
    {"undefined",
     [](Interpreter&, const Value& value, const Arguments&) { return value.IsUndefined(); }},
    {"upper", AllOfCase<IsUpper, IsLower>},
};

}  // namespace

TestFn FindTest(std::string_view name) {
  const auto found = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const NamedTest& entry) { return entry.first == name; });
  return found == std::end(kTests) ? nullptr : found->second;
}

}  // namespace tokenizer::jinja
