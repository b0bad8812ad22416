// Filters that return text and numbers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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

template <Text (*map)(Runtime&, const Text&)>
Value MapText(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("a filter without parameters", args, {});
  return in.rt().Make(map(in.rt(), Str(in.rt(), input)));
}

Text Same(Runtime&, const Text& text) { return text; }

Text Escape(Runtime& rt, const Text& text) {
  rt.PayBytes(5 * text.Cost());
  Text out;
  out.AppendMapped(text, [](char32_t, std::string_view bytes, std::string& escaped) {
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
  return in.rt().Make(Strip(in.rt(), Str(in.rt(), input), Side::kBoth, chars));
}

Value ReplaceFilter(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  Runtime& rt = in.rt();
  const Text from = Str(rt, *params.Get(0));
  const int64_t count = params.GetSome(2) != nullptr ? params.Integer(2, -1) : -1;
  return rt.Make(Replace(rt, Str(rt, input), from.view(), Str(rt, *params.Get(1)), count));
}

Value Center(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("center", args, {"width"});
  return in.rt().Make(Pad(in.rt(), Str(in.rt(), input), Side::kBoth, params.Integer(0, 80)));
}

Value Indent(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("indent", args, {"width", "first", "blank"});
  Runtime& rt = in.rt();
  Text text = RequireString(input, "indent");
  text.Append("\n");  // so that an empty last line counts
  const bool by_text = params.Get(0) != nullptr && params.Get(0)->IsString();
  const Text indent =
      by_text ? params.String(0) : Pad(rt, Text(), Side::kLeft, params.Integer(0, 4));
  const bool first = params.Flag(1), blank = params.Flag(2);
  Text out;
  bool at_first = true;
  for (const Text& line : SplitLines(rt, text, false)) {
    rt.PayBytes(indent.Cost() + line.Cost() + 1);
    if (!at_first) out.Append("\n");
    if (at_first ? first : blank || !line.empty()) out.Append(indent);
    out.Append(line);
    at_first = false;
  }
  return rt.Make(std::move(out));
}

Value Truncate(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("truncate", args, {"length", "killwords", "end", "leeway"});
  Runtime& rt = in.rt();
  const Text end = params.Get(2) != nullptr ? params.String(2) : Text("...");
  const int64_t length = params.Integer(0, 255);
  const int64_t leeway = params.GetSome(3) != nullptr ? params.Integer(3, 5) : 5;
  rt.PayCharacters(end.size());
  const auto end_chars = static_cast<int64_t>(CountChars(end.view()));
  if (length < end_chars || leeway < 0) Fail("truncate() to less than its end");
  if (LengthOf(rt, input) - leeway <= length) return input;
  const Text& text = RequireString(input, "truncate");
  Text out = text.Sub(0, ByteOfChar(text.view(), static_cast<size_t>(length - end_chars)));
  if (!params.Flag(1)) out = Split(rt, out, " ", 1, true)[0];
  out.Append(end);
  return rt.Make(std::move(out));
}

Value WordCount(Interpreter& in, const Value& input, const Arguments&) {
  const Text text = Str(in.rt(), input);
  in.rt().PayCharacters(text.size());
  int64_t count = 0;
  bool in_word = false;
  for (const auto& [code, bytes] : gguf::Characters(text.view())) {
    const bool word = code == '_' || IsLetter(code) || IsDigit(code);
    if (word && !in_word) ++count;
    in_word = word;
  }
  return count;
}

// "%s and %s" | format(a, b), or with names.
Value Format(Interpreter& in, const Value& input, const Arguments& args) {
  Runtime& rt = in.rt();
  const bool by_name = !args.named.empty();
  if (by_name && !args.positional.empty()) Fail("format() takes either values or names");
  const Value values = by_name ? rt.Make(Dict()) : rt.Make(args.positional, List::Kind::kTuple);
  if (by_name) rt.SetEntries(values.dict(), args.named);
  return rt.Make(FormatPercent(rt, Str(rt, input), values));
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
    options.indent = indent->IsString()
                         ? std::string(indent->view())
                         : std::string(Pad(rt, Text(), Side::kLeft, params.Integer(1, 0)).view());
  }
  if (const Value* separators = params.GetSome(2)) {
    const Values pair = ItemsOf(rt, *separators);
    if (pair.size() != 2) Fail("tojson()'s separators must be two");
    options.item_separator = Str(rt, pair[0]).view();
    options.key_separator = Str(rt, pair[1]).view();
  }
  return rt.Make(ToJson(rt, input, options));
}

Value ToInt(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("int", args, {"default", "base"});
  RequireDefined(input);
  if (input.IsIntegral()) return input.integer();
  std::optional<double> number;
  if (input.IsString()) {
    in.rt().PayCharacters(2 * input.view().size());  // as int and as float
    const int64_t base = params.Integer(1, 10);
    if (base != 0 && (base < 2 || base > 36)) Fail("int()'s base is not in 2 to 36");
    if (const auto value = ParseInt(input.view(), static_cast<int>(base))) return *value;
    number = ParseFloat(input.view());
  } else if (input.IsFloat()) {
    number = input.number();
  }
  if (number) {
    if (const auto value = WholePart(*number)) return *value;
  }
  return params.Or(0, Value(0));
}

Value ToFloat(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("float", args, {"default"});
  RequireDefined(input);
  if (input.IsNumber()) return input.number();
  if (input.IsString()) {
    in.rt().PayCharacters(input.view().size());
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

// Rounds the exact value to `digits` after the point, half to even, as Python does.
double RoundHalfEven(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < -308) return 0;  // no double has that many digits
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  char buffer[700];  // 309 digits before the point and 300 after it
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), value);
  return std::strtod(buffer, nullptr);
}

Value Round(Interpreter&, const Value& input, const Arguments& args) {
  const Params params("round", args, {"precision", "method"});
  RequireDefined(input);
  if (!input.IsNumber()) Fail("round() of what is no number");
  const int64_t digits = params.Integer(0, 0);
  const std::string_view method = params.Get(1) != nullptr ? params.String(1).view() : "common";
  if (method == "common") {
    if (input.IsIntegral() && digits >= 0) return input.integer();
    const double rounded = RoundHalfEven(input.number(), digits);
    if (input.IsFloat()) return rounded;
    return WholePart(rounded).value_or(0);
  }
  if (method != "ceil" && method != "floor") Fail("round()'s method must be common, ceil or floor");
  const double unit = std::pow(10.0, static_cast<double>(std::clamp<int64_t>(digits, -300, 300)));
  const double scaled = input.number() * unit;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

// clang-format off
constexpr Named<FilterFn> kTextFilters[] = {
    {"string", MapText<Same>}, {"safe", MapText<Same>}, {"tojson", ToJsonFilter},
    {"e", MapText<Escape>}, {"escape", MapText<Escape>}, {"forceescape", MapText<Escape>},
    {"upper", MapText<UpperText>}, {"lower", MapText<LowerText>},
    {"capitalize", MapText<Capitalize>}, {"title", MapText<TitleFilter>},
    {"center", Center}, {"format", Format}, {"indent", Indent}, {"replace", ReplaceFilter},
    {"trim", Trim}, {"truncate", Truncate}, {"wordcount", WordCount},
    {"abs", Absolute}, {"float", ToFloat}, {"int", ToInt}, {"round", Round},
};
// clang-format on

}  // namespace

FilterFn FindTextFilter(std::string_view name) { return FindNamed(kTextFilters, name); }

}  // namespace tokenizer::jinja
