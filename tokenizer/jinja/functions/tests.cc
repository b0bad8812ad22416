// What can stand after "is".
#include <algorithm>
#include <utility>

#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"
#include "tokenizer/jinja/values/unicode.h"
#include "tokenizer/template_error.h"

namespace tokenizer::jinja {
namespace {

template <CompareOp op>
bool Compares(Interpreter& in, const Value& value, const Arguments& args) {
  const Params params("a comparison", args, {"other"}, 1);
  return CompareValues(in.runtime(), op, value, *params.Get(0));
}

template <bool (Value::*is)() const>
bool Is(Interpreter&, const Value& value, const Arguments&) {
  return (value.*is)();
}

bool IsDefined(Interpreter&, const Value& value, const Arguments&) { return !value.IsUndefined(); }

bool IsEscaped(Interpreter&, const Value&, const Arguments&) { return false; }

template <bool wanted>
bool IsBoolean(Interpreter&, const Value& value, const Arguments&) {
  return value.IsBool() && value.boolean() == wanted;
}

bool IsCallable(Interpreter&, const Value& value, const Arguments&) {
  return value.IsUndefined() || (value.IsObject() && value.object().IsCallable());
}

bool IsIterableTest(Interpreter&, const Value& value, const Arguments&) {
  return IsIterable(value);
}

bool IsSequence(Interpreter&, const Value& value, const Arguments&) {
  return value.IsString() || value.IsDict() || value.IsUndefined() ||
         (value.IsList() && value.list().CanIndex());
}

bool IsFilter(Interpreter&, const Value& value, const Arguments&) {
  return value.IsString() && FindFilter(value.view()) != nullptr;
}

bool IsTest(Interpreter&, const Value& value, const Arguments&) {
  return value.IsString() && FindTest(value.view()) != nullptr;
}

bool IsSameAs(Interpreter& in, const Value& value, const Arguments& args) {
  if (value.IsString()) in.runtime().PayReading(value.view().size());
  return value.SameAs(*Params("sameas", args, {"other"}, 1).Get(0));
}

bool RemainderIs(Interpreter& in, int remainder, const Value& value, const Value& divisor) {
  Runtime& rt = in.runtime();
  return Equal(rt, Calculate(rt, BinaryOp::kMod, value, divisor), Value(remainder));
}

template <int remainder>
bool RemainderOfTwoIs(Interpreter& in, const Value& value, const Arguments&) {
  return RemainderIs(in, remainder, value, Value(2));
}

bool IsDivisible(Interpreter& in, const Value& value, const Arguments& args) {
  return RemainderIs(in, 0, value, *Params("divisibleby", args, {"num"}, 1).Get(0));
}

// Whether all letters with case have the one that `other` denies, and there is one.
template <bool (*has_case)(char32_t), bool (*other)(char32_t)>
bool AllOfCase(Interpreter& in, const Value& value, const Arguments&) {
  const Text text = Str(in.runtime(), value);
  in.runtime().PayCharacters(text.size());
  bool any = false;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    if (other(code)) return false;
    any = any || has_case(code);
  }
  return any;
}

using NamedTest = std::pair<std::string_view, TestFn>;
// clang-format off
constexpr NamedTest kTests[] = {
    {"==", Compares<CompareOp::kEq>}, {"eq", Compares<CompareOp::kEq>},
    {"equalto", Compares<CompareOp::kEq>},
    {"!=", Compares<CompareOp::kNe>}, {"ne", Compares<CompareOp::kNe>},
    {"<", Compares<CompareOp::kLt>}, {"lt", Compares<CompareOp::kLt>},
    {"lessthan", Compares<CompareOp::kLt>},
    {"<=", Compares<CompareOp::kLe>}, {"le", Compares<CompareOp::kLe>},
    {">", Compares<CompareOp::kGt>}, {"gt", Compares<CompareOp::kGt>},
    {"greaterthan", Compares<CompareOp::kGt>},
    {">=", Compares<CompareOp::kGe>}, {"ge", Compares<CompareOp::kGe>},
    {"in", Compares<CompareOp::kIn>}, {"sameas", IsSameAs},
    {"boolean", Is<&Value::IsBool>}, {"true", IsBoolean<true>}, {"false", IsBoolean<false>},
    {"number", Is<&Value::IsNumber>}, {"integer", Is<&Value::IsInt>},
    {"float", Is<&Value::IsFloat>},
    {"even", RemainderOfTwoIs<0>}, {"odd", RemainderOfTwoIs<1>}, {"divisibleby", IsDivisible},
    {"string", Is<&Value::IsString>}, {"escaped", IsEscaped},
    {"lower", AllOfCase<IsLower, IsUpper>}, {"upper", AllOfCase<IsUpper, IsLower>},
    {"mapping", Is<&Value::IsDict>}, {"sequence", IsSequence}, {"iterable", IsIterableTest},
    {"defined", IsDefined}, {"undefined", Is<&Value::IsUndefined>}, {"none", Is<&Value::IsNone>},
    {"callable", IsCallable}, {"filter", IsFilter}, {"test", IsTest},
};
// clang-format on

}  // namespace

TestFn FindTest(std::string_view name) { return FindNamed(kTests, name); }

}  // namespace tokenizer::jinja
