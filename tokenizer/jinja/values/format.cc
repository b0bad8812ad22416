#include "tokenizer/jinja/values/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"
#include "tokenizer/jinja/values/unicode.h"

namespace tokenizer::jinja {
namespace {

constexpr int64_t kMaxPrecision = 100;  // digits of a number

// The layout of one value.
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // < > ^ or = (after the sign); 0: by type
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;  // characters
  char group = 0;     // , or _ between groups of three digits
  int64_t precision = -1;
  char type = 0;
};

[[noreturn]] void BadType(const FormatSpec& spec, const Value& value) {
  Fail("the format '", spec.type, "' does not fit a value of type '", value.TypeName(), "'");
}

std::string FormatInteger(int64_t value, const FormatSpec& spec) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : uint64_t(value);
  const char type = spec.type;
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  char buffer[64];
  const auto end = std::to_chars(buffer, std::end(buffer), magnitude, base);
  const std::string digits(buffer, end.ptr);
  const std::string prefix = spec.alternate && base != 10 ? std::string{'0', type} : "";
  return prefix + (type == 'X' ? Upper(digits) : digits);
}

std::string FormatDouble(double value, const FormatSpec& spec) {
  if (spec.type == 0 && spec.precision < 0) return FloatRepr(value);
  if (spec.precision > kMaxPrecision) Fail("a number with too many digits");
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  const bool percent = spec.type == '%';
  const char type = percent ? 'f' : spec.type == 0 ? 'g' : spec.type;
  const std::string format = std::string(spec.alternate ? "%#.*" : "%.*") + type;
  char buffer[512];  // 309 digits before the point, at most 100 after it
  const int size = std::snprintf(buffer, sizeof buffer, format.c_str(), precision,
                                 percent ? value * 100 : value);
  return std::string(buffer, static_cast<size_t>(size)) + (percent ? "%" : "");
}

void GroupDigits(char separator, std::string& number) {
  const size_t whole = std::min(number.find_first_not_of("0123456789"), number.size());
  for (size_t i = whole; i > 3; i -= 3) number.insert(i - 3, 1, separator);
}

bool IsIntegerType(char type) {
  return std::string_view("diuxXob").find(type) != std::string_view::npos;
}

// The sign and the digits of a number; empty for values shown as text.
bool FormatNumber(const Value& value, const FormatSpec& spec, std::string& sign,
                  std::string& digits) {
  const bool integer_type = spec.type != 0 && IsIntegerType(spec.type);
  const bool float_type =
      spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (!integer_type && !float_type && (spec.type != 0 || !value.IsNumber() || value.IsBool())) {
    return false;
  }
  if (!value.IsNumber()) BadType(spec, value);
  if (value.IsIntegral() && !float_type) {
    digits = FormatInteger(value.integer(), spec);
    if (value.integer() < 0) sign = "-";
  } else {
    if (integer_type) BadType(spec, value);
    digits = FormatDouble(std::fabs(value.number()), spec);
    if (std::signbit(value.number()) && !std::isnan(value.number())) sign = "-";
  }
  if (sign.empty() && spec.sign != '-') sign = std::string(1, spec.sign);
  if (spec.group != 0) GroupDigits(spec.group, digits);
  return true;
}

Text FormatText(Runtime& rt, const Value& value, const FormatSpec& spec) {
  Text text = spec.type == 'r' ? Repr(rt, value) : Str(rt, value);
  if (spec.type == 'c' && value.IsIntegral()) {
    text = Text(
        gguf::ToUtf8(static_cast<char32_t>(std::clamp<int64_t>(value.integer(), 0, 0x10FFFF))));
  } else if (spec.type != 0 && spec.type != 's' && spec.type != 'r' && spec.type != 'c') {
    BadType(spec, value);
  }
  if (spec.precision >= 0) {
    text = text.Sub(0, ByteOfChar(text.view(), static_cast<size_t>(spec.precision)));
  }
  return text;
}

void AppendFill(Runtime& rt, const std::string& fill, size_t times, Text& out) {
  rt.PayBytes(times * fill.size());
  for (size_t i = 0; i < times; ++i) out.Append(fill);
}

// Throws TemplateError if the type letter does not fit the value.
void AppendFormatted(Runtime& rt, const Value& value, const FormatSpec& spec, Text& out) {
  std::string sign, digits;
  const bool number = FormatNumber(value, spec, sign, digits);
  const Text body = number ? Text(digits) : FormatText(rt, value, spec);
  const size_t chars = CountChars(body.view()) + sign.size();
  const auto width = static_cast<size_t>(std::clamp<int64_t>(spec.width, 0, INT32_MAX));
  const size_t padding = width > chars ? width - chars : 0;
  const char align = spec.align != 0 ? spec.align : number ? '>' : '<';
  const size_t before = align == '<' ? 0 : align == '^' ? padding / 2 : padding;
  if (align == '=') out.Append(sign);
  AppendFill(rt, spec.fill, before, out);
  if (align != '=') out.Append(sign);
  rt.PayBytes(body.Cost());
  out.Append(body);
  AppendFill(rt, spec.fill, padding - before, out);
}

// Reads format strings character by character.
class Reader {
 public:
  explicit Reader(const Text& text) : text_(text) {}
  bool AtEnd() const { return pos_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_.view()[pos_]; }
  char Next() {
    if (AtEnd()) Fail("incomplete format");
    return text_.view()[pos_++];
  }
  bool Skip(char c) {
    if (AtEnd() || Peek() != c) return false;
    ++pos_;
    return true;
  }
  size_t pos() const { return pos_; }
  // Everything up to one of `stops`, which is not consumed.
  std::string_view Until(std::string_view stops) {
    const size_t begin = pos_;
    pos_ = std::min(text_.view().find_first_of(stops, pos_), text_.size());
    return text_.view().substr(begin, pos_ - begin);
  }
  int64_t Number() {
    int64_t value = 0;
    while (!AtEnd() && Peek() >= '0' && Peek() <= '9') {
      value = std::min<int64_t>(value * 10 + (Next() - '0'), INT32_MAX);
    }
    return value;
  }
  // Copies text to `out` up to one of `stops`.
  void CopyUntil(std::string_view stops, Text& out) {
    const size_t begin = pos_;
    out.Append(text_, begin, Until(stops).size());
  }

 private:
  const Text& text_;
  size_t pos_ = 0;
};

FormatSpec ReadPercentSpec(Reader& reader) {
  FormatSpec spec;
  spec.align = '>';
  for (;;) {
    if (reader.Skip('-')) {
      spec.align = '<';
    } else if (reader.Skip('+')) {
      spec.sign = '+';
    } else if (reader.Skip(' ')) {
      if (spec.sign != '+') spec.sign = ' ';
    } else if (reader.Skip('#')) {
      spec.alternate = true;
    } else if (reader.Skip('0')) {
      spec.fill = "0";
      if (spec.align != '<') spec.align = '=';
    } else {
      break;
    }
  }
  if (spec.align == '<') spec.fill = " ";
  spec.width = reader.Number();
  if (reader.Skip('.')) spec.precision = reader.Number();
  spec.type = reader.Next();
  return spec;
}

// Returns the values for the conversions of a % format, one after the other or by name.
class PercentArguments {
 public:
  PercentArguments(Runtime& rt, const Value& args) : rt_(rt), args_(args) {
    positional_ = IsTuple() ? args.list().items : Values{args};
  }
  Value Next() {
    if (next_ >= positional_.size()) Fail("not enough arguments for format string");
    return positional_[next_++];
  }
  Value Named(std::string_view name) {
    if (!args_.IsDict()) Fail("format requires a mapping");
    named_ = true;
    const Value* value = rt_.FindEntry(args_.dict(), Value(name));
    if (value == nullptr) Fail("format: no key '", name, "'");
    return *value;
  }
  void RequireAllUsed() const {
    // As in Python, a value that could be indexed by name need not be used.
    const bool indexable = args_.IsDict() || args_.IsUndefined() || (args_.IsList() && !IsTuple());
    if (!named_ && !indexable && next_ < positional_.size()) {
      Fail("not all arguments converted during string formatting");
    }
  }

 private:
  bool IsTuple() const { return args_.IsList() && args_.list().kind == List::Kind::kTuple; }

  Runtime& rt_;
  const Value& args_;
  Values positional_;
  size_t next_ = 0;
  bool named_ = false;
};

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

FormatSpec ReadBraceSpec(std::string_view text) {
  const Text copy(text);
  Reader reader(copy);
  FormatSpec spec;
  if (!text.empty()) {
    const size_t first = gguf::NextUtf8(text).length;
    if (text.size() > first && IsAlign(text[first])) {
      spec.fill = std::string(text.substr(0, first));
      for (size_t i = 0; i < first; ++i) reader.Next();
    }
  }
  if (IsAlign(reader.Peek())) spec.align = reader.Next();
  if (const char c = reader.Peek(); c == '+' || c == '-' || c == ' ') spec.sign = reader.Next();
  spec.alternate = reader.Skip('#');
  if (reader.Skip('0')) {
    if (spec.align == 0) spec.align = '=', spec.fill = "0";
  }
  spec.width = reader.Number();
  if (const char c = reader.Peek(); c == ',' || c == '_') spec.group = reader.Next();
  if (reader.Skip('.')) spec.precision = reader.Number();
  if (!reader.AtEnd()) spec.type = reader.Next();
  if (!reader.AtEnd()) Fail("invalid format specifier '", text, "'");
  return spec;
}

// The value of a field: 0, name, name.key, name[key] and so on.
Value FieldValue(const Lookup& lookup, std::string_view field, const Arguments& args,
                 size_t& next) {
  const Text copy(field);
  Reader reader(copy);
  const std::string_view name = reader.Until(".[");
  Value value;
  if (const auto number = name.empty() ? std::optional<int64_t>(next++) : ParseInt(name)) {
    if (*number < 0 || static_cast<size_t>(*number) >= args.positional.size()) {
      Fail("format: there is no argument ", *number);
    }
    value = args.positional[static_cast<size_t>(*number)];
  } else {
    const auto named = std::ranges::find(args.named, name, &NamedValue::first);
    if (named == args.named.end()) Fail("format: no key '", name, "'");
    value = named->second;
  }
  while (!reader.AtEnd()) {
    if (reader.Next() == '.') {
      value = lookup(value, Value(reader.Until(".[")), /*is_attribute=*/true);
    } else {
      const std::string_view key = reader.Until("]");
      const auto number = ParseInt(key);
      value = lookup(value, number ? Value(*number) : Value(key), /*is_attribute=*/false);
      reader.Next();
    }
  }
  RequireDefined(value);
  return value;
}

}  // namespace

Text FormatPercent(Runtime& rt, const Text& format, const Value& args) {
  rt.PayReading(format.size());
  rt.PayBytes(format.Cost());
  Text out;
  Reader reader(format);
  PercentArguments values(rt, args);
  for (;;) {
    reader.CopyUntil("%", out);
    if (!reader.Skip('%')) break;
    rt.PaySteps();
    if (reader.Skip('%')) {
      out.Append("%");
      continue;
    }
    std::optional<Value> value;
    if (reader.Skip('(')) {
      value = values.Named(reader.Until(")"));
      reader.Next();
    }
    FormatSpec spec = ReadPercentSpec(reader);
    if (!value) value = values.Next();
    if (spec.type != 0 && IsIntegerType(spec.type) && value->IsFloat()) {
      const auto whole = WholePart(value->number());
      if (!whole) Fail(FloatRepr(value->number()), " is no whole number of 64 bits");
      value = Value(*whole);
    }
    if (spec.precision >= 0 && IsIntegerType(spec.type)) spec.precision = -1;
    if (!value->IsNumber() && spec.align == '=') spec.align = '>', spec.fill = " ";
    AppendFormatted(rt, *value, spec, out);
  }
  values.RequireAllUsed();
  return out;
}

Text FormatBraces(Runtime& rt, const Text& format, const Arguments& args, const Lookup& lookup) {
  rt.PayReading(format.size());
  rt.PayBytes(format.Cost());
  Text out;
  Reader reader(format);
  size_t next = 0;  // the argument for the next {}
  for (;;) {
    reader.CopyUntil("{}", out);
    if (reader.AtEnd()) return out;
    rt.PaySteps();
    const char brace = reader.Next();
    if (reader.Skip(brace)) {
      out.Append(std::string_view(&brace, 1));
      continue;
    }
    if (brace == '}') Fail("Single '}' encountered in format string");
    Value value = FieldValue(lookup, reader.Until("!:}"), args, next);
    if (reader.Skip('!')) {
      const char conversion = reader.Next();
      value = rt.Make(conversion == 'r' ? Repr(rt, value) : Str(rt, value));
    }
    const std::string_view spec = reader.Skip(':') ? reader.Until("}") : std::string_view();
    AppendFormatted(rt, value, ReadBraceSpec(spec), out);
    if (!reader.Skip('}')) Fail("expected '}' before end of string");
  }
}

}  // namespace tokenizer::jinja
