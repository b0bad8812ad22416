// Operations shared by strings, lists and dictionaries: items, lengths, membership, slices.
#include <algorithm>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/strings.h"
#include "tokenizer/jinja/values/unicode.h"

namespace tokenizer::jinja {
namespace {

size_t PlaceOf(std::string_view bytes, const Text& text) {
  return static_cast<size_t>(bytes.data() - text.view().data());
}

Values CharsOf(const Text& text) {
  Values out;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    out.push_back(text.Sub(PlaceOf(bytes, text), bytes.size()));
  }
  return out;
}

struct Range {
  int64_t start = 0, stop = 0, step = 1;
};

// The bounds of a slice of `length` items, as in Python's slice.indices().
Range Bounds(int64_t length, const Value& start, const Value& stop, const Value& step) {
  Range out;
  out.step = step.IsNone() ? 1 : ToInteger(step, "a slice's step");
  if (out.step == 0) Fail("slice step cannot be zero");
  out.step = std::clamp(out.step, -length - 1, length + 1);  // a larger step gives the same result
  const int64_t lowest = out.step > 0 ? 0 : -1;
  const int64_t highest = out.step > 0 ? length : length - 1;
  const auto place = [&](const Value& bound, int64_t absent) {
    if (bound.IsNone()) return absent;
    int64_t at = std::clamp(ToInteger(bound, "a slice's bound"), -length - 1, length + 1);
    if (at < 0) at += length;
    return std::clamp(at, lowest, highest);
  };
  out.start = place(start, out.step > 0 ? lowest : highest);
  out.stop = place(stop, out.step > 0 ? highest : lowest);
  return out;
}

template <typename Fn>
void ForEachIndex(const Range& bounds, Fn fn) {
  for (int64_t i = bounds.start; bounds.step > 0 ? i < bounds.stop : i > bounds.stop;
       i += bounds.step) {
    fn(static_cast<size_t>(i));
  }
}

Text SliceText(const Text& text, const Range& bounds) {
  if (bounds.step == 1) {
    if (bounds.stop <= bounds.start) return Text();
    const size_t begin = ByteOfChar(text.view(), static_cast<size_t>(bounds.start));
    const size_t n =
        ByteOfChar(text.view().substr(begin), static_cast<size_t>(bounds.stop - bounds.start));
    return text.Sub(begin, n);
  }
  Vector<size_t> begins;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    begins.push_back(PlaceOf(bytes, text));
  }
  begins.push_back(text.size());
  Text out;
  ForEachIndex(bounds, [&](size_t i) { out.Append(text, begins[i], begins[i + 1] - begins[i]); });
  return out;
}

// The position of an index, which may count from the end, among `length` items.
std::optional<size_t> Place(const Value& index, size_t length) {
  int64_t at = index.integer();
  if (at < 0 && at >= -static_cast<int64_t>(length)) at += static_cast<int64_t>(length);
  if (at < 0 || at >= static_cast<int64_t>(length)) return std::nullopt;
  return static_cast<size_t>(at);
}

}  // namespace

bool IsIterable(const Value& value) {
  return value.IsString() || value.IsList() || value.IsDict() || value.IsUndefined();
}

Values ItemsOf(const Value& value) {
  if (value.IsUndefined()) return {};
  if (value.IsString()) return CharsOf(value.text());
  if (value.IsDict()) {
    Values keys;
    for (const auto& entry : value.dict().entries) keys.push_back(entry.first);
    return keys;
  }
  if (!value.IsList()) Fail(QuotedType(value), " object is not iterable");
  List& list = value.list();
  if (list.kind == List::Kind::kGenerator) return std::exchange(list.items, {});
  return list.items;
}

int64_t LengthOf(const Value& value) {
  if (value.IsUndefined()) return 0;
  if (value.IsString()) return static_cast<int64_t>(CountChars(value.view()));
  if (value.IsDict()) return static_cast<int64_t>(value.dict().entries.size());
  if (value.IsList() && value.list().HasLength()) {
    return static_cast<int64_t>(value.list().items.size());
  }
  Fail("object of type ", QuotedType(value), " has no len()");
}

bool Contains(Runtime& rt, const Value& haystack, const Value& needle) {
  if (haystack.IsUndefined()) return false;
  if (haystack.IsDict()) return haystack.dict().Find(needle) != nullptr;
  if (haystack.IsString()) {
    if (!needle.IsString()) {
      RequireDefined(needle);
      Fail("'in <string>' requires string as left operand, not ", needle.TypeName());
    }
    rt.Read(haystack);
    return FindBytes(haystack.view(), needle.view()) != std::string_view::npos;
  }
  if (!haystack.IsList()) Fail("argument of type ", QuotedType(haystack), " is not iterable");
  for (const Value& item : haystack.list().items) {
    if (Equal(rt, item, needle)) return true;
  }
  return false;
}

Value Slice(Runtime& rt, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  RequireDefined(value);
  if (value.IsString()) {
    const Range bounds = Bounds(LengthOf(value), start, stop, step);
    return SliceText(value.text(), bounds);
  }
  if (!value.IsList() || !value.list().HasLength())
    Fail(QuotedType(value), " object has no slices");
  const Values& items = value.list().items;
  const Range bounds = Bounds(static_cast<int64_t>(items.size()), start, stop, step);
  Values out;
  ForEachIndex(bounds, [&](size_t i) { out.push_back(items[i]); });
  return rt.Make(std::move(out), value.list().kind);
}

std::optional<Value> Item(const Value& value, const Value& index) {
  if (value.IsDict()) {
    const bool is_tuple = index.IsList() && index.list().kind == List::Kind::kTuple;
    if ((index.IsList() && !is_tuple) || index.IsDict()) return std::nullopt;  // cannot be a key
    const Value* found = value.dict().Find(index);
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
  }
  if (!index.IsIntegral()) return std::nullopt;
  if (value.IsList() && value.list().HasLength()) {
    const auto place = Place(index, value.list().items.size());
    return place ? std::optional<Value>(value.list().items[*place]) : std::nullopt;
  }
  if (value.IsString()) {
    const auto place = Place(index, static_cast<size_t>(LengthOf(value)));
    if (!place) return std::nullopt;
    const size_t begin = ByteOfChar(value.view(), *place);
    return value.text().Sub(begin, gguf::NextUtf8(value.view().substr(begin)).length);
  }
  return std::nullopt;
}

}  // namespace tokenizer::jinja
