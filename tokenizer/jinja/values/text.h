// A string of the template language: UTF-8 bytes, and which of them come from the conversation.
//
// A chat template writes control tokens such as <|im_end|> as plain text, and so can a user's
// message. Only the template's may become tokens. So each string records the spans of bytes from
// the conversation ("foreign"), through concatenation, slicing, trimming and every filter.
#ifndef PRONK_TOKENIZER_JINJA_VALUES_TEXT_H_
#define PRONK_TOKENIZER_JINJA_VALUES_TEXT_H_

#include <cstddef>
#include <string_view>

#include "gguf/utf8.h"
#include "tokenizer/byte_span.h"
#include "tokenizer/jinja/values/budget.h"

namespace tokenizer {
namespace jinja {

class Text {
 public:
  Text() = default;
  explicit Text(std::string_view bytes, bool foreign = false) { Append(bytes, foreign); }

  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Ascending, neither empty nor adjacent.
  const Vector<ByteSpan>& foreign() const { return foreign_; }
  // The bytes that it holds.
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

}  // namespace jinja
}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_JINJA_VALUES_TEXT_H_
