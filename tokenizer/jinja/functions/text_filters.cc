// Filters that return text and numbers.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

template <Text (*map)(const Text&)>
Value Mapped(const BuiltinCall& call) {
  return map(Str(call.rt, call.self));
}

Text Same(const Text& text) { return text; }

Text Escape(const Text& text) {
  Text out;
  out.AppendMapped(text, [](char32_t, std::string_view bytes, String& escaped) {
    constexpr std::string_view kSpecial = "&<>'\"";
    constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const size_t i = kSpecial.find(bytes);
    escaped += i != kNotFound ? kEntities[i] : bytes;
  });
  return out;
}

// The call.self of filters that accept only strings.
const Text& RequireString(const Value& input, std::string_view filter) {
  RequireDefined(input);
  if (!input.IsString()) Fail(filter, "() needs a string, not '", input.TypeName(), "'");
  return input.text();
}

Value Trim(const BuiltinCall& call) {
  std::optional<std::string_view> chars;
  if (call.GetSome(0) != nullptr) chars = call.String(0).view();
  return Strip(Str(call.rt, call.self), Side::kBoth, chars);
}

Value ReplaceFilter(const BuiltinCall& call) {
  const Text from = Str(call.rt, *call.Get(0));
  const int64_t count = call.GetSome(2) != nullptr ? call.Integer(2, -1) : -1;
  return Replace(Str(call.rt, call.self), from.view(), Str(call.rt, *call.Get(1)), count);
}

Value Indent(const BuiltinCall& call) {
  Text text = RequireString(call.self, "indent");
  text.Append("\n");  // so that an empty last line counts
  const bool by_text = call.Get(0) != nullptr && call.Get(0)->IsString();
  const Text indent = by_text ? call.String(0) : Repeated(Text(" "), call.Integer(0, 4));
  const bool first = call.Flag(1), blank = call.Flag(2);
  Text out;
  bool at_first = true;
  for (const Text& line : SplitLines(text, false)) {
    if (!at_first) out.Append("\n");
    if (at_first ? first : blank || !line.empty()) out.Append(indent);
    out.Append(line);
    at_first = false;
  }
  return out;
}

Value FormatFilter(const BuiltinCall& call) {
  if (!call.args.named.empty() && !call.args.positional.empty())
    Fail("can't handle positional and keyword arguments at the same time");
  Value values = call.rt.Make(Values(call.args.positional), List::Kind::kTuple);
  if (!call.args.named.empty()) {
    values = call.rt.Make(Dict());
    values.dict().SetAll(call.args.named);
  }
  return PercentFormat(call.rt, Str(call.rt, call.self), values);
}

Value Center(const BuiltinCall& call) {
  return Centered(Str(call.rt, call.self), call.Integer(0, 80));
}

Value Truncate(const BuiltinCall& call) {
  const Text text = Str(call.rt, call.self), end = Str(call.rt, call.Or(2, Value("...")));
  const int64_t length = call.Integer(0, 255);
  const int64_t leeway = call.GetSome(3) != nullptr ? call.Integer(3, 5) : 5;
  const auto ending = static_cast<int64_t>(CountChars(end.view()));
  if (length < ending || leeway < 0) Fail("truncate() needs a length of at least ", ending);
  const auto size = static_cast<int64_t>(CountChars(text.view()));
  if (size - length <= leeway) return call.self.IsUndefined() ? call.self : Value(text);
  Text out = text.Sub(0, ByteOfChar(text.view(), static_cast<size_t>(length - ending)));
  const size_t blank = call.Flag(1) ? kNotFound : out.view().rfind(' ');
  if (blank != kNotFound) out = out.Sub(0, blank);
  out.Append(end);
  return out;
}

Value WordCount(const BuiltinCall& call) {
  const Text text = Str(call.rt, call.self);
  int64_t count = 0;
  bool in_word = false;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    const bool is_part = code == '_' || IsLetter(code) || IsNumeric(code);
    if (is_part && !in_word) ++count;
    in_word = is_part;
  }
  return count;
}

// Percent-encodes characters that are not allowed in a URL.
Text Quoted(const Text& text, bool is_query) {
  Text out;
  out.AppendMapped(text, [&](char32_t code, std::string_view bytes, String& quoted) {
    const bool is_plain = code < 0x80 && (IsLetter(code) || IsDecimal(code) ||
                                          std::string_view("_.-~").find(bytes) != kNotFound ||
                                          (bytes == "/" && !is_query));
    if (is_plain) {
      quoted += bytes;
    } else if (is_query && bytes == " ") {
      quoted += '+';
    } else {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        quoted += {'%', kHex[byte >> 4], kHex[byte & 15]};
      }
    }
  });
  return out;
}

Value UrlEncode(const BuiltinCall& call) {
  if (!call.self.IsDict() && !call.self.IsList()) return Quoted(Str(call.rt, call.self), false);
  Text out;
  const Value pairs = call.self.IsDict() ? ItemsFilter(call) : call.self;
  for (const Value& item : ItemsOf(pairs)) {
    const Values pair = ItemsOf(item);
    if (pair.size() != 2) Fail("urlencode() needs pairs");
    if (!out.empty()) out.Append("&");
    out.Append(Quoted(Str(call.rt, pair[0]), true));
    out.Append("=");
    out.Append(Quoted(Str(call.rt, pair[1]), true));
  }
  return out;
}

// Rounds to a number of digits behind the point as Python does: if halfway, to the even neighbour.
Value Round(const BuiltinCall& call) {
  RequireDefined(call.self);
  if (!call.self.IsNumber())
    Fail("type ", call.self.TypeName(), " doesn't define __round__ method");
  const int64_t digits = std::clamp<int64_t>(call.Integer(0, 0), -400, 400);
  const std::string_view method = call.Get(1) != nullptr ? call.String(1).view() : "common";
  const auto power = [&](int64_t n) {
    return Calculate(call.rt, BinaryOp::kPow, Value(10), Value(n));
  };
  if (method == "ceil" || method == "floor") {
    const double scaled = Calculate(call.rt, BinaryOp::kMul, call.self, power(digits)).number();
    const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
    const auto integer = WholePart(whole);
    if (!integer) Fail("cannot round that");
    return Calculate(call.rt, BinaryOp::kDiv, Value(*integer), power(digits));
  }
  if (method != "common") Fail("method must be common, ceil or floor");
  if (call.self.IsIntegral()) {
    if (digits >= 0) return call.self.integer();
    if (digits < -18) return 0;
    const int64_t unit = power(-digits).integer();
    const Value below =
        Calculate(call.rt, BinaryOp::kFloorDiv, Value(call.self.integer()), Value(unit));
    const int64_t rest = call.self.integer() - below.integer() * unit, twice = unit - rest;
    const bool up = rest > twice || (rest == twice && below.integer() % 2 != 0);
    return Calculate(call.rt, BinaryOp::kMul, Value(below.integer() + (up ? 1 : 0)), Value(unit));
  }
  if (!std::isfinite(call.self.number())) return call.self;
  if (digits >= 0) {
    const std::string text =
        PercentFormat(call.rt, Text("%." + std::to_string(digits) + "f"), call.self).view().data();
    return ParseFloat(text).value_or(0);
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::isinf(unit) ? 0.0 : std::nearbyint(call.self.number() / unit) * unit;
}

Value ToJsonFilter(const BuiltinCall& call) {
  // The transformers library adds these parameters to the filter.
  JsonOptions options;
  options.ensure_ascii = call.Flag(0);
  options.sort_keys = call.Flag(3);
  if (const Value* indent = call.GetSome(1)) {
    options.item_separator = ",";
    const Text blanks =
        indent->IsString() ? indent->text() : Repeated(Text(" "), call.Integer(1, 0));
    options.indent = blanks.view();
  }
  if (const Value* separators = call.GetSome(2)) {
    const Values pair = ItemsOf(*separators);
    if (pair.size() != 2) Fail("tojson()'s separators must be two");
    options.item_separator = Str(call.rt, pair[0]).view();
    options.key_separator = Str(call.rt, pair[1]).view();
  }
  return ToJson(call.rt, call.self, options);
}

Value ToInt(const BuiltinCall& call) {
  RequireDefined(call.self);
  if (call.self.IsBigInteger()) return call.self;
  if (call.self.IsIntegral()) return call.self.integer();
  std::optional<double> number;
  if (call.self.IsString()) {
    if (const auto value = ParseInt(call.self.view(), call.Integer(1, 10))) return *value;
    number = ParseFloat(call.self.view());
  } else if (call.self.IsFloat()) {
    number = call.self.number();
  }
  if (number) {
    if (const auto value = WholePart(*number)) return *value;
  }
  return call.Or(0, Value(0));
}

Value ToFloat(const BuiltinCall& call) {
  RequireDefined(call.self);
  if (call.self.IsNumber()) return call.self.number();
  if (call.self.IsString()) {
    if (const auto value = ParseFloat(call.self.view())) return *value;
  }
  return call.Or(0, Value(0.0));
}

Value Absolute(const BuiltinCall& call) {
  RequireDefined(call.self);
  if (!call.self.IsNumber()) Fail("abs() needs a number");
  const bool negative =
      call.self.IsFloat() ? std::signbit(call.self.number()) : call.self.integer() < 0;
  if (negative) return Negate(call.self);
  return Calculate(call.rt, BinaryOp::kAdd, call.self, Value(0));  // True becomes 1
}

// clang-format off
constexpr Builtin kTextFilters[] = {
    {Owner::kFilter, "string", Mapped<Same>},
    {Owner::kFilter, "safe", Mapped<Same>},
    {Owner::kFilter, "e", Mapped<Escape>},
    {Owner::kFilter, "escape", Mapped<Escape>},
    {Owner::kFilter, "forceescape", Mapped<Escape>},
    {Owner::kFilter, "upper", Mapped<UpperText>},
    {Owner::kFilter, "lower", Mapped<LowerText>},
    {Owner::kFilter, "capitalize", Mapped<Capitalize>},
    {Owner::kFilter, "title", Mapped<TitleFilter>},
    {Owner::kFilter, "trim", Trim, "| chars"},
    {Owner::kFilter, "replace", ReplaceFilter, "old new | count"},
    {Owner::kFilter, "indent", Indent, "| width first blank"},
    {Owner::kFilter, "format", FormatFilter, "*"},
    {Owner::kFilter, "center", Center, "| width"},
    {Owner::kFilter, "truncate", Truncate, "| length killwords end leeway"},
    {Owner::kFilter, "wordcount", WordCount},
    {Owner::kFilter, "urlencode", UrlEncode},
    {Owner::kFilter, "tojson", ToJsonFilter, "| ensure_ascii indent separators sort_keys"},
    {Owner::kFilter, "int", ToInt, "| default base"},
    {Owner::kFilter, "float", ToFloat, "| default"},
    {Owner::kFilter, "abs", Absolute},
    {Owner::kFilter, "round", Round, "| precision method"},
};
// clang-format on

}  // namespace

std::span<const Builtin> TextFilters() { return kTextFilters; }

}  // namespace tokenizer::jinja
