#include "tokenizer/jinja/values/value.h"

#include "tokenizer/errors.h"

namespace tokenizer::jinja {
namespace {

// Numbers with integer values that fit are written as integers: 1.0 and 1 are the same key.
std::string NumberKey(double number) {
  const auto whole = WholePart(number);
  if (whole && static_cast<double>(*whole) == number) return "n" + std::to_string(*whole);
  const char* bytes = reinterpret_cast<const char*>(&number);
  return "f" + std::string(bytes, sizeof number);
}

class BigIntegerObject : public Object {
 public:
  explicit BigIntegerObject(std::string digits) : digits_(std::move(digits)) {}
  std::string_view TypeName() const override { return "int"; }
  std::string Repr() const override { return digits_; }

 private:
  std::string digits_;
};

void AppendKey(const Value& key, int depth, String& out) {
  constexpr int kMaxDepth = 100;
  constexpr size_t kMaxTupleBytes = size_t{1} << 16;
  if (!key.IsList() || key.list().kind != List::Kind::kTuple) {
    const String own = HashKey(key);
    out += std::to_string(own.size()) + ":";
    out += own;
    return;
  }
  if (depth > kMaxDepth || out.size() > kMaxTupleBytes) Fail("a tuple is too large to be a key");
  out += "t(";
  for (const Value& item : key.list().items) AppendKey(item, depth + 1, out);
  out += ")";
}

}  // namespace

Value Value::BigInteger(std::string digits) {
  return Value(std::make_shared<BigIntegerObject>(std::move(digits)));
}

bool Value::IsBigInteger() const { return IsObject() && object().TypeName() == "int"; }

Value Value::ListOf(std::vector<Value> items) {
  return std::make_shared<List>(List{.items = Values(items.begin(), items.end())});
}

Value Value::DictOf(std::vector<std::pair<std::string, Value>> entries) {
  auto dict = std::make_shared<Dict>();
  for (std::pair<std::string, Value>& entry : entries) {
    dict->Set(Value(entry.first), std::move(entry.second));
  }
  return dict;
}

bool Value::Truth() const {
  if (IsNumber()) return number() != 0;
  if (IsString()) return !text().empty();
  if (IsList()) return !list().HasLength() || !list().items.empty();
  if (IsDict()) return !dict().entries.empty();
  return IsObject();
}

bool Value::SameAs(const Value& other) const {
  if (IsString() && other.IsString()) return view() == other.view();
  return !IsUndefined() && data_ == other.data_;
}

std::string_view Value::TypeName() const {
  constexpr std::string_view kNames[] = {"NoneType", "Undefined", "bool", "int",
                                         "float",    "str",       "list", "dict"};
  constexpr std::string_view kListNames[] = {"list", "tuple", "generator"};
  if (IsObject()) return object().TypeName();
  return IsList() ? kListNames[static_cast<size_t>(list().kind)] : kNames[data_.index()];
}

std::optional<int64_t> WholePart(double number) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (!(number >= -kEnd && number < kEnd)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string QuotedType(const Value& value) { return "'" + std::string(value.TypeName()) + "'"; }

String HashKey(const Value& key) {
  String out;
  if (key.IsString()) {
    (out = "s") += key.view();
  } else if (key.IsIntegral()) {
    out = "n" + std::to_string(key.integer());
  } else if (key.IsFloat()) {
    out = NumberKey(key.number());
  } else if (key.IsNone() || key.IsUndefined()) {
    out = key.IsNone() ? "0" : "u";
  } else if (key.IsBigInteger()) {
    out = "n" + key.object().Repr();
  } else if (key.IsList() && key.list().kind == List::Kind::kTuple) {
    AppendKey(key, 0, out);
  } else if (key.IsObject()) {
    out = "o" + std::to_string(reinterpret_cast<uintptr_t>(&key.object()));
  } else {
    Fail("unhashable type: ", QuotedType(key));
  }
  return out;
}

const Value* Dict::Find(const Value& key) const {
  const auto found = index.find(HashKey(key));
  return found == index.end() ? nullptr : &entries[found->second].second;
}

void Dict::Set(const Value& key, Value value) {
  const auto [place, added] = index.try_emplace(HashKey(key), entries.size());
  if (added) {
    entries.emplace_back(key, std::move(value));
  } else {
    entries[place->second].second = std::move(value);
  }
}

std::optional<Value> Object::Attribute(Interpreter&, std::string_view) { return std::nullopt; }

Value Object::Call(Interpreter&, const Arguments&) {
  Fail("'", TypeName(), "' object is not callable");
}

}  // namespace tokenizer::jinja
