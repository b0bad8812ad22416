// The half of the parser that reads expressions, with its position in the tokens.
#ifndef PRONK_TOKENIZER_JINJA_SYNTAX_EXPRESSION_PARSER_H_
#define PRONK_TOKENIZER_JINJA_SYNTAX_EXPRESSION_PARSER_H_

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/syntax/lexer.h"

namespace tokenizer::jinja {

class ExpressionParser {
 protected:
  static constexpr int kMaxNesting = 200;  // brackets and statements
  static constexpr int kMaxHeight = 300;   // of an expression: "a + b + c" has three levels

  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // One level of nesting more, while it lives.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

  const Token& Peek(size_t ahead = 0) const;
  const Token& Next();
  bool AtOperator(std::string_view op, size_t ahead = 0) const;
  bool AtName(std::string_view name, size_t ahead = 0) const;
  bool SkipOperator(std::string_view op);
  bool SkipName(std::string_view name);
  void ExpectOperator(std::string_view op);
  std::string ExpectName();
  [[noreturn]] void Fail(const std::string& message) const;
  // The current token, for messages.
  std::string Here() const;

  // An expression, or several with commas between them: a tuple. Without `with_conditional` an
  // "if" ends it, as after "for x in".
  ExprPtr ParseTuple(bool with_conditional = true);
  ExprPtr ParseExpression();
  // The filters that follow "|": `input` may be null. The first name follows without "|" if
  // `first_inline`.
  ExprPtr ParseFilters(ExprPtr input, bool first_inline = false);

  // Names read as variables so far: shows which of varargs, kwargs and caller a macro's body uses.
  std::set<std::string, std::less<>> names_read_;

 private:
  template <typename Node>
  ExprPtr Make(int line, Node node);
  bool AtTupleEnd() const;
  using Operand = ExprPtr (ExpressionParser::*)();
  // Operands with operators between them, which bind to the left.
  ExprPtr ParseLogic(bool is_and, Operand operand);
  ExprPtr ParseBinary(std::initializer_list<BinaryOp> ops, Operand operand);
  ExprPtr ParseOr();
  ExprPtr ParseAnd();
  ExprPtr ParseNot();
  ExprPtr ParseCompare();
  ExprPtr ParseSum();
  ExprPtr ParseConcat();
  ExprPtr ParseProduct();
  ExprPtr ParsePower();
  ExprPtr ParseFilteredUnary() { return ParseUnary(/*with_filters=*/true); }
  ExprPtr ParseUnary(bool with_filters);
  ExprPtr ParsePrimary();
  ExprPtr ParseBracketed(const Token& open);
  ExprPtr ParseDict(int line);
  ExprPtr ParsePostfix(ExprPtr value);
  ExprPtr ParseAttribute(ExprPtr object);
  ExprPtr ParseSubscript(ExprPtr object);
  ExprPtr ParseTest(ExprPtr input);
  CallArgs ParseCallArgs();

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_SYNTAX_EXPRESSION_PARSER_H_
