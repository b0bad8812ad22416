// Functions that a template can call without an object (range, namespace, strftime_now), and the
// tests that may follow "is".
#include <chrono>
#include <clocale>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/interpreter/objects.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

// joiner(", "): empty on the first call, the separator on later ones.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view TypeName() const override { return "Joiner"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter&, const Arguments&) override {
    return std::exchange(used_, true) ? separator_ : Value("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

constexpr size_t kMaxDateFormat = 1000;
constexpr int64_t kMaxRange = 100'000;  // the limit of Jinja's sandbox

Value MakeRange(const BuiltinCall& call) {
  const bool has_start = call.Get(1) != nullptr;
  const int64_t start = has_start ? call.Integer(0, 0) : 0;
  const int64_t stop = call.Integer(has_start ? 1 : 0, 0);
  const int64_t step = call.Integer(2, 1);
  if (step == 0) Fail("range() arg 3 must not be zero");
  Values items;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (items.size() >= kMaxRange) Fail("range too big: more than ", kMaxRange, " items");
    items.push_back(Value(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return call.rt.Make(std::move(items));
}

// dict(mapping or pairs, name=value...)
Value MakeDict(const BuiltinCall& call) {
  const Values& given = call.args.positional;
  if (given.size() > 1) Fail("dict() takes at most 1 argument");
  Value out = call.rt.Make(Dict());
  if (!given.empty() && given[0].IsDict()) {
    out.dict().SetAll(given[0].dict().entries);
  } else if (!given.empty()) {
    for (const Value& pair : ItemsOf(given[0])) {
      const Values items = ItemsOf(pair);
      if (items.size() != 2) Fail("dict() needs pairs");
      out.dict().Set(items[0], items[1]);
    }
  }
  out.dict().SetAll(call.args.named);
  return out;
}

Value MakeNamespace(const BuiltinCall& call) {
  const Value attributes = MakeDict(call);
  const auto space = call.rt.MakeObject<Namespace>();
  for (const auto& [name, value] : attributes.dict().entries) {
    space->Set(Str(call.rt, name).view(), value);
  }
  return Value(space);
}

Value MakeJoiner(const BuiltinCall& call) {
  return Value(call.rt.MakeObject<Joiner>(call.Or(0, Value(", "))));
}

Value RaiseException(const BuiltinCall& call) { Fail(Str(call.rt, *call.Get(0)).view()); }

// A date by the C library's strftime, always in the C locale: the program's locale must not change
// a prompt. The library gets no untrusted format: each conversion goes alone, and only if the C
// standard or glibc has it. %-d and the like have no leading zeros. Other text is copied.
Value StrftimeNow(const BuiltinCall& call) {
  constexpr std::string_view kConversions = "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%";
  constexpr std::string_view kNoZone = "zZ";  // the time has no zone
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string_view format = call.String(0).view();
  if (format.size() > kMaxDateFormat) Fail("a date's format of more than 1000 bytes");
  const std::time_t now = call.in.now().time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    const std::string_view rest = format.substr(i);
    const size_t n = rest.starts_with("%-") ? 3 : 2;  // bytes of a conversion
    const bool is_conversion = rest[0] == '%' && rest.size() >= n;
    const char conversion = is_conversion ? rest[n - 1] : '\0';
    std::string text(rest.substr(0, is_conversion ? n : 1));
    if (conversion == 'f') {
      text = "000000";  // no fraction: times here are whole seconds
    } else if (is_conversion && kNoZone.find(conversion) != kNotFound) {
      text.clear();
    } else if (is_conversion && kConversions.find(conversion) != kNotFound) {
      char buffer[100];
      const char one[] = {'%', conversion, '\0'};
      text.assign(buffer, strftime_l(buffer, sizeof buffer, one, &parts, c_locale));
      const bool has_zeros = text.find_first_not_of("0123456789 ") == std::string::npos;
      if (n == 3 && has_zeros)
        text.erase(0, std::min(text.find_first_not_of("0 "), text.size() - 1));
    }
    i += is_conversion ? n - 1 : 0;
    out += text;
  }
  return out;
}

template <CompareOp op>
Value Compares(const BuiltinCall& call) {
  return CompareValues(call.rt, op, call.self, *call.Get(0));
}

// Whether the value is of a type.
template <bool (Value::*is)() const>
Value Is(const BuiltinCall& call) {
  return (call.self.*is)();
}

template <bool wanted>
Value IsBoolean(const BuiltinCall& call) {
  return call.self.IsBool() && call.self.boolean() == wanted;
}

Value IsDefined(const BuiltinCall& call) { return !call.self.IsUndefined(); }
Value IsNever(const BuiltinCall&) { return false; }
Value IsWhole(const BuiltinCall& call) { return call.self.IsInt() || call.self.IsBigInteger(); }
Value IsAnyNumber(const BuiltinCall& call) {
  return call.self.IsNumber() || call.self.IsBigInteger();
}
Value IsIterableValue(const BuiltinCall& call) { return IsIterable(call.self); }

Value IsSequence(const BuiltinCall& call) {
  return IsIterable(call.self) && (!call.self.IsList() || call.self.list().HasLength());
}

Value IsCallable(const BuiltinCall& call) {
  return call.self.IsUndefined() || (call.self.IsObject() && call.self.object().IsCallable());
}

Value IsFilterName(const BuiltinCall& call) {
  return call.self.IsString() && FindBuiltin(Owner::kFilter, call.self.view()) != nullptr;
}

Value IsTestName(const BuiltinCall& call) {
  return call.self.IsString() && (FindBuiltin(Owner::kTest, call.self.view()) != nullptr ||
                                  FindBuiltin(Owner::kTypeTest, call.self.view()) != nullptr);
}

// str.islower() and str.isupper() of the value's text.
template <bool (*has)(std::string_view)>
Value HasCase(const BuiltinCall& call) {
  return has(Str(call.rt, call.self).view());
}

Value IsSameAs(const BuiltinCall& call) { return call.self.SameAs(*call.Get(0)); }

Value RemainderIs(const BuiltinCall& call, int remainder, const Value& divisor) {
  const Value rest = Calculate(call.rt, BinaryOp::kMod, call.self, divisor);
  return Equal(call.rt, rest, Value(remainder));
}

template <int remainder>
Value RemainderOfTwoIs(const BuiltinCall& call) {
  return RemainderIs(call, remainder, Value(2));
}

Value IsDivisible(const BuiltinCall& call) { return RemainderIs(call, 0, *call.Get(0)); }

// clang-format off
constexpr Builtin kGlobalsAndTests[] = {
    {Owner::kGlobal, "range", MakeRange, "start | stop step"},
    {Owner::kGlobal, "dict", MakeDict, "*"},
    {Owner::kGlobal, "namespace", MakeNamespace, "*"},
    {Owner::kGlobal, "joiner", MakeJoiner, "| sep"},
    {Owner::kGlobal, "raise_exception", RaiseException, "message"},
    {Owner::kGlobal, "strftime_now", StrftimeNow, "format"},
    {Owner::kTypeTest, "boolean", Is<&Value::IsBool>},
    {Owner::kTypeTest, "true", IsBoolean<true>},
    {Owner::kTypeTest, "false", IsBoolean<false>},
    {Owner::kTypeTest, "number", IsAnyNumber},
    {Owner::kTypeTest, "integer", IsWhole},
    {Owner::kTypeTest, "float", Is<&Value::IsFloat>},
    {Owner::kTypeTest, "string", Is<&Value::IsString>},
    {Owner::kTypeTest, "mapping", Is<&Value::IsDict>},
    {Owner::kTypeTest, "sequence", IsSequence},
    {Owner::kTypeTest, "iterable", IsIterableValue},
    {Owner::kTypeTest, "defined", IsDefined},
    {Owner::kTypeTest, "undefined", Is<&Value::IsUndefined>},
    {Owner::kTypeTest, "none", Is<&Value::IsNone>},
    {Owner::kTypeTest, "callable", IsCallable},
    {Owner::kTypeTest, "filter", IsFilterName},
    {Owner::kTypeTest, "test", IsTestName},
    {Owner::kTypeTest, "escaped", IsNever},  // there is no autoescape
    {Owner::kTest, "==", Compares<CompareOp::kEq>, "other"},
    {Owner::kTest, "eq", Compares<CompareOp::kEq>, "other"},
    {Owner::kTest, "equalto", Compares<CompareOp::kEq>, "other"},
    {Owner::kTest, "!=", Compares<CompareOp::kNe>, "other"},
    {Owner::kTest, "ne", Compares<CompareOp::kNe>, "other"},
    {Owner::kTest, "<", Compares<CompareOp::kLt>, "other"},
    {Owner::kTest, "lt", Compares<CompareOp::kLt>, "other"},
    {Owner::kTest, "lessthan", Compares<CompareOp::kLt>, "other"},
    {Owner::kTest, "<=", Compares<CompareOp::kLe>, "other"},
    {Owner::kTest, "le", Compares<CompareOp::kLe>, "other"},
    {Owner::kTest, ">", Compares<CompareOp::kGt>, "other"},
    {Owner::kTest, "gt", Compares<CompareOp::kGt>, "other"},
    {Owner::kTest, "greaterthan", Compares<CompareOp::kGt>, "other"},
    {Owner::kTest, ">=", Compares<CompareOp::kGe>, "other"},
    {Owner::kTest, "ge", Compares<CompareOp::kGe>, "other"},
    {Owner::kTest, "in", Compares<CompareOp::kIn>, "other"},
    {Owner::kTest, "sameas", IsSameAs, "other"},
    {Owner::kTest, "even", RemainderOfTwoIs<0>},
    {Owner::kTest, "odd", RemainderOfTwoIs<1>},
    {Owner::kTest, "divisibleby", IsDivisible, "num"},
    {Owner::kTest, "lower", HasCase<IsLowerText>},
    {Owner::kTest, "upper", HasCase<IsUpperText>},
};
// clang-format on

}  // namespace

std::span<const Builtin> GlobalsAndTests() { return kGlobalsAndTests; }

void AddGlobals(Interpreter& in) {
  for (const Builtin& row : kGlobalsAndTests) {
    if (row.owner != Owner::kGlobal) continue;
    in.SetVariable(row.name, Value(in.rt().MakeObject<Function>(row)));
  }
}

}  // namespace tokenizer::jinja
