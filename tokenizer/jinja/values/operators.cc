// Arithmetic and comparison; sequences are in sequences.cc.
#include "tokenizer/jinja/values/operators.h"

#include <cmath>
#include <compare>

#include "tokenizer/errors.h"

namespace tokenizer::jinja {
namespace {

[[noreturn]] void Overflow() { Fail("a whole number does not fit 64 bits"); }
[[noreturn]] void DivideByZero() { Fail("division by zero"); }

int64_t Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) Overflow();
  return product;
}

int64_t Power(int64_t base, int64_t exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  int64_t result = 1;
  for (; exponent > 0; --exponent) result = Multiply(result, base);  // overflows within 64 rounds
  return result;
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

Value CalculateFloats(BinaryOp op, double a, double b) {
  if (op == BinaryOp::kAdd) return a + b;
  if (op == BinaryOp::kSub) return a - b;
  if (op == BinaryOp::kMul) return a * b;
  if (op == BinaryOp::kMod) return Modulo(a, b);
  if (b == 0 && op != BinaryOp::kPow) DivideByZero();
  if (op == BinaryOp::kDiv) return a / b;
  if (op == BinaryOp::kFloorDiv) return std::floor((a - Modulo(a, b)) / b);
  if (a == 0 && b < 0) DivideByZero();
  if (a < 0 && b != std::floor(b)) Fail("a root of a negative number");
  return std::pow(a, b);
}

Value CalculateIntegers(BinaryOp op, int64_t a, int64_t b) {
  if (op == BinaryOp::kDiv || (op == BinaryOp::kPow && b < 0)) {
    return CalculateFloats(op, static_cast<double>(a), static_cast<double>(b));
  }
  if (op == BinaryOp::kMul) return Multiply(a, b);
  if (op == BinaryOp::kFloorDiv) return FloorDivide(a, b);
  if (op == BinaryOp::kMod) return Modulo(a, b);
  if (op == BinaryOp::kPow) return Power(a, b);
  int64_t result = 0;
  const bool overflows = op == BinaryOp::kAdd ? __builtin_add_overflow(a, b, &result)
                                              : __builtin_sub_overflow(a, b, &result);
  if (overflows) Overflow();
  return result;
}

Value Repeat(Runtime& rt, const Value& value, int64_t times) {
  const size_t n = times > 0 ? static_cast<size_t>(times) : 0;
  const size_t unit =
      value.IsString() ? value.text().Cost() : value.list().items.size() * sizeof(Value);
  size_t total = 0;
  if (__builtin_mul_overflow(unit, n, &total)) total = std::string_view::npos;
  rt.PayBytes(total);  // paid before it is allocated
  if (value.IsString()) {
    constexpr size_t kPart = size_t{1} << 16;  // bytes copied at once
    const size_t size = value.text().size() * n;
    Text out;
    out.Reserve(size, value.text().foreign().size() * n);  // growing would triple the memory
    Text part = value.text();
    while (out.size() < size) {
      out.Append(part, 0, size - out.size());
      if (part.size() < kPart) part = out;  // doubles
    }
    return rt.Make(std::move(out));
  }
  const Values& items = value.list().items;
  rt.PaySteps(items.size() * n);
  Values out;
  out.reserve(items.size() * n);
  for (size_t i = 0; unit > 0 && i < n; ++i) out.insert(out.end(), items.begin(), items.end());
  return rt.Make(std::move(out), value.list().kind);
}

bool IsPlainSequence(const Value& value) {
  return value.IsList() &&
         (value.list().kind == List::Kind::kList || value.list().kind == List::Kind::kTuple);
}

bool SameSequenceType(const Value& left, const Value& right) {
  return IsPlainSequence(left) && right.IsList() && left.list().kind == right.list().kind;
}

Value Join(Runtime& rt, const Value& left, const Value& right) {
  if (left.IsString()) {
    rt.PayBytes(left.text().Cost() + right.text().Cost());
    Text out = left.text();
    out.Append(right.text());
    return rt.Make(std::move(out));
  }
  Values out = left.list().items;
  const Values& more = right.list().items;
  out.insert(out.end(), more.begin(), more.end());
  return rt.Make(std::move(out), left.list().kind);
}

// Exact: an int64 may have more digits than a double.
std::partial_ordering OrderIntFloat(int64_t a, double b) {
  const std::optional<int64_t> whole = WholePart(b);
  if (!whole) return 0.0 <=> b;  // nan, or further from 0 than a
  if (const auto order = a <=> *whole; order != 0) return order;
  return 0.0 <=> b - static_cast<double>(*whole);
}

std::partial_ordering OrderNumbers(const Value& left, const Value& right) {
  if (left.IsIntegral() && right.IsIntegral()) return left.integer() <=> right.integer();
  if (left.IsIntegral()) return OrderIntFloat(left.integer(), right.number());
  if (right.IsIntegral()) return 0 <=> OrderIntFloat(right.integer(), left.number());
  return left.number() <=> right.number();
}

std::partial_ordering Order(Runtime& rt, const Value& left, const Value& right, CompareOp op) {
  const Nesting nesting = rt.OneLevel();
  rt.PaySteps();
  RequireDefined(left);
  RequireDefined(right);
  if (left.IsNumber() && right.IsNumber()) return OrderNumbers(left, right);
  if (left.IsString() && right.IsString()) {
    rt.PayReading(left.view().size());
    return left.view().compare(right.view()) <=> 0;  // UTF-8 sorts as its code points do
  }
  if (!SameSequenceType(left, right)) {
    Fail("'", Symbol(op), "' not supported between instances of ", QuotedType(left), " and ",
         QuotedType(right));
  }
  const Values &a = left.list().items, &b = right.list().items;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!Equal(rt, a[i], b[i])) return Order(rt, a[i], b[i], op);
  }
  return a.size() <=> b.size();
}

bool EqualDicts(Runtime& rt, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = rt.FindEntry(right, key);
    if (other == nullptr || !Equal(rt, value, *other)) return false;
  }
  return true;
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
  RequireDefined(right);
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
  if (op == BinaryOp::kMul) {
    const auto repeatable = [](const Value& value) {
      return value.IsString() || IsPlainSequence(value);
    };
    if (repeatable(left) && right.IsIntegral()) return Repeat(rt, left, right.integer());
    if (repeatable(right) && left.IsIntegral()) return Repeat(rt, right, left.integer());
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
  rt.PaySteps();
  if (left.IsNumber() && right.IsNumber()) return OrderNumbers(left, right) == 0;
  if (left.IsString() && right.IsString()) {
    rt.PayReading(left.view().size());
    return left.view() == right.view();
  }
  if (left.IsDict() && right.IsDict()) return EqualDicts(rt, left.dict(), right.dict());
  if (left.IsList() && right.IsList() && left.list().kind == right.list().kind) {
    const Values &a = left.list().items, &b = right.list().items;
    if (!left.list().CanIndex() || a.size() != b.size()) return &a == &b;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Equal(rt, a[i], b[i])) return false;
    }
    return true;
  }
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

}  // namespace tokenizer::jinja
