// Evaluates expressions.
#include <algorithm>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/interpreter/interpreter.h"
#include "tokenizer/jinja/interpreter/objects.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

// Jinja's name for a value whose attribute is missing.
std::string Description(const Value& value) {
  return value.IsNone() ? "None" : std::string(value.TypeName()) + " object";
}

}  // namespace

Value MakeUndefined(std::string_view message) {
  return Undefined{MakeShared<const String>(message)};
}

Value Interpreter::Lookup(std::string_view name) const {
  size_t scopes = 0;
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return found->second;
    if (++scopes % 8 == 0) rt_.Step();
  }
  return MakeUndefined(gguf::Message("'", name, "' is undefined"));
}

Value Interpreter::Eval(const Expr& expr) {
  const Nesting nesting = rt_.OneLevel();
  rt_.Step();
  line_ = expr.line;
  return std::visit([this](const auto& node) { return Eval(node); }, expr.node);
}

Value Interpreter::Eval(const ListExpr& expr) {
  Values items;
  for (const ExprPtr& item : expr.items) items.push_back(Eval(*item));
  return rt_.Make(std::move(items), expr.is_tuple ? List::Kind::kTuple : List::Kind::kList);
}

Value Interpreter::Eval(const DictExpr& expr) {
  Value out = rt_.Make(Dict());
  for (const auto& [key, value] : expr.entries) {
    const Value evaluated_key = Eval(*key);
    out.dict().Set(evaluated_key, Eval(*value));
  }
  return out;
}

Value Interpreter::Eval(const NotExpr& expr) { return !Eval(*expr.operand).Truth(); }

Value Interpreter::Eval(const SignExpr& expr) {
  const Value value = Eval(*expr.operand);
  return expr.negative ? Negate(value) : Negate(Negate(value));
}

Value Interpreter::Eval(const BinaryExpr& expr) {
  const Value left = Eval(*expr.left);
  return Calculate(rt_, expr.op, left, Eval(*expr.right));
}

Value Interpreter::Eval(const ConcatExpr& expr) {
  Text out;
  for (const ExprPtr& operand : expr.operands) AppendStr(rt_, Eval(*operand), out);
  return out;
}

Value Interpreter::Eval(const LogicExpr& expr) {
  Value left = Eval(*expr.left);
  return left.Truth() == expr.is_and ? Eval(*expr.right) : left;
}

Value Interpreter::Eval(const CompareExpr& expr) {
  Value left = Eval(*expr.first);
  for (const auto& [op, operand] : expr.rest) {
    Value right = Eval(*operand);
    if (!CompareValues(rt_, op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::Eval(const ConditionalExpr& expr) {
  if (Eval(*expr.test).Truth()) return Eval(*expr.then);
  if (expr.otherwise) return Eval(*expr.otherwise);
  return MakeUndefined("the inline if has no else");
}

Value Interpreter::Eval(const AttributeExpr& expr) {
  return GetAttribute(Eval(*expr.object), expr.name);
}

Value Interpreter::Eval(const SubscriptExpr& expr) {
  const Value object = Eval(*expr.object);
  return GetItem(object, Eval(*expr.index));
}

Value Interpreter::Eval(const SliceExpr& expr) {
  const Value object = Eval(*expr.object);
  rt_.Read(object);
  const auto bound = [this](const ExprPtr& part) { return part ? Eval(*part) : Value(); };
  const Value start = bound(expr.start), stop = bound(expr.stop);
  return Slice(rt_, object, start, stop, bound(expr.step));
}

Value Interpreter::Eval(const FilterExpr& expr) {
  const Value input = Eval(*expr.input);
  return CallFilter(expr.name, input, EvalArgs(expr.args));
}

Value Interpreter::Eval(const TestExpr& expr) {
  const Value input = Eval(*expr.input);
  return CallTest(expr.name, input, EvalArgs(expr.args));
}

Value Interpreter::Eval(const CallExpr& expr) {
  const Value callee = Eval(*expr.callee);
  return Call(callee, EvalArgs(expr.args));
}

Arguments Interpreter::EvalArgs(const CallArgs& args) {
  Arguments out;
  for (const ExprPtr& arg : args.positional) out.positional.push_back(Eval(*arg));
  for (const auto& [name, value] : args.named) out.named.emplace_back(name, Eval(*value));
  if (args.more) {
    const Value more = Eval(*args.more);
    RequireDefined(more);
    for (Value& item : ItemsOf(more)) out.positional.push_back(std::move(item));
  }
  if (args.more_named) {
    const Value more = Eval(*args.more_named);
    RequireDefined(more);
    if (!more.IsDict()) Fail("argument after ** must be a mapping, not ", more.TypeName());
    for (const auto& [key, value] : more.dict().entries) {
      if (!key.IsString()) Fail("keywords must be strings");
      rt_.Step(out.named.size() / 8);
      const String name(key.view());
      if (std::ranges::count(out.named, name, &NamedValue::first) > 0)
        Fail("got multiple values for keyword argument '", name, "'");
      out.named.emplace_back(name, value);
    }
  }
  return out;
}

Value Interpreter::Call(const Value& callee, const Arguments& args) {
  RequireDefined(callee);
  if (!callee.IsObject()) Fail("'", callee.TypeName(), "' object is not callable");
  rt_.Read(args);
  return callee.object().Call(*this, args);
}

Value Interpreter::CallFilter(std::string_view name, const Value& input, const Arguments& args) {
  const Builtin* const filter = FindBuiltin(Owner::kFilter, name);
  if (filter == nullptr) Fail("No filter named '", name, "'.");
  rt_.Read(input);
  rt_.Read(args);
  return filter->function(BuiltinCall(*this, *filter, input, args));
}

bool Interpreter::CallTest(std::string_view name, const Value& input, const Arguments& args) {
  const Builtin* test = FindBuiltin(Owner::kTypeTest, name);
  if (test == nullptr) {
    test = FindBuiltin(Owner::kTest, name);
    if (test == nullptr) Fail("No test named '", name, "'.");
    rt_.Read(input);
    rt_.Read(args);
  }
  return test->function(BuiltinCall(*this, *test, input, args)).Truth();
}

Value Interpreter::GetAttribute(const Value& value, std::string_view name) {
  RequireDefined(value);
  rt_.Step();
  if (value.IsObject()) {
    if (auto attribute = value.object().Attribute(*this, name)) return *attribute;
  } else if (value.IsList() && value.list().is_group && (name == "grouper" || name == "list")) {
    return value.list().items[name == "grouper" ? 0 : 1];
  } else {
    if (const Builtin* method = FindMethod(value, name)) {
      return Value(rt_.MakeObject<Function>(*method, value));
    }
    if (value.IsDict()) {
      if (const Value* item = value.dict().Find(Value(name))) return *item;
    }
  }
  String message = "'";
  message.append(Description(value)).append("' has no attribute '").append(name).append("'");
  return MakeUndefined(message);
}

Value Interpreter::GetItem(const Value& value, const Value& index) {
  RequireDefined(value);
  rt_.Read(index);
  if (value.IsString()) rt_.Read(value);
  if (auto item = Item(value, index)) return *item;
  if (index.IsString()) return GetAttribute(value, index.view());
  return MakeUndefined(Description(value) + " has no element " +
                       std::string(Repr(rt_, index).view()));
}

}  // namespace tokenizer::jinja
