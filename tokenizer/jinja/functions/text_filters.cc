// Filters that return text and numbers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"
#include "tokenizer/jinja/values/strings.h"

namespace tokenizer::jinja {
namespace {

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

Value Indent(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("indent", args, {"width", "first", "blank"});
  Runtime& rt = in.rt();
  Text text = RequireString(input, "indent");
  text.Append("\n");  // so that an empty last line counts
  const bool by_text = params.Get(0) != nullptr && params.Get(0)->IsString();
  const Text indent = by_text ? params.String(0) : Blanks(rt, params.Integer(0, 4));
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

// "%04d-%02d" | format(year, month): Python's %s, and its %d with a width and zeros.
Value Format(Interpreter& in, const Value& input, const Arguments& args) {
  if (!args.named.empty()) Fail("format() takes no named arguments");
  const Text format = Str(in.rt(), input);
  Text out;
  size_t pos = 0, n_used = 0;
  for (size_t at; (at = format.view().find('%', pos)) != kNotFound;) {
    in.rt().PaySteps();
    out.Append(format, pos, at - pos);
    const size_t end = std::min(format.view().find_first_not_of("0123456789", ++at), format.size());
    const std::string_view digits = format.view().substr(at, end - at);
    const std::string_view type = format.view().substr(end, 1);
    pos = end + type.size();
    if (type == "%" && digits.empty()) {
      out.Append("%");
      continue;
    }
    const bool is_text = type == "s" && digits.empty();
    if (!is_text && (type != "d" || digits.size() > 2)) Fail("format() knows %s, %d and %02d");
    if (n_used == args.positional.size()) Fail("not enough arguments for format string");
    const Value& value = args.positional[n_used++];
    if (is_text) {
      AppendStr(in.rt(), value, out);
    } else {
      char number[100];
      const auto integer = static_cast<long long>(ToInteger(value, "%d"));
      std::snprintf(number, sizeof number, digits.starts_with('0') ? "%0*lld" : "%*lld",
                    static_cast<int>(ParseInt(digits).value_or(0)), integer);
      out.Append(number);
    }
  }
  if (n_used < args.positional.size()) Fail("not all arguments converted in format()");
  in.rt().PayBytes(format.Cost());
  out.Append(format, pos);
  return in.rt().Make(std::move(out));
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
    options.indent = indent->IsString() ? std::string(indent->view())
                                        : std::string(Blanks(rt, params.Integer(1, 0)).view());
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
  const Params params("int", args, {"default"});
  RequireDefined(input);
  if (input.IsIntegral()) return input.integer();
  std::optional<double> number;
  if (input.IsString()) {
    in.rt().PayCharacters(2 * input.view().size());  // as int and as float
    if (const auto value = ParseInt(input.view())) return *value;
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

// clang-format off
constexpr Named<FilterFn> kTextFilters[] = {
    {"string", MapText<Same>}, {"safe", MapText<Same>}, {"tojson", ToJsonFilter},
    {"e", MapText<Escape>}, {"escape", MapText<Escape>},
    {"upper", MapText<UpperText>}, {"lower", MapText<LowerText>},
    {"capitalize", MapText<Capitalize>}, {"title", MapText<TitleFilter>},
    {"format", Format}, {"indent", Indent}, {"replace", ReplaceFilter}, {"trim", Trim},
    {"abs", Absolute}, {"float", ToFloat}, {"int", ToInt},
};
// clang-format on

}  // namespace

FilterFn FindTextFilter(std::string_view name) { return FindNamed(kTextFilters, name); }

}  // namespace tokenizer::jinja
