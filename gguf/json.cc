// Checks a whole text; views then find their values on demand.
#include "gguf/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "gguf/error.h"
#include "gguf/number.h"
#include "gguf/utf8.h"

namespace gguf {
namespace {

constexpr std::string_view kWhite = " \t\n\r", kAfterScalar = ",]} \t\n\r";
constexpr std::string_view kEscaped = "\"\\/\b\f\n\r\t", kEscapes = "\"\\/bfnrt";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// --- The check --------------------------------------------------------------------------------

// The four digits of \uXXXX; empty if there are fewer.
std::optional<char32_t> HexDigits(std::string_view text) {
  uint32_t code = 0;
  const std::string_view digits = text.substr(0, 4);
  const char* const end = digits.data() + digits.size();
  if (digits.size() < 4 || std::from_chars(digits.data(), end, code, 16).ptr != end) return {};
  return code;
}

struct Escape {
  size_t bytes;  // its length in the text; 0: not an escape of JSON
  char32_t code;
};

// The escape at the beginning of a text. A character beyond U+FFFF has two, a surrogate pair.
Escape ReadEscape(std::string_view text) {
  if (text.size() < 2) return {};
  if (text[1] != 'u') {
    const size_t which = kEscapes.find(text[1]);
    if (which == std::string_view::npos) return {};
    return {2, static_cast<char32_t>(kEscaped[which])};
  }
  const std::optional<char32_t> high = HexDigits(text.substr(2));
  if (!high || (*high >= 0xDC00 && *high < 0xE000)) return {};
  if (*high < 0xD800 || *high >= 0xE000) return {6, *high};
  if (text.substr(6, 2) != "\\u") return {};
  const std::optional<char32_t> low = HexDigits(text.substr(8));
  if (!low || *low < 0xDC00 || *low >= 0xE000) return {};
  return {12, 0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00)};
}

// The text between quotes, which has been checked.
std::string Unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t n = std::min(text.find('\\'), text.size());
    plain += text.substr(0, n);
    text.remove_prefix(n);
    if (text.empty()) break;
    const Escape escape = ReadEscape(text);
    plain += ToUtf8(escape.code);
    text.remove_prefix(escape.bytes);
  }
  return plain;
}

// The length of the string at the beginning of a checked text, with its quotes.
size_t StringLength(std::string_view text) {
  size_t at = 1;
  while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

// The length of the value at the beginning of a checked text.
size_t ValueLength(std::string_view text) {
  size_t at = 0, depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at += StringLength(text.substr(at));
    } else if (c == '{' || c == '[') {
      ++depth, ++at;
    } else if (depth == 0) {
      return std::min(text.find_first_of(kAfterScalar), text.size());
    } else {
      if (c == '}' || c == ']') --depth;
      ++at;
    }
  } while (depth > 0);
  return at;
}

void SkipWhite(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
}

class Checker {
 public:
  Checker(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  // Returns the text of the value.
  std::string_view Check() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
    White();
    const size_t begin = at_;
    Value();
    const size_t end = at_;
    White();
    if (at_ < text_.size()) Fail();
    return text_.substr(begin, end - begin);
  }

 private:
  [[noreturn]] void Fail() const {
    if (text_.empty()) throw Error("is empty, not JSON");
    throw Error("is not JSON from byte ", at_ + 1, " on");
  }
  static void Limit(size_t n, size_t most, const std::string& before, const char* after) {
    if (n > most) throw Error(before, most, after);
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    const bool is_here = Peek() == c;
    at_ += is_here;
    return is_here;
  }
  void Expect(std::string_view word) {
    for (const char c : word) {
      if (!Take(c)) Fail();
    }
  }
  void White() { at_ = std::min(text_.find_first_not_of(kWhite, at_), text_.size()); }

  void Value() {
    Limit(++n_values_, limits_.values, "has more than ", " values");
    const char c = Peek();
    if (c == '{') return Container('}');
    if (c == '[') return Container(']');
    if (c == '"') return String();
    if (c == 't') return Expect("true");
    if (c == 'f') return Expect("false");
    if (c == 'n') return Expect("null");
    if (limits_.not_finite && TakesNotFinite()) return;
    Number();
  }

  bool TakesNotFinite() {
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return true;
    }
    return false;
  }

  void Container(char close) {
    Limit(++depth_, limits_.depth, "is nested deeper than ", " levels");
    const size_t first_key = keys_.size();
    size_t n = 0;
    ++at_;
    White();
    if (!Take(close)) {
      do {
        White();
        if (close == '}') Key(++n);
        Value();
        White();
      } while (Take(','));
      if (!Take(close)) Fail();
    }
    RefuseRepeats(first_key);
    --depth_;
  }

  void Key(size_t n) {
    if (Peek() != '"') Fail();
    const size_t begin = at_;
    String();
    Limit(n, limits_.keys, "has more than ", " keys in one object");
    if (limits_.unique_keys) {
      const size_t hash = std::hash<std::string>{}(KeyAt(begin));
      keys_.push_back({static_cast<uint32_t>(hash), static_cast<uint32_t>(begin)});
    }
    White();
    Expect(":");
    White();
  }

  std::string KeyAt(size_t begin) const {
    const std::string_view text = text_.substr(begin);
    return Unescaped(text.substr(1, StringLength(text) - 2));
  }

  void RefuseRepeats(size_t first_key) {
    const auto first = keys_.begin() + static_cast<std::ptrdiff_t>(first_key);
    std::sort(first, keys_.end(), [&](const SeenKey& a, const SeenKey& b) {
      return a.hash != b.hash ? a.hash < b.hash : KeyAt(a.begin) < KeyAt(b.begin);
    });
    const auto twice =
        std::adjacent_find(first, keys_.end(), [&](const SeenKey& a, const SeenKey& b) {
          return a.hash == b.hash && KeyAt(a.begin) == KeyAt(b.begin);
        });
    if (twice != keys_.end()) throw Error("has the key ", Quoted(KeyAt(twice->begin)), " twice");
    keys_.resize(first_key);
  }

  void String() {
    Expect("\"");
    while (!Take('"')) {
      const auto c = static_cast<unsigned char>(Peek());
      if (c < 0x20) Fail();
      if (c == '\\') {
        const Escape escape = ReadEscape(text_.substr(at_));
        if (escape.bytes == 0) Fail();
        at_ += escape.bytes;
      } else if (c < 0x80) {
        ++at_;
      } else {
        const Utf8Step step = NextUtf8(text_.substr(at_));
        if (step.kind != Utf8Kind::kValid) Fail();
        at_ += step.length;
      }
    }
  }

  void Digits() {
    if (!IsDigit(Peek())) Fail();
    while (IsDigit(Peek())) ++at_;
  }
  void Number() {
    const size_t begin = at_;
    Take('-');
    if (!Take('0')) Digits();
    if (Take('.')) Digits();
    const bool has_exponent = Take('e') || Take('E');
    if (has_exponent) {
      if (!Take('+')) Take('-');
      Digits();
    }
    const std::string_view number = text_.substr(begin, at_ - begin);
    // Only such a number can be beyond the range of a double.
    if ((has_exponent || number.size() > 300) &&
        !std::isfinite(NumberIn<double>(number).value_or(0))) {
      throw Error("has a number that is too large at byte ", begin + 1);
    }
  }

  struct SeenKey {
    uint32_t hash, begin;
  };

  std::string_view text_;
  const JsonLimits& limits_;
  size_t at_ = 0, depth_ = 0, n_values_ = 0;
  std::vector<SeenKey> keys_;  // keys of the open objects, if they must be unique
};

}  // namespace

// --- Values -----------------------------------------------------------------------------------

std::string JsonQuoted(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const size_t which = c == '/' ? std::string_view::npos : kEscaped.find(c);
    if (which != std::string_view::npos) {
      quoted += {'\\', kEscapes[which]};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

JsonView JsonView::Parse(std::string text, const JsonLimits& limits) {
  if (text.size() > UINT32_MAX) throw Error("is longer than 4 GB");
  const auto source = std::make_shared<const std::string>(std::move(text));
  return {source, Checker(*source, limits).Check()};
}

JsonView JsonView::Made(std::string text) {
  const auto source = std::make_shared<const std::string>(std::move(text));
  return {source, *source};
}

JsonView JsonView::Array(const std::vector<JsonView>& items) {
  std::string text = "[";
  for (const JsonView& item : items) {
    if (text.size() > 1) text += ',';
    text += item.text_;
  }
  return Made(text + ']');
}

JsonView JsonView::Object(const std::vector<Member>& members) {
  std::string text = "{";
  for (const Member& member : members) {
    if (text.size() > 1) text += ',';
    text.append(JsonQuoted(member.key) + ':').append(member.value.text_);
  }
  return Made(text + '}');
}

JsonView::Kind JsonView::kind() const {
  if (text_.empty()) return Kind::kAbsent;
  const char c = text_[0];
  if (c == '{') return Kind::kObject;
  if (c == '[') return Kind::kArray;
  if (c == '"') return Kind::kString;
  if (c == 't' || c == 'f') return Kind::kBool;
  const bool is_null = c == 'n' || c == 'N' || c == 'I' || text_ == "-Infinity";
  return is_null ? Kind::kNull : Kind::kNumber;
}

const char* JsonView::KindName() const {
  constexpr const char* kNames[] = {"null",   "null",  "boolean", "number",
                                    "string", "array", "object"};
  return kNames[static_cast<size_t>(kind())];
}

std::string JsonView::Compact() const {
  std::string compact;
  for (std::string_view rest = text_; !rest.empty(); SkipWhite(rest)) {
    const size_t n = rest[0] == '"' ? StringLength(rest) : 1;
    compact += n > 1 ? JsonQuoted(Unescaped(rest.substr(1, n - 2))) : std::string(1, rest[0]);
    rest.remove_prefix(n);
  }
  return compact;
}

double JsonView::Number() const { return NumberIn<double>(text_).value_or(0); }
std::string JsonView::String() const { return Unescaped(text_.substr(1, text_.size() - 2)); }
std::optional<int64_t> JsonView::Signed() const { return NumberIn<int64_t>(text_); }
std::optional<uint64_t> JsonView::Unsigned() const { return NumberIn<uint64_t>(text_); }

JsonView::Iterator::Iterator(const JsonView& container) : has_keys_(container.IsObject()) {
  if (!has_keys_ && !container.IsArray()) return;
  member_.value.source_ = container.source_;
  rest_ = container.text_.substr(1);
  ++*this;
}

JsonView::Iterator& JsonView::Iterator::operator++() {
  SkipWhite(rest_);
  if (rest_[0] == ',') rest_.remove_prefix(1);
  SkipWhite(rest_);
  if (rest_[0] == ']' || rest_[0] == '}') {
    rest_ = {};
    return *this;
  }
  if (has_keys_) {
    const size_t n = StringLength(rest_);
    member_.key = Unescaped(rest_.substr(1, n - 2));
    rest_.remove_prefix(rest_.find(':', n) + 1);
    SkipWhite(rest_);
  }
  member_.value.text_ = rest_.substr(0, ValueLength(rest_));
  rest_.remove_prefix(member_.value.text_.size());
  return *this;
}

size_t JsonView::size() const {
  size_t n = 0;
  for (Iterator it = begin(); it != end(); ++it) ++n;
  return n;
}

JsonView JsonView::operator[](std::string_view key) const {
  JsonView found;
  if (!IsObject()) return found;
  for (const Member& member : *this) {
    if (member.key == key) found = member.value;
  }
  return found;
}

std::vector<JsonView::Member> JsonView::Members() const {
  std::vector<Member> members;
  for (const Member& member : *this) {
    const auto same = std::ranges::find(members, member.key, &Member::key);
    if (same == members.end()) {
      members.push_back(member);
    } else {
      same->value = member.value;
    }
  }
  return members;
}

bool operator==(const JsonView& a, const JsonView& b) {
  if (a.kind() != b.kind()) return false;
  if (a.text() == b.text()) return true;
  switch (a.kind()) {
    case JsonView::Kind::kNumber:
      if (a.Signed() && b.Signed()) return a.Signed() == b.Signed();
      if (a.Unsigned() && b.Unsigned()) return a.Unsigned() == b.Unsigned();
      return a.Number() == b.Number();
    case JsonView::Kind::kString:
      return a.String() == b.String();
    case JsonView::Kind::kObject: {
      const auto by_key = [](const JsonView& object) {
        std::map<std::string, JsonView, std::less<>> members;
        for (const JsonView::Member& member : object)
          members.insert_or_assign(std::string(member.key), member.value);
        return members;
      };
      return by_key(a) == by_key(b);
    }
    case JsonView::Kind::kArray: {
      auto x = a.begin(), y = b.begin();
      for (; x != a.end() && y != b.end(); ++x, ++y) {
        if (!(x->value == y->value)) return false;
      }
      return x == a.end() && y == b.end();
    }
    default:
      return false;  // null, true and false have one text each
  }
}

}  // namespace gguf
