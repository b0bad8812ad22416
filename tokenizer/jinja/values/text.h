// A string of the template language: UTF-8 bytes, and which of them come from the conversation.
//
// A chat template writes control tokens such as <|im_end|> as plain text, and so can a user's
// message. Only the template's text may become tokens. So each string records the spans of bytes
// from the conversation ("foreign"), through concatenation, slicing, trimming and every filter.
//
// Below are Python's string methods on such texts, which methods and filters of the same name
// share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/utf8.h"
#include "tokenizer/byte_span.h"
#include "tokenizer/characters.h"

namespace tokenizer::jinja {

// Memory is paid for where it is allocated: a template's values are in containers with the
// allocator Counted, which charges the rendering that runs on this thread (runtime.h). Outside of a
// rendering nothing is charged: a template's tree and the caller's conversation are bounded by
// their sources.

// Throws TemplateError if the rendering may not take that many bytes.
void ChargeBytes(size_t n);
void ReturnBytes(size_t n) noexcept;

template <typename T>
struct Counted {
  using value_type = T;
  Counted() = default;
  template <typename U>
  Counted(const Counted<U>&) noexcept {}

  T* allocate(size_t n) {
    ChargeBytes(n * sizeof(T));  // cannot wrap: containers limit n
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* at, size_t n) noexcept {
    std::allocator<T>().deallocate(at, n);
    ReturnBytes(n * sizeof(T));
  }
  template <typename U>
  bool operator==(const Counted<U>&) const noexcept {
    return true;
  }
};

using String = std::basic_string<char, std::char_traits<char>, Counted<char>>;
template <typename T>
using Vector = std::vector<T, Counted<T>>;
template <typename T>
using NameMap = std::map<String, T, std::less<>, Counted<std::pair<const String, T>>>;

template <typename T, typename... Args>
std::shared_ptr<T> MakeShared(Args&&... args) {
  return std::allocate_shared<T>(Counted<T>(), std::forward<Args>(args)...);
}

class Text {
 public:
  Text() = default;
  explicit Text(std::string_view bytes, bool foreign = false) { Append(bytes, foreign); }

  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Ascending, neither empty nor adjacent.
  const Vector<ByteSpan>& foreign() const { return foreign_; }
  // The bytes of its memory.
  size_t Cost() const { return bytes_.size() + foreign_.size() * sizeof(ByteSpan); }

  // Reserves exactly that many bytes and spans.
  void Reserve(size_t n_bytes, size_t n_spans);
  void Append(std::string_view bytes, bool foreign = false);
  void Append(const Text& text, size_t pos = 0, size_t n = std::string_view::npos);
  // Bytes [pos, pos + n), which must be in range.
  Text Sub(size_t pos, size_t n = std::string_view::npos) const;
  // Calls map(char32_t code, std::string_view bytes, String& out) for each character; the
  // bytes it appends get the character's origin.
  template <typename Fn>
  void AppendMapped(const Text& text, Fn map) {
    text.ForEachRun([&](std::string_view run, bool foreign) {
      String out;
      for (const auto& [code, bytes] : gguf::Characters(run)) map(code, bytes, out);
      Append(out, foreign);
    });
  }

  // fn(std::string_view bytes, bool foreign) for each longest run of one origin, in order.
  template <typename Fn>
  void ForEachRun(Fn fn) const {
    size_t at = 0;
    for (const ByteSpan& span : foreign_) {
      if (span.begin > at) fn(view().substr(at, span.begin - at), false);
      fn(view().substr(span.begin, span.end - span.begin), true);
      at = span.end;
    }
    if (at < size()) fn(view().substr(at), false);
  }

 private:
  void MarkForeign(size_t begin, size_t end);
  String bytes_;
  Vector<ByteSpan> foreign_;
};

constexpr size_t kNotFound = std::string_view::npos;

// The offset of the first `needle` at or after `pos`, or kNotFound. The C library's memmem takes
// linear time, which std::string's find does not promise against a hostile template.
size_t FindBytes(std::string_view text, std::string_view needle, size_t pos = 0);

enum class Side { kLeft, kRight, kBoth };
// Strips the characters of `chars` from both ends; white space if `chars` is absent.
Text Strip(const Text& text, Side side, std::optional<std::string_view> chars);
// The text n times; empty if n is negative.
Text Repeated(const Text& text, int64_t n);
// a * b; on overflow, a number of bytes that cannot be allocated.
size_t Times(size_t a, size_t b);

Text UpperText(const Text& text);
Text LowerText(const Text& text);
Text Capitalize(const Text& text);
// Words begin after any non-letter (method), or after white space and - ( { [ < only (filter).
Text TitleMethod(const Text& text);
Text TitleFilter(const Text& text);

// Whether the text has a letter of this case and no letter of the other, as in str.islower().
bool IsLowerText(std::string_view text);
bool IsUpperText(std::string_view text);
bool IsTitleText(std::string_view text);
Text SwapCase(const Text& text);
// The text in a field of `width` characters, with `fill` (one character) around it as `align` (<, >
// or ^) says; with an odd number of fills, ^ puts the extra one behind it.
Text Padded(const Text& text, char align, int64_t width, std::string_view fill = " ");
// Puts the text in the middle of `width` characters, as str.center() does.
Text Centered(const Text& text, int64_t width, std::string_view fill = " ");

// Replaces the first `count` occurrences of `from`, or all if negative.
Text Replace(const Text& text, std::string_view from, const Text& to, int64_t count);
// Splits at `separator`, at most `limit` times (negative: always); from the end if `from_end`.
Vector<Text> Split(const Text& text, std::string_view separator, int64_t limit, bool from_end);
// Splits at runs of white space, without empty pieces at the ends.
Vector<Text> SplitSpace(const Text& text, int64_t limit, bool from_end);
Vector<Text> SplitLines(const Text& text, bool keep_ends);
Text JoinTexts(const Text& separator, const Vector<Text>& parts);

}  // namespace tokenizer::jinja
