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

Value ListOfTexts(Runtime& rt, std::vector<Text> texts, List::Kind kind = List::Kind::kList) {
  Values items;
  for (Text& text : texts) items.push_back(rt.Make(std::move(text)));
  return rt.Make(std::move(items), kind);
}

template <Side side>
Value StripMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("strip", args, {"chars"});
  std::optional<std::string_view> chars;
  if (params.GetSome(0) != nullptr) chars = params.String(0).view();
  return in.rt().Make(Strip(in.rt(), self.text(), side, chars));
}

template <Text (*map)(Runtime&, const Text&)>
Value MapMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("a method without parameters", args, {});
  return in.rt().Make(map(in.rt(), self.text()));
}

template <bool from_end>
Value SplitMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("split", args, {"sep", "maxsplit"});
  Runtime& rt = in.rt();
  const int64_t limit = params.Integer(1, -1);
  if (params.GetSome(0) == nullptr) {
    return ListOfTexts(rt, SplitSpace(rt, self.text(), limit, from_end));
  }
  return ListOfTexts(rt, Split(rt, self.text(), params.String(0).view(), limit, from_end));
}

Value SplitLinesMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("splitlines", args, {"keepends"});
  return ListOfTexts(in.rt(), SplitLines(in.rt(), self.text(), params.Flag(0)));
}

template <bool from_end>
Value PartitionMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const std::string_view separator = Params("partition", args, {"sep"}, 1).String(0).view();
  if (separator.empty()) Fail("empty separator");
  const Text& text = self.text();
  Runtime& rt = in.rt();
  rt.PayReading(text.size());
  const size_t at =
      from_end ? FindLastBytes(rt, text.view(), separator) : FindBytes(rt, text.view(), separator);
  std::vector<Text> parts(3);
  if (at == kNotFound) {
    parts[from_end ? 2 : 0] = text;
  } else {
    parts = {text.Sub(0, at), text.Sub(at, separator.size()), text.Sub(at + separator.size())};
  }
  return ListOfTexts(rt, std::move(parts), List::Kind::kTuple);
}

// The part of a text between two positions in characters, the optional arguments i and i + 1.
struct Window {
  size_t begin;  // bytes before it
  std::string_view text;
};

Window WindowOf(Runtime& rt, const Value& self, const Params& params, size_t i) {
  if (params.GetSome(i) == nullptr && params.GetSome(i + 1) == nullptr) {
    return {0, self.view()};
  }
  const int64_t length = LengthOf(rt, self);
  const auto place = [&](size_t arg, int64_t absent) {
    int64_t at = params.GetSome(arg) == nullptr ? absent : params.Integer(arg, absent);
    if (at < 0) at = std::max<int64_t>(at + length, 0);
    return ByteOfChar(self.view(), static_cast<size_t>(std::min(at, length)));
  };
  const size_t begin = place(i, 0);
  return {begin, self.view().substr(begin, std::max(begin, place(i + 1, length)) - begin)};
}

template <bool last, bool must_exist>
Value FindMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params(must_exist ? "index" : "find", args, {"sub", "start", "end"}, 1);
  const std::string_view needle = params.String(0).view();
  Runtime& rt = in.rt();
  const Window window = WindowOf(rt, self, params, 1);
  rt.PayReading(self.view().size());
  const size_t at =
      last ? FindLastBytes(rt, window.text, needle) : FindBytes(rt, window.text, needle);
  if (at != kNotFound) {
    return static_cast<int64_t>(CountChars(self.view().substr(0, window.begin + at)));
  }
  if (must_exist) Fail("substring not found");
  return -1;
}

Value CountMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("count", args, {"sub", "start", "end"}, 1);
  const std::string_view needle = params.String(0).view();
  Runtime& rt = in.rt();
  const std::string_view text = WindowOf(rt, self, params, 1).text;
  rt.PayReading(self.view().size());
  if (needle.empty()) return static_cast<int64_t>(CountChars(text)) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = FindBytes(rt, text, needle, at)) != kNotFound; at += needle.size()) {
    rt.PaySteps();
    ++count;
  }
  return count;
}

template <bool at_end>
Value BeginsMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params(at_end ? "endswith" : "startswith", args, {"prefix", "start", "end"}, 1);
  const std::string_view text = WindowOf(in.rt(), self, params, 1).text;
  const auto matches = [&](std::string_view part) {
    in.rt().PaySteps();
    in.rt().PayReading(part.size());
    return at_end ? text.ends_with(part) : text.starts_with(part);
  };
  const Value& wanted = *params.Get(0);
  if (!wanted.IsList() || wanted.list().kind != List::Kind::kTuple) {
    return matches(params.String(0).view());
  }
  return std::any_of(wanted.list().items.begin(), wanted.list().items.end(),
                     [&](const Value& part) { return part.IsString() && matches(part.view()); });
}

Value ReplaceMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  return in.rt().Make(Replace(in.rt(), self.text(), params.String(0).view(), params.String(1),
                              params.Integer(2, -1)));
}

Value JoinMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("join", args, {"iterable"}, 1);
  std::vector<Text> parts;
  for (const Value& item : ItemsOf(in.rt(), *params.Get(0))) {
    if (!item.IsString()) Fail("join() needs strings, found '", item.TypeName(), "'");
    in.rt().PayBytes(sizeof(Text) + item.text().Cost());
    parts.push_back(item.text());
  }
  return in.rt().Make(JoinTexts(in.rt(), self.text(), parts));
}

Value FormatMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const auto lookup = [&](const Value& object, const Value& key, bool is_attribute) {
    return is_attribute ? in.GetAttribute(object, key.view()) : in.GetItem(object, key);
  };
  return in.rt().Make(FormatBraces(in.rt(), self.text(), args, lookup));
}

template <Side padding>
Value PadMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("a padding method", args, {"width", "fillchar"}, 1);
  const std::string_view fill = params.Get(1) != nullptr ? params.String(1).view() : " ";
  if (CountChars(fill) != 1) Fail("the fill character must be one character long");
  return in.rt().Make(Pad(in.rt(), self.text(), padding, params.Integer(0, 0), fill));
}

Value ZeroFillMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const int64_t width = Params("zfill", args, {"width"}, 1).Integer(0, 0);
  const Text& text = self.text();
  const bool has_sign = !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+');
  Text out = text.Sub(0, has_sign ? 1 : 0);
  out.Append(Pad(in.rt(), text.Sub(out.size()), Side::kLeft,
                 std::max<int64_t>(width, 0) - static_cast<int64_t>(out.size()), "0"));
  return in.rt().Make(std::move(out));
}

template <bool at_end>
Value RemoveMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const std::string_view part = Params("removeprefix", args, {"prefix"}, 1).String(0).view();
  const Text& text = self.text();
  in.rt().PayReading(part.size());
  const bool has = at_end ? text.view().ends_with(part) : text.view().starts_with(part);
  if (!has) return self;
  return in.rt().Make(text.Sub(at_end ? 0 : part.size(), text.size() - part.size()));
}

// Whether all characters satisfy the test; `if_empty` is the result for an empty text.
template <bool (*is_such)(char32_t), bool if_empty = false>
Value AllMethod(Interpreter& in, const Value& self, const Arguments&) {
  in.rt().PayCharacters(self.view().size());
  for (const auto& [code, bytes] : gguf::Characters(self.view())) {
    if (!is_such(code)) return false;
  }
  return if_empty || !self.view().empty();
}

bool IsAscii(char32_t c) { return c < 0x80; }
bool IsLetterOrDigit(char32_t c) { return IsLetter(c) || IsDigit(c); }

// isupper and islower are the tests upper and lower.
template <bool upper>
Value IsCaseMethod(Interpreter& in, const Value& self, const Arguments& args) {
  return in.CallTest(upper ? "upper" : "lower", self, args);
}

// clang-format off
constexpr Named<MethodFn> kMethods[] = {
    {"count", CountMethod}, {"find", FindMethod<false, false>}, {"rfind", FindMethod<true, false>},
    {"index", FindMethod<false, true>}, {"rindex", FindMethod<true, true>},
    {"startswith", BeginsMethod<false>}, {"endswith", BeginsMethod<true>},
    {"split", SplitMethod<false>}, {"rsplit", SplitMethod<true>}, {"splitlines", SplitLinesMethod},
    {"partition", PartitionMethod<false>}, {"rpartition", PartitionMethod<true>},
    {"strip", StripMethod<Side::kBoth>},
    {"lstrip", StripMethod<Side::kLeft>}, {"rstrip", StripMethod<Side::kRight>},
    {"removeprefix", RemoveMethod<false>}, {"removesuffix", RemoveMethod<true>},
    {"center", PadMethod<Side::kBoth>}, {"zfill", ZeroFillMethod},
    {"ljust", PadMethod<Side::kRight>}, {"rjust", PadMethod<Side::kLeft>},
    {"format", FormatMethod}, {"join", JoinMethod}, {"replace", ReplaceMethod},
    {"upper", MapMethod<UpperText>}, {"lower", MapMethod<LowerText>},
    {"casefold", MapMethod<LowerText>}, {"swapcase", MapMethod<SwapCase>},
    {"capitalize", MapMethod<Capitalize>}, {"title", MapMethod<TitleMethod>},
    {"isupper", IsCaseMethod<true>}, {"islower", IsCaseMethod<false>},
    {"isascii", AllMethod<IsAscii, true>}, {"isspace", AllMethod<IsSpace>},
    {"isalpha", AllMethod<IsLetter>}, {"isalnum", AllMethod<IsLetterOrDigit>},
    {"isdigit", AllMethod<IsDigit>}, {"isdecimal", AllMethod<IsDigit>},
    {"isnumeric", AllMethod<IsDigit>},
};
// clang-format on

}  // namespace

MethodFn FindStringMethod(std::string_view name) { return FindNamed(kMethods, name); }

}  // namespace tokenizer::jinja
