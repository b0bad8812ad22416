// Fields with messages that name file, key, expected and found value.
#include "engine/hf/fields.h"

#include <algorithm>
#include <utility>

#include "gguf/error.h"

namespace engine {
namespace {

constexpr size_t kMaxListed = size_t{1} << 20, kMaxObjects = size_t{1} << 16;

std::string KindOf(const JsonView& json) {
  if (json.IsArray()) return "a list";
  if (json.IsObject()) return "an object";
  if (json.IsString()) return "a text";
  return json.IsNumber() || json.IsBool() ? std::string(json.text().substr(0, 40)) : "nothing";
}

}  // namespace

Fields ParseObject(const std::string& file, std::string text) {
  // Vocabularies have several hundred thousand tokens, and equally many merges of two texts each.
  constexpr size_t kMaxValues = size_t{1} << 22;
  const gguf::JsonLimits limits{.depth = 32,
                                .values = kMaxValues,
                                .keys = kMaxValues,
                                .unique_keys = true,
                                .not_finite = true};
  JsonView json;
  try {
    json = JsonView::Parse(std::move(text), limits);
  } catch (const gguf::Error& error) {
    gguf::Fail(file, "expected JSON; it ", error.what());
  }
  return {file, std::move(json)};
}

Fields::Fields(std::string file, JsonView json, std::string prefix)
    : file_(std::move(file)), prefix_(std::move(prefix)), layers_{std::move(json)} {
  if (!layers_[0].IsObject()) {
    gguf::Fail(file_, "expected a JSON object, found ", KindOf(layers_[0]));
  }
}

JsonView Fields::Find(std::string_view key) const {
  for (const JsonView& layer : layers_) {
    const JsonView found = layer[key];
    if (found.is_there()) return found.kind() == JsonView::Kind::kNull ? JsonView() : found;
  }
  return {};
}

const KeyValue* Fields::FindSet(std::string_view key) const {
  const auto found = std::ranges::find(set_, key, &KeyValue::key);
  return found != set_.end() ? &*found : nullptr;
}

void Fields::SetIfAbsent(const KeyValue& value) {
  const auto has = [&](const JsonView& layer) { return layer[value.key].is_there(); };
  if (FindSet(value.key) == nullptr && std::ranges::none_of(layers_, has)) Set(value);
}

void Fields::FailKind(std::string_view key, const std::string& expected) const {
  Fail(key, "expected ", expected, ", found ", KindOf(Find(key)));
}

uint64_t Fields::UintOr(std::string_view key, uint64_t fallback) const {
  if (const KeyValue* const set = FindSet(key)) return static_cast<uint64_t>(set->number);
  const JsonView value = Find(key);
  if (!value.is_there()) return fallback;
  const std::optional<uint64_t> number = value.Unsigned();
  if (!number || *number > UINT32_MAX) {
    FailKind(key, "a whole number from 0 to " + std::to_string(UINT32_MAX));
  }
  return *number;
}

uint64_t Fields::Count(std::string_view key) const {
  const uint64_t count = UintOr(key, 0);
  if (count == 0) FailKind(key, "a whole number above 0");
  return count;
}

double Fields::Number(std::string_view key) const {
  if (const KeyValue* const set = FindSet(key)) return set->number;
  const JsonView value = Find(key);
  if (!value.IsNumber()) FailKind(key, "a number");
  return value.Number();
}

double Fields::ShareOr(std::string_view key, double fallback) const {
  const double share = NumberOr(key, fallback);
  if (!(share > 0 && share <= 1)) Fail(key, "expected 0 to 1");
  return share;
}

bool Fields::BoolOr(std::string_view key, bool fallback) const {
  if (const KeyValue* const set = FindSet(key)) return set->number != 0;
  const JsonView value = Find(key);
  if (!value.is_there()) return fallback;
  if (!value.IsBool()) FailKind(key, "true or false");
  return value.Bool();
}

std::string Fields::Text(std::string_view key) const {
  if (const KeyValue* const set = FindSet(key)) return std::string(set->text);
  const JsonView value = Find(key);
  if (!value.IsString()) FailKind(key, "a text");
  return value.String();
}

Fields Fields::Object(std::string_view key) const {
  Fields fields;
  fields.file_ = file_;
  fields.prefix_ = prefix_ + std::string(key) + ".";
  const JsonView value = Find(key);
  if (!value.is_there()) return fields;
  if (!value.IsObject()) FailKind(key, "an object");
  fields.layers_ = {value};
  return fields;
}

JsonView Fields::List(std::string_view key, const std::string& expected, size_t limit) const {
  JsonView list = Find(key);
  if (!list.IsArray()) FailKind(key, expected);
  if (list.size() > limit) Fail(key, "expected at most ", limit, " items, found ", list.size());
  return list;
}

std::vector<Fields> Fields::Objects(std::string_view key) const {
  std::vector<Fields> objects;
  for (const auto& item : List(key, "a list", kMaxObjects)) objects.emplace_back(file_, item.value);
  return objects;
}

std::vector<std::string> Fields::Pairs(std::string_view key) const {
  std::vector<std::string> texts;
  for (const auto& item : List(key, "a list", kMaxListed)) {
    std::string text;
    if (item.value.IsString()) text = item.value.String();
    size_t n = 0;
    for (const auto& part : item.value) {
      if (!part.value.IsString()) Fail(key, "expected pairs of tokens");
      text += (n++ == 0 ? "" : " ") + part.value.String();
    }
    if (n != 2 && !item.value.IsString()) Fail(key, "expected pairs of tokens");
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<uint64_t> Fields::Wholes(std::string_view key, size_t limit) const {
  std::vector<uint64_t> numbers;
  for (const auto& item : List(key, "a list of whole numbers", limit)) {
    const std::optional<uint64_t> number = item.value.Unsigned();
    if (!number) Fail(key, "expected whole numbers, found ", KindOf(item.value));
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<double> Fields::Numbers(std::string_view key) const {
  const JsonView value = Find(key);
  if (!value.is_there()) return {};
  if (value.IsNumber()) return {value.Number()};
  std::vector<double> numbers;
  for (const auto& item : List(key, "numbers", kMaxListed)) {
    if (!item.value.IsNumber()) FailKind(key, "numbers");
    numbers.push_back(item.value.Number());
  }
  return numbers;
}

std::vector<std::string> Fields::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  if (!Has(key)) return texts;
  for (const auto& item : List(key, "a list of texts", kMaxListed)) {
    if (!item.value.IsString()) FailKind(key, "a list of texts");
    texts.push_back(item.value.String());
  }
  return texts;
}

Fields Fields::Over(const Fields& outer) const {
  Fields joined;
  joined.file_ = outer.file_;
  joined.layers_ = layers_;
  joined.layers_.insert(joined.layers_.end(), outer.layers_.begin(), outer.layers_.end());
  return joined;
}

}  // namespace engine
