// Reads a grammar as text.
#include "grammar/gbnf.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gguf/error.h"
#include "gguf/utf8.h"
#include "grammar/scanner.h"

namespace grammar {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxParentheses = 100;  // nested

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class Parser : private Scanner {
 public:
  Parser(std::string_view text, Builder& builder, const RuleNames& known)
      : Scanner(text), builder_(builder), rules_(known) {}

  RuleNames Parse() {
    if (text_.size() > kMaxBytes) Fail(0, "the text is longer than a megabyte");
    for (Skip(/*lines=*/true); at_ < text_.size(); Skip(true)) ParseRule();
    for (const auto& [name, use] : uses_) {
      if (!builder_.IsDefined(rules_.at(name))) Fail(use, "there is no rule '", name, "'");
    }
    return std::move(rules_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void Fail(size_t at, const Parts&... what) const {
    const std::string_view before = text_.substr(0, at);
    const size_t line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
    const size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    throw Error("line ", line, ", column ", column, ": ", what...);
  }
  [[noreturn]] void Expected(const std::string& what) const {
    const std::string_view rest = text_.substr(at_);
    const std::string found = rest.empty() ? "the end of the text"
                              : rest[0] == '\n' || rest[0] == '\r'
                                  ? "the end of the line"
                                  : gguf::Quoted(rest.substr(0, gguf::NextUtf8(rest).length));
    Fail(at_, "expected ", what, ", found ", found);
  }

  // Skips blanks and comments, and line ends where they are insignificant.
  void Skip(bool lines) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_ == text_.size() || !lines) return;
      } else if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r'))) {
        return;
      }
    }
  }

  std::string_view Name() {
    const size_t begin = at_;
    while (IsWord(Peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  RuleId Find(std::string_view name) {
    if (const auto known = rules_.find(name); known != rules_.end()) return known->second;
    return rules_[std::string(name)] = builder_.Declare(std::string(name));
  }

  void ParseRule() {
    const size_t begin = at_;
    const std::string_view name = Name();
    if (name.empty()) Expected("the name of a rule");
    const RuleId rule = Find(name);
    if (builder_.IsDefined(rule)) Fail(begin, "the rule '", name, "' is there twice");
    Skip(false);
    if (!Take("::=")) Expected("::= after the name of a rule");
    Skip(true);
    builder_.Define(rule, Alternatives(0));
    const std::string_view before = text_.substr(0, at_);
    const size_t last = before.find_last_not_of(" \t");
    const bool is_at_line = last != std::string_view::npos && before[last] == '\n';
    if (at_ < text_.size() && Peek() != '\n' && Peek() != '\r' && !is_at_line) {
      Expected("a new line, | or another part of the rule");
    }
  }

  Part Alternatives(size_t depth) {
    std::vector<Part> ways = {Sequence(depth)};
    for (;;) {
      // A line may begin with the bar of another alternative.
      const size_t end = at_;
      Skip(true);
      if (!Take("|")) {
        if (depth == 0) at_ = end;
        return builder_.Either(ways);
      }
      Skip(true);
      ways.push_back(Sequence(depth));
    }
  }

  Part Sequence(size_t depth) {
    Part all = builder_.Empty();
    for (;;) {
      // Line ends are skipped after ::= and |, so the next rule may begin here.
      const size_t begin = at_;
      std::optional<Part> part = Item(depth);
      if (!part) return all;
      Skip(depth > 0);
      if (IsWord(text_[begin]) && text_.substr(at_).starts_with("::=")) {
        at_ = begin;
        return all;
      }
      while (const auto times = Times()) {
        part = builder_.Repeat(*part, times->first, times->second);
        Skip(depth > 0);
      }
      all = builder_.Then(all, *part);
    }
  }

  std::optional<Part> Item(size_t depth) {
    const char c = Peek();
    if (c == '"') return Literal();
    if (c == '[') return Class();
    if (c == '.') {
      ++at_;
      return builder_.Characters(Complement({}));
    }
    if (IsWord(c)) {
      const size_t begin = at_;
      const std::string_view name = Name();
      const RuleId rule = Find(name);
      uses_.emplace_back(name, begin);
      return builder_.Call(rule);
    }
    if (c == '<' || c == '!') return Token();
    if (c != '(') return std::nullopt;
    if (depth == kMaxParentheses) {
      Fail(at_, "parentheses are nested more than ", kMaxParentheses, " deep");
    }
    ++at_;
    Skip(true);
    const Part part = Alternatives(depth + 1);
    if (!Take(")")) Expected("')' or another part of the group");
    return part;
  }

  // <name>, <[number]>, or ! before either.
  Part Token() {
    const size_t begin = at_;
    const bool but_this = Take("!");
    const size_t end = std::min(text_.find('>', at_), text_.find('\n', at_));
    const std::string_view name = text_.substr(at_, end - at_);
    const bool is_number = name.starts_with("<[") && name.ends_with("]");
    if (end == text_.npos || text_[end] != '>' || !name.starts_with('<') ||
        (is_number && (name.size() > 12 || name.size() == 3 ||
                       name.find_first_not_of("0123456789", 2) != name.size() - 1))) {
      Fail(begin, "expected a token as <name> or <[number]>");
    }
    at_ = end + 1;
    return builder_.Token(std::string(name) + '>', but_this);
  }

  // The bounds of a repetition; empty if no repetition follows.
  std::optional<std::pair<uint32_t, uint32_t>> Times() {
    if (Take("?")) return std::pair(0u, 1u);
    if (Take("*")) return std::pair(0u, kNone);
    if (Take("+")) return std::pair(1u, kNone);
    const size_t begin = at_;
    if (!Take("{")) return std::nullopt;
    Skip(true);
    const uint32_t min = Number();
    Skip(true);
    uint32_t max = min;
    if (Take(",")) {
      Skip(true);
      max = Peek() == '}' ? kNone : Number();
      Skip(true);
    }
    if (!Take("}")) Expected("'}' after the numbers of a repetition");
    if (max < min) Fail(begin, "a repetition whose minimum is above its maximum");
    return std::pair(min, max);
  }

  uint32_t Number() {
    if (!AtDigit()) Expected("a number");
    const size_t begin = at_;
    const auto number = TakeNumber();
    if (!number) Fail(begin, "a number above ", kMaxStates);
    return *number;
  }

  Part Literal() {
    const size_t begin = at_++;
    std::string bytes;
    while (!Take("\"")) {
      if (at_ >= text_.size() || Peek() == '\n') Fail(begin, "the literal has no end");
      bytes += gguf::ToUtf8(Character());
    }
    return builder_.Literal(bytes);
  }

  Part Class() {
    const size_t begin = at_++;
    const bool negated = Take("^");
    CodePoints set;
    while (!Take("]")) {
      if (at_ >= text_.size() || Peek() == '\n') Fail(begin, "the class has no end");
      const size_t low_at = at_;
      const CodePoint low = Character();
      CodePoint high = low;
      if (Peek() == '-' && Peek(1) != ']') {
        ++at_;
        if (at_ >= text_.size() || Peek() == '\n') Fail(begin, "the class has no end");
        high = Character();
      }
      if (high < low) Fail(low_at, "a range whose end comes before its beginning");
      set.emplace_back(low, high);
    }
    set = Normal(std::move(set));
    if (negated) set = Complement(set);
    if (set.empty()) Fail(begin, "no character is in this class");
    return builder_.Characters(set);
  }

  // One character of a literal or class, perhaps escaped.
  CodePoint Character() {
    if (Peek() == '\\') return Escape();
    const auto c = TakeCharacter();
    if (!c) Fail(at_, "bytes that are not UTF-8");
    return *c;
  }

  CodePoint Escape() {
    constexpr std::string_view kNames = "nrt\\\"[]", kMeaning = "\n\r\t\\\"[]";
    const size_t begin = at_++;
    const char c = Peek();
    ++at_;
    const size_t i = kNames.find(c);
    if (i != std::string_view::npos) return static_cast<CodePoint>(kMeaning[i]);
    if (c == 'x') return Hex(begin, 2);
    if (c == 'u') return Hex(begin, 4);
    if (c == 'U') return Hex(begin, 8);
    Fail(begin, "an escape that is none of \\n \\r \\t \\\\ \\\" \\[ \\] \\x \\u \\U");
  }

  CodePoint Hex(size_t begin, size_t n_digits) {
    const auto hex = TakeHex(n_digits);
    if (!hex) Fail(begin, "an escape of fewer than ", n_digits, " digits");
    const CodePoint c = *hex;
    if (c > kMaxCodePoint || (c >= 0xD800 && c <= 0xDFFF)) {
      Fail(begin, "an escape that is not a character");
    }
    return c;
  }

  Builder& builder_;
  RuleNames rules_;
  std::vector<std::pair<std::string, size_t>> uses_;  // names and their offsets
};

}  // namespace

RuleNames AddGbnf(std::string_view text, Builder& builder, const RuleNames& known) {
  return Parser(text, builder, known).Parse();
}

Grammar ParseGbnf(std::string_view text) {
  Builder builder;
  const auto rules = AddGbnf(text, builder);
  const auto root = rules.find("root");
  if (root == rules.end() || !builder.IsDefined(root->second)) {
    throw Error("there is no rule 'root', with which every text begins");
  }
  return std::move(builder).Finish(root->second);
}

}  // namespace grammar
