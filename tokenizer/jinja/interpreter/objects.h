// Objects of the language that the interpreter itself makes: methods, macros, namespaces, loops.
#ifndef PRONK_TOKENIZER_JINJA_INTERPRETER_OBJECTS_H_
#define PRONK_TOKENIZER_JINJA_INTERPRETER_OBJECTS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/jinja/interpreter/interpreter.h"
#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

// A method bound to its value: what "text".strip is before it is called.
class BoundMethod : public Object {
 public:
  using Fn = Value (*)(Interpreter& in, const Value& self, const Arguments& args);
  BoundMethod(Value self, Fn fn) : self_(std::move(self)), fn_(fn) {}
  std::string_view TypeName() const override { return "builtin_function_or_method"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override { return fn_(in, self_, args); }
  void Clear() override { self_ = Value(); }

  // A method of an object of the runtime's, which lives as long as the rendering.
  static Value Of(Interpreter& in, Object& object, Fn fn) {
    const std::shared_ptr<Object> self(std::shared_ptr<Object>(), &object);
    return Value(in.runtime().MakeObject<BoundMethod>(Value(self), fn));
  }

 private:
  Value self_;
  Fn fn_;
};

// Its attributes can be set from inside a loop: {% set ns.name = value %}.
class Namespace : public Object {
 public:
  std::string_view TypeName() const override { return "Namespace"; }
  std::optional<Value> Attribute(Interpreter& in, std::string_view name) override;
  void Set(const std::string& name, Value value) { attributes_[name] = std::move(value); }
  void Clear() override { attributes_.clear(); }

 private:
  std::map<std::string, Value, std::less<>> attributes_;
};

class Macro : public Object {
 public:
  Macro(const MacroStmt& stmt, std::shared_ptr<Scope> closure)
      : stmt_(stmt), closure_(std::move(closure)) {}
  std::string_view TypeName() const override { return "Macro"; }
  std::optional<Value> Attribute(Interpreter& in, std::string_view name) override;
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
  Loop(const ForStmt& stmt, std::shared_ptr<Scope> scope, Values items, int depth)
      : stmt_(stmt), scope_(std::move(scope)), items_(std::move(items)), depth_(depth) {}
  const Values& items() const { return items_; }
  void MoveTo(size_t index) { index_ = index; }

  std::string_view TypeName() const override { return "LoopContext"; }
  std::optional<Value> Attribute(Interpreter& in, std::string_view name) override;
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override;
  void Clear() override;

 private:
  static Value Cycle(Interpreter& in, const Value& self, const Arguments& args);
  static Value Changed(Interpreter& in, const Value& self, const Arguments& args);

  const ForStmt& stmt_;
  std::shared_ptr<Scope> scope_;
  Values items_;
  int depth_;
  size_t index_ = 0;
  std::optional<Values> last_changed_;  // what loop.changed was called with last
};

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_INTERPRETER_OBJECTS_H_
