// Decodes metadata values; messages for values of the wrong kind.
#include "gguf/metadata.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "gguf/load.h"

namespace gguf {
namespace {

struct TypeRow {
  std::string_view name;
  uint64_t bytes;
  char kind;  // i, u, f: signed, unsigned, float
};

constexpr TypeRow kValueTypes[] = {
    {"u8", 1, 'u'},  {"i8", 1, 'i'},  {"u16", 2, 'u'},  {"i16", 2, 'i'},    {"u32", 4, 'u'},
    {"i32", 4, 'i'}, {"f32", 4, 'f'}, {"bool", 1, ' '}, {"string", 0, ' '}, {"array", 0, ' '},
    {"u64", 8, 'u'}, {"i64", 8, 'i'}, {"f64", 8, 'f'},
};

char KindOf(ValueType type) { return kValueTypes[static_cast<uint32_t>(type)].kind; }
bool IsSigned(ValueType type) { return KindOf(type) == 'i'; }
bool IsInteger(ValueType type) { return IsSigned(type) || KindOf(type) == 'u'; }
bool IsFloat(ValueType type) { return KindOf(type) == 'f'; }

int64_t LoadSigned(ValueType type, const std::byte* at) {
  if (type == ValueType::kI8) return Load<int8_t>(at);
  if (type == ValueType::kI16) return Load<int16_t>(at);
  if (type == ValueType::kI32) return Load<int32_t>(at);
  return Load<int64_t>(at);
}

// The value of any unsigned type, or bool.
uint64_t LoadUnsigned(ValueType type, const std::byte* at) {
  if (type == ValueType::kU16) return Load<uint16_t>(at);
  if (type == ValueType::kU32) return Load<uint32_t>(at);
  if (type == ValueType::kU64) return Load<uint64_t>(at);
  return Load<uint8_t>(at);
}

// The value of any integer type or bool; empty if it is too large.
std::optional<int64_t> LoadInteger(ValueType type, const std::byte* at) {
  if (IsSigned(type)) return LoadSigned(type, at);
  const uint64_t number = LoadUnsigned(type, at);
  if (!std::in_range<int64_t>(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

double LoadFloat(ValueType type, const std::byte* at) {
  return type == ValueType::kF32 ? Load<float>(at) : Load<double>(at);
}

// A string: its length, a u64, and its bytes.
std::string_view LoadString(const std::byte* at) {
  return {reinterpret_cast<const char*>(at + sizeof(uint64_t)), Load<uint64_t>(at)};
}

template <class T>
std::string BytesOf(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

}  // namespace

std::string_view ValueTypeName(ValueType type) {
  return kValueTypes[static_cast<uint32_t>(type)].name;
}

uint64_t ValueTypeBytes(ValueType type) { return kValueTypes[static_cast<uint32_t>(type)].bytes; }

Metadata::Metadata(std::string file, std::vector<Entry> entries)
    : file_(std::move(file)), entries_(std::move(entries)) {
  SortKeys();
}

void Metadata::SortKeys() {
  by_key_.resize(entries_.size());
  std::iota(by_key_.begin(), by_key_.end(), size_t{0});
  std::ranges::stable_sort(by_key_, {}, [this](size_t i) { return entries_[i].key; });
}

void Metadata::Set(std::string_view key, Value value) {
  own_.push_back(std::make_shared<const std::string>(key));  // before Remove: it may be that key
  Remove(*own_.back());
  entries_.push_back({*own_.back(), value});
  SortKeys();
}

void Metadata::SetBytes(std::string_view key, ValueType type, std::string bytes) {
  own_.push_back(std::make_shared<const std::string>(std::move(bytes)));
  const std::string& own = *own_.back();
  Set(key,
      {.type = type, .data = reinterpret_cast<const std::byte*>(own.data()), .bytes = own.size()});
}

void Metadata::SetInt(std::string_view key, int64_t number) {
  SetBytes(key, ValueType::kI64, BytesOf(number));
}
void Metadata::SetFloat(std::string_view key, double number) {
  SetBytes(key, ValueType::kF64, BytesOf(number));
}
void Metadata::SetBool(std::string_view key, bool value) {
  SetBytes(key, ValueType::kBool, BytesOf(value));
}
void Metadata::SetString(std::string_view key, std::string_view text) {
  SetBytes(key, ValueType::kString, BytesOf(uint64_t{text.size()}) + std::string(text));
}

void Metadata::RenamePrefix(std::string_view from, std::string_view to) {
  for (Entry& entry : entries_) {
    if (!entry.key.starts_with(from)) continue;
    own_.push_back(
        std::make_shared<const std::string>(std::string(to).append(entry.key.substr(from.size()))));
    entry.key = *own_.back();
  }
  SortKeys();
}

void Metadata::Remove(std::string_view key) {
  std::erase_if(entries_, [key](const Entry& entry) { return entry.key == key; });
  SortKeys();
}

const Value* Metadata::Find(std::string_view key) const {
  const auto it =
      std::ranges::lower_bound(by_key_, key, {}, [this](size_t i) { return entries_[i].key; });
  if (it == by_key_.end() || entries_[*it].key != key) return nullptr;
  return &entries_[*it].value;
}

uint64_t Metadata::GetUint(std::string_view key, uint64_t max) const {
  const std::string expected =
      max == UINT64_MAX ? "an integer >= 0" : "an integer from 0 to " + std::to_string(max);
  const Value& value = Need(key, expected);
  if (!IsInteger(value.type)) FailType(key, expected, value);
  const auto checked = [&](auto number) {
    if (std::cmp_less(number, 0) || std::cmp_greater(number, max)) {
      Fail(key, "expected ", expected, ", found ", number);
    }
    return static_cast<uint64_t>(number);
  };
  return IsSigned(value.type) ? checked(LoadSigned(value.type, value.data))
                              : checked(LoadUnsigned(value.type, value.data));
}

int64_t Metadata::GetInt(std::string_view key) const {
  const Value& value = Need(key, "an integer");
  if (!IsInteger(value.type)) FailType(key, "an integer", value);
  if (const auto number = LoadInteger(value.type, value.data)) return *number;
  Fail(key, "expected an integer below 2^63, found ", LoadUnsigned(value.type, value.data));
}

double Metadata::GetFloat(std::string_view key) const {
  const Value& value = Need(key, "a number");
  if (IsFloat(value.type)) return LoadFloat(value.type, value.data);
  if (!IsInteger(value.type)) FailType(key, "a number", value);
  return IsSigned(value.type) ? static_cast<double>(LoadSigned(value.type, value.data))
                              : static_cast<double>(LoadUnsigned(value.type, value.data));
}

bool Metadata::GetBoolOr(std::string_view key, bool fallback) const {
  const Value* const value = Find(key);
  if (value == nullptr) return fallback;
  if (value->type != ValueType::kBool) FailType(key, "a bool", *value);
  return Load<uint8_t>(value->data) != 0;
}

std::string_view Metadata::GetString(std::string_view key) const {
  const Value& value = Need(key, "a string");
  if (value.type != ValueType::kString) FailType(key, "a string", value);
  return LoadString(value.data);
}

std::vector<std::string_view> Metadata::GetStrings(std::string_view key) const {
  const Value& value = NeedArray(key, "an array of strings");
  if (value.element_type != ValueType::kString) FailType(key, "an array of strings", value);
  std::vector<std::string_view> strings(value.count);
  const std::byte* at = value.data;
  for (std::string_view& text : strings) {
    text = LoadString(at);
    at += sizeof(uint64_t) + text.size();
  }
  return strings;
}

std::vector<float> Metadata::GetFloats(std::string_view key) const {
  const Value& value = NeedArray(key, "an array of floats");
  if (!IsFloat(value.element_type)) FailType(key, "an array of floats", value);
  const uint64_t stride = ValueTypeBytes(value.element_type);
  std::vector<float> numbers(value.count);
  for (uint64_t i = 0; i < value.count; ++i) {
    numbers[i] = static_cast<float>(LoadFloat(value.element_type, value.data + i * stride));
  }
  return numbers;
}

std::vector<int64_t> Metadata::GetInts(std::string_view key) const {
  const Value& value = NeedArray(key, "an array of integers");
  const ValueType type = value.element_type;
  if (!IsInteger(type) && type != ValueType::kBool) FailType(key, "an array of integers", value);
  const uint64_t stride = ValueTypeBytes(type);
  std::vector<int64_t> numbers(value.count);
  for (uint64_t i = 0; i < value.count; ++i) {
    const std::byte* const at = value.data + i * stride;
    const auto number = LoadInteger(type, at);
    if (!number) {
      Fail(key, "element ", i, ": expected an integer below 2^63, found ", LoadUnsigned(type, at));
    }
    numbers[i] = *number;
  }
  return numbers;
}

const Value& Metadata::Need(std::string_view key, std::string_view expected) const {
  const Value* const value = Find(key);
  if (value == nullptr) Fail(key, "expected ", expected, ", found no such key");
  return *value;
}

const Value& Metadata::NeedArray(std::string_view key, std::string_view expected) const {
  const Value& value = Need(key, expected);
  if (value.type != ValueType::kArray) FailType(key, expected, value);
  return value;
}

void Metadata::FailType(std::string_view key, std::string_view expected, const Value& found) const {
  std::string kind(ValueTypeName(found.type));
  if (found.type == ValueType::kArray) {
    kind +=
        " of " + std::to_string(found.count) + " " + std::string(ValueTypeName(found.element_type));
  }
  Fail(key, "expected ", expected, ", found ", kind);
}

}  // namespace gguf
