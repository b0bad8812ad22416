// The key-value pairs at the head of a GGUF file.
//
// Values are views into the mapped file, decoded on demand: opening a file with a vocabulary of
// 128,000 strings copies none. A getter that fails throws gguf::Error (file, key, expected, found).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/error.h"

namespace gguf {

// The numbers are the file format's own.
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

std::string_view ValueTypeName(ValueType type);  // "u8", ..., "string", "array"

// Bytes of a value of this type; 0 for strings and arrays, whose sizes vary.
uint64_t ValueTypeBytes(ValueType type);

// Whether a number in the file is a ValueType.
inline bool IsValueType(uint32_t id) { return id <= static_cast<uint32_t>(ValueType::kF64); }

// One value in the file; checked when the file was opened, so reading it cannot fail.
struct Value {
  ValueType type = ValueType::kU8;
  ValueType element_type = ValueType::kU8;  // the type of an array's elements
  uint64_t count = 1;                       // elements of an array; 1 otherwise
  const std::byte* data = nullptr;  // first byte of the value (of an array: of its first element)
  uint64_t bytes = 0;               // number of bytes from data to the end of the value
};

class Metadata {
 public:
  struct Entry {
    std::string_view key;
    Value value;
  };

  Metadata() = default;
  // `file` is for messages. Keys and values must outlive the Metadata.
  Metadata(std::string file, std::vector<Entry> entries);

  // The entries in the file's order.
  const std::vector<Entry>& entries() const { return entries_; }
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // The value, or nullptr. (Of equal keys, which the reader refuses: the first.)
  const Value* Find(std::string_view key) const;

  // Getters without a default throw if the key is absent; all throw if the value has another kind.
  // GetUint accepts any integer type with a value from 0 to `max`, GetInt any integer type,
  // GetFloat f32, f64 and integers. Floats may be NaN or infinite: the caller checks the range.
  uint64_t GetUint(std::string_view key, uint64_t max = UINT64_MAX) const;
  uint64_t GetUintOr(std::string_view key, uint64_t fallback, uint64_t max = UINT64_MAX) const {
    return Has(key) ? GetUint(key, max) : fallback;
  }
  int64_t GetInt(std::string_view key) const;
  double GetFloat(std::string_view key) const;
  double GetFloatOr(std::string_view key, double fallback) const {
    return Has(key) ? GetFloat(key) : fallback;
  }
  bool GetBoolOr(std::string_view key, bool fallback) const;
  std::string_view GetString(std::string_view key) const;
  std::string_view GetStringOr(std::string_view key, std::string_view fallback) const {
    return Has(key) ? GetString(key) : fallback;
  }
  // Arrays. The numbers are copied (aligned), the strings are views.
  std::vector<std::string_view> GetStrings(std::string_view key) const;
  std::vector<float> GetFloats(std::string_view key) const;  // elements f32 or f64
  std::vector<int64_t> GetInts(std::string_view key) const;  // elements of any integer type or bool

  // The setters replace the file's value or add one; Remove() drops a key. Set() does not copy the
  // value's data.
  void Set(std::string_view key, Value value);
  void SetInt(std::string_view key, int64_t number);
  void SetFloat(std::string_view key, double number);
  void SetBool(std::string_view key, bool value);
  void SetString(std::string_view key, std::string_view text);
  void Remove(std::string_view key);
  // Renames all keys that begin with `from`. A setter's time is linear in the number of keys.
  void RenamePrefix(std::string_view from, std::string_view to);

  // Throws gguf::Error: "<file>: key "<key>": <what>". For the callers' range checks.
  template <class... Parts>
  [[noreturn]] void Fail(std::string_view key, const Parts&... what) const {
    gguf::Fail(file_, "key ", Quoted(key), ": ", what...);
  }

 private:
  void SortKeys();
  void SetBytes(std::string_view key, ValueType type, std::string bytes);
  const Value& Need(std::string_view key, std::string_view expected) const;
  const Value& NeedArray(std::string_view key, std::string_view expected) const;
  [[noreturn]] void FailType(std::string_view key, std::string_view expected,
                             const Value& found) const;

  std::string file_;
  std::vector<Entry> entries_;
  // Positions in entries_, sorted by key. Not a hash table: a file could choose keys that collide.
  std::vector<size_t> by_key_;
  std::vector<std::shared_ptr<const std::string>> own_;  // keys and values that were set
};

}  // namespace gguf
