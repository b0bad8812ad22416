// The methods of strings, lists and dictionaries: "text".strip() and so on.
//
// Python's sandbox for templates allows only methods that change nothing. Templates for other
// engines append to lists and update dictionaries: allowed here for values of this rendering.
#include <algorithm>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

Value ListOfTexts(Runtime& rt, Vector<Text> texts) {
  Values items;
  for (Text& text : texts) items.push_back(std::move(text));
  return rt.Make(std::move(items));
}

template <Side side>
Value StripMethod(const BuiltinCall& call) {
  std::optional<std::string_view> chars;
  if (call.GetSome(0) != nullptr) chars = call.String(0).view();
  return Strip(call.self.text(), side, chars);
}

template <bool from_end>
Value SplitMethod(const BuiltinCall& call) {
  const int64_t limit = call.Integer(1, -1);
  if (call.GetSome(0) == nullptr) {
    return ListOfTexts(call.rt, SplitSpace(call.self.text(), limit, from_end));
  }
  return ListOfTexts(call.rt, Split(call.self.text(), call.String(0).view(), limit, from_end));
}

Value SplitLinesMethod(const BuiltinCall& call) {
  return ListOfTexts(call.rt, SplitLines(call.self.text(), call.Flag(0)));
}

// The part of a text between two bounds, which count characters as in a slice.
struct Part {
  explicit Part(const BuiltinCall& call) : bytes(call.self.view()), in_range(true) {
    if (call.GetSome(1) == nullptr && call.GetSome(2) == nullptr) return;
    const int64_t length = LengthOf(call.self);
    const auto place = [&](size_t i, int64_t absent) {
      int64_t at = call.GetSome(i) != nullptr ? call.Integer(i, absent) : absent;
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
  size_t first = 0;  // counted in characters
};

// find, rfind, index and rindex.
template <bool from_end, bool must_be_there>
Value Find(const BuiltinCall& call) {
  const std::string_view wanted = call.String(0).view();
  const Part part(call);
  size_t at = kNotFound;
  if (part.in_range && !from_end) at = FindBytes(part.bytes, wanted);
  if (part.in_range && from_end) {
    // Finds the last occurrence as the first one in the reversed text: in linear time.
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

Value CountMethod(const BuiltinCall& call) {
  const std::string_view needle = call.String(0).view();
  const Part part(call);
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
Value PartitionMethod(const BuiltinCall& call) {
  Vector<Text> parts = Split(call.self.text(), call.String(0).view(), 1, from_end);
  Values out;
  if (parts.size() == 2) {
    out = {std::move(parts[0]), *call.Get(0), std::move(parts[1])};
  } else {
    out = {call.self, Value(""), Value("")};
    if (from_end) std::swap(out[0], out[2]);
  }
  return call.rt.Make(std::move(out), List::Kind::kTuple);
}

// ljust, rjust and center.
template <char align>
Value JustMethod(const BuiltinCall& call) {
  const std::string_view fill = call.Get(1) != nullptr ? call.String(1).view() : " ";
  if (CountChars(fill) != 1) Fail("The fill character must be exactly one character long");
  const int64_t width = call.Integer(0, 0);
  if (align == '^') return Centered(call.self.text(), width, fill);
  return Padded(call.self.text(), align, width, fill);
}

Value ZeroFill(const BuiltinCall& call) {
  const Text& text = call.self.text();
  const size_t sign = text.view().starts_with('-') || text.view().starts_with('+') ? 1 : 0;
  Text out = text.Sub(0, sign);
  const int64_t width = call.Integer(0, 0);
  out.Append(Padded(text.Sub(sign), '>', width < 0 ? 0 : width - static_cast<int64_t>(sign), "0"));
  return out;
}

bool IsAsciiChar(char32_t c) { return c < 0x80; }
bool IsLetterOrNumber(char32_t c) { return IsLetter(c) || IsNumeric(c); }
bool IsDigitOrRaised(char32_t c) {
  return IsDecimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
}

// Whether all characters are of a kind; for an empty text only isascii and isprintable are true.
template <bool (*is)(char32_t), bool of_empty = false>
Value AllAre(const BuiltinCall& call) {
  for (const auto& [code, bytes] : gguf::Characters(call.self.view())) {
    if (!is(code)) return false;
  }
  return of_empty || !call.self.view().empty();
}

template <Text (*map)(const Text&)>
Value MappedSelf(const BuiltinCall& call) {
  return map(call.self.text());
}

template <bool (*is)(std::string_view)>
Value TextIs(const BuiltinCall& call) {
  return is(call.self.view());
}

// "{} {name[key]!r:>8}".format(...)
Value FormatMethod(const BuiltinCall& call) {
  size_t n_used = 0;
  const auto field = [&](std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string_view first = name.substr(0, end);
    name.remove_prefix(end);
    Value value;
    const auto index =
        first.empty() ? std::optional(static_cast<int64_t>(n_used++)) : ParseInt(first);
    if (index) {
      if (*index < 0 || *index >= static_cast<int64_t>(call.args.positional.size()))
        Fail("Replacement index ", *index, " out of range for positional args tuple");
      value = call.args.positional[static_cast<size_t>(*index)];
    } else {
      call.rt.Step(call.args.named.size() / 8);
      const auto named = std::ranges::find(call.args.named, first, &NamedValue::first);
      if (named == call.args.named.end()) Fail("format() lacks the argument '", first, "'");
      value = named->second;
    }
    while (!name.empty()) {
      const bool is_item = name[0] == '[';
      const size_t stop =
          is_item ? name.find(']') : std::min(name.find_first_of(".[", 1), name.size());
      if (stop == kNotFound || stop == 1) Fail("Empty attribute in format string");
      const std::string_view step = name.substr(1, stop - 1);
      const auto number = is_item ? ParseInt(step) : std::nullopt;
      value = is_item ? call.in.GetItem(value, number ? Value(*number) : Value(step))
                      : call.in.GetAttribute(value, step);
      name.remove_prefix(stop + (is_item ? 1 : 0));
    }
    return value;
  };
  return BraceFormat(call.rt, call.self.text(), field);
}

template <bool at_end>
Value BeginsMethod(const BuiltinCall& call) {
  const Part within(call);
  if (!within.in_range) return false;
  const std::string_view text = within.bytes;
  const auto matches = [&](std::string_view part) {
    return at_end ? text.ends_with(part) : text.starts_with(part);
  };
  const Value& wanted = *call.Get(0);
  if (!wanted.IsList() || wanted.list().kind != List::Kind::kTuple) {
    return matches(call.String(0).view());
  }
  return std::any_of(wanted.list().items.begin(), wanted.list().items.end(),
                     [&](const Value& part) {
                       call.rt.Read(part);
                       return part.IsString() && matches(part.view());
                     });
}

Value ReplaceMethod(const BuiltinCall& call) {
  return Replace(call.self.text(), call.String(0).view(), call.String(1), call.Integer(2, -1));
}

Value JoinMethod(const BuiltinCall& call) {
  Vector<Text> parts;
  for (const Value& item : ItemsOf(*call.Get(0))) {
    if (!item.IsString()) Fail("join() needs strings, found '", item.TypeName(), "'");
    parts.push_back(item.text());
  }
  return JoinTexts(call.self.text(), parts);
}

template <bool at_end>
Value RemoveMethod(const BuiltinCall& call) {
  const std::string_view part = call.String(0).view();
  const Text& text = call.self.text();
  const bool has = at_end ? text.view().ends_with(part) : text.view().starts_with(part);
  if (!has) return call.self;
  return text.Sub(at_end ? 0 : part.size(), text.size() - part.size());
}

Value CountItem(const BuiltinCall& call) {
  int64_t count = 0;
  for (const Value& item : call.self.list().items) {
    if (Equal(call.rt, item, *call.Get(0))) ++count;
  }
  return count;
}

Value IndexOfItem(const BuiltinCall& call) {
  const Values& items = call.self.list().items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (Equal(call.rt, items[i], *call.Get(0))) return static_cast<int64_t>(i);
  }
  Fail("the value is not in the list");
}

Value Extend(const BuiltinCall& call) {
  for (Value& item : ItemsOf(*call.Get(0))) call.self.list().items.push_back(std::move(item));
  return Value();
}

Value Append(const BuiltinCall& call) {
  call.self.list().items.push_back(*call.Get(0));
  return Value();
}

Value CopyList(const BuiltinCall& call) { return call.rt.Make(Values(call.self.list().items)); }

Value CopyDict(const BuiltinCall& call) { return call.rt.Make(Dict(call.self.dict())); }

Value Insert(const BuiltinCall& call) {
  Values& items = call.self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  int64_t at = std::clamp(call.Integer(0, 0), -size, size);
  if (at < 0) at += size;
  items.insert(items.begin() + at, *call.Get(1));
  return Value();
}

Value Pop(const BuiltinCall& call) {
  Values& items = call.self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  int64_t at = call.Integer(0, -1);
  if (at < 0 && at >= -size) at += size;
  if (at < 0 || at >= size) Fail("pop index out of range");
  Value value = items[static_cast<size_t>(at)];
  items.erase(items.begin() + at);
  return value;
}

Value GetEntry(const BuiltinCall& call) {
  const Value* found = call.self.dict().Find(*call.Get(0));
  return found != nullptr ? *found : call.Or(1, Value());
}

Value DictValues(const BuiltinCall& call) {
  Values out;
  for (const auto& entry : call.self.dict().entries) out.push_back(entry.second);
  return call.rt.Make(std::move(out));
}

Value Update(const BuiltinCall& call) {
  if (call.args.positional.size() > 1) Fail("update() takes at most 1 argument");
  if (!call.args.positional.empty()) {
    if (!call.args.positional[0].IsDict()) Fail("update() needs a dictionary");
    // A copy: it may be the same dictionary.
    const auto others = call.args.positional[0].dict().entries;
    call.self.dict().SetAll(others);
  }
  call.self.dict().SetAll(call.args.named);
  return Value();
}

// clang-format off
constexpr Builtin kMethods[] = {
    {Owner::kString, "count", CountMethod, "sub | start end"},
    {Owner::kString, "find", Find<false, false>, "sub | start end"},
    {Owner::kString, "rfind", Find<true, false>, "sub | start end"},
    {Owner::kString, "index", Find<false, true>, "sub | start end"},
    {Owner::kString, "rindex", Find<true, true>, "sub | start end"},
    {Owner::kString, "startswith", BeginsMethod<false>, "prefix | start end"},
    {Owner::kString, "endswith", BeginsMethod<true>, "suffix | start end"},
    {Owner::kString, "removeprefix", RemoveMethod<false>, "prefix"},
    {Owner::kString, "removesuffix", RemoveMethod<true>, "suffix"},
    {Owner::kString, "partition", PartitionMethod<false>, "sep"},
    {Owner::kString, "rpartition", PartitionMethod<true>, "sep"},
    {Owner::kString, "split", SplitMethod<false>, "| sep maxsplit"},
    {Owner::kString, "rsplit", SplitMethod<true>, "| sep maxsplit"},
    {Owner::kString, "splitlines", SplitLinesMethod, "| keepends"},
    {Owner::kString, "strip", StripMethod<Side::kBoth>, "| chars"},
    {Owner::kString, "lstrip", StripMethod<Side::kLeft>, "| chars"},
    {Owner::kString, "rstrip", StripMethod<Side::kRight>, "| chars"},
    {Owner::kString, "join", JoinMethod, "iterable"},
    {Owner::kString, "replace", ReplaceMethod, "old new | count"},
    {Owner::kString, "format", FormatMethod, "*"},
    {Owner::kString, "ljust", JustMethod<'<'>, "width | fillchar"},
    {Owner::kString, "rjust", JustMethod<'>'>, "width | fillchar"},
    {Owner::kString, "center", JustMethod<'^'>, "width | fillchar"},
    {Owner::kString, "zfill", ZeroFill, "width"},
    {Owner::kString, "upper", MappedSelf<UpperText>},
    {Owner::kString, "lower", MappedSelf<LowerText>},
    {Owner::kString, "casefold", MappedSelf<LowerText>},
    {Owner::kString, "swapcase", MappedSelf<SwapCase>},
    {Owner::kString, "capitalize", MappedSelf<Capitalize>},
    {Owner::kString, "title", MappedSelf<TitleMethod>},
    {Owner::kString, "isalpha", AllAre<IsLetter>},
    {Owner::kString, "isdigit", AllAre<IsDigitOrRaised>},
    {Owner::kString, "isdecimal", AllAre<IsDecimal>},
    {Owner::kString, "isnumeric", AllAre<IsNumeric>},
    {Owner::kString, "isalnum", AllAre<IsLetterOrNumber>},
    {Owner::kString, "isspace", AllAre<IsSpace>},
    {Owner::kString, "isascii", AllAre<IsAsciiChar, true>},
    {Owner::kString, "isprintable", AllAre<IsPrintable, true>},
    {Owner::kString, "islower", TextIs<IsLowerText>},
    {Owner::kString, "isupper", TextIs<IsUpperText>},
    {Owner::kString, "istitle", TextIs<IsTitleText>},
    {Owner::kSequence, "count", CountItem, "value"},
    {Owner::kSequence, "index", IndexOfItem, "value"},
    {Owner::kList, "append", Append, "object"},
    {Owner::kList, "copy", CopyList},
    {Owner::kList, "extend", Extend, "iterable"},
    {Owner::kList, "insert", Insert, "index object"},
    {Owner::kList, "pop", Pop, "| index"},
    {Owner::kDict, "copy", CopyDict},
    {Owner::kDict, "get", GetEntry, "key | default"},
    {Owner::kDict, "items", ItemsFilter},
    {Owner::kDict, "keys", ListFilter},
    {Owner::kDict, "update", Update, "*"},
    {Owner::kDict, "values", DictValues},
};
// clang-format on

}  // namespace

std::span<const Builtin> Methods() { return kMethods; }

}  // namespace tokenizer::jinja
