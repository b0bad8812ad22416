// The tests that may follow "is".
#include <functional>

#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/strings.h"

namespace tokenizer::jinja {
namespace {

template <CompareOp op>
bool Compares(Interpreter& in, const Value& value, const Arguments& args) {
  const Params params("a comparison", args, {"other"}, 1);
  return CompareValues(in.rt(), op, value, *params.Get(0));
}

// A test of the value alone.
template <auto is>
bool Is(Interpreter&, const Value& value, const Arguments&) {
  return std::invoke(is, value);
}

bool IsDefined(const Value& value) { return !value.IsUndefined(); }

template <bool wanted>
bool IsBoolean(const Value& value) {
  return value.IsBool() && value.boolean() == wanted;
}

bool IsCallable(const Value& value) {
  return value.IsUndefined() || (value.IsObject() && value.object().IsCallable());
}

// Whether there is a filter or test of this name.
template <auto find>
bool IsName(const Value& value) {
  return value.IsString() && find(value.view()) != nullptr;
}

// Of a string, as str.islower() and str.isupper() say it.
template <bool is_lower>
bool HasCase(Interpreter& in, const Value& value, const Arguments&) {
  const Text text = Str(in.rt(), value);
  in.rt().PayCharacters(text.size());
  return is_lower ? IsLowerText(text.view()) : IsUpperText(text.view());
}

bool IsBigOrInt(const Value& value) { return value.IsInt() || value.IsBigInteger(); }
bool IsBigOrNumber(const Value& value) { return value.IsNumber() || value.IsBigInteger(); }
bool IsNever(const Value&) { return false; }

bool IsSequence(const Value& value) {
  return value.IsString() || value.IsDict() || value.IsUndefined() ||
         (value.IsList() && value.list().HasLength());
}

bool IsSameAs(Interpreter& in, const Value& value, const Arguments& args) {
  if (value.IsString()) in.rt().PayReading(value.view().size());
  return value.SameAs(*Params("sameas", args, {"other"}, 1).Get(0));
}

bool RemainderIs(Interpreter& in, int remainder, const Value& value, const Value& divisor) {
  return Equal(in.rt(), Calculate(in.rt(), BinaryOp::kMod, value, divisor), Value(remainder));
}

template <int remainder>
bool RemainderOfTwoIs(Interpreter& in, const Value& value, const Arguments&) {
  return RemainderIs(in, remainder, value, Value(2));
}

bool IsDivisible(Interpreter& in, const Value& value, const Arguments& args) {
  return RemainderIs(in, 0, value, *Params("divisibleby", args, {"num"}, 1).Get(0));
}

// clang-format off
constexpr Named<TestFn> kTests[] = {
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
    {"boolean", Is<&Value::IsBool>}, {"true", Is<IsBoolean<true>>}, {"false", Is<IsBoolean<false>>},
    {"number", Is<IsBigOrNumber>}, {"integer", Is<IsBigOrInt>},
    {"float", Is<&Value::IsFloat>},
    {"even", RemainderOfTwoIs<0>}, {"odd", RemainderOfTwoIs<1>}, {"divisibleby", IsDivisible},
    {"string", Is<&Value::IsString>}, {"mapping", Is<&Value::IsDict>},
    {"sequence", Is<IsSequence>}, {"iterable", Is<IsIterable>},
    {"defined", Is<IsDefined>}, {"undefined", Is<&Value::IsUndefined>},
    {"none", Is<&Value::IsNone>},
    {"callable", Is<IsCallable>}, {"lower", HasCase<true>}, {"upper", HasCase<false>},
    {"filter", Is<IsName<FindFilter>>}, {"test", Is<IsName<FindTest>>},
    {"escaped", Is<IsNever>},  // nothing is: there is no autoescape
};
// clang-format on

}  // namespace

TestFn FindTest(std::string_view name) { return FindNamed(kTests, name); }

}  // namespace tokenizer::jinja
