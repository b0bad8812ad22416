// Filters that return text and numbers.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/format.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"
#include "tokenizer/jinja/values/strings.h"
#include "tokenizer/jinja/values/unicode.h"

namespace tokenizer::jinja {
namespace {

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

// The input of filters that accept only strings.
const Text& RequireString(const Value& input, std::string_view filter) {
  RequireDefined(input);
  if (!input.IsString()) Fail(filter, "() needs a string, not '", input.TypeName(), "'");
  return input.text();
}

Value Trim(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("trim", args, {"chars"});
  std::optional<std::string_view> chars;
  if (params.GetSome(0) != nullptr) chars = params.String(0).view();
  return Strip(Str(in.rt(), input), Side::kBoth, chars);
}

Value ReplaceFilter(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  Runtime& rt = in.rt();
  const Text from = Str(rt, *params.Get(0));
  const int64_t count = params.GetSome(2) != nullptr ? params.Integer(2, -1) : -1;
  return Replace(Str(rt, input), from.view(), Str(rt, *params.Get(1)), count);
}

Value Indent(Interpreter&, const Value& input, const Arguments& args) {
  const Params params("indent", args, {"width", "first", "blank"});
  Text text = RequireString(input, "indent");
  text.Append("\n");  // so that an empty last line counts
  const bool by_text = params.Get(0) != nullptr && params.Get(0)->IsString();
  const Text indent = by_text ? params.String(0) : Repeated(Text(" "), params.Integer(0, 4));
  const bool first = params.Flag(1), blank = params.Flag(2);
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

Value FormatFilter(Interpreter& in, const Value& input, const Arguments& args) {
  if (!args.named.empty() && !args.positional.empty())
    Fail("can't handle positional and keyword arguments at the same time");
  Value values = in.rt().Make(Values(args.positional), List::Kind::kTuple);
  if (!args.named.empty()) {
    values = in.rt().Make(Dict());
    values.dict().SetAll(args.named);
  }
  return PercentFormat(in.rt(), Str(in.rt(), input), values);
}

Value Center(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("center", args, {"width"});
  return Centered(Str(in.rt(), input), params.Integer(0, 80));
}

Value Truncate(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("truncate", args, {"length", "killwords", "end", "leeway"});
  Runtime& rt = in.rt();
  const Text text = Str(rt, input), end = Str(rt, params.Or(2, Value("...")));
  const int64_t length = params.Integer(0, 255);
  const int64_t leeway = params.GetSome(3) != nullptr ? params.Integer(3, 5) : 5;
  const auto ending = static_cast<int64_t>(CountChars(end.view()));
  if (length < ending || leeway < 0) Fail("truncate() needs a length of at least ", ending);
  const auto size = static_cast<int64_t>(CountChars(text.view()));
  if (size - length <= leeway) return input.IsUndefined() ? input : Value(text);
  Text out = text.Sub(0, ByteOfChar(text.view(), static_cast<size_t>(length - ending)));
  const size_t blank = params.Flag(1) ? kNotFound : out.view().rfind(' ');
  if (blank != kNotFound) out = out.Sub(0, blank);
  out.Append(end);
  return out;
}

Value WordCount(Interpreter& in, const Value& input, const Arguments&) {
  const Text text = Str(in.rt(), input);
  int64_t count = 0;
  bool in_word = false;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    const bool is_part = code == '_' || IsLetter(code) || IsNumeric(code);
    if (is_part && !in_word) ++count;
    in_word = is_part;
  }
  return count;
}

// Percent signs and two digits for what may not stand in an address.
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

Value UrlEncode(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("urlencode", args, {});
  Runtime& rt = in.rt();
  if (!input.IsDict() && !input.IsList()) return Quoted(Str(rt, input), false);
  Text out;
  const Value pairs = input.IsDict() ? ItemsFilter(in, input, {}) : input;
  for (const Value& item : ItemsOf(pairs)) {
    const Values pair = ItemsOf(item);
    if (pair.size() != 2) Fail("urlencode() needs pairs");
    if (!out.empty()) out.Append("&");
    out.Append(Quoted(Str(rt, pair[0]), true));
    out.Append("=");
    out.Append(Quoted(Str(rt, pair[1]), true));
  }
  return out;
}

// To a number of digits behind the point, as Python rounds: to the even neighbour if between two.
Value Round(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("round", args, {"precision", "method"});
  RequireDefined(input);
  if (!input.IsNumber()) Fail("type ", input.TypeName(), " doesn't define __round__ method");
  const int64_t digits = std::clamp<int64_t>(params.Integer(0, 0), -400, 400);
  const std::string_view method = params.Get(1) != nullptr ? params.String(1).view() : "common";
  const auto power = [&](int64_t n) {
    return Calculate(in.rt(), BinaryOp::kPow, Value(10), Value(n));
  };
  if (method == "ceil" || method == "floor") {
    const double scaled = Calculate(in.rt(), BinaryOp::kMul, input, power(digits)).number();
    const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
    const auto integer = WholePart(whole);
    if (!integer) Fail("cannot round that");
    return Calculate(in.rt(), BinaryOp::kDiv, Value(*integer), power(digits));
  }
  if (method != "common") Fail("method must be common, ceil or floor");
  if (input.IsIntegral()) {
    if (digits >= 0) return input.integer();
    if (digits < -18) return 0;
    const int64_t unit = power(-digits).integer();
    const Value below =
        Calculate(in.rt(), BinaryOp::kFloorDiv, Value(input.integer()), Value(unit));
    const int64_t rest = input.integer() - below.integer() * unit, twice = unit - rest;
    const bool up = rest > twice || (rest == twice && below.integer() % 2 != 0);
    return Calculate(in.rt(), BinaryOp::kMul, Value(below.integer() + (up ? 1 : 0)), Value(unit));
  }
  if (!std::isfinite(input.number())) return input;
  if (digits >= 0) {
    const std::string text =
        PercentFormat(in.rt(), Text("%." + std::to_string(digits) + "f"), input).view().data();
    return ParseFloat(text).value_or(0);
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::isinf(unit) ? 0.0 : std::nearbyint(input.number() / unit) * unit;
}

Value ToJsonFilter(Interpreter& in, const Value& input, const Arguments& args) {
  // The parameters are those that the transformers library adds to this filter.
  const Params params("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  Runtime& rt = in.rt();
  JsonOptions options;
  options.ensure_ascii = params.Flag(0);
  options.sort_keys = params.Flag(3);
  if (const Value* indent = params.GetSome(1)) {
    options.item_separator = ",";
    const Text blanks =
        indent->IsString() ? indent->text() : Repeated(Text(" "), params.Integer(1, 0));
    options.indent = blanks.view();
  }
  if (const Value* separators = params.GetSome(2)) {
    const Values pair = ItemsOf(*separators);
    if (pair.size() != 2) Fail("tojson()'s separators must be two");
    options.item_separator = Str(rt, pair[0]).view();
    options.key_separator = Str(rt, pair[1]).view();
  }
  return ToJson(rt, input, options);
}

Value ToInt(Interpreter&, const Value& input, const Arguments& args) {
  const Params params("int", args, {"default", "base"});
  RequireDefined(input);
  if (input.IsBigInteger()) return input;
  if (input.IsIntegral()) return input.integer();
  std::optional<double> number;
  if (input.IsString()) {
    if (const auto value = ParseInt(input.view(), params.Integer(1, 10))) return *value;
    number = ParseFloat(input.view());
  } else if (input.IsFloat()) {
    number = input.number();
  }
  if (number) {
    if (const auto value = WholePart(*number)) return *value;
  }
  return params.Or(0, Value(0));
}

Value ToFloat(Interpreter&, const Value& input, const Arguments& args) {
  const Params params("float", args, {"default"});
  RequireDefined(input);
  if (input.IsNumber()) return input.number();
  if (input.IsString()) {
    if (const auto value = ParseFloat(input.view())) return *value;
  }
  return params.Or(0, Value(0.0));
}

Value Absolute(Interpreter& in, const Value& input, const Arguments&) {
  RequireDefined(input);
  if (!input.IsNumber()) Fail("abs() of what is no number");
  const bool negative = input.IsFloat() ? std::signbit(input.number()) : input.integer() < 0;
  if (negative) return Negate(input);
  return Calculate(in.rt(), BinaryOp::kAdd, input, Value(0));  // True becomes 1
}

// clang-format off
constexpr Named<FilterFn> kTextFilters[] = {
    {"string", MapText<Same>}, {"safe", MapText<Same>}, {"tojson", ToJsonFilter},
    {"e", MapText<Escape>}, {"escape", MapText<Escape>},
    {"upper", MapText<UpperText>}, {"lower", MapText<LowerText>},
    {"capitalize", MapText<Capitalize>}, {"title", MapText<TitleFilter>},
    {"format", FormatFilter}, {"center", Center}, {"truncate", Truncate}, {"round", Round},
    {"wordcount", WordCount}, {"urlencode", UrlEncode}, {"forceescape", MapText<Escape>}, {"indent", Indent}, {"replace", ReplaceFilter}, {"trim", Trim},
    {"abs", Absolute}, {"float", ToFloat}, {"int", ToInt},
};
// clang-format on

}  // namespace

FilterFn FindTextFilter(std::string_view name) { return FindNamed(kTextFilters, name); }

}  // namespace tokenizer::jinja
