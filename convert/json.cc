#include "convert/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "gguf/error.h"

namespace convert {
namespace {

// Checks a text before it is parsed into values, which take many times its size and are freed
// recursively. Also finds duplicate keys, of which only the last would be kept.
class Bounds : public Json::json_sax_t {
 public:
  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override { return Open(); }
  bool key(string_t& key) override {
    return Within(keys_.back().insert(key).second, "has the key " + gguf::Quoted(key) + " twice");
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t byte, const std::string&, const Json::exception&) override {
    wrong_ = "is no JSON from byte " + std::to_string(byte) + " on";
    return false;
  }

  const std::string& wrong() const { return wrong_; }

 private:
  // Vocabularies have some hundred thousand tokens, and equally many merges of two texts each.
  static constexpr size_t kMaxDepth = 32, kMaxValues = size_t{1} << 22;

  bool Within(bool within, const std::string& what) {
    if (!within) wrong_ = what;
    return within;
  }
  bool Count() {
    return Within(++n_values_ <= kMaxValues,
                  "has more than " + std::to_string(kMaxValues) + " values");
  }
  bool Open() {
    keys_.emplace_back();
    return Count() && Within(keys_.size() <= kMaxDepth,
                             "is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }
  std::vector<std::set<std::string>> keys_;  // of each open object or list
  size_t n_values_ = 0;
  std::string wrong_;
};

const Json kNothing;  // null

std::string KindOf(const Json& json) {
  if (json.is_array()) return "a list";
  if (json.is_object()) return "an object";
  return json.is_string() ? "a text" : json.is_null() ? "nothing" : json.dump();
}

}  // namespace

Fields ParseObject(const std::string& file, std::string_view text) {
  Bounds bounds;
  if (!Json::sax_parse(text, &bounds)) {
    throw gguf::Error(gguf::PrintablePath(file) + ": expected JSON; it " + bounds.wrong());
  }
  return {file, Json::parse(text)};
}

Fields::Fields(std::string file, Json json)
    : file_(std::move(file)), json_(std::make_shared<const Json>(std::move(json))) {
  if (!json_->is_object()) {
    throw gguf::Error(gguf::PrintablePath(file_) + ": expected a JSON object, found " +
                      KindOf(*json_));
  }
}

const Json& Fields::Find(std::string_view key) const {
  if (json_ == nullptr) return kNothing;
  const auto found = json_->find(key);
  return found == json_->end() ? kNothing : *found;
}

std::vector<std::string> Fields::Names() const {
  std::vector<std::string> names;
  if (json_ == nullptr) return names;
  for (const auto& [name, value] : json_->items()) names.push_back(name);
  return names;
}

bool Fields::Has(std::string_view key) const { return !Find(key).is_null(); }
bool Fields::IsText(std::string_view key) const { return Find(key).is_string(); }
bool Fields::IsObject(std::string_view key) const { return Find(key).is_object(); }
bool Fields::IsList(std::string_view key) const { return Find(key).is_array(); }

void Fields::Fail(std::string_view key, const std::string& what) const {
  throw gguf::Error(gguf::PrintablePath(file_) + ": " +
                    gguf::Printable(prefix_ + std::string(key)) + ": " + what);
}

void Fields::FailKind(std::string_view key, const std::string& expected) const {
  Fail(key, "expected " + expected + ", found " + KindOf(Find(key)));
}

const Json& Fields::Need(std::string_view key, const std::string& expected) const {
  if (!Has(key)) FailKind(key, expected);
  return Find(key);
}

uint64_t Fields::UintOr(std::string_view key, uint64_t fallback) const {
  const Json& value = Find(key);
  if (value.is_null()) return fallback;
  const bool is_whole =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  if (!is_whole || value.get<uint64_t>() > UINT32_MAX) {
    FailKind(key, "a whole number from 0 to " + std::to_string(UINT32_MAX));
  }
  return value.get<uint64_t>();
}

uint64_t Fields::Count(std::string_view key) const {
  Need(key, "a whole number above 0");
  const uint64_t count = UintOr(key, 0);
  if (count == 0) FailKind(key, "a whole number above 0");
  return count;
}

uint64_t Fields::CountOr(std::string_view key, uint64_t fallback) const {
  return Has(key) ? Count(key) : fallback;
}

double Fields::Number(std::string_view key) const {
  const Json& value = Need(key, "a number");
  if (!value.is_number() || !std::isfinite(value.get<double>())) FailKind(key, "a number");
  return value.get<double>();
}

double Fields::NumberOr(std::string_view key, double fallback) const {
  return Has(key) ? Number(key) : fallback;
}

bool Fields::BoolOr(std::string_view key, bool fallback) const {
  const Json& value = Find(key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean()) FailKind(key, "true or false");
  return value.get<bool>();
}

std::string Fields::Text(std::string_view key) const {
  const Json& value = Need(key, "a text");
  if (!value.is_string()) FailKind(key, "a text");
  return value.get<std::string>();
}

std::string Fields::TextOr(std::string_view key, const std::string& fallback) const {
  return Has(key) ? Text(key) : fallback;
}

Fields Fields::Object(std::string_view key) const {
  const Json& value = Find(key);
  Fields fields;
  fields.file_ = file_;
  fields.prefix_ = prefix_ + std::string(key) + ".";
  if (value.is_null()) return fields;
  if (!value.is_object()) FailKind(key, "an object");
  fields.json_ = std::shared_ptr<const Json>(json_, &value);
  return fields;
}

std::vector<Fields> Fields::Objects(std::string_view key) const {
  const Json& list = Find(key);
  if (!list.is_array()) FailKind(key, "a list");
  std::vector<Fields> objects;
  for (const Json& item : list) objects.emplace_back(file_, item);
  return objects;
}

std::vector<std::string> Fields::Pairs(std::string_view key) const {
  const Json& list = Find(key);
  if (!list.is_array()) FailKind(key, "a list");
  std::vector<std::string> texts;
  for (const Json& item : list) {
    const bool is_pair =
        item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string();
    if (!is_pair && !item.is_string()) Fail(key, "expected pairs of tokens");
    texts.push_back(is_pair ? item[0].get<std::string>() + " " + item[1].get<std::string>()
                            : item.get<std::string>());
  }
  return texts;
}

std::optional<uint64_t> Fields::Whole(std::string_view key) const {
  const Json& value = Find(key);
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<uint64_t>();
}

std::optional<std::vector<uint64_t>> Fields::Wholes(std::string_view key) const {
  const Json& list = Find(key);
  const auto is_whole = [](const Json& item) { return item.is_number_unsigned(); };
  if (!list.is_array() || !std::ranges::all_of(list, is_whole)) return std::nullopt;
  return list.get<std::vector<uint64_t>>();
}

std::vector<double> Fields::Numbers(std::string_view key) const {
  const Json& value = Find(key);
  if (value.is_null()) return {};
  std::vector<double> numbers;
  for (const Json& item : value.is_array() ? value : Json::array({value})) {
    if (!item.is_number() || !std::isfinite(item.get<double>())) FailKind(key, "numbers");
    numbers.push_back(item.get<double>());
  }
  return numbers;
}

std::vector<std::string> Fields::Texts(std::string_view key) const {
  const Json& value = Find(key);
  if (value.is_null()) return {};
  if (!value.is_array()) FailKind(key, "a list of texts");
  std::vector<std::string> texts;
  for (const Json& item : value) {
    if (!item.is_string()) FailKind(key, "a list of texts");
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

Fields Fields::Over(const Fields& outer) const {
  Json joined = outer.is_there() ? *outer.json_ : Json::object();
  if (is_there()) joined.update(*json_);
  return {outer.file_, std::move(joined)};
}

}  // namespace convert
