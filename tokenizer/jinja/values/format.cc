// Python's two languages of formats.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

// Parts of a format that both languages have.
struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0, group = 0;
  bool alternate = false, zero = false;
  int64_t width = 0, precision = -1;
};

constexpr int64_t kMaxPrecision = 1000;  // digits; a double has at most 767 that are not zero

bool IsDigitChar(char c) { return c >= '0' && c <= '9'; }

// A number in a format; 0 if there is none.
int64_t TakeNumber(std::string_view& rest) {
  int64_t number = 0;
  while (!rest.empty() && IsDigitChar(rest[0])) {
    if (number > 100'000'000) Fail("a format's number is too large");
    number = 10 * number + (rest[0] - '0');
    rest.remove_prefix(1);
  }
  return number;
}

std::string UpperAscii(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return text;
}

// Digits of |value|, as to_chars writes them.
std::string Digits(double value, std::chars_format form, int precision) {
  std::string out(400 + static_cast<size_t>(precision), '\0');
  const auto end =
      std::to_chars(out.data(), out.data() + out.size(), std::abs(value), form, precision);
  out.resize(static_cast<size_t>(end.ptr - out.data()));
  return out;
}

// The digits of a number, without its sign.
std::string FloatDigits(double value, const Spec& spec) {
  const char type = static_cast<char>(spec.type | 0x20);
  std::string out;
  if (!std::isfinite(value)) {
    out = std::isnan(value) ? "nan" : "inf";
  } else if (spec.type == 0 && spec.precision < 0) {
    out = FloatRepr(std::abs(value));
  } else {
    const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
    if (type == 'f') out = Digits(value, std::chars_format::fixed, precision);
    if (spec.type == '%') out = Digits(100 * value, std::chars_format::fixed, precision);
    if (type == 'e') out = Digits(value, std::chars_format::scientific, precision);
    if (type == 'g' || spec.type == 0) out = Digits(value, std::chars_format::general, precision);
    if (spec.type == 0 && out.find_first_of(".e") == std::string::npos) out += ".0";
  }
  if (spec.type >= 'A' && spec.type <= 'Z') out = UpperAscii(out);
  return spec.type == '%' ? out + "%" : out;
}

std::string IntegerDigits(int64_t value, const Spec& spec) {
  const char type = static_cast<char>(spec.type | 0x20);
  const int base = type == 'x' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char buffer[64];
  const auto end = std::to_chars(buffer, std::end(buffer), size, base);
  std::string out(buffer, end.ptr);
  if (spec.type == 'X') out = UpperAscii(out);
  return out;
}

// Separators between groups of three digits before the point (four in other bases).
void Group(char separator, bool is_decimal, String& digits) {
  size_t at = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  if (is_decimal) at = std::min(digits.find_first_not_of("0123456789"), digits.size());
  const size_t n = is_decimal ? 3 : 4;
  for (; at > n; at -= n) digits.insert(at - n, 1, separator);
}

Text NumberText(const Value& value, const Spec& spec) {
  if (spec.precision > kMaxPrecision) Fail("a format's precision is too large");
  const std::string_view integers = "dboxXn";
  const bool as_integer =
      value.IsIntegral() && (spec.type == 0 || integers.find(spec.type) != kNotFound);
  String digits;
  bool negative;
  if (value.IsBigInteger()) {
    digits = value.object().Repr();
    negative = digits[0] == '-';
    if (negative) digits.erase(0, 1);
  } else if (as_integer) {
    negative = value.integer() < 0;
    digits = IntegerDigits(value.integer(), spec);
  } else {
    negative = std::signbit(value.number()) && !std::isnan(value.number());
    digits = FloatDigits(value.number(), spec);
  }
  std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const char base = static_cast<char>(spec.type | 0x20);
  const bool is_decimal = base != 'x' && base != 'o' && base != 'b';
  if (spec.group != 0) Group(spec.group, is_decimal, digits);
  if (spec.alternate && as_integer && !is_decimal) sign += std::string("0") + spec.type;
  if (spec.zero) {
    const size_t size = sign.size() + digits.size(), width = static_cast<size_t>(spec.width);
    if (size < width) digits.insert(0, width - size, '0');
  }
  Text text(sign);
  text.Append(digits);
  return Padded(text, spec.align == 0 ? '>' : spec.align, spec.width, spec.fill);
}

Text CutTo(const Text& text, int64_t precision) {
  if (precision < 0) return text;
  return text.Sub(0, ByteOfChar(text.view(), static_cast<size_t>(precision)));
}

Text StringText(const Text& text, const Spec& spec) {
  return Padded(CutTo(text, spec.precision), spec.align == 0 ? '<' : spec.align, spec.width,
                spec.fill);
}

// The values of a percent format, in order.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values) {
    const bool is_tuple = values.IsList() && values.list().kind == List::Kind::kTuple;
    items_ = is_tuple ? values.list().items : Values{values};
    may_be_left_ = values.IsDict() || (values.IsList() && !is_tuple);
  }
  Value Next() {
    if (n_used_ == items_.size()) Fail("not enough arguments for format string");
    return items_[n_used_++];
  }
  Value Named(std::string_view name) {
    if (!values_.IsDict()) Fail("format requires a mapping");
    const Value* const found = values_.dict().Find(Value(name));
    if (found == nullptr) Fail("the format's mapping has no ", name);
    return *found;
  }
  void CheckEnd() const {
    if (n_used_ < items_.size() && !may_be_left_)
      Fail("not all arguments converted during string formatting");
  }

 private:
  const Value& values_;
  Values items_;
  size_t n_used_ = 0;
  bool may_be_left_;
};

// One conversion of a percent format: %(name)-05.2f without its %.
Text Convert(Runtime& rt, std::string_view& rest, PercentValues& values) {
  Spec spec;
  std::optional<Value> named;
  if (rest.starts_with('(')) {
    const size_t end = rest.find(')');
    if (end == kNotFound) Fail("incomplete format key");
    named = values.Named(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
  }
  for (; !rest.empty() && std::string_view("-+ #0").find(rest[0]) != kNotFound;
       rest.remove_prefix(1)) {
    if (rest[0] == '-') spec.align = '<';
    if (rest[0] == '+' || (rest[0] == ' ' && spec.sign == '-')) spec.sign = rest[0];
    spec.alternate = spec.alternate || rest[0] == '#';
    spec.zero = spec.zero || rest[0] == '0';
  }
  const auto number = [&] {
    if (!rest.starts_with('*')) return TakeNumber(rest);
    rest.remove_prefix(1);
    return ToInteger(values.Next(), "*");
  };
  spec.width = number();
  if (spec.width < 0) spec.align = '<';
  spec.width = std::abs(std::max(spec.width, -INT64_MAX));
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    spec.precision = std::max<int64_t>(number(), 0);
  }
  while (!rest.empty() && std::string_view("hlL").find(rest[0]) != kNotFound) rest.remove_prefix(1);
  if (rest.empty()) Fail("incomplete format");
  spec.type = rest[0];
  rest.remove_prefix(1);
  if (spec.type == '%') return Text("%");
  if (std::string_view("diouxXeEfFgGcrsa").find(spec.type) == kNotFound) {
    Fail("unsupported format character '", std::string(1, spec.type), "'");
  }
  const Value value = named ? *named : values.Next();
  RequireDefined(value.IsUndefined() && spec.type != 's' && spec.type != 'r' ? value : Value());
  if (spec.align == 0) spec.align = '>';
  if (spec.type == 's') return StringText(Str(rt, value), spec);
  if (spec.type == 'r' || spec.type == 'a') return StringText(Repr(rt, value), spec);
  if (spec.type == 'c') {
    if (value.IsString() && CountChars(value.view()) == 1) return StringText(value.text(), spec);
    if (!value.IsIntegral() || value.integer() < 0 || value.integer() > 0x10FFFF)
      Fail("%c requires int or char");
    return StringText(Text(gguf::ToUtf8(static_cast<char32_t>(value.integer()))), spec);
  }
  if (!value.IsNumber() && !value.IsBigInteger()) {
    Fail("%", std::string(1, spec.type), " format: a real number is required, not ",
         value.TypeName());
  }
  if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
  if (spec.align == '<') spec.zero = false;
  if (spec.type == 'd' || (spec.type | 0x20) == 'x' || spec.type == 'o') {
    if (value.IsFloat() && spec.type != 'd') Fail("%x format: an integer is required, not float");
    const auto whole = value.IsFloat() ? WholePart(value.number()) : std::nullopt;
    if (value.IsFloat() && !whole) Fail("a whole number does not fit 64 bits");
    const int64_t precision = std::exchange(spec.precision, -1);
    Value integer = whole ? Value(*whole) : value;
    if (precision < 0) return NumberText(integer, spec);
    Spec inner = spec;  // the precision is the least number of digits
    inner.zero = true;
    const bool has_sign = spec.sign != '-' || (!value.IsBigInteger() && integer.integer() < 0);
    inner.width = std::min(precision, kMaxPrecision) + (has_sign ? 1 : 0);
    return Padded(NumberText(integer, inner), spec.align, spec.width);
  }
  return NumberText(value, spec);
}

// [[fill]align][sign][#][0][width][group][.precision][type]
Spec ParseSpec(std::string_view text) {
  Spec spec;
  const auto is_align = [](std::string_view rest, size_t at) {
    return at < rest.size() && std::string_view("<>^=").find(rest[at]) != kNotFound;
  };
  const size_t first = text.empty() ? 0 : gguf::NextUtf8(text).length;
  if (is_align(text, first)) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (is_align(text, 0)) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&](std::string_view wanted) {
    if (text.empty() || wanted.find(text[0]) == kNotFound) return '\0';
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != 0;
  if (text.starts_with('0') && spec.align == 0) {
    spec.align = '=';
    spec.fill = "0";
  }
  spec.width = TakeNumber(text);
  spec.group = take(",_");
  if (take(".") != 0) {
    if (text.empty() || !IsDigitChar(text[0])) Fail("Format specifier missing precision");
    spec.precision = TakeNumber(text);
  }
  spec.type = take("bcdeEfFgGnosxX%");
  if (!text.empty()) Fail("Invalid format specifier");
  return spec;
}

Text Formatted(Runtime& rt, const Value& value, std::string_view text) {
  if (text.empty()) return Str(rt, value);
  Spec spec = ParseSpec(text);
  if (value.IsString()) {
    if (spec.type != 0 && spec.type != 's') Fail("Unknown format code for a string");
    if (spec.align == '=' && spec.fill == "0") spec.align = '<';
    if (spec.align == '=') Fail("'=' alignment not allowed in string format specifier");
    return StringText(value.text(), spec);
  }
  RequireDefined(value);
  if (!value.IsNumber() && !value.IsBigInteger())
    Fail("unsupported format string passed to ", value.TypeName(), ".__format__");
  if (spec.type == 's' || (value.IsFloat() && std::string_view("bcdoxX").find(spec.type) < 6))
    Fail("Unknown format code '", std::string(1, spec.type), "'");
  if (value.IsBool() && spec.type == 0) spec.type = 'd';
  if (spec.type == 'c') {
    const int64_t code = std::clamp<int64_t>(value.integer(), 0, 0x10FFFF);
    return StringText(Text(gguf::ToUtf8(static_cast<char32_t>(code))), spec);
  }
  if (spec.align != '=') return NumberText(value, spec);
  // The filling stands between the sign and the digits.
  if (spec.fill == "0") {
    spec.zero = true;
    spec.align = '>';
    if (spec.group == 0) return NumberText(value, spec);
    Fail("a format with both zeros and a separator");
  }
  Spec bare = spec;
  bare.width = 0;
  const Text number = NumberText(value, bare);
  const size_t sign = !number.empty() && !IsDigitChar(number.view()[0]) ? 1 : 0;
  Text out = number.Sub(0, sign);
  out.Append(Padded(number.Sub(sign), '>', spec.width - static_cast<int64_t>(sign), spec.fill));
  return out;
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& rt, const FieldOf& field) : rt_(rt), field_(field) {}

  Text Run(const Text& format, int depth) {
    if (depth > 2) Fail("Max string recursion exceeded");
    Text out;
    const std::string_view all = format.view();
    for (size_t pos = 0; pos < all.size();) {
      rt_.Step();
      const size_t at = std::min(all.find_first_of("{}", pos), all.size());
      out.Append(format, pos, at - pos);
      pos = at;
      if (pos == all.size()) break;
      if (pos + 1 < all.size() && all[pos + 1] == all[pos]) {
        out.Append(format, pos, 1);
        pos += 2;
        continue;
      }
      if (all[pos] == '}') Fail("Single '}' encountered in format string");
      const size_t end = EndOf(all, pos + 1);
      out.Append(Field(format.Sub(pos + 1, end - pos - 1), depth));
      pos = end + 1;
    }
    return out;
  }

 private:
  // The brace that closes the field which begins at pos.
  static size_t EndOf(std::string_view all, size_t pos) {
    int open = 1;
    for (; pos < all.size(); ++pos) {
      if (all[pos] == '{') ++open;
      if (all[pos] == '}' && --open == 0) return pos;
    }
    Fail("expected '}' before end of string");
  }

  Text Field(const Text& text, int depth) {
    std::string_view name = text.view();
    // In [...] of a name, ! and : are ordinary letters.
    size_t end = 0;
    for (bool in_index = false; end < name.size(); ++end) {
      if (name[end] == '[') in_index = true;
      if (name[end] == ']') in_index = false;
      if (!in_index && (name[end] == '!' || name[end] == ':')) break;
    }
    std::string_view rest = name.substr(end);
    name = name.substr(0, end);
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
        Fail("expected ':' after conversion specifier");
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    Value value = field_(name);  // before the values named in the specifier
    Text spec;
    if (!rest.empty()) spec = Run(text.Sub(text.size() - rest.size() + 1), depth + 1);
    if (conversion == 's') value = Str(rt_, value);
    if (conversion == 'r' || conversion == 'a') value = Repr(rt_, value);
    if (conversion != 0 && std::string_view("sra").find(conversion) == kNotFound)
      Fail("Unknown conversion specifier '", std::string(1, conversion), "'");
    return Formatted(rt_, value, spec.view());
  }

  Runtime& rt_;
  const FieldOf& field_;
};

}  // namespace

Text PercentFormat(Runtime& rt, const Text& format, const Value& values) {
  PercentValues arguments(values);
  Text out;
  std::string_view rest = format.view();
  while (!rest.empty()) {
    rt.Step();
    const size_t at = std::min(rest.find('%'), rest.size());
    out.Append(format, format.size() - rest.size(), at);
    rest.remove_prefix(at);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    out.Append(Convert(rt, rest, arguments));
  }
  arguments.CheckEnd();
  return out;
}

Text BraceFormat(Runtime& rt, const Text& format, const FieldOf& field) {
  return BraceFormatter(rt, field).Run(format, 1);
}

}  // namespace tokenizer::jinja
