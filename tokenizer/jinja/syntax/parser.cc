// Parses tokens into statements.
#include <algorithm>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/syntax/expression_parser.h"

namespace tokenizer::jinja {
namespace {

// The height of a node's highest child.
struct PartsHeight {
  int height = 0;

  void operator()(const Literal&) {}
  void operator()(const NameExpr&) {}
  void operator()(const ListExpr& e) { Visit(e.items); }
  void operator()(const DictExpr& e) { Visit(e.entries); }
  void operator()(const NotExpr& e) { Visit(e.operand); }
  void operator()(const SignExpr& e) { Visit(e.operand); }
  void operator()(const BinaryExpr& e) { Visit(e.left, e.right); }
  void operator()(const ConcatExpr& e) { Visit(e.operands); }
  void operator()(const LogicExpr& e) { Visit(e.left, e.right); }
  void operator()(const CompareExpr& e) { Visit(e.first, e.rest); }
  void operator()(const ConditionalExpr& e) { Visit(e.test, e.then, e.otherwise); }
  void operator()(const AttributeExpr& e) { Visit(e.object); }
  void operator()(const SubscriptExpr& e) { Visit(e.object, e.index); }
  void operator()(const SliceExpr& e) { Visit(e.object, e.start, e.stop, e.step); }
  void operator()(const FilterExpr& e) { Visit(e.input, e.args); }
  void operator()(const TestExpr& e) { Visit(e.input, e.args); }
  void operator()(const CallExpr& e) { Visit(e.callee, e.args); }

 private:
  template <typename... Parts>
  void Visit(const Parts&... parts) {
    (Add(parts), ...);
  }
  void Add(const ExprPtr& part) {
    if (part) height = std::max(height, part->height);
  }
  void Add(const CallArgs& args) { Visit(args.positional, args.named, args.more, args.more_named); }
  void Add(const std::pair<ExprPtr, ExprPtr>& parts) { Visit(parts.first, parts.second); }
  template <typename First>
  void Add(const std::pair<First, ExprPtr>& part) {
    Add(part.second);
  }
  template <typename Part>
  void Add(const std::vector<Part>& parts) {
    for (const auto& part : parts) Add(part);
  }
};

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(Tokenize(source)) {}

  Block Run() { return ParseBlock({}, ""); }

 private:
  using Names = std::initializer_list<std::string_view>;

  bool AtOneOf(Names names) const {
    return std::ranges::any_of(names, [&](std::string_view name) { return AtName(name, 1); });
  }

  // Statements up to one named in `ends`, whose "{%" is consumed and whose name comes next; or to
  // the end of the template. `opened`: the statement they belong to.
  Block ParseBlock(Names ends, std::string_view opened) {
    const Nesting nesting = OneLevel();
    const int line = Peek().line;
    Block block;
    for (;;) {
      const Token& token = Peek();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() == 0) return block;
        FailAt(line, "'", opened, "' has no end");
      }
      if (token.kind == TokenKind::kBlockBegin && AtOneOf(ends)) {
        Next();
        return block;
      }
      ParseStatement(block);
    }
  }

  void EndStatement() {
    if (Peek().kind != TokenKind::kBlockEnd) Fail("expected '%}', found ", Here());
    Next();
  }

  Block ParseBody(std::string_view opened, std::string_view end) {
    EndStatement();
    Block body = ParseBlock({end}, opened);
    Next();
    EndStatement();
    return body;
  }

  template <typename Node>
  static void Add(Block& block, int line, Node node) {
    block.push_back(Stmt{line, std::move(node)});
  }

  void ParseStatement(Block& block) {
    const Token& token = Next();
    const int line = token.line;
    if (token.kind == TokenKind::kData) {
      Add(block, line, TextStmt{Text(token.text)});
    } else if (token.kind == TokenKind::kVariableBegin) {
      Add(block, line, PrintStmt{ParseTuple()});
      if (Peek().kind != TokenKind::kVariableEnd) Fail("expected '}}', found ", Here());
      Next();
    } else {  // kBlockBegin: the lexer returns nothing else here
      ParseNamedStatement(block, line, ExpectName());
    }
  }

  void ParseNamedStatement(Block& block, int line, const std::string& name) {
    if (name == "if") {
      Add(block, line, ParseIf());
    } else if (name == "for") {
      Add(block, line, ParseFor());
    } else if (name == "set") {
      ParseSet(block, line);
    } else if (name == "macro") {
      Add(block, line, ParseMacro());
    } else if (name == "call") {
      Add(block, line, ParseCall());
    } else if (name == "filter") {
      ExprPtr filter = ParseFilters(nullptr, true);
      Add(block, line, FilterStmt{std::move(filter), ParseBody(name, "endfilter")});
    } else if (name == "with") {
      Add(block, line, ParseWith());
    } else if (name == "generation") {
      Add(block, line, WithStmt{{}, ParseBody(name, "endgeneration")});
    } else if (name == "break" || name == "continue") {
      if (loops_ == 0) Fail("'", name, "' outside of a loop");
      EndStatement();
      Add(block, line, JumpStmt{name == "break"});
    } else {
      FailAt(line, "unknown or misplaced statement '", name, "'");
    }
  }

  IfStmt ParseIf() {
    IfStmt out;
    do {
      ExprPtr test = ParseTuple(false);
      EndStatement();
      out.branches.emplace_back(std::move(test), ParseBlock({"elif", "else", "endif"}, "if"));
    } while (SkipName("elif"));
    out.otherwise = ParseElse("endif");
    return out;
  }

  // The rest of a statement: its else block, empty if it has none, and its end.
  Block ParseElse(std::string_view end) {
    if (SkipName("else")) return ParseBody("else", end);
    Next();
    EndStatement();
    return {};
  }

  ForStmt ParseFor() {
    ForStmt out;
    out.target = ParseTarget(/*attributes=*/false);
    if (!SkipName("in")) Fail("expected 'in', found ", Here());
    out.items = ParseTuple(false);
    if (SkipName("if")) out.condition = ParseExpression();
    out.is_recursive = SkipName("recursive");
    EndStatement();
    ++loops_;
    out.body = ParseBlock({"else", "endfor"}, "for");
    --loops_;
    out.otherwise = ParseElse("endfor");
    return out;
  }

  void ParseSet(Block& block, int line) {
    Target target = ParseTarget(/*attributes=*/true);
    if (SkipOperator("=")) {
      Add(block, line, SetStmt{std::move(target), ParseTuple()});
      EndStatement();
      return;
    }
    ExprPtr filter = ParseFilters(nullptr);
    Add(block, line,
        SetBlockStmt{std::move(target), std::move(filter), ParseBody("set", "endset")});
  }

  MacroStmt ParseMacro() {
    MacroStmt out;
    out.name = ExpectName();
    ParseParameters(out);
    ParseMacroBody(out, "macro", "endmacro");
    return out;
  }

  CallStmt ParseCall() {
    CallStmt out;
    out.caller = std::make_unique<MacroStmt>();
    out.caller->name = "caller";
    if (AtOperator("(")) ParseParameters(*out.caller);
    out.call = ParseExpression();
    if (!std::holds_alternative<CallExpr>(out.call->node)) Fail("expected a call");
    ParseMacroBody(*out.caller, "call", "endcall");
    return out;
  }

  void ParseParameters(MacroStmt& macro) {
    ExpectOperator("(");
    ParseItems(")", [&] {
      Parameter parameter{ExpectName(), nullptr};
      if (SkipOperator("=")) {
        parameter.fallback = ParseExpression();
      } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
        Fail("a parameter without a default follows one with a default");
      }
      macro.parameters.push_back(std::move(parameter));
    });
  }

  void ParseMacroBody(MacroStmt& macro, std::string_view opened, std::string_view end) {
    std::set<std::string, std::less<>> outer;
    outer.swap(names_read_);
    const int outer_loops = std::exchange(loops_, 0);
    macro.body = ParseBody(opened, end);
    loops_ = outer_loops;
    macro.uses_caller = names_read_.contains("caller");
    macro.uses_varargs = names_read_.contains("varargs");
    macro.uses_kwargs = names_read_.contains("kwargs");
    names_read_.merge(outer);
  }

  WithStmt ParseWith() {
    WithStmt out;
    while (Peek().kind != TokenKind::kBlockEnd) {
      Target target = ParseTarget(/*attributes=*/false, /*tuple=*/false);
      ExpectOperator("=");
      out.variables.emplace_back(std::move(target), ParseExpression());
      if (!SkipOperator(",")) break;
    }
    out.body = ParseBody("with", "endwith");
    return out;
  }

  // name, name.attribute if `attributes`, (a, b), or a, b if `tuple`.
  Target ParseTarget(bool attributes, bool tuple = true) {
    std::vector<Target> targets;
    bool is_tuple = false;
    do {
      if (is_tuple && (AtName("in") || AtOperator("=") || AtOperator(")"))) break;
      targets.push_back(ParseSingleTarget(attributes));
      is_tuple = is_tuple || AtOperator(",");
    } while (tuple && SkipOperator(","));
    if (!tuple || !is_tuple) return std::move(targets[0]);
    return Target{{}, {}, std::move(targets)};
  }

  Target ParseSingleTarget(bool attributes) {
    const Nesting nesting = OneLevel();
    if (SkipOperator("(")) {
      Target target = ParseTarget(false);
      ExpectOperator(")");
      return target;
    }
    Target target{ExpectName(), {}, {}};
    const std::string& name = target.name;
    if (name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
        name == "None") {
      Fail("cannot assign to '", name, "'");
    }
    if (attributes && SkipOperator(".")) target.attribute = ExpectName();
    return target;
  }

  int loops_ = 0;  // around the current statement
};

}  // namespace

int HeightOf(const Expr::Node& node) {
  PartsHeight parts;
  std::visit(parts, node);
  return 1 + parts.height;
}

Block ParseTemplate(std::string_view source) { return Parser(source).Run(); }

}  // namespace tokenizer::jinja
