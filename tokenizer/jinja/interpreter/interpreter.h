// Runs a parsed template: statements in interpreter.cc, expressions in eval.cc.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/values/runtime.h"

namespace tokenizer::jinja {

// The variables of a block (an iteration, a macro's call); other names are looked up in the parent.
struct Scope {
  std::shared_ptr<Scope> parent;
  NameMap<Value> variables;
};

class Interpreter {
 public:
  // `now` is the time for strftime_now.
  Interpreter(Runtime& rt, std::chrono::local_seconds now);

  // Sets a variable that the template can read.
  void SetVariable(std::string_view name, Value value);
  // The template's output. Throws TemplateError with the line.
  Text Render(const Block& block);

  // Used by filters, methods and objects.

  Runtime& rt() { return rt_; }
  std::chrono::local_seconds now() const { return now_; }
  // value.name and value[index]; undefined if missing, an error if the value itself is undefined.
  Value GetAttribute(const Value& value, std::string_view name);
  Value GetItem(const Value& value, const Value& index);
  Value Call(const Value& callee, const Arguments& args);
  Value CallFilter(std::string_view name, const Value& input, const Arguments& args);
  bool CallTest(std::string_view name, const Value& input, const Arguments& args);
  Value CallMacro(const MacroStmt& macro, const std::shared_ptr<Scope>& closure,
                  const Arguments& args);
  // Runs a recursive loop's body with other items: loop(items).
  Value CallLoop(const ForStmt& stmt, const std::shared_ptr<Scope>& closure, const Value& items,
                 int level);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class InnerScope;

  Flow Exec(const Block& block);
  Flow Exec(const TextStmt& stmt);
  Flow Exec(const PrintStmt& stmt);
  Flow Exec(const IfStmt& stmt);
  Flow Exec(const ForStmt& stmt);
  Flow Exec(const SetStmt& stmt);
  Flow Exec(const SetBlockStmt& stmt);
  Flow Exec(const MacroStmt& stmt);
  Flow Exec(const CallStmt& stmt);
  Flow Exec(const FilterStmt& stmt);
  Flow Exec(const WithStmt& stmt);
  Flow Exec(const JumpStmt& stmt) { return stmt.is_break ? Flow::kBreak : Flow::kContinue; }

  // Calls `run` and returns its output.
  template <typename Fn>
  Value Capture(Fn run);
  // Returns the flow for the surrounding block: only the loop's else block can break out of it.
  // level: how deep a recursive loop is, from 0.
  Flow RunLoop(const ForStmt& stmt, Values items, int level = 0);
  Values Filtered(const ForStmt& stmt, Values items);
  void Assign(const Target& target, const Value& value);
  // The filters of a filter block, on `input`.
  Value ApplyFilters(const Expr& filters, const Value& input);
  Value Lookup(std::string_view name) const;

  Value Eval(const Expr& expr);
  Value Eval(const Literal& expr) { return expr.value; }
  Value Eval(const NameExpr& expr) { return Lookup(expr.name); }
  Value Eval(const ListExpr& expr);
  Value Eval(const DictExpr& expr);
  Value Eval(const NotExpr& expr);
  Value Eval(const SignExpr& expr);
  Value Eval(const BinaryExpr& expr);
  Value Eval(const ConcatExpr& expr);
  Value Eval(const LogicExpr& expr);
  Value Eval(const CompareExpr& expr);
  Value Eval(const ConditionalExpr& expr);
  Value Eval(const AttributeExpr& expr);
  Value Eval(const SubscriptExpr& expr);
  Value Eval(const SliceExpr& expr);
  Value Eval(const FilterExpr& expr);
  Value Eval(const TestExpr& expr);
  Value Eval(const CallExpr& expr);
  Arguments EvalArgs(const CallArgs& args);

  Runtime& rt_;
  const std::chrono::local_seconds now_;
  std::shared_ptr<Scope> scope_ = MakeShared<Scope>();
  Text* out_ = nullptr;
  int line_ = 0;  // the current line, for messages
};

// Sets the variables range, namespace, dict, joiner, raise_exception, strftime_now.
void AddGlobals(Interpreter& in);
// An undefined value with its message.
Value MakeUndefined(std::string_view message);

}  // namespace tokenizer::jinja
