// The half of the parser for expressions. From ParseExpression down, each function parses one level
// of precedence, whose operands are the next level.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/syntax/lexer.h"

namespace tokenizer::jinja {

// A position in the tokens.
class TokenCursor {
 protected:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Enters a level of brackets or statements; there may be 200.
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

class ExpressionParser : protected TokenCursor {
 protected:
  using TokenCursor::TokenCursor;

  // An expression; with commas, a tuple. Without `with_conditional` (in a for) an "if" ends it.
  ExprPtr ParseTuple(bool with_conditional = true) {
    const int line = Peek().line;
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    while (!AtTupleEnd()) {
      items.push_back(with_conditional ? ParseExpression() : ParseOr());
      if (!SkipOperator(",")) break;
      is_tuple = true;
    }
    if (is_tuple) return Make(line, ListExpr{std::move(items), true});
    if (items.empty()) Fail("expected an expression, found ", Here());
    return std::move(items[0]);
  }

  ExprPtr ParseExpression() {
    const Nesting nesting = OneLevel();
    ExprPtr value = ParseOr();
    while (AtName("if")) {
      const int line = Next().line;
      ExprPtr test = ParseOr();
      ExprPtr otherwise = SkipName("else") ? ParseExpression() : nullptr;
      value = Make(line, ConditionalExpr{std::move(test), std::move(value), std::move(otherwise)});
    }
    return value;
  }

  // The filters after "|" of `input`, which may be null; if `first_inline`, the first has no "|".
  ExprPtr ParseFilters(ExprPtr input, bool first_inline = false) {
    while (first_inline || SkipOperator("|")) {
      first_inline = false;
      const int line = Peek().line;
      std::string name = ExpectName();
      CallArgs args = AtOperator("(") ? ParseCallArgs() : CallArgs();
      input = Make(line, FilterExpr{std::move(input), std::move(name), std::move(args)});
    }
    return input;
  }

  // Names read as variables so far: they show whether a macro's body uses caller.
  std::set<std::string, std::less<>> names_read_;

 private:
  static constexpr int kMaxHeight = 300;  // levels of an expression: "a + b + c" has three

  ExprPtr Make(int line, Expr::Node node) {
    const int height = HeightOf(node);
    if (height > kMaxHeight) Fail("an expression of more than ", kMaxHeight, " parts");
    return std::make_unique<Expr>(Expr{line, height, std::move(node)});
  }

  bool AtTupleEnd() const {
    return Peek().kind == TokenKind::kVariableEnd || Peek().kind == TokenKind::kBlockEnd ||
           AtOperator(")");
  }

  // Operands with left-associative operators between them.
  using Operand = ExprPtr (ExpressionParser::*)();

  ExprPtr ParseLogic(bool is_and, Operand operand) {
    ExprPtr left = (this->*operand)();
    while (AtName(is_and ? "and" : "or")) {
      const int line = Next().line;
      left = Make(line, LogicExpr{is_and, std::move(left), (this->*operand)()});
    }
    return left;
  }

  ExprPtr ParseBinary(std::initializer_list<BinaryOp> ops, Operand operand) {
    ExprPtr left = (this->*operand)();
    for (;;) {
      const auto* const op =
          std::ranges::find_if(ops, [&](BinaryOp one) { return AtOperator(Symbol(one)); });
      if (op == ops.end()) return left;
      const int line = Next().line;
      left = Make(line, BinaryExpr{*op, std::move(left), (this->*operand)()});
    }
  }

  ExprPtr ParseOr() { return ParseLogic(/*is_and=*/false, &ExpressionParser::ParseAnd); }

  ExprPtr ParseAnd() { return ParseLogic(/*is_and=*/true, &ExpressionParser::ParseNot); }

  ExprPtr ParseNot() {
    if (!AtName("not")) return ParseCompare();
    const Nesting nesting = OneLevel();
    const int line = Next().line;
    return Make(line, NotExpr{ParseNot()});
  }

  ExprPtr ParseCompare() {
    constexpr CompareOp kOperators[] = {CompareOp::kEq, CompareOp::kNe, CompareOp::kLt,
                                        CompareOp::kLe, CompareOp::kGt, CompareOp::kGe};
    const int line = Peek().line;
    ExprPtr first = ParseSum();
    std::vector<std::pair<CompareOp, ExprPtr>> rest;
    for (;;) {
      const auto* const op =
          std::ranges::find_if(kOperators, [&](CompareOp one) { return AtOperator(Symbol(one)); });
      if (op != std::end(kOperators)) {
        Next();
        rest.emplace_back(*op, ParseSum());
      } else if (SkipName("in")) {
        rest.emplace_back(CompareOp::kIn, ParseSum());
      } else if (AtName("not") && AtName("in", 1)) {
        Next(), Next();
        rest.emplace_back(CompareOp::kNotIn, ParseSum());
      } else {
        break;
      }
    }
    if (rest.empty()) return first;
    return Make(line, CompareExpr{std::move(first), std::move(rest)});
  }

  ExprPtr ParseSum() {
    return ParseBinary({BinaryOp::kAdd, BinaryOp::kSub}, &ExpressionParser::ParseConcat);
  }

  ExprPtr ParseConcat() {
    const int line = Peek().line;
    std::vector<ExprPtr> operands;
    do {
      operands.push_back(ParseProduct());
    } while (SkipOperator("~"));
    if (operands.size() == 1) return std::move(operands[0]);
    return Make(line, ConcatExpr{std::move(operands)});
  }

  ExprPtr ParseProduct() {
    return ParseBinary({BinaryOp::kMul, BinaryOp::kDiv, BinaryOp::kFloorDiv, BinaryOp::kMod},
                       &ExpressionParser::ParsePower);
  }

  ExprPtr ParsePower() {
    return ParseBinary({BinaryOp::kPow}, &ExpressionParser::ParseFilteredUnary);
  }

  ExprPtr ParseFilteredUnary() { return ParseUnary(/*with_filters=*/true); }

  ExprPtr ParseUnary(bool with_filters) {
    const Nesting nesting = OneLevel();
    ExprPtr value;
    if (AtOperator("-") || AtOperator("+")) {
      const Token& op = Next();
      value = Make(op.line, SignExpr{op.text == "-", ParseUnary(false)});
    } else {
      value = ParsePrimary();
    }
    value = ParsePostfix(std::move(value));
    while (with_filters) {
      if (AtOperator("|")) {
        value = ParseFilters(std::move(value));
      } else if (SkipName("is")) {
        value = ParseTest(std::move(value));
      } else if (AtOperator("(")) {
        const int line = Peek().line;
        value = Make(line, CallExpr{std::move(value), ParseCallArgs()});
      } else {
        break;
      }
    }
    return value;
  }

  ExprPtr ParsePrimary() {
    const Token& token = Next();
    switch (token.kind) {
      case TokenKind::kName:
        if (token.text == "true" || token.text == "True") return Make(token.line, Literal{true});
        if (token.text == "false" || token.text == "False") return Make(token.line, Literal{false});
        if (token.text == "none" || token.text == "None") return Make(token.line, Literal{Value()});
        names_read_.insert(token.text);
        return Make(token.line, NameExpr{token.text});
      case TokenKind::kString: {
        std::string text = token.text;
        while (Peek().kind == TokenKind::kString) text += Next().text;
        return Make(token.line, Literal{Value(text)});
      }
      case TokenKind::kInteger:
        return Make(token.line, Literal{Value(token.integer)});
      case TokenKind::kFloat:
        return Make(token.line, Literal{Value(token.number)});
      default:
        if (token.kind == TokenKind::kOperator && token.text.find_first_of("([{") == 0) {
          return ParseBracketed(token);
        }
        if (token.kind != TokenKind::kEnd) Back();  // for the message
        Fail("expected an expression, found ", Here());
    }
  }

  ExprPtr ParseBracketed(const Token& open) {
    if (open.text == "{") return ParseDict(open.line);
    if (open.text == "(") {
      if (SkipOperator(")")) return Make(open.line, ListExpr{{}, true});
      ExprPtr value = ParseTuple();
      ExpectOperator(")");
      return value;
    }
    std::vector<ExprPtr> items;
    ParseItems("]", [&] { items.push_back(ParseExpression()); });
    return Make(open.line, ListExpr{std::move(items), false});
  }

  ExprPtr ParseDict(int line) {
    std::vector<std::pair<ExprPtr, ExprPtr>> entries;
    ParseItems("}", [&] {
      ExprPtr key = ParseExpression();
      ExpectOperator(":");
      entries.emplace_back(std::move(key), ParseExpression());
    });
    return Make(line, DictExpr{std::move(entries)});
  }

  ExprPtr ParsePostfix(ExprPtr value) {
    for (;;) {
      const int line = Peek().line;
      if (SkipOperator(".")) {
        value = ParseAttribute(std::move(value));
      } else if (SkipOperator("[")) {
        value = ParseSubscript(std::move(value));
      } else if (AtOperator("(")) {
        value = Make(line, CallExpr{std::move(value), ParseCallArgs()});
      } else {
        return value;
      }
    }
  }

  ExprPtr ParseAttribute(ExprPtr object) {
    const Token& token = Next();
    if (token.kind == TokenKind::kName) {
      return Make(token.line, AttributeExpr{std::move(object), token.text});
    }
    if (token.kind != TokenKind::kInteger) Fail("expected a name or a number after '.'");
    ExprPtr index = Make(token.line, Literal{Value(token.integer)});
    return Make(token.line, SubscriptExpr{std::move(object), std::move(index)});
  }

  ExprPtr ParseSubscript(ExprPtr object) {
    const int line = Peek().line;
    if (SkipOperator("]")) {  // a[] is a[()]
      ExprPtr nothing = Make(line, ListExpr{{}, true});
      return Make(line, SubscriptExpr{std::move(object), std::move(nothing)});
    }
    ExprPtr start = AtOperator(":") ? nullptr : ParseTuple();
    if (!SkipOperator(":")) {
      ExpectOperator("]");
      return Make(line, SubscriptExpr{std::move(object), std::move(start)});
    }
    const auto bound = [&] {
      return AtOperator(":") || AtOperator("]") ? nullptr : ParseExpression();
    };
    ExprPtr stop = bound();
    ExprPtr step = SkipOperator(":") ? bound() : nullptr;
    ExpectOperator("]");
    return Make(line,
                SliceExpr{std::move(object), std::move(start), std::move(stop), std::move(step)});
  }

  ExprPtr ParseTest(ExprPtr input) {
    const int line = Peek().line;
    const bool negated = SkipName("not");
    std::string name = ExpectName();
    CallArgs args;
    const TokenKind next = Peek().kind;
    if (AtOperator("(")) {
      args = ParseCallArgs();
    } else if (next == TokenKind::kString || next == TokenKind::kInteger ||
               next == TokenKind::kFloat || AtOperator("[") || AtOperator("{") ||
               (next == TokenKind::kName && !AtName("else") && !AtName("or") && !AtName("and"))) {
      if (AtName("is")) Fail("tests cannot be chained with 'is'");
      args.positional.push_back(ParsePostfix(ParsePrimary()));
    }
    ExprPtr test = Make(line, TestExpr{std::move(input), std::move(name), std::move(args)});
    return negated ? Make(line, NotExpr{std::move(test)}) : std::move(test);
  }

  CallArgs ParseCallArgs() {
    CallArgs args;
    ExpectOperator("(");
    ParseItems(")", [&] {
      if (args.more_named) Fail("an argument after one with **");
      if (SkipOperator("**")) {
        args.more_named = ParseExpression();
      } else if (AtOperator("*")) {
        if (args.more) Fail("a second argument with *");
        Next();
        args.more = ParseExpression();
      } else if (Peek().kind == TokenKind::kName && AtOperator("=", 1)) {
        std::string name = Next().text;
        Next();
        args.named.emplace_back(std::move(name), ParseExpression());
      } else {
        if (!args.named.empty() || args.more) Fail("a positional argument after a named one");
        args.positional.push_back(ParseExpression());
      }
    });
    return args;
  }
};

}  // namespace tokenizer::jinja
