// A position in a template's tokens, shared by both halves of the parser.
#ifndef PRONK_TOKENIZER_JINJA_SYNTAX_TOKEN_CURSOR_H_
#define PRONK_TOKENIZER_JINJA_SYNTAX_TOKEN_CURSOR_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/syntax/lexer.h"

namespace tokenizer::jinja {

class TokenCursor {
 protected:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Of brackets and statements.
  Nesting OneLevel() { return {nesting_, 200, Peek().line}; }

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& Next() {
    const Token& token = Peek();
    if (token.kind != TokenKind::kEnd) ++at_;
    return token;
  }
  // Steps back: Next() returns its last token again.
  void Back() { --at_; }

  bool At(TokenKind kind, std::string_view text, size_t ahead = 0) const {
    return Peek(ahead).kind == kind && Peek(ahead).text == text;
  }
  bool AtOperator(std::string_view op, size_t ahead = 0) const {
    return At(TokenKind::kOperator, op, ahead);
  }
  bool AtName(std::string_view name, size_t ahead = 0) const {
    return At(TokenKind::kName, name, ahead);
  }
  bool Skip(TokenKind kind, std::string_view text) {
    if (!At(kind, text)) return false;
    ++at_;
    return true;
  }
  bool SkipOperator(std::string_view op) { return Skip(TokenKind::kOperator, op); }
  bool SkipName(std::string_view name) { return Skip(TokenKind::kName, name); }
  void ExpectOperator(std::string_view op) {
    if (!SkipOperator(op)) Fail("expected '", op, "', found ", Here());
  }
  // Items separated by commas, up to their closing bracket.
  template <typename Fn>
  void ParseItems(std::string_view close, Fn parse_item) {
    while (!AtOperator(close)) {
      parse_item();
      if (!SkipOperator(",")) break;
    }
    ExpectOperator(close);
  }
  std::string ExpectName() {
    if (Peek().kind != TokenKind::kName) Fail("expected a name, found ", Here());
    return Next().text;
  }

  template <typename... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const {
    FailAt(Peek().line, parts...);
  }
  // The current token, for messages.
  std::string Here() const {
    switch (Peek().kind) {
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kBlockEnd:
        return "'%}'";
      case TokenKind::kVariableEnd:
        return "'}}'";
      case TokenKind::kString:
        return "a string";
      case TokenKind::kInteger:
      case TokenKind::kFloat:
        return "a number";
      default:
        return "'" + Peek().text + "'";
    }
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_SYNTAX_TOKEN_CURSOR_H_
