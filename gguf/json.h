// The project's only JSON reader (RFC 8259), for config.json and similar files, schemas,
// conversations and other untrusted texts. A text is checked once. After that a value is a view
// into it, decoded on demand: memory use is the size of the text, whatever it contains, and only
// the text has to be freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gguf {

// A text that exceeds a limit is refused.
struct JsonLimits {
  size_t depth = 64;
  size_t values = size_t{1} << 20;
  size_t keys = 1000;        // keys of one object
  bool unique_keys = false;  // otherwise the last of equal keys counts
  bool not_finite = false;   // NaN, Infinity and -Infinity, as Python writes them, count as null
};

// A text in JSON's quotes: controls, quotes and backslashes are escaped.
std::string JsonQuoted(std::string_view text);

class JsonView {
 public:
  enum class Kind : uint8_t { kAbsent, kNull, kBool, kNumber, kString, kArray, kObject };
  struct Member;
  class Iterator;

  JsonView() = default;  // absent
  // Throws gguf::Error, "is not JSON from byte 7 on" and the like, for callers to name the source.
  static JsonView Parse(std::string text, const JsonLimits& limits = {});
  // An array of existing values.
  static JsonView Array(const std::vector<JsonView>& items);
  static JsonView Object(const std::vector<Member>& members);

  Kind kind() const;
  bool is_there() const { return !text_.empty(); }
  bool IsBool() const { return kind() == Kind::kBool; }
  bool IsNumber() const { return kind() == Kind::kNumber; }
  bool IsString() const { return kind() == Kind::kString; }
  bool IsArray() const { return kind() == Kind::kArray; }
  bool IsObject() const { return kind() == Kind::kObject; }
  const char* KindName() const;  // "null", "array"

  // The value's text in the source.
  std::string_view text() const { return text_; }
  // The value without white space, and with no escapes but JsonQuoted's.
  std::string Compact() const;

  // Each requires a value of its kind.
  bool Bool() const { return text_ == "true"; }
  double Number() const;
  std::string String() const;
  // The number, if it is whole, written as such, and in this range.
  std::optional<int64_t> Signed() const;
  std::optional<uint64_t> Unsigned() const;

  // Items of an array (whose keys are empty) or members of an object, in text order; empty for
  // other values. Time grows with the part of the text that is skipped.
  Iterator begin() const;
  std::default_sentinel_t end() const { return {}; }
  size_t size() const;
  // The member of this key, or absent.
  JsonView operator[](std::string_view key) const;
  // Members, each key once.
  std::vector<Member> Members() const;

  // Members of equal objects may have any order; numbers are compared by value.
  friend bool operator==(const JsonView& a, const JsonView& b);

 private:
  JsonView(std::shared_ptr<const std::string> source, std::string_view text)
      : source_(std::move(source)), text_(text) {}
  static JsonView Made(std::string text);

  std::shared_ptr<const std::string> source_;  // contains text_
  std::string_view text_;
};

struct JsonView::Member {
  std::string key;
  JsonView value;
};

class JsonView::Iterator {
 public:
  using value_type = Member;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(const JsonView& container);
  const Member& operator*() const { return member_; }
  const Member* operator->() const { return &member_; }
  Iterator& operator++();
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return rest_.empty(); }

 private:
  std::string_view rest_;  // after the member; "" after the last
  bool has_keys_ = false;
  Member member_;
};

inline JsonView::Iterator JsonView::begin() const { return Iterator(*this); }

}  // namespace gguf
