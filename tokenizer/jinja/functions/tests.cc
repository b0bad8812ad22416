// The tests that may follow "is".
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

bool IsDefined(const Value& value) { return !value.IsUndefined(); }

template <bool wanted>
bool IsBoolean(const Value& value) {
  return value.IsBool() && value.boolean() == wanted;
}

bool IsCallable(const Value& value) {
  return value.IsUndefined() || (value.IsObject() && value.object().IsCallable());
}

bool IsFilterName(const Value& value) {
  return value.IsString() && FindFilter(value.view()) != nullptr;
}
bool IsTestName(const Value& value) {
  return value.IsString() &&
         (FindTest(value.view()) != nullptr || FindTypeTest(value.view()) != nullptr);
}

// Of a string, as str.islower() and str.isupper() say it.
template <bool is_lower>
bool HasCase(Interpreter& in, const Value& value, const Arguments&) {
  const Text text = Str(in.rt(), value);
  return is_lower ? IsLowerText(text.view()) : IsUpperText(text.view());
}

bool IsBigOrInt(const Value& value) { return value.IsInt() || value.IsBigInteger(); }
bool IsBigOrNumber(const Value& value) { return value.IsNumber() || value.IsBigInteger(); }
bool IsNever(const Value&) { return false; }

bool IsSequence(const Value& value) {
  return value.IsString() || value.IsDict() || value.IsUndefined() ||
         (value.IsList() && value.list().HasLength());
}

bool IsSameAs(Interpreter&, const Value& value, const Arguments& args) {
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

bool IsUndefined(const Value& value) { return value.IsUndefined(); }
bool IsString(const Value& value) { return value.IsString(); }
bool IsDict(const Value& value) { return value.IsDict(); }
bool IsFloat(const Value& value) { return value.IsFloat(); }
bool IsBool(const Value& value) { return value.IsBool(); }
bool IsNone(const Value& value) { return value.IsNone(); }

// clang-format off
constexpr Named<TypeTestFn> kTypeTests[] = {
    {"boolean", IsBool}, {"true", IsBoolean<true>}, {"false", IsBoolean<false>},
    {"number", IsBigOrNumber}, {"integer", IsBigOrInt}, {"float", IsFloat},
    {"string", IsString}, {"mapping", IsDict}, {"sequence", IsSequence}, {"iterable", IsIterable},
    {"defined", IsDefined}, {"undefined", IsUndefined}, {"none", IsNone}, {"callable", IsCallable},
    {"filter", IsFilterName}, {"test", IsTestName},
    {"escaped", IsNever},  // nothing is: there is no autoescape
};

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
    {"even", RemainderOfTwoIs<0>}, {"odd", RemainderOfTwoIs<1>}, {"divisibleby", IsDivisible},
    {"lower", HasCase<true>}, {"upper", HasCase<false>},
};
// clang-format on

}  // namespace

TypeTestFn FindTypeTest(std::string_view name) { return FindNamed(kTypeTests, name); }
TestFn FindTest(std::string_view name) { return FindNamed(kTests, name); }

}  // namespace tokenizer::jinja
