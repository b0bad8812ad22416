// The key-value pairs at the head of a GGUF file.
//
// Values are views into the mapped file and are decoded when asked for: opening a file with a
// vocabulary of 128,000 strings copies none of them. A getter that fails throws gguf::Error naming
// file, key, what was expected and what was found.
#ifndef PRONK_GGUF_METADATA_H_
#define PRONK_GGUF_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

// One value as it lies in the file; checked when the file was opened, so reading it cannot fail.
struct Value {
  ValueType type = ValueType::kU8;
  ValueType element_type = ValueType::kU8;  // of an array
  uint64_t count = 1;                       // elements of an array; 1 otherwise
  const std::byte* data = nullptr;  // first byte of the value (of an array: of its first element)
  uint64_t bytes = 0;               // from data to the end of the value
  bool wide = true;                 // lengths inside are u64 (versions 2, 3) or u32 (version 1)
};

// Strings of an array of strings, one after the other, without copies.
class StringArray {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;
    std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int);
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class StringArray;
    Iterator(const std::byte* at, bool wide) : at_(at), wide_(wide) {}
    const std::byte* at_;
    bool wide_;
  };
  explicit StringArray(const Value& value) : value_(value) {}
  uint64_t size() const { return value_.count; }
  Iterator begin() const { return Iterator(value_.data, value_.wide); }
  Iterator end() const { return Iterator(value_.data + value_.bytes, value_.wide); }

 private:
  Value value_;
};

class Metadata {
 public:
  struct Entry {
    std::string_view key;
    Value value;
  };

  // In the file's own order.
  const std::vector<Entry>& entries() const { return entries_; }
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  const Value* Find(std::string_view key) const;

  // Each getter without a default throws where the key is absent; all throw where the value has
  // another kind. GetUint takes any integer type that holds a value >= 0 (and at most `max`),
  // GetInt any integer type, GetFloat f32, f64 and integers. Floats may be NaN or infinite: the
  // caller's range check decides.
  uint64_t GetUint(std::string_view key, uint64_t max = UINT64_MAX) const;
  uint64_t GetUintOr(std::string_view key, uint64_t fallback, uint64_t max = UINT64_MAX) const;
  int64_t GetInt(std::string_view key) const;
  double GetFloat(std::string_view key) const;
  double GetFloatOr(std::string_view key, double fallback) const;
  bool GetBoolOr(std::string_view key, bool fallback) const;
  std::string_view GetString(std::string_view key) const;
  std::string_view GetStringOr(std::string_view key, std::string_view fallback) const;
  // Arrays. The numbers are copied (aligned), the strings are not.
  StringArray GetStrings(std::string_view key) const;
  std::vector<float> GetFloats(std::string_view key) const;  // elements f32 or f64
  std::vector<int64_t> GetInts(std::string_view key) const;  // elements of any integer type or bool

  // Throws gguf::Error: "<file>: <key>: <what>". For range checks by those who use a value.
  [[noreturn]] void Fail(std::string_view key, std::string_view what) const;

 private:
  friend class Reader;
  std::string file_;  // for messages
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace gguf

#endif  // PRONK_GGUF_METADATA_H_
