#include "tests/support/json.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace test {
namespace {

Json From(const nlohmann::ordered_json& value) {
  if (value.is_null()) return nullptr;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  Json json = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, part] : value.items()) {
    value.is_array() ? json.push_back(From(part)) : void(json[key] = From(part));
  }
  return json;
}

std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

Json::Json(std::initializer_list<Json> values) : kind_(Kind::kArray), values_(values) {
  const auto is_member = [](const Json& value) {
    return value.is_array() && value.size() == 2 && value[0].is_string();
  };
  if (!std::ranges::all_of(values, is_member)) return;
  *this = object();
  for (const Json& value : values) (*this)[value[0].text_] = value[1];
}

Json Json::array(std::initializer_list<Json> values) {
  Json json;
  json.kind_ = Kind::kArray;
  json.values_ = values;
  return json;
}

Json Json::object() {
  Json json;
  json.kind_ = Kind::kObject;
  return json;
}

Json Json::parse(const std::string& text) { return From(nlohmann::ordered_json::parse(text)); }

bool Json::accept(const std::string& text) { return nlohmann::json::accept(text); }

std::string Json::dump() const {
  if (is_null()) return "null";
  if (is_string()) return Quoted(text_);
  if (!is_array() && !is_object()) return text_;
  std::string text;
  for (size_t i = 0; i < size(); ++i) {
    text += (i == 0 ? "" : ",") + (is_object() ? Quoted(keys_[i]) + ":" : "") + values_[i].dump();
  }
  return is_object() ? "{" + text + "}" : "[" + text + "]";
}

bool Json::is_number_integer() const {
  return is_number() && text_.find_first_not_of("-0123456789") == std::string::npos;
}

std::vector<std::pair<std::string, Json>> Json::items() const {
  std::vector<std::pair<std::string, Json>> items;
  for (size_t i = 0; i < size(); ++i) items.emplace_back(is_object() ? keys_[i] : "", values_[i]);
  return items;
}

void Json::push_back(const Json& value) {
  if (is_null()) kind_ = Kind::kArray;
  if (!is_array()) throw std::invalid_argument(dump() + " is no array");
  values_.push_back(value);
}

void Json::erase(std::string_view key) {
  const Json* const found = Find(key);
  if (found == nullptr) return;
  const auto i = found - begin();
  values_.erase(values_.begin() + i);
  keys_.erase(keys_.begin() + i);
}

bool operator==(const Json& a, const Json& b) {
  if (a.kind_ != b.kind_ || a.size() != b.size()) return false;
  if (a.is_number() && !(a.is_number_integer() && b.is_number_integer())) {
    return a.Double() == b.Double();
  }
  for (size_t i = 0; i < a.size(); ++i) {
    const Json* const other = a.is_object() ? b.Find(a.keys_[i]) : b.Find(i);
    if (other == nullptr || !(a.values_[i] == *other)) return false;
  }
  return a.text_ == b.text_;
}

std::string Json::Written(double value) { return nlohmann::json(value).dump(); }

const Json& Json::Null() {
  static const Json kNull;
  return kNull;
}

const std::string& Json::TextOf(Kind kind) const {
  if (kind_ != kind) throw std::invalid_argument(dump() + " is of another kind");
  return text_;
}

double Json::Double() const { return std::strtod(TextOf(Kind::kNumber).c_str(), nullptr); }

int64_t Json::Integer() const {
  if (!is_number_integer()) return static_cast<int64_t>(Double());
  uint64_t number = 0;
  const bool is_negative = text_[0] == '-';
  std::from_chars(text_.data() + is_negative, text_.data() + text_.size(), number);
  return static_cast<int64_t>(is_negative ? -number : number);
}

const Json* Json::Find(std::string_view key) const {
  const auto found = std::ranges::find(keys_, key);
  return found == keys_.end() ? nullptr : begin() + (found - keys_.begin());
}

Json& Json::Make(std::string_view key) {
  if (is_null()) kind_ = Kind::kObject;
  if (!is_object()) throw std::invalid_argument(dump() + " has no " + std::string(key));
  keys_.emplace_back(key);
  return values_.emplace_back();
}

}  // namespace test
