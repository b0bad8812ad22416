// The methods of strings: "text".strip() and so on.
#include <algorithm>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/format.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/strings.h"
#include "tokenizer/jinja/values/unicode.h"

namespace tokenizer::jinja {
namespace {

Value ListOfTexts(Runtime& rt, Vector<Text> texts) {
  Values items;
  for (Text& text : texts) items.push_back(std::move(text));
  return rt.Make(std::move(items));
}

template <Side side>
Value StripMethod(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("strip", args, {"chars"});
  std::optional<std::string_view> chars;
  if (params.GetSome(0) != nullptr) chars = params.String(0).view();
  return Strip(self.text(), side, chars);
}

template <bool from_end>
Value SplitMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("split", args, {"sep", "maxsplit"});
  Runtime& rt = in.rt();
  const int64_t limit = params.Integer(1, -1);
  if (params.GetSome(0) == nullptr) {
    return ListOfTexts(rt, SplitSpace(self.text(), limit, from_end));
  }
  return ListOfTexts(rt, Split(self.text(), params.String(0).view(), limit, from_end));
}

Value SplitLinesMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("splitlines", args, {"keepends"});
  return ListOfTexts(in.rt(), SplitLines(self.text(), params.Flag(0)));
}

// The part of a text between two bounds, which count characters as a slice's do.
struct Part {
  Part(const Value& self, const Params& params) : bytes(self.view()), in_range(true) {
    if (params.GetSome(1) == nullptr && params.GetSome(2) == nullptr) return;
    const int64_t length = LengthOf(self);
    const auto place = [&](size_t i, int64_t absent) {
      int64_t at = params.GetSome(i) != nullptr ? params.Integer(i, absent) : absent;
      if (at < 0) at = std::max<int64_t>(at + length, 0);
      return at;
    };
    const int64_t begin = place(1, 0), end = std::min(place(2, length), length);
    in_range = begin <= length && begin <= end;
    if (!in_range) return;
    first = static_cast<size_t>(begin);
    const size_t at = ByteOfChar(bytes, first);
    bytes = bytes.substr(at, ByteOfChar(bytes.substr(at), static_cast<size_t>(end - begin)));
  }

  std::string_view bytes;
  bool in_range;
  size_t first = 0;  // in characters
};

// find, rfind, index and rindex.
template <bool from_end, bool must_be_there>
Value FindMethod(Interpreter&, const Value& self, const Arguments& args) {
  const Params params(must_be_there ? "index" : "find", args, {"sub", "start", "end"}, 1);
  const std::string_view wanted = params.String(0).view();
  const Part part(self, params);
  size_t at = kNotFound;
  if (part.in_range && !from_end) at = FindBytes(part.bytes, wanted);
  if (part.in_range && from_end) {
    // As the first one of both reversed: in linear time.
    const String text(part.bytes.rbegin(), part.bytes.rend());
    const String needle(wanted.rbegin(), wanted.rend());
    at = FindBytes(text, needle);
    if (at != kNotFound) at = text.size() - at - needle.size();
  }
  if (at != kNotFound)
    return static_cast<int64_t>(part.first + CountChars(part.bytes.substr(0, at)));
  if (must_be_there) Fail("substring not found");
  return -1;
}

Value CountMethod(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("count", args, {"sub", "start", "end"}, 1);
  const std::string_view needle = params.String(0).view();
  const Part part(self, params);
  if (!part.in_range) return 0;
  if (needle.empty()) return static_cast<int64_t>(CountChars(part.bytes)) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = FindBytes(part.bytes, needle, at)) != kNotFound; at += needle.size()) {
    ++count;
  }
  return count;
}

// Text before, at and after the first or last occurrence of a separator.
template <bool from_end>
Value PartitionMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("partition", args, {"sep"}, 1);
  Runtime& rt = in.rt();
  Vector<Text> parts = Split(self.text(), params.String(0).view(), 1, from_end);
  Values out;
  if (parts.size() == 2) {
    out = {std::move(parts[0]), *params.Get(0), std::move(parts[1])};
  } else {
    out = {self, Value(""), Value("")};
    if (from_end) std::swap(out[0], out[2]);
  }
  return rt.Make(std::move(out), List::Kind::kTuple);
}

// ljust, rjust and center.
template <char align>
Value JustMethod(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("ljust", args, {"width", "fillchar"}, 1);
  const std::string_view fill = params.Get(1) != nullptr ? params.String(1).view() : " ";
  if (CountChars(fill) != 1) Fail("The fill character must be exactly one character long");
  const int64_t width = params.Integer(0, 0);
  if (align == '^') return Centered(self.text(), width, fill);
  return Padded(self.text(), align, width, fill);
}

Value ZeroFill(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("zfill", args, {"width"}, 1);
  const Text& text = self.text();
  const size_t sign = text.view().starts_with('-') || text.view().starts_with('+') ? 1 : 0;
  Text out = text.Sub(0, sign);
  const int64_t width = params.Integer(0, 0);
  out.Append(Padded(text.Sub(sign), '>', width < 0 ? 0 : width - static_cast<int64_t>(sign), "0"));
  return out;
}

bool IsAsciiChar(char32_t c) { return c < 0x80; }
bool IsLetterOrNumber(char32_t c) { return IsLetter(c) || IsNumeric(c); }
bool IsDigitOrRaised(char32_t c) {
  return IsDecimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
}

// Whether all characters are of a kind; of an empty text only isascii and isprintable are true.
template <bool (*is)(char32_t), bool of_empty = false>
Value AllAre(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("a test of a text", args, {});
  for (const auto& [code, bytes] : gguf::Characters(self.view())) {
    if (!is(code)) return false;
  }
  return of_empty || !self.view().empty();
}

template <bool (*is)(std::string_view)>
Value TextIs(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("a test of a text", args, {});
  return is(self.view());
}

// "{} {name[key]!r:>8}".format(...)
Value FormatMethod(Interpreter& in, const Value& self, const Arguments& args) {
  size_t n_used = 0;
  const auto field = [&](std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string_view first = name.substr(0, end);
    name.remove_prefix(end);
    Value value;
    const auto index =
        first.empty() ? std::optional(static_cast<int64_t>(n_used++)) : ParseInt(first);
    if (index) {
      if (*index < 0 || *index >= static_cast<int64_t>(args.positional.size()))
        Fail("Replacement index ", *index, " out of range for positional args tuple");
      value = args.positional[static_cast<size_t>(*index)];
    } else {
      in.rt().Step(args.named.size() / 8);
      const auto named = std::ranges::find(args.named, first, &NamedValue::first);
      if (named == args.named.end()) Fail("format() lacks the argument '", first, "'");
      value = named->second;
    }
    while (!name.empty()) {
      const bool is_item = name[0] == '[';
      const size_t stop =
          is_item ? name.find(']') : std::min(name.find_first_of(".[", 1), name.size());
      if (stop == kNotFound || stop == 1) Fail("Empty attribute in format string");
      const std::string_view step = name.substr(1, stop - 1);
      const auto number = is_item ? ParseInt(step) : std::nullopt;
      value = is_item ? in.GetItem(value, number ? Value(*number) : Value(step))
                      : in.GetAttribute(value, step);
      name.remove_prefix(stop + (is_item ? 1 : 0));
    }
    return value;
  };
  return BraceFormat(in.rt(), self.text(), field);
}

template <bool at_end>
Value BeginsMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params(at_end ? "endswith" : "startswith", args, {"prefix", "start", "end"}, 1);
  const Part within(self, params);
  if (!within.in_range) return false;
  const std::string_view text = within.bytes;
  const auto matches = [&](std::string_view part) {
    return at_end ? text.ends_with(part) : text.starts_with(part);
  };
  const Value& wanted = *params.Get(0);
  if (!wanted.IsList() || wanted.list().kind != List::Kind::kTuple) {
    return matches(params.String(0).view());
  }
  return std::any_of(wanted.list().items.begin(), wanted.list().items.end(),
                     [&](const Value& part) {
                       in.rt().Read(part);
                       return part.IsString() && matches(part.view());
                     });
}

Value ReplaceMethod(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  return Replace(self.text(), params.String(0).view(), params.String(1), params.Integer(2, -1));
}

Value JoinMethod(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("join", args, {"iterable"}, 1);
  Vector<Text> parts;
  for (const Value& item : ItemsOf(*params.Get(0))) {
    if (!item.IsString()) Fail("join() needs strings, found '", item.TypeName(), "'");
    parts.push_back(item.text());
  }
  return JoinTexts(self.text(), parts);
}

template <bool at_end>
Value RemoveMethod(Interpreter&, const Value& self, const Arguments& args) {
  const std::string_view part = Params("removeprefix", args, {"prefix"}, 1).String(0).view();
  const Text& text = self.text();
  const bool has = at_end ? text.view().ends_with(part) : text.view().starts_with(part);
  if (!has) return self;
  return text.Sub(at_end ? 0 : part.size(), text.size() - part.size());
}

// clang-format off
constexpr Named<FilterFn> kMethods[] = {
    {"count", CountMethod}, {"find", FindMethod<false, false>}, {"rfind", FindMethod<true, false>},
    {"index", FindMethod<false, true>}, {"rindex", FindMethod<true, true>},
    {"partition", PartitionMethod<false>}, {"rpartition", PartitionMethod<true>},
    {"format", FormatMethod}, {"ljust", JustMethod<'<'>}, {"rjust", JustMethod<'>'>},
    {"center", JustMethod<'^'>}, {"zfill", ZeroFill},
    {"isalpha", AllAre<IsLetter>}, {"isdigit", AllAre<IsDigitOrRaised>},
    {"isdecimal", AllAre<IsDecimal>}, {"isnumeric", AllAre<IsNumeric>},
    {"isalnum", AllAre<IsLetterOrNumber>}, {"isspace", AllAre<IsSpace>},
    {"isascii", AllAre<IsAsciiChar, true>}, {"isprintable", AllAre<IsPrintable, true>},
    {"islower", TextIs<IsLowerText>}, {"isupper", TextIs<IsUpperText>},
    {"istitle", TextIs<IsTitleText>},
    {"swapcase", MapText<SwapCase>}, {"casefold", MapText<LowerText>},
    {"startswith", BeginsMethod<false>}, {"endswith", BeginsMethod<true>},
    {"split", SplitMethod<false>}, {"rsplit", SplitMethod<true>}, {"splitlines", SplitLinesMethod},
    {"strip", StripMethod<Side::kBoth>},
    {"lstrip", StripMethod<Side::kLeft>}, {"rstrip", StripMethod<Side::kRight>},
    {"removeprefix", RemoveMethod<false>}, {"removesuffix", RemoveMethod<true>},
    {"join", JoinMethod}, {"replace", ReplaceMethod},
    {"upper", MapText<UpperText>}, {"lower", MapText<LowerText>},
    {"capitalize", MapText<Capitalize>}, {"title", MapText<TitleMethod>},
};
// clang-format on

}  // namespace

FilterFn FindStringMethod(std::string_view name) { return FindNamed(kMethods, name); }

}  // namespace tokenizer::jinja
