#include "tokenizer/jinja/values/text.h"

#include <algorithm>

namespace tokenizer::jinja {

void Text::MarkForeign(size_t begin, size_t end) {
  if (begin == end) return;
  if (!foreign_.empty() && foreign_.back().end == begin) {
    foreign_.back().end = end;
  } else {
    foreign_.push_back({begin, end});
  }
}

void Text::Reserve(size_t n_bytes, size_t n_spans) {
  bytes_.reserve(n_bytes);
  foreign_.reserve(n_spans);
}

void Text::Append(std::string_view bytes, bool foreign) {
  const size_t begin = size();
  bytes_ += bytes;
  if (foreign) MarkForeign(begin, size());
}

void Text::Append(const Text& text, size_t pos, size_t n) {
  n = std::min(n, text.size() - pos);
  const size_t begin = size();
  bytes_.append(text.bytes_, pos, n);
  auto span = std::ranges::upper_bound(text.foreign_, pos, {}, &ByteSpan::end);
  for (; span != text.foreign_.end() && span->begin < pos + n; ++span) {
    MarkForeign(begin + std::max(span->begin, pos) - pos,
                begin + std::min(span->end, pos + n) - pos);
  }
}

Text Text::Sub(size_t pos, size_t n) const {
  Text out;
  out.Append(*this, pos, n);
  return out;
}

}  // namespace tokenizer::jinja
