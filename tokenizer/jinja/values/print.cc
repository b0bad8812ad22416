// Values as text and back: str() and repr() as Python has them, json.dumps, int() and float().
#include "tokenizer/jinja/values/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "gguf/number.h"
#include "tokenizer/errors.h"

namespace tokenizer::jinja {
namespace {

// One character inside a quoted Python string.
void AppendReprChar(char32_t code, std::string_view bytes, char quote, String& out) {
  if (code == static_cast<unsigned char>(quote) || code == '\\') {
    out += {'\\', static_cast<char>(code)};
  } else if (code == '\n' || code == '\r' || code == '\t') {
    out += {'\\', code == '\n' ? 'n' : code == '\r' ? 'r' : 't'};
  } else if (IsPrintable(code)) {
    out += bytes;
  } else if (code < 0x100) {
    AppendEscape('x', 2, code, out);
  } else if (code < 0x10000) {
    AppendEscape('u', 4, code, out);
  } else {
    AppendEscape('U', 8, code, out);
  }
}

void AppendRepr(Runtime& rt, const Value& value, Text& out);

void AppendStringRepr(const Text& text, Text& out) {
  const bool has_single = text.view().find('\'') != std::string_view::npos;
  const bool has_double = text.view().find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.Append(std::string_view(&quote, 1));
  out.AppendMapped(text, [quote](char32_t code, std::string_view bytes, String& escaped) {
    AppendReprChar(code, bytes, quote, escaped);
  });
  out.Append(std::string_view(&quote, 1));
}

void AppendListRepr(Runtime& rt, const Value& value, Text& out) {
  const List& list = value.list();
  if (list.kind == List::Kind::kGenerator) return out.Append("<generator object>");
  const bool is_tuple = list.kind == List::Kind::kTuple;
  out.Append(is_tuple ? "(" : "[");
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.Append(", ");
    AppendRepr(rt, list.items[i], out);
  }
  out.Append(!is_tuple ? "]" : list.items.size() == 1 ? ",)" : ")");
}

void AppendRepr(Runtime& rt, const Value& value, Text& out) {
  const Nesting nesting = rt.OneLevel();
  rt.Read(value);
  if (value.IsUndefined()) {
    out.Append("Undefined");
  } else if (value.IsNone()) {
    out.Append("None");
  } else if (value.IsBool()) {
    out.Append(value.boolean() ? "True" : "False");
  } else if (value.IsInt()) {
    out.Append(std::to_string(value.integer()));
  } else if (value.IsFloat()) {
    out.Append(FloatRepr(value.number()));
  } else if (value.IsString()) {
    AppendStringRepr(value.text(), out);
  } else if (value.IsList()) {
    AppendListRepr(rt, value, out);
  } else if (value.IsDict()) {
    out.Append("{");
    const char* separator = "";
    for (const auto& [key, item] : value.dict().entries) {
      out.Append(separator);
      AppendRepr(rt, key, out);
      out.Append(": ");
      AppendRepr(rt, item, out);
      separator = ", ";
    }
    out.Append("}");
  } else {
    out.Append(value.object().Repr());
  }
}

// A number in from_chars's form: without surrounding white space and a plus sign.
std::string_view Bare(std::string_view text) {
  text.remove_prefix(Leading(IsSpace, text));
  text.remove_suffix(Trailing(IsSpace, text));
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

class JsonWriter {
 public:
  JsonWriter(Runtime& rt, const JsonOptions& options) : rt_(rt), options_(options) {}

  void Write(const Value& value) {
    const Nesting nesting = rt_.OneLevel();
    rt_.Read(value);
    if (value.IsString()) {
      WriteString(value.text());
    } else if (value.IsDict()) {
      WriteDict(value.dict());
    } else if (value.IsList() && value.list().HasLength()) {
      const Values& items = value.list().items;
      WriteItems("[]", items.size(), [&](size_t i) { Write(items[i]); });
    } else {
      Put(Scalar(value));
    }
  }
  Text Take() { return std::move(out_); }

 private:
  void Put(std::string_view bytes) { out_.Append(bytes); }

  static std::string Scalar(const Value& value) {
    if (value.IsNone()) return "null";
    if (value.IsBool()) return value.boolean() ? "true" : "false";
    if (value.IsInt()) return std::to_string(value.integer());
    if (value.IsBigInteger()) return value.object().Repr();
    if (!value.IsFloat()) Fail("Object of type ", value.TypeName(), " is not JSON serializable");
    if (std::isnan(value.number())) return "NaN";
    if (std::isinf(value.number())) return value.number() < 0 ? "-Infinity" : "Infinity";
    return FloatRepr(value.number());
  }

  void WriteString(const Text& text) {
    out_.Append("\"");
    out_.AppendMapped(text, [this](char32_t code, std::string_view bytes, String& out) {
      AppendEscaped(code, bytes, out);
    });
    out_.Append("\"");
  }

  void AppendEscaped(char32_t code, std::string_view bytes, String& out) const {
    constexpr std::string_view kNamed = "\"\\\n\r\t\b\f";
    constexpr std::string_view kNames = "\"\\nrtbf";
    const size_t named =
        code < 0x80 ? kNamed.find(static_cast<char>(code)) : std::string_view::npos;
    if (named != std::string_view::npos) {
      out += {'\\', kNames[named]};
    } else if (code < 0x20 || (options_.ensure_ascii && code >= 0x7F && code < 0x10000)) {
      AppendEscape('u', 4, code, out);
    } else if (options_.ensure_ascii && code >= 0x10000) {  // a surrogate pair
      AppendEscape('u', 4, 0xD800 + ((code - 0x10000) >> 10), out);
      AppendEscape('u', 4, 0xDC00 + ((code - 0x10000) & 0x3FF), out);
    } else {
      out += bytes;
    }
  }

  // `brackets`: the opening and the closing one. write_item(size_t) writes one of n.
  template <typename Fn>
  void WriteItems(std::string_view brackets, size_t n, Fn write_item) {
    if (n == 0) return Put(brackets);
    Put(brackets.substr(0, 1));
    if (options_.indent) margin_ += *options_.indent;
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) Put(options_.item_separator);
      NewLine();
      write_item(i);
    }
    if (options_.indent) margin_.resize(margin_.size() - options_.indent->size());
    NewLine();
    Put(brackets.substr(1));
  }

  void WriteDict(const Dict& dict) {
    Vector<size_t> order(dict.entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (options_.sort_keys) SortByKey(dict, order);
    WriteItems("{}", order.size(), [&](size_t i) {
      const auto& [key, item] = dict.entries[order[i]];
      if (key.IsString()) {
        WriteString(key.text());
      } else {
        Put("\"" + Scalar(key) + "\"");
      }
      Put(options_.key_separator);
      Write(item);
    });
  }

  static void SortByKey(const Dict& dict, Vector<size_t>& order) {
    for (const auto& entry : dict.entries) {
      if (!entry.first.IsString()) Fail("tojson can only sort keys that are strings");
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return dict.entries[a].first.view() < dict.entries[b].first.view();
    });
  }

  void NewLine() {
    if (!options_.indent) return;
    Put("\n");
    Put(margin_);
  }

  Runtime& rt_;
  const JsonOptions& options_;
  Text out_;
  String margin_;  // margin of the line that is written
};

}  // namespace

void AppendEscape(char letter, int digits, char32_t code, String& out) {
  out += {'\\', letter};
  constexpr std::string_view kHex = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
}

void AppendStr(Runtime& rt, const Value& value, Text& out) {
  if (value.IsString()) {
    out.Append(value.text());
  } else if (!value.IsUndefined()) {
    AppendRepr(rt, value, out);
  }
}

Text Str(Runtime& rt, const Value& value) {
  if (value.IsString()) return value.text();
  Text out;
  AppendStr(rt, value, out);
  return out;
}

Text Repr(Runtime& rt, const Value& value) {
  Text out;
  AppendRepr(rt, value, out);
  return out;
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];  // the shortest form of any double has at most 24 characters
  const auto end = std::to_chars(buffer, std::end(buffer), value, std::chars_format::scientific);
  const std::string_view text(buffer, end.ptr);
  const size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed = std::to_chars(buffer, std::end(buffer), value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::optional<int64_t> ParseInt(std::string_view text, int64_t base) {
  std::string_view digits = Bare(text);
  if (base == 10) return gguf::NumberIn<int64_t>(digits);
  if (base < 0 || base == 1 || base > 36) return std::nullopt;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const char letter =
      digits.size() > 2 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : 0;
  const int64_t meant = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (meant != 0 && (base == 0 || base == meant)) {
    digits.remove_prefix(2);
    base = meant;
  }
  if (base == 0) base = 10;
  if (digits.starts_with('-')) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> ParseFloat(std::string_view text) {
  return gguf::NumberIn<double>(Bare(text));
}

Text ToJson(Runtime& rt, const Value& value, const JsonOptions& options) {
  JsonWriter writer(rt, options);
  writer.Write(value);
  return writer.Take();
}

}  // namespace tokenizer::jinja
