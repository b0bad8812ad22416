// The methods of strings: "text".strip() and so on.
#include <algorithm>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/strings.h"
#include "tokenizer/jinja/values/unicode.h"

namespace tokenizer::jinja {
namespace {

Value ListOfTexts(Runtime& rt, std::vector<Text> texts) {
  Values items;
  for (Text& text : texts) items.push_back(rt.Make(std::move(text)));
  return rt.Make(std::move(items));
}

template <Side side>
Value StripMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("strip", args, {"chars"});
  std::optional<std::string_view> chars;
  if (params.GetSome(0) != nullptr) chars = params.String(0).view();
  return in.rt().Make(Strip(in.rt(), self.text(), side, chars));
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

Value FindMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("find", args, {"sub"}, 1);
  in.rt().PayReading(self.view().size());
  const size_t at = FindBytes(in.rt(), self.view(), params.String(0).view());
  if (at == kNotFound) return -1;
  return static_cast<int64_t>(CountChars(self.view().substr(0, at)));
}

Value CountMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const std::string_view needle = Params("count", args, {"sub"}, 1).String(0).view();
  Runtime& rt = in.rt();
  const std::string_view text = self.view();
  rt.PayReading(text.size());
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
  const Params params(at_end ? "endswith" : "startswith", args, {"prefix"}, 1);
  const std::string_view text = self.view();
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

template <bool at_end>
Value RemoveMethod(Interpreter& in, const Value& self, const Arguments& args) {
  const std::string_view part = Params("removeprefix", args, {"prefix"}, 1).String(0).view();
  const Text& text = self.text();
  in.rt().PayReading(part.size());
  const bool has = at_end ? text.view().ends_with(part) : text.view().starts_with(part);
  if (!has) return self;
  return in.rt().Make(text.Sub(at_end ? 0 : part.size(), text.size() - part.size()));
}

// clang-format off
constexpr Named<FilterFn> kMethods[] = {
    {"count", CountMethod}, {"find", FindMethod},
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
