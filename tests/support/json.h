// JSON in tests: values that another project's library reads and writes, with the part of its
// interface that tests use. Its own header takes seconds to compile in each file.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

template <class T>
concept JsonNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

class Json {
 public:
  Json(std::nullptr_t = nullptr) {}
  Json(bool value) : kind_(Kind::kBool), text_(value ? "true" : "false") {}
  Json(JsonNumber auto value) : kind_(Kind::kNumber), text_(Written(value)) {}
  Json(const std::string& text) : kind_(Kind::kString), text_(text) {}
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  template <class T>
  Json(const std::vector<T>& values) : kind_(Kind::kArray), values_(values.begin(), values.end()) {}
  // An object if each value is a list of a text and another value. Write a list of one Json as
  // array({value}): compilers differ about {value}.
  Json(std::initializer_list<Json> values);
  static Json array(std::initializer_list<Json> values = {});
  static Json object();
  static Json parse(const std::string& text);  // throws std::exception
  static bool accept(const std::string& text);

  std::string dump() const;  // throws std::exception if a text is not UTF-8
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_boolean() const { return kind_ == Kind::kBool; }
  bool is_number() const { return kind_ == Kind::kNumber; }
  bool is_number_integer() const;
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }

  // Throws std::exception for a value of another kind.
  template <class T>
  T get() const {
    if constexpr (std::is_same_v<T, std::string>) {
      return TextOf(Kind::kString);
    } else if constexpr (std::is_same_v<T, bool>) {
      return TextOf(Kind::kBool) == "true";
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(Double());
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(Integer());
    } else {
      T list;
      for (const Json& value : *this) list.push_back(value.get<typename T::value_type>());
      return list;
    }
  }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) operator T() const {
    return get<T>();
  }

  // Finds a value by key or by index. An absent value is null; a mutable one is created.
  template <class Key>
  const Json& operator[](const Key& key) const {
    const Json* const found = Find(key);
    return found == nullptr ? Null() : *found;
  }
  template <class Key>
  Json& operator[](const Key& key) {
    const Json* const found = Find(key);
    return found == nullptr ? Make(key) : const_cast<Json&>(*found);
  }
  bool contains(std::string_view key) const { return Find(key) != nullptr; }
  size_t size() const { return values_.size(); }
  // The values of an array or an object, in the text's order.
  const Json* begin() const { return values_.data(); }
  const Json* end() const { return begin() + size(); }
  Json* begin() { return values_.data(); }
  Json* end() { return begin() + size(); }
  std::vector<std::pair<std::string, Json>> items() const;  // items of an array have no keys
  void push_back(const Json& value);
  void erase(std::string_view key);

  // Compares members in any order, and numbers by value.
  friend bool operator==(const Json& a, const Json& b);
  template <class T>
  requires(std::is_convertible_v<T, Json> && !std::is_same_v<T, Json>) friend bool operator==(
      const Json& a, const T& b) {
    return a == Json(b);
  }
  friend std::partial_ordering operator<=>(const Json& a, JsonNumber auto b) {
    return a.Double() <=> static_cast<double>(b);
  }
  friend std::ostream& operator<<(std::ostream& out, const Json& json) {
    return out << json.dump();
  }

 private:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  static std::string Written(double value);
  static std::string Written(std::integral auto value) { return std::to_string(value); }
  static const Json& Null();
  const std::string& TextOf(Kind kind) const;
  double Double() const;
  int64_t Integer() const;
  const Json* Find(std::string_view key) const;
  const Json* Find(std::integral auto i) const {
    return static_cast<size_t>(i) < size() ? begin() + i : nullptr;
  }
  Json& Make(std::string_view key);  // a number throws std::exception
  Json& Make(std::integral auto i) { return Make(std::to_string(i)); }

  Kind kind_ = Kind::kNull;
  std::string text_;               // a string's text; the spelling of a bool or number
  std::vector<std::string> keys_;  // the keys of an object
  std::vector<Json> values_;
};

}  // namespace test
