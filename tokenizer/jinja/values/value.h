// A template's values, as Python's None, bool, int, float, str, list, tuple, dict and callables.
//
// Values are cheap to copy; lists, dictionaries and objects are shared, as in Python. At run time
// the Runtime (runtime.h) makes and owns them. Their memory is counted (text.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/jinja/values/text.h"

namespace tokenizer::jinja {

class Interpreter;
class Object;
class Value;
struct Dict;
struct List;

// A missing name or attribute. It prints as nothing and is false; any other use is an error.
struct Undefined {
  std::shared_ptr<const String> message;
  bool operator==(const Undefined&) const = default;
};

struct None {
  bool operator==(const None&) const = default;
};

class Value {
 public:
  Value() : data_(None{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(std::string_view text) : Value(Text(text)) {}
  Value(const std::string& text) : Value(Text(text)) {}
  Value(const String& text) : Value(Text(text)) {}
  Value(const char* text) : Value(Text(text)) {}
  Value(Text text) : data_(MakeShared<const Text>(std::move(text))) {}
  Value(std::shared_ptr<List> list) : data_(std::move(list)) {}
  Value(std::shared_ptr<Dict> dict) : data_(std::move(dict)) {}
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}

  // Make a template's input, for example from JSON. Callers limit its nesting; rendering refuses
  // more than runtime.h allows.
  static Value ListOf(std::vector<Value> items);
  static Value DictOf(std::vector<std::pair<std::string, Value>> entries);
  // A whole number beyond 63 bits, which prints as its digits and takes no part in arithmetic.
  static Value BigInteger(std::string digits);

  bool IsUndefined() const { return std::holds_alternative<Undefined>(data_); }
  bool IsNone() const { return std::holds_alternative<None>(data_); }
  bool IsBool() const { return std::holds_alternative<bool>(data_); }
  bool IsInt() const { return std::holds_alternative<int64_t>(data_); }
  bool IsFloat() const { return std::holds_alternative<double>(data_); }
  bool IsString() const { return std::holds_alternative<std::shared_ptr<const Text>>(data_); }
  bool IsList() const { return std::holds_alternative<std::shared_ptr<List>>(data_); }
  bool IsDict() const { return std::holds_alternative<std::shared_ptr<Dict>>(data_); }
  bool IsObject() const { return std::holds_alternative<std::shared_ptr<Object>>(data_); }
  // Python's bool is an int.
  bool IsIntegral() const { return IsInt() || IsBool(); }
  bool IsNumber() const { return IsIntegral() || IsFloat(); }
  bool IsBigInteger() const;

  // Each requires the Is...() of its kind.
  const Undefined& undefined() const { return std::get<Undefined>(data_); }
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const { return IsBool() ? boolean() : std::get<int64_t>(data_); }
  double number() const { return IsFloat() ? std::get<double>(data_) : double(integer()); }
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  std::string_view view() const { return text().view(); }
  List& list() const { return *std::get<std::shared_ptr<List>>(data_); }
  Dict& dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(data_); }

  bool Truth() const;
  // One object, or equal numbers or strings: Python's `is`, as `is sameas` tests it.
  bool SameAs(const Value& other) const;
  // Python's name of the type: "str", "dict"...
  std::string_view TypeName() const;

 private:
  std::variant<None, Undefined, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<List>, std::shared_ptr<Dict>, std::shared_ptr<Object>>
      data_;
};

// The name of the type in quotes, for messages.
std::string QuotedType(const Value& value);
// A number without its fraction; empty if that does not fit an integer.
std::optional<int64_t> WholePart(double number);

using Values = Vector<Value>;

// Every kind of sequence except strings. A generator has no length and can be read once.
struct List {
  enum class Kind { kList, kTuple, kGenerator };
  Values items;
  Kind kind = Kind::kList;
  bool is_group = false;  // a tuple of groupby: its items are also .grouper and .list

  bool HasLength() const { return kind != Kind::kGenerator; }
};

// Keeps the order of insertion. Keys are values; 1, 1.0 and true are the same key.
struct Dict {
  Vector<std::pair<Value, Value>> entries;
  NameMap<size_t> index;  // HashKey of the key -> place in entries

  // Throw TemplateError if the value cannot be a key; see HashKey.
  const Value* Find(const Value& key) const;
  void Set(const Value& key, Value value);
  // Sets each pair of a range; the first of a pair is a Value or a text.
  template <typename Entries>
  void SetAll(const Entries& entries_of) {
    for (const auto& [key, value] : entries_of) Set(Value(key), value);
  }
};

// A text that is equal for equal keys. Throws TemplateError for lists and dictionaries, and for
// tuples of more than 64 KB.
String HashKey(const Value& key);

// Positional and keyword arguments of a call.
using NamedValue = std::pair<String, Value>;
struct Arguments {
  Values positional;
  Vector<NamedValue> named;
};

// Functions, macros, namespaces, loops.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string_view TypeName() const = 0;
  virtual std::optional<Value> Attribute(Interpreter& in, std::string_view name);
  virtual std::string Repr() const { return "<" + std::string(TypeName()) + ">"; }
  virtual bool IsCallable() const { return false; }
  virtual Value Call(Interpreter& in, const Arguments& args);
  // Releases all values, so that objects that refer to each other can be freed.
  virtual void Clear() {}
};

}  // namespace tokenizer::jinja
