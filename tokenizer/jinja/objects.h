// The objects of the template language: what is neither number, text nor container.
#ifndef PRONK_TOKENIZER_JINJA_OBJECTS_H_
#define PRONK_TOKENIZER_JINJA_OBJECTS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/value.h"

namespace tokenizer::jinja {

// A global function such as range.
class Function : public Object {
 public:
  using Fn = Value (*)(Interpreter& in, const Arguments& args);
  explicit Function(Fn fn) : fn_(fn) {}
  std::string_view TypeName() const override { return "function"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override { return fn_(in, args); }

 private:
  Fn fn_;
};

// A method with the value it belongs to: what "text".strip is before it is called.
class BoundMethod : public Object {
 public:
  using Fn = Value (*)(Interpreter& in, const Value& self, const Arguments& args);
  BoundMethod(Value self, Fn fn) : self_(std::move(self)), fn_(fn) {}
  std::string_view TypeName() const override { return "builtin_function_or_method"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override { return fn_(in, self_, args); }
  void Clear() override { self_ = Value(); }

 private:
  Value self_;
  Fn fn_;
};

// What {% set ns.name = value %} can change from inside a loop.
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

// cycler(a, b): next() gives a, b, a...
class Cycler : public Object {
 public:
  explicit Cycler(Values items) : items_(std::move(items)) {}
  std::string_view TypeName() const override { return "Cycler"; }
  std::optional<Value> Attribute(Interpreter& in, std::string_view name) override;
  void Clear() override { items_.clear(); }

 private:
  Values items_;
  size_t at_ = 0;
};

// joiner(", "): nothing when called first, the separator from then on.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view TypeName() const override { return "Joiner"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override;

 private:
  Value separator_;
  bool used_ = false;
};

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_OBJECTS_H_
