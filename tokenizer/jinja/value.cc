#include "tokenizer/jinja/value.h"

#include <cmath>

#include "tokenizer/template_error.h"

namespace tokenizer::jinja {
namespace {

template <typename... Fns>
struct Overloaded : Fns... {
  using Fns::operator()...;
};
template <typename... Fns>
Overloaded(Fns...) -> Overloaded<Fns...>;

std::string_view ListTypeName(List::Kind kind) {
  switch (kind) {
    case List::Kind::kList:
      return "list";
    case List::Kind::kTuple:
      return "tuple";
    case List::Kind::kRange:
      return "range";
    case List::Kind::kGenerator:
      return "generator";
    case List::Kind::kKeys:
      return "dict_keys";
    case List::Kind::kValues:
      return "dict_values";
    case List::Kind::kItems:
      return "dict_items";
  }
  return "list";
}

// Whole numbers that fit are written as integers: 1.0 and 1 are the same key.
std::string NumberKey(double number) {
  constexpr double kInt64End = 9223372036854775808.0;  // 2^63
  if (number == std::floor(number) && number >= -kInt64End && number < kInt64End) {
    return "n" + std::to_string(static_cast<int64_t>(number));
  }
  const char* bytes = reinterpret_cast<const char*>(&number);
  return "f" + std::string(bytes, sizeof number);
}

}  // namespace

Value Value::ListOf(std::vector<Value> items) {
  return std::make_shared<List>(List{.items = std::move(items)});
}

Value Value::DictOf(std::vector<std::pair<std::string, Value>> entries) {
  auto dict = std::make_shared<Dict>();
  for (std::pair<std::string, Value>& entry : entries) {
    dict->Set(Value(entry.first), std::move(entry.second));
  }
  return dict;
}

bool Value::Truth() const {
  return std::visit(Overloaded{
                        [](const None&) { return false; },
                        [](const Undefined&) { return false; },
                        [](bool value) { return value; },
                        [](int64_t value) { return value != 0; },
                        [](double value) { return value != 0; },
                        [](const std::shared_ptr<const Text>& text) { return !text->empty(); },
                        [](const std::shared_ptr<List>& list) {
                          return !list->HasLength() || !list->items.empty();
                        },
                        [](const std::shared_ptr<Dict>& dict) { return !dict->entries.empty(); },
                        [](const std::shared_ptr<Object>&) { return true; },
                    },
                    data_);
}

bool Value::SameAs(const Value& other) const {
  return data_.index() == other.data_.index() &&
         std::visit(Overloaded{
                        [](const None&, const None&) { return true; },
                        [](const Undefined&, const Undefined&) { return false; },
                        [](const std::shared_ptr<const Text>& a,
                           const std::shared_ptr<const Text>& b) { return a->view() == b->view(); },
                        []<typename T>(const T& a, const T& b) { return a == b; },
                        [](const auto&, const auto&) { return false; },
                    },
                    data_, other.data_);
}

std::string_view Value::TypeName() const {
  return std::visit(
      Overloaded{
          [](const None&) -> std::string_view { return "NoneType"; },
          [](const Undefined&) -> std::string_view { return "Undefined"; },
          [](bool) -> std::string_view { return "bool"; },
          [](int64_t) -> std::string_view { return "int"; },
          [](double) -> std::string_view { return "float"; },
          [](const std::shared_ptr<const Text>&) -> std::string_view { return "str"; },
          [](const std::shared_ptr<List>& list) { return ListTypeName(list->kind); },
          [](const std::shared_ptr<Dict>&) -> std::string_view { return "dict"; },
          [](const std::shared_ptr<Object>& object) { return object->TypeName(); },
      },
      data_);
}

std::string QuotedType(const Value& value) { return "'" + std::string(value.TypeName()) + "'"; }

std::string HashKey(const Value& key) {
  if (key.IsString()) return "s" + std::string(key.view());
  if (key.IsIntegral()) return "n" + std::to_string(key.integer());
  if (key.IsFloat()) return NumberKey(key.number());
  if (key.IsNone()) return "0";
  if (key.IsUndefined()) return "u";
  if (key.IsObject()) return "o" + std::to_string(reinterpret_cast<uintptr_t>(&key.object()));
  throw TemplateError("unhashable type: " + QuotedType(key));
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
  throw TemplateError("'" + std::string(TypeName()) + "' object is not callable");
}

}  // namespace tokenizer::jinja
