#include "tokenizer/jinja/syntax/lexer.h"

#include <algorithm>
#include <charconv>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

constexpr size_t kNowhere = std::string_view::npos;
constexpr size_t kMaxName = 1000;  // bytes; looking up any name costs the same, whatever its length

// Normalizes line breaks to \n, and drops the last one.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsAsciiDigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }
bool IsNameChar(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '_' || byte >= 0x80 || IsAsciiDigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(NormalizeNewlines(source)) {}

  std::vector<Token> Run() {
    while (pos_ < source_.size()) LexText();
    Add(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  std::string_view Rest() const { return std::string_view(source_).substr(pos_); }
  // After the end: \0, which has no meaning here.
  char CharAt(size_t pos) const { return pos < source_.size() ? source_[pos] : '\0'; }
  bool LooksAt(std::string_view text) const { return Rest().substr(0, text.size()) == text; }

  template <typename... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const {
    FailAt(line_, parts...);
  }

  Token& Add(TokenKind kind, std::string_view text) {
    tokens_.push_back({kind, line_, std::string(text), 0, 0});
    return tokens_.back();
  }

  void Advance(size_t n) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<ptrdiff_t>(pos_ + n), '\n'));
    pos_ += n;
  }

  bool SkipIf(std::string_view text) {
    if (!LooksAt(text)) return false;
    Advance(text.size());
    return true;
  }

  void SkipSpace() { Advance(Leading(IsSpace, Rest())); }

  // Literal text up to the next mark, then the mark's statement, expression or comment.
  void LexText() {
    const size_t mark = FindMark();
    const bool at_line_start = pos_ == 0 || source_[pos_ - 1] == '\n';
    std::string_view text = Rest().substr(0, mark == kNowhere ? kNowhere : mark - pos_);
    if (mark == kNowhere) {
      Add(TokenKind::kData, text);
      Advance(text.size());
      return;
    }
    const char kind = source_[mark + 1];
    const char sign = CharAt(mark + 2);
    const std::string_view kept = StripBefore(text, sign, kind != '{', at_line_start);
    if (!kept.empty()) Add(TokenKind::kData, kept);
    Advance(text.size() + 2);
    if (sign == '-' || sign == '+') Advance(1);
    if (kind == '#') {
      LexComment();
    } else if (kind == '{') {
      LexInside(TokenKind::kVariableBegin, TokenKind::kVariableEnd, "}}");
    } else if (!LexRaw()) {
      LexInside(TokenKind::kBlockBegin, TokenKind::kBlockEnd, "%}");
    }
  }

  // The next {{ {% or {#.
  size_t FindMark() const {
    for (size_t at = pos_; (at = source_.find('{', at)) != kNowhere; ++at) {
      if (std::string_view("{%#").find(CharAt(at + 1)) != kNowhere) return at;
    }
    return kNowhere;
  }

  // The text before a mark, trimmed. lstrip_blocks: blanks between the start of the line and a
  // statement or comment are removed.
  static std::string_view StripBefore(std::string_view text, char sign, bool lstrip,
                                      bool at_line_start) {
    if (sign == '-') return text.substr(0, text.size() - Trailing(IsSpace, text));
    if (sign == '+' || !lstrip) return text;
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == kNowhere ? 0 : newline + 1;
    if (newline == kNowhere && !at_line_start) return text;
    const std::string_view line = text.substr(line_begin);
    return Leading(IsSpace, line) == line.size() ? text.substr(0, line_begin) : text;
  }

  void LexComment() {
    const size_t end = source_.find("#}", pos_);
    if (end == kNowhere) Fail("a comment has no end");
    const char sign = end > pos_ ? source_[end - 1] : '\0';
    Advance(end + 2 - pos_);
    if (sign == '-') {
      SkipSpace();
    } else if (sign != '+') {
      SkipIf("\n");  // trim_blocks
    }
  }

  // Skips the mark that ends a statement, with the text that it trims. False if absent.
  bool SkipEnd(std::string_view mark) {
    if (LooksAt("-") && Rest().substr(1, 2) == mark) {
      Advance(3);
      SkipSpace();
      return true;
    }
    if (mark == "%}" && SkipIf("+%}")) return true;
    if (!SkipIf(mark)) return false;
    if (mark == "%}") SkipIf("\n");  // trim_blocks
    return true;
  }

  // {% raw %} to {% endraw %} is literal text. False if no raw block begins here.
  bool LexRaw() {
    const size_t saved_pos = pos_;
    const int saved_line = line_;
    SkipSpace();
    if (SkipIf("raw")) {
      SkipSpace();
      const bool trims = SkipIf("-%}");
      if (trims) SkipSpace();
      if (trims || SkipIf("%}")) {  // trim_blocks does not trim after this mark
        LexRawText();
        return true;
      }
    }
    pos_ = saved_pos;
    line_ = saved_line;
    return false;
  }

  void LexRawText() {
    const size_t begin = pos_;
    const bool at_line_start = source_[begin - 1] == '\n';
    for (size_t mark = begin; (mark = source_.find("{%", mark)) != kNowhere; ++mark) {
      const char sign = CharAt(mark + 2);
      const int begin_line = line_;
      Advance(mark + 2 - pos_);
      if (sign == '-' || sign == '+') Advance(1);
      SkipSpace();
      if (!SkipIf("endraw")) continue;
      SkipSpace();
      if (!SkipEnd("%}")) continue;
      const std::string_view text = std::string_view(source_).substr(begin, mark - begin);
      const std::string_view kept = StripBefore(text, sign, true, at_line_start);
      if (!kept.empty()) tokens_.push_back({TokenKind::kData, begin_line, std::string(kept), 0, 0});
      return;
    }
    Fail("a raw block has no end");
  }

  // The tokens of one statement or expression up to its end mark.
  void LexInside(TokenKind begin, TokenKind end, std::string_view mark) {
    const int begin_line = line_;
    Add(begin, {});
    std::string open;  // open brackets: the end mark does not count inside them
    for (;;) {
      SkipSpace();
      if (pos_ >= source_.size()) {
        FailAt(begin_line, "'", mark == "}}" ? "{{" : "{%", "' has no end");
      }
      const int end_line = line_;
      if (open.empty() && SkipEnd(mark)) {
        tokens_.push_back({end, end_line, {}, 0, 0});
        return;
      }
      LexToken(open);
    }
  }

  void LexToken(std::string& open) {
    const char c = source_[pos_];
    if (IsAsciiDigit(c)) {
      LexNumber();
    } else if (const size_t n = CountAt(pos_, IsNameChar); n > 0) {
      if (n > kMaxName) Fail("a name is longer than ", kMaxName, " bytes");
      Add(TokenKind::kName, Rest().substr(0, n));
      Advance(n);
    } else if (c == '\'' || c == '"') {
      LexString(c);
    } else {
      LexOperator(open);
    }
  }

  // How many characters from here on are of a kind.
  size_t CountAt(size_t pos, bool (*is_one)(char)) const {
    size_t n = 0;
    while (is_one(CharAt(pos + n))) ++n;
    return n;
  }
  size_t DigitsAt(size_t pos) const { return CountAt(pos, IsAsciiDigit); }

  void LexOperator(std::string& open) {
    constexpr std::string_view kDouble[] = {"**", "//", "==", "!=", ">=", "<="};
    constexpr std::string_view kSingle = "+-*/%~[](){}><=.:|,;";
    for (const std::string_view op : kDouble) {
      if (SkipIf(op)) {
        Add(TokenKind::kOperator, op);
        return;
      }
    }
    const char c = source_[pos_];
    if (kSingle.find(c) == kNowhere) Fail("unexpected character '", c, "'");
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) Fail("unexpected '", c, "'");
      open.pop_back();
    }
    Add(TokenKind::kOperator, std::string_view(&c, 1));
    Advance(1);
  }

  // The length of a float here, or 0. As in Jinja, digits after a dot ("x.0.1") are not a float.
  size_t FloatLength() const {
    if (pos_ > 0 && source_[pos_ - 1] == '.') return 0;
    size_t end = pos_ + DigitsAt(pos_);
    bool is_float = false;
    if (CharAt(end) == '.') {
      const size_t n = DigitsAt(end + 1);
      if (n > 0) end += 1 + n, is_float = true;
    }
    if ((CharAt(end) | 0x20) == 'e') {
      size_t digits = end + 1;
      if (CharAt(digits) == '+' || CharAt(digits) == '-') ++digits;
      const size_t n = DigitsAt(digits);
      if (n > 0) end = digits + n, is_float = true;
    }
    return is_float ? end - pos_ : 0;
  }

  void LexNumber() {
    if (const size_t n = FloatLength(); n > 0) {
      Add(TokenKind::kFloat, {}).number = *ParseFloat(Rest().substr(0, n));
      Advance(n);
      return;
    }
    // 42, 1_000, 0xff, 0o17, 0b101
    const bool has_base =
        CharAt(pos_) == '0' &&
        std::string_view("xob").find(static_cast<char>(CharAt(pos_ + 1) | 0x20)) < 3;
    std::string digits;
    size_t n = 0;
    for (; IsAsciiDigit(CharAt(pos_ + n)) || (n > 0 && CharAt(pos_ + n) == '_') ||
           (has_base && n == 1) || (has_base && IsHexDigit(CharAt(pos_ + n)));
         ++n) {
      if (CharAt(pos_ + n) != '_') digits += CharAt(pos_ + n);
    }
    const auto value = ParseInt(digits, has_base ? 0 : 10);
    if (!value) Fail("'", digits, "' is not a 64-bit integer");
    Add(TokenKind::kInteger, {}).integer = *value;
    Advance(n);
  }

  void LexString(char quote) {
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) Fail("a string has no end");
    Add(TokenKind::kString, Unescape(Rest().substr(1, end - pos_ - 1)));
    Advance(end + 1 - pos_);
  }

  std::string Unescape(std::string_view text) const {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      if (text[i] != '\\') {
        out += text[i++];
      } else {
        i += 1 + UnescapeOne(text.substr(i + 1), out);
      }
    }
    return out;
  }

  // One escape without the backslash; returns its length in bytes. As in Python.
  size_t UnescapeOne(std::string_view text, std::string& out) const {
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    const char c = text[0];
    if (c == '\n') return 1;  // the line continues
    if (const size_t i = kNames.find(c); i != kNowhere) {
      out += kValues[i];
      return 1;
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {  // not an escape: the backslash stays
      out += '\\';
      return 0;
    }
    const char32_t code = HexCode(text.substr(1), digits);
    if (code >= 0xD800 && code < 0xDC00 && text.substr(1 + digits, 2) == "\\u") {
      const char32_t low = HexCode(text.substr(3 + digits), 4);
      if (low >= 0xDC00 && low < 0xE000) {  // a surrogate pair, as JSON writes code points > U+FFFF
        out += gguf::ToUtf8(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
        return 1 + digits + 6;
      }
    }
    out += gguf::ToUtf8(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
    return 1 + digits;
  }

  char32_t HexCode(std::string_view text, size_t digits) const {
    uint32_t code = 0;
    const char* const end = text.data() + std::min(digits, text.size());
    if (text.size() < digits || std::from_chars(text.data(), end, code, 16).ptr != end) {
      Fail("a \\x, \\u or \\U in a string lacks digits");
    }
    if (code > 0x10FFFF) Fail("a \\U in a string is not a character");
    return code;
  }

  const std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view source) { return Lexer(source).Run(); }

}  // namespace tokenizer::jinja
