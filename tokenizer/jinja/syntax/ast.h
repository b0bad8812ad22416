// A parsed template: statements with expressions, as in jinja.palletsprojects.com/templates, but
// without inheritance, imports and autoescape, which a chat template in a file cannot use.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;
struct Stmt;
using Block = std::vector<Stmt>;

// (a, b, *more, name=c, **named)
struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more, more_named;  // null: absent
};

// Expressions.

struct Literal {
  Value value;
};
struct NameExpr {
  std::string name;
};
struct ListExpr {
  std::vector<ExprPtr> items;
  bool is_tuple = false;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct NotExpr {
  ExprPtr operand;
};
struct SignExpr {  // -a or +a
  bool negative = false;
  ExprPtr operand;
};
struct BinaryExpr {
  BinaryOp op;
  ExprPtr left, right;
};
struct ConcatExpr {  // a ~ b ~ c
  std::vector<ExprPtr> operands;
};
struct LogicExpr {  // a and b, a or b: the value of the operand that decides
  bool is_and = false;
  ExprPtr left, right;
};
struct CompareExpr {  // a < b <= c: every neighbouring pair must hold
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct ConditionalExpr {  // a if test else b; b may be absent
  ExprPtr test, then, otherwise;
};
struct AttributeExpr {  // a.name
  ExprPtr object;
  std::string name;
};
struct SubscriptExpr {  // a[index]
  ExprPtr object, index;
};
struct SliceExpr {  // a[start:stop:step], each may be absent
  ExprPtr object, start, stop, step;
};
struct FilterExpr {  // a | name(args); the input of a filter block's first filter is absent
  ExprPtr input;
  std::string name;
  CallArgs args;
};
struct TestExpr {  // a is name(args)
  ExprPtr input;
  std::string name;
  CallArgs args;
};
struct CallExpr {
  ExprPtr callee;
  CallArgs args;
};

struct Expr {
  using Node = std::variant<Literal, NameExpr, ListExpr, DictExpr, NotExpr, SignExpr, BinaryExpr,
                            ConcatExpr, LogicExpr, CompareExpr, ConditionalExpr, AttributeExpr,
                            SubscriptExpr, SliceExpr, FilterExpr, TestExpr, CallExpr>;
  int line;
  int height;  // height of the expression tree; limited, which also limits recursion
  Node node;
};
// The height of the expression of this node.
int HeightOf(const Expr::Node& node);

// Statements.

// The target of an assignment: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;        // attribute of the namespace `name`; empty: `name` itself
  std::vector<Target> targets;  // not empty: a tuple, and name is empty
};

struct TextStmt {
  Text text;
};
struct PrintStmt {
  ExprPtr value;
};
struct IfStmt {
  std::vector<std::pair<ExprPtr, Block>> branches;  // if, elif, elif...
  Block otherwise;
};
struct ForStmt {
  Target target;
  ExprPtr items;
  ExprPtr condition;  // null: absent
  Block body, otherwise;
  bool is_recursive = false;  // loop(items) in the body runs it again
};
struct SetStmt {
  Target target;
  ExprPtr value;
};
struct SetBlockStmt {
  Target target;
  ExprPtr filter;  // a FilterExpr, or null
  Block body;
};
struct Parameter {
  std::string name;
  ExprPtr fallback;  // null: none
};
struct MacroStmt {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // the body has these names
};
struct CallStmt {  // {% call(parameters) macro(args) %} body {% endcall %}
  ExprPtr call;    // a CallExpr
  std::unique_ptr<MacroStmt> caller;
};
struct FilterStmt {
  ExprPtr filter;  // a FilterExpr
  Block body;
};
struct WithStmt {  // also {% generation %}, which marks training text, without variables
  std::vector<std::pair<Target, ExprPtr>> variables;
  Block body;
};
struct JumpStmt {  // {% break %} or {% continue %}
  bool is_break = false;
};

struct Stmt {
  using Node = std::variant<TextStmt, PrintStmt, IfStmt, ForStmt, SetStmt, SetBlockStmt, MacroStmt,
                            CallStmt, FilterStmt, WithStmt, JumpStmt>;
  int line;
  Node node;
};

// Throws TemplateError with the line.
Block ParseTemplate(std::string_view source);

}  // namespace tokenizer::jinja
