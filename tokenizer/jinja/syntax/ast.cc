#include "tokenizer/jinja/syntax/ast.h"

#include <algorithm>

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

}  // namespace

int HeightOf(const Expr::Node& node) {
  PartsHeight parts;
  std::visit(parts, node);
  return 1 + parts.height;
}

}  // namespace tokenizer::jinja
