// Reads JSON of an untrusted folder, with messages that name file, key, expected and found value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/error.h"
#include "gguf/json.h"

namespace engine {

using gguf::JsonView;

// A value of config.json: a number (1: true), or a text.
struct KeyValue {
  std::string_view key;
  double number = 0;
  std::string_view text = "";
};

// An object in a file. Copies are cheap: they share the file's text. null counts as absent.
class Fields {
 public:
  Fields() = default;  // no fields: the file is missing
  Fields(std::string file, JsonView json, std::string prefix = "");

  const std::string& file() const { return file_; }
  bool is_there() const { return !layers_.empty(); }
  bool Has(std::string_view key) const { return FindSet(key) != nullptr || Find(key).is_there(); }
  JsonView json() const { return is_there() ? layers_[0] : JsonView(); }

  // These throw gguf::Error for a value of another kind, out of range, or (without "Or") absent.
  uint64_t Count(std::string_view key) const;  // 1 to 2^32 - 1
  uint64_t CountOr(std::string_view key, uint64_t fallback) const {
    return Has(key) ? Count(key) : fallback;
  }
  uint64_t UintOr(std::string_view key, uint64_t fallback) const;  // 0 to 2^32 - 1
  double Number(std::string_view key) const;
  double NumberOr(std::string_view key, double fallback) const {
    return Has(key) ? Number(key) : fallback;
  }
  double ShareOr(std::string_view key, double fallback) const;  // above 0, at most 1
  bool BoolOr(std::string_view key, bool fallback) const;
  std::string Text(std::string_view key) const;
  std::string TextOr(std::string_view key, const std::string& fallback) const {
    return Has(key) ? Text(key) : fallback;
  }
  // The object under this key, empty if absent.
  Fields Object(std::string_view key) const;
  std::vector<Fields> Objects(std::string_view key) const;  // a list of objects
  // A list of texts, or of pairs of texts, each joined by a space.
  std::vector<std::string> Pairs(std::string_view key) const;
  // A list; empty if absent. Numbers() also accepts a single number.
  std::vector<double> Numbers(std::string_view key) const;
  std::vector<std::string> Texts(std::string_view key) const;

  std::vector<uint64_t> Wholes(std::string_view key, size_t limit) const;  // numbers up to `limit`
  bool IsText(std::string_view key) const { return Find(key).IsString(); }
  bool IsObject(std::string_view key) const { return Find(key).IsObject(); }
  bool IsBool(std::string_view key) const { return Find(key).IsBool(); }
  bool IsList(std::string_view key) const { return Find(key).IsArray(); }

  // These fields, completed by the fields of `outer` that they lack.
  Fields Over(const Fields& outer) const;
  // Sets the value of its key; SetIfAbsent() only if the key has no value, not even null. The texts
  // must outlive the fields.
  void Set(const KeyValue& value) { set_.push_back(value); }
  void SetIfAbsent(const KeyValue& value);

  // Throws gguf::Error: "FILE: KEY: what".
  template <class... Parts>
  [[noreturn]] void Fail(std::string_view key, const Parts&... what) const {
    gguf::Fail(file_, gguf::Printable(prefix_ + std::string(key)), ": ", what...);
  }

 private:
  JsonView Find(std::string_view key) const;  // null is absent
  const KeyValue* FindSet(std::string_view key) const;
  JsonView List(std::string_view key, const std::string& expected, size_t limit) const;
  [[noreturn]] void FailKind(std::string_view key, const std::string& expected) const;

  std::string file_, prefix_;
  std::vector<KeyValue> set_;     // take precedence over layers_
  std::vector<JsonView> layers_;  // the first layer that has a key counts
};

// Throws gguf::Error if the text is not a JSON object, has deeper nesting or more values than any
// real file, or has a key twice in an object. `file` is the name for messages.
Fields ParseObject(const std::string& file, std::string text);

}  // namespace engine
