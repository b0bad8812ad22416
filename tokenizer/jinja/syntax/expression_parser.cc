#include "tokenizer/jinja/syntax/expression_parser.h"

#include <algorithm>

#include "tokenizer/template_error.h"

namespace tokenizer::jinja {
namespace {

// The height of an expression's parts, found by visiting every ExprPtr of a node.
class HeightOf {
 public:
  template <typename... Parts>
  explicit HeightOf(const Parts&... parts) {
    (Visit(parts), ...);
  }
  int value() const { return height_; }

 private:
  void Visit(const ExprPtr& part) {
    if (part) height_ = std::max(height_, part->height);
  }
  void Visit(const CallArgs& args) {
    Visit(args.positional);
    Visit(args.named);
    Visit(args.star);
    Visit(args.star_star);
  }
  template <typename First>
  void Visit(const std::pair<First, ExprPtr>& part) {
    if constexpr (std::is_same_v<First, ExprPtr>) Visit(part.first);
    Visit(part.second);
  }
  template <typename Part>
  void Visit(const std::vector<Part>& parts) {
    for (const auto& part : parts) Visit(part);
  }
  int height_ = 0;
};

int PartsHeight(const Literal&) { return 0; }
int PartsHeight(const NameExpr&) { return 0; }
int PartsHeight(const ListExpr& e) { return HeightOf(e.items).value(); }
int PartsHeight(const DictExpr& e) { return HeightOf(e.entries).value(); }
int PartsHeight(const NotExpr& e) { return HeightOf(e.operand).value(); }
int PartsHeight(const SignExpr& e) { return HeightOf(e.operand).value(); }
int PartsHeight(const BinaryExpr& e) { return HeightOf(e.left, e.right).value(); }
int PartsHeight(const ConcatExpr& e) { return HeightOf(e.operands).value(); }
int PartsHeight(const LogicExpr& e) { return HeightOf(e.left, e.right).value(); }
int PartsHeight(const CompareExpr& e) { return HeightOf(e.first, e.rest).value(); }
int PartsHeight(const ConditionalExpr& e) { return HeightOf(e.test, e.then, e.otherwise).value(); }
int PartsHeight(const AttributeExpr& e) { return HeightOf(e.object).value(); }
int PartsHeight(const SubscriptExpr& e) { return HeightOf(e.object, e.index).value(); }
int PartsHeight(const SliceExpr& e) { return HeightOf(e.object, e.start, e.stop, e.step).value(); }
int PartsHeight(const FilterExpr& e) { return HeightOf(e.input, e.args).value(); }
int PartsHeight(const TestExpr& e) { return HeightOf(e.input, e.args).value(); }
int PartsHeight(const CallExpr& e) { return HeightOf(e.callee, e.args).value(); }

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (parser.nesting_ >= kMaxNesting) {
    parser.Fail("nested more than " + std::to_string(kMaxNesting) + " levels deep");
  }
  ++parser_.nesting_;
}

template <typename Node>
ExprPtr ExpressionParser::Make(int line, Node node) {
  const int height = 1 + PartsHeight(node);
  if (height > kMaxHeight)
    Fail("an expression of more than " + std::to_string(kMaxHeight) + " parts");
  return std::make_unique<Expr>(Expr{line, height, std::move(node)});
}

const Token& ExpressionParser::Peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

const Token& ExpressionParser::Next() {
  const Token& token = Peek();
  if (token.kind != TokenKind::kEnd) ++at_;
  return token;
}

bool ExpressionParser::AtOperator(std::string_view op, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kOperator && Peek(ahead).text == op;
}

bool ExpressionParser::AtName(std::string_view name, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kName && Peek(ahead).text == name;
}

bool ExpressionParser::SkipOperator(std::string_view op) {
  if (!AtOperator(op)) return false;
  ++at_;
  return true;
}

bool ExpressionParser::SkipName(std::string_view name) {
  if (!AtName(name)) return false;
  ++at_;
  return true;
}

void ExpressionParser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) Fail("expected '" + std::string(op) + "', found " + Here());
}

std::string ExpressionParser::ExpectName() {
  if (Peek().kind != TokenKind::kName) Fail("expected a name, found " + Here());
  return Next().text;
}

void ExpressionParser::Fail(const std::string& message) const {
  throw TemplateError(message, Peek().line);
}

std::string ExpressionParser::Here() const {
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

bool ExpressionParser::AtTupleEnd() const {
  return Peek().kind == TokenKind::kVariableEnd || Peek().kind == TokenKind::kBlockEnd ||
         AtOperator(")");
}

ExprPtr ExpressionParser::ParseTuple(bool with_conditional) {
  const int line = Peek().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (!AtTupleEnd() && !(is_tuple && AtName("recursive"))) {
    items.push_back(with_conditional ? ParseExpression() : ParseOr());
    if (!SkipOperator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return Make(line, ListExpr{std::move(items), true});
  if (items.empty()) Fail("expected an expression, found " + Here());
  return std::move(items[0]);
}

ExprPtr ExpressionParser::ParseExpression() {
  const Nesting nesting(*this);
  ExprPtr value = ParseOr();
  while (AtName("if")) {
    const int line = Next().line;
    ExprPtr test = ParseOr();
    ExprPtr otherwise = SkipName("else") ? ParseExpression() : nullptr;
    value = Make(line, ConditionalExpr{std::move(test), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExprPtr ExpressionParser::ParseOr() {
  return ParseLogic(/*is_and=*/false, &ExpressionParser::ParseAnd);
}

ExprPtr ExpressionParser::ParseAnd() {
  return ParseLogic(/*is_and=*/true, &ExpressionParser::ParseNot);
}

ExprPtr ExpressionParser::ParseLogic(bool is_and, Operand operand) {
  ExprPtr left = (this->*operand)();
  while (AtName(is_and ? "and" : "or")) {
    const int line = Next().line;
    left = Make(line, LogicExpr{is_and, std::move(left), (this->*operand)()});
  }
  return left;
}

ExprPtr ExpressionParser::ParseNot() {
  if (!AtName("not")) return ParseCompare();
  const Nesting nesting(*this);
  const int line = Next().line;
  return Make(line, NotExpr{ParseNot()});
}

ExprPtr ExpressionParser::ParseCompare() {
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

ExprPtr ExpressionParser::ParseBinary(std::initializer_list<BinaryOp> ops, Operand operand) {
  ExprPtr left = (this->*operand)();
  for (;;) {
    const auto* const op =
        std::ranges::find_if(ops, [&](BinaryOp one) { return AtOperator(Symbol(one)); });
    if (op == ops.end()) return left;
    const int line = Next().line;
    left = Make(line, BinaryExpr{*op, std::move(left), (this->*operand)()});
  }
}

ExprPtr ExpressionParser::ParseSum() {
  return ParseBinary({BinaryOp::kAdd, BinaryOp::kSub}, &ExpressionParser::ParseConcat);
}

ExprPtr ExpressionParser::ParseConcat() {
  const int line = Peek().line;
  std::vector<ExprPtr> operands;
  do {
    operands.push_back(ParseProduct());
  } while (SkipOperator("~"));
  if (operands.size() == 1) return std::move(operands[0]);
  return Make(line, ConcatExpr{std::move(operands)});
}

ExprPtr ExpressionParser::ParseProduct() {
  return ParseBinary({BinaryOp::kMul, BinaryOp::kDiv, BinaryOp::kFloorDiv, BinaryOp::kMod},
                     &ExpressionParser::ParsePower);
}

// Jinja's power binds to the left, unlike Python's: 2 ** 3 ** 2 is 64.
ExprPtr ExpressionParser::ParsePower() {
  return ParseBinary({BinaryOp::kPow}, &ExpressionParser::ParseFilteredUnary);
}

ExprPtr ExpressionParser::ParseUnary(bool with_filters) {
  const Nesting nesting(*this);
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

ExprPtr ExpressionParser::ParsePrimary() {
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
      if (token.kind != TokenKind::kEnd) --at_;  // for the message
      Fail("expected an expression, found " + Here());
  }
}

ExprPtr ExpressionParser::ParseBracketed(const Token& open) {
  if (open.text == "{") return ParseDict(open.line);
  if (open.text == "(") {
    if (SkipOperator(")")) return Make(open.line, ListExpr{{}, true});
    ExprPtr value = ParseTuple();
    ExpectOperator(")");
    return value;
  }
  std::vector<ExprPtr> items;
  while (!AtOperator("]")) {
    items.push_back(ParseExpression());
    if (!SkipOperator(",")) break;
  }
  ExpectOperator("]");
  return Make(open.line, ListExpr{std::move(items), false});
}

ExprPtr ExpressionParser::ParseDict(int line) {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
  while (!AtOperator("}")) {
    ExprPtr key = ParseExpression();
    ExpectOperator(":");
    entries.emplace_back(std::move(key), ParseExpression());
    if (!SkipOperator(",")) break;
  }
  ExpectOperator("}");
  return Make(line, DictExpr{std::move(entries)});
}

ExprPtr ExpressionParser::ParsePostfix(ExprPtr value) {
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

ExprPtr ExpressionParser::ParseAttribute(ExprPtr object) {
  const Token& token = Next();
  if (token.kind == TokenKind::kName) {
    return Make(token.line, AttributeExpr{std::move(object), token.text});
  }
  if (token.kind != TokenKind::kInteger) Fail("expected a name or a number after '.'");
  ExprPtr index = Make(token.line, Literal{Value(token.integer)});
  return Make(token.line, SubscriptExpr{std::move(object), std::move(index)});
}

ExprPtr ExpressionParser::ParseSubscript(ExprPtr object) {
  const int line = Peek().line;
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

ExprPtr ExpressionParser::ParseFilters(ExprPtr input, bool first_inline) {
  while (first_inline || SkipOperator("|")) {
    first_inline = false;
    const int line = Peek().line;
    std::string name = ExpectName();
    CallArgs args = AtOperator("(") ? ParseCallArgs() : CallArgs();
    input = Make(line, FilterExpr{std::move(input), std::move(name), std::move(args)});
  }
  return input;
}

ExprPtr ExpressionParser::ParseTest(ExprPtr input) {
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

CallArgs ExpressionParser::ParseCallArgs() {
  CallArgs args;
  ExpectOperator("(");
  while (!AtOperator(")")) {
    if (SkipOperator("**")) {
      if (args.star_star) Fail("two ** in one call");
      args.star_star = ParseExpression();
    } else if (args.star_star) {
      Fail("an argument after **");
    } else if (SkipOperator("*")) {
      if (args.star) Fail("two * in one call");
      args.star = ParseExpression();
    } else if (Peek().kind == TokenKind::kName && AtOperator("=", 1)) {
      std::string name = Next().text;
      Next();
      args.named.emplace_back(std::move(name), ParseExpression());
    } else {
      if (args.star || !args.named.empty()) Fail("a positional argument after a named one");
      args.positional.push_back(ParseExpression());
    }
    if (!SkipOperator(",")) break;
  }
  ExpectOperator(")");
  return args;
}

}  // namespace tokenizer::jinja
