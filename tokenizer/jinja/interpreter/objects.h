// Objects that the interpreter itself makes: methods, macros, namespaces, loops.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

// A global function, or a method bound to its value: "text".strip before it is called.
class Function : public Object {
 public:
  explicit Function(const Builtin& builtin, Value self = Value())
      : builtin_(builtin), self_(std::move(self)) {}
  std::string_view TypeName() const override { return "builtin_function_or_method"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override {
    in.rt().Read(self_);  // Interpreter::Call has paid for the arguments
    return builtin_.function(BuiltinCall(in, builtin_, self_, args));
  }
  void Clear() override { self_ = Value(); }

 private:
  const Builtin& builtin_;
  Value self_;
};

// Its attributes can be set from inside a loop: {% set ns.name = value %}.
class Namespace : public Object {
 public:
  std::string_view TypeName() const override { return "Namespace"; }
  std::optional<Value> Attribute(Interpreter&, std::string_view name) override {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? std::nullopt : std::optional<Value>(found->second);
  }
  void Set(std::string_view name, Value value) { attributes_[String(name)] = std::move(value); }
  void Clear() override { attributes_.clear(); }

 private:
  NameMap<Value> attributes_;
};

class Macro : public Object {
 public:
  Macro(const MacroStmt& stmt, std::shared_ptr<Scope> closure)
      : stmt_(stmt), closure_(std::move(closure)) {}
  std::string_view TypeName() const override { return "Macro"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override {
    return in.CallMacro(stmt_, closure_, args);
  }
  void Clear() override { closure_.reset(); }

 private:
  const MacroStmt& stmt_;
  std::shared_ptr<Scope> closure_;
};

// The variable `loop` inside a for loop.
class Loop : public Object {
 public:
  Loop(const ForStmt& stmt, std::shared_ptr<Scope> closure, Values items, int level)
      : stmt_(stmt), closure_(std::move(closure)), items_(std::move(items)), level_(level) {}
  const Values& items() const { return items_; }
  void MoveTo(size_t index) { index_ = index; }

  std::string_view TypeName() const override { return "LoopContext"; }
  std::optional<Value> Attribute(Interpreter& in, std::string_view name) override;
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override;
  void Clear() override {
    items_.clear();
    seen_.clear();
    closure_.reset();
  }

 private:
  class Method;

  Value Cycle(const Arguments& args) const;
  // Whether the values differ from the last call's.
  Value Changed(Interpreter& in, const Arguments& args);

  const ForStmt& stmt_;
  std::shared_ptr<Scope> closure_;
  Values items_, seen_;
  size_t index_ = 0;
  int level_;
  bool was_called_ = false;
};

}  // namespace tokenizer::jinja
