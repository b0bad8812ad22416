// The operators: arithmetic, comparison, and what strings, lists and dictionaries share.
#include "tokenizer/jinja/values/operators.h"

#include <algorithm>
#include <cmath>
#include <compare>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

constexpr size_t kCompared = 64;  // bytes in a step

[[noreturn]] void Overflow() { Fail("a whole number does not fit 64 bits"); }
[[noreturn]] void DivideByZero() { Fail("division by zero"); }

int64_t Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) Overflow();
  return product;
}

// Both round towards minus infinity, as Python does.
int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) DivideByZero();
  if (b == -1) return Multiply(a, -1);
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t Modulo(int64_t a, int64_t b) {
  if (b == 0) DivideByZero();
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double Modulo(double a, double b) {
  if (b == 0) DivideByZero();
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : std::copysign(rest, rest == 0 ? b : rest);
}

// Exponentiation by squaring. A base of more than one digit overflows after few rounds.
Value Power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 != 0) result = Multiply(result, base);
    exponent /= 2;
    if (exponent > 0) base = Multiply(base, base);
  }
  return result;
}

Value PowerOfFloats(double base, double exponent) {
  if (base == 0 && exponent < 0) Fail("zero cannot be raised to a negative power");
  if (base < 0 && exponent != std::floor(exponent)) Fail("a complex number");
  const double power = std::pow(base, exponent);
  if (std::isinf(power) && std::isfinite(base) && std::isfinite(exponent)) Fail("Result too large");
  return power;
}

Value CalculateFloats(BinaryOp op, double a, double b) {
  if (op == BinaryOp::kAdd) return a + b;
  if (op == BinaryOp::kSub) return a - b;
  if (op == BinaryOp::kMul) return a * b;
  if (op == BinaryOp::kMod) return Modulo(a, b);
  if (op == BinaryOp::kPow) return PowerOfFloats(a, b);
  if (b == 0) DivideByZero();
  if (op == BinaryOp::kDiv) return a / b;
  return std::floor((a - Modulo(a, b)) / b);
}

Value CalculateIntegers(BinaryOp op, int64_t a, int64_t b) {
  if (op == BinaryOp::kDiv)
    return CalculateFloats(op, static_cast<double>(a), static_cast<double>(b));
  if (op == BinaryOp::kMul) return Multiply(a, b);
  if (op == BinaryOp::kFloorDiv) return FloorDivide(a, b);
  if (op == BinaryOp::kMod) return Modulo(a, b);
  if (op == BinaryOp::kPow) {
    return b < 0 ? PowerOfFloats(static_cast<double>(a), static_cast<double>(b)) : Power(a, b);
  }
  int64_t result = 0;
  const bool overflows = op == BinaryOp::kAdd ? __builtin_add_overflow(a, b, &result)
                                              : __builtin_sub_overflow(a, b, &result);
  if (overflows) Overflow();
  return result;
}

Value Repeat(Runtime& rt, const List& list, int64_t times) {
  const size_t n = times > 0 && !list.items.empty() ? static_cast<size_t>(times) : 0;
  Values out;
  out.reserve(Times(list.items.size(), n));
  for (size_t i = 0; i < n; ++i) out.insert(out.end(), list.items.begin(), list.items.end());
  return rt.Make(std::move(out), list.kind);
}

bool SameSequenceType(const Value& left, const Value& right) {
  return left.IsList() && right.IsList() && left.list().kind == right.list().kind &&
         left.list().HasLength();
}

Value Join(Runtime& rt, const Value& left, const Value& right) {
  if (left.IsString()) {
    Text out = left.text();
    out.Append(right.text());
    return out;
  }
  Values out = left.list().items;
  const Values& more = right.list().items;
  out.insert(out.end(), more.begin(), more.end());
  return rt.Make(std::move(out), left.list().kind);
}

std::partial_ordering OrderNumbers(const Value& left, const Value& right) {
  if (left.IsIntegral() && right.IsIntegral()) return left.integer() <=> right.integer();
  return left.number() <=> right.number();
}

std::partial_ordering Order(Runtime& rt, const Value& left, const Value& right, CompareOp op) {
  rt.Step();
  RequireDefined(left);
  RequireDefined(right);
  if (left.IsNumber() && right.IsNumber()) return OrderNumbers(left, right);
  if (left.IsString() && right.IsString()) {
    rt.Step(left.view().size() / kCompared);
    return left.view().compare(right.view()) <=> 0;  // UTF-8 sorts as its code points do
  }
  if (SameSequenceType(left, right)) {  // the first items that differ decide
    const Nesting nesting = rt.OneLevel();
    const Values &a = left.list().items, &b = right.list().items;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!Equal(rt, a[i], b[i])) return Order(rt, a[i], b[i], op);
    }
    return a.size() <=> b.size();
  }
  Fail("'", Symbol(op), "' not supported between instances of ", QuotedType(left), " and ",
       QuotedType(right));
}

bool EqualDicts(Runtime& rt, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = right.Find(key);
    if (other == nullptr || !Equal(rt, value, *other)) return false;
  }
  return true;
}

size_t PlaceOf(std::string_view bytes, const Text& text) {
  return static_cast<size_t>(bytes.data() - text.view().data());
}

Values CharsOf(const Text& text) {
  Values out;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    out.push_back(text.Sub(PlaceOf(bytes, text), bytes.size()));
  }
  return out;
}

struct Range {
  int64_t start = 0, stop = 0, step = 1;
};

// The bounds of a slice of `length` items, as in Python's slice.indices().
Range Bounds(int64_t length, const Value& start, const Value& stop, const Value& step) {
  Range out;
  out.step = step.IsNone() ? 1 : ToInteger(step, "a slice's step");
  if (out.step == 0) Fail("slice step cannot be zero");
  out.step = std::clamp(out.step, -length - 1, length + 1);  // a larger step gives the same result
  const int64_t lowest = out.step > 0 ? 0 : -1;
  const int64_t highest = out.step > 0 ? length : length - 1;
  const auto place = [&](const Value& bound, int64_t absent) {
    if (bound.IsNone()) return absent;
    int64_t at = std::clamp(ToInteger(bound, "a slice's bound"), -length - 1, length + 1);
    if (at < 0) at += length;
    return std::clamp(at, lowest, highest);
  };
  out.start = place(start, out.step > 0 ? lowest : highest);
  out.stop = place(stop, out.step > 0 ? highest : lowest);
  return out;
}

template <typename Fn>
void ForEachIndex(const Range& bounds, Fn fn) {
  for (int64_t i = bounds.start; bounds.step > 0 ? i < bounds.stop : i > bounds.stop;
       i += bounds.step) {
    fn(static_cast<size_t>(i));
  }
}

Text SliceText(const Text& text, const Range& bounds) {
  if (bounds.step == 1) {
    if (bounds.stop <= bounds.start) return Text();
    const size_t begin = ByteOfChar(text.view(), static_cast<size_t>(bounds.start));
    const size_t n =
        ByteOfChar(text.view().substr(begin), static_cast<size_t>(bounds.stop - bounds.start));
    return text.Sub(begin, n);
  }
  Vector<size_t> begins;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    begins.push_back(PlaceOf(bytes, text));
  }
  begins.push_back(text.size());
  Text out;
  ForEachIndex(bounds, [&](size_t i) { out.Append(text, begins[i], begins[i + 1] - begins[i]); });
  return out;
}

// The position of an index, which may count from the end, among `length` items.
std::optional<size_t> IndexAt(const Value& index, size_t length) {
  int64_t at = index.integer();
  if (at < 0 && at >= -static_cast<int64_t>(length)) at += static_cast<int64_t>(length);
  if (at < 0 || at >= static_cast<int64_t>(length)) return std::nullopt;
  return static_cast<size_t>(at);
}

}  // namespace

std::string_view Symbol(BinaryOp op) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<size_t>(op)];
}

std::string_view Symbol(CompareOp op) {
  constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<size_t>(op)];
}

void RequireDefined(const Value& value) {
  if (!value.IsUndefined()) return;
  const auto& message = value.undefined().message;
  Fail(message ? *message : "the value is undefined");
}

int64_t ToInteger(const Value& value, std::string_view what) {
  RequireDefined(value);
  if (!value.IsIntegral()) Fail(what, " must be a whole number, not ", QuotedType(value));
  return value.integer();
}

Value Calculate(Runtime& rt, BinaryOp op, const Value& left, const Value& right) {
  RequireDefined(left);
  if (op != BinaryOp::kMod || !left.IsString()) RequireDefined(right);
  if (left.IsIntegral() && right.IsIntegral()) {
    return CalculateIntegers(op, left.integer(), right.integer());
  }
  if (left.IsNumber() && right.IsNumber()) {
    return CalculateFloats(op, left.number(), right.number());
  }
  if (op == BinaryOp::kAdd &&
      ((left.IsString() && right.IsString()) || SameSequenceType(left, right))) {
    return Join(rt, left, right);
  }
  if (op == BinaryOp::kMul && right.IsIntegral()) {
    if (left.IsString()) return Repeated(left.text(), right.integer());
    if (SameSequenceType(left, left)) return Repeat(rt, left.list(), right.integer());
  }
  if (op == BinaryOp::kMul && left.IsIntegral() && !right.IsNumber()) {
    return Calculate(rt, op, right, left);
  }
  if (op == BinaryOp::kMod && left.IsString()) {
    return PercentFormat(rt, left.text(), right);
  }
  Fail("unsupported operand type(s) for ", Symbol(op), ": ", QuotedType(left), " and ",
       QuotedType(right));
}

Value Negate(const Value& value) {
  RequireDefined(value);
  if (value.IsFloat()) return -value.number();
  if (!value.IsIntegral()) Fail("bad operand type for unary -: ", QuotedType(value));
  return Multiply(value.integer(), -1);
}

bool Equal(Runtime& rt, const Value& left, const Value& right) {
  const Nesting nesting = rt.OneLevel();
  rt.Step();
  if (left.IsNumber() && right.IsNumber()) return OrderNumbers(left, right) == 0;
  if (left.IsString() && right.IsString()) {
    rt.Step(left.view().size() / kCompared);
    return left.view() == right.view();
  }
  if (left.IsDict() && right.IsDict()) return EqualDicts(rt, left.dict(), right.dict());
  if (left.IsList() && right.IsList() && left.list().kind == right.list().kind) {
    const Values &a = left.list().items, &b = right.list().items;
    if (!left.list().HasLength() || a.size() != b.size()) return &a == &b;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Equal(rt, a[i], b[i])) return false;
    }
    return true;
  }
  if (left.IsBigInteger() && right.IsBigInteger())
    return left.object().Repr() == right.object().Repr();
  if (left.IsUndefined() || left.IsNone()) return left.TypeName() == right.TypeName();
  return left.SameAs(right);
}

bool Less(Runtime& rt, const Value& left, const Value& right) {
  const auto order = Order(rt, left, right, CompareOp::kLt);
  if (order == std::partial_ordering::unordered) Fail("nan cannot be sorted");
  return order < 0;
}

bool CompareValues(Runtime& rt, CompareOp op, const Value& left, const Value& right) {
  const bool negated = op == CompareOp::kNe || op == CompareOp::kNotIn;
  if (op == CompareOp::kEq || op == CompareOp::kNe) return Equal(rt, left, right) != negated;
  if (op == CompareOp::kIn || op == CompareOp::kNotIn) return Contains(rt, right, left) != negated;
  const auto order = Order(rt, left, right, op);
  if (op == CompareOp::kLt) return order < 0;
  if (op == CompareOp::kLe) return order <= 0;
  return op == CompareOp::kGt ? order > 0 : order >= 0;
}

bool IsIterable(const Value& value) {
  return value.IsString() || value.IsList() || value.IsDict() || value.IsUndefined();
}

Values ItemsOf(const Value& value) {
  if (value.IsUndefined()) return {};
  if (value.IsString()) return CharsOf(value.text());
  if (value.IsDict()) {
    Values keys;
    for (const auto& entry : value.dict().entries) keys.push_back(entry.first);
    return keys;
  }
  if (!value.IsList()) Fail(QuotedType(value), " object is not iterable");
  List& list = value.list();
  if (list.kind == List::Kind::kGenerator) return std::exchange(list.items, {});
  return list.items;
}

int64_t LengthOf(const Value& value) {
  if (value.IsUndefined()) return 0;
  if (value.IsString()) return static_cast<int64_t>(CountChars(value.view()));
  if (value.IsDict()) return static_cast<int64_t>(value.dict().entries.size());
  if (value.IsList() && value.list().HasLength()) {
    return static_cast<int64_t>(value.list().items.size());
  }
  Fail("object of type ", QuotedType(value), " has no len()");
}

bool Contains(Runtime& rt, const Value& haystack, const Value& needle) {
  if (haystack.IsUndefined()) return false;
  if (haystack.IsDict()) return haystack.dict().Find(needle) != nullptr;
  if (haystack.IsString()) {
    if (!needle.IsString()) {
      RequireDefined(needle);
      Fail("'in <string>' requires string as left operand, not ", needle.TypeName());
    }
    rt.Read(haystack);
    return FindBytes(haystack.view(), needle.view()) != std::string_view::npos;
  }
  if (!haystack.IsList()) Fail("argument of type ", QuotedType(haystack), " is not iterable");
  for (const Value& item : haystack.list().items) {
    if (Equal(rt, item, needle)) return true;
  }
  return false;
}

Value Slice(Runtime& rt, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  RequireDefined(value);
  if (value.IsString()) {
    const Range bounds = Bounds(LengthOf(value), start, stop, step);
    return SliceText(value.text(), bounds);
  }
  if (!value.IsList() || !value.list().HasLength())
    Fail(QuotedType(value), " object has no slices");
  const Values& items = value.list().items;
  const Range bounds = Bounds(static_cast<int64_t>(items.size()), start, stop, step);
  Values out;
  ForEachIndex(bounds, [&](size_t i) { out.push_back(items[i]); });
  return rt.Make(std::move(out), value.list().kind);
}

std::optional<Value> Item(const Value& value, const Value& index) {
  if (value.IsDict()) {
    const bool is_tuple = index.IsList() && index.list().kind == List::Kind::kTuple;
    if ((index.IsList() && !is_tuple) || index.IsDict()) return std::nullopt;  // cannot be a key
    const Value* found = value.dict().Find(index);
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
  }
  if (!index.IsIntegral()) return std::nullopt;
  if (value.IsList() && value.list().HasLength()) {
    const auto place = IndexAt(index, value.list().items.size());
    return place ? std::optional<Value>(value.list().items[*place]) : std::nullopt;
  }
  if (value.IsString()) {
    const auto place = IndexAt(index, static_cast<size_t>(LengthOf(value)));
    if (!place) return std::nullopt;
    const size_t begin = ByteOfChar(value.view(), *place);
    return value.text().Sub(begin, gguf::NextUtf8(value.view().substr(begin)).length);
  }
  return std::nullopt;
}

}  // namespace tokenizer::jinja
