// Executes statements. The variable `loop` is at the end.
#include "tokenizer/jinja/interpreter/interpreter.h"

#include <algorithm>
#include <stdexcept>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/interpreter/objects.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

// Moves the value of `name` out of the keyword arguments, if present.
bool TakeNamed(Vector<NamedValue>& named, std::string_view name, Value& out) {
  const auto found = std::ranges::find(named, name, &NamedValue::first);
  if (found == named.end()) return false;
  out = std::move(found->second);
  named.erase(found);
  return true;
}

}  // namespace

// Makes a new scope below the given one and keeps it current during its own lifetime.
class Interpreter::InnerScope {
 public:
  InnerScope(Interpreter& in, std::shared_ptr<Scope> parent) : in_(in), saved_(in.scope_) {
    in.scope_ = MakeShared<Scope>(Scope{std::move(parent), {}});
  }
  explicit InnerScope(Interpreter& in) : InnerScope(in, in.scope_) {}
  ~InnerScope() { in_.scope_ = std::move(saved_); }
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

 private:
  Interpreter& in_;
  std::shared_ptr<Scope> saved_;
};

Interpreter::Interpreter(Runtime& rt, std::chrono::local_seconds now) : rt_(rt), now_(now) {
  AddGlobals(*this);
}

void Interpreter::SetVariable(std::string_view name, Value value) {
  scope_->variables.insert_or_assign(String(name), std::move(value));
}

Text Interpreter::Render(const Block& block) {
  Text out;
  out_ = &out;
  try {
    Exec(block);
  } catch (const TemplateError& error) {
    if (error.line() != 0) throw;
    FailAt(line_, error.message());
  } catch (const std::length_error&) {  // a container is too long
    FailAt(line_, "the template uses too much memory");
  }
  return out;
}

Interpreter::Flow Interpreter::Exec(const Block& block) {
  const Nesting nesting = rt_.OneLevel();
  for (const Stmt& stmt : block) {
    rt_.Step();
    line_ = stmt.line;
    const Flow flow = std::visit([this](const auto& node) { return Exec(node); }, stmt.node);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

template <typename Fn>
Value Interpreter::Capture(Fn run) {
  Text text;
  Text* const saved = std::exchange(out_, &text);
  run();
  out_ = saved;
  return text;
}

Interpreter::Flow Interpreter::Exec(const TextStmt& stmt) {
  out_->Append(stmt.text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Exec(const PrintStmt& stmt) {
  AppendStr(rt_, Eval(*stmt.value), *out_);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Exec(const IfStmt& stmt) {
  for (const auto& [test, body] : stmt.branches) {
    if (Eval(*test).Truth()) return Exec(body);
  }
  return Exec(stmt.otherwise);
}

// Some templates (Hermes 3) loop over `tools` unconditionally and expect an empty list without
// tools. Other templates test for None, which callers pass. So None is empty in a loop.
Interpreter::Flow Interpreter::Exec(const ForStmt& stmt) {
  const Value items = Eval(*stmt.items);
  const auto* const variable = std::get_if<NameExpr>(&stmt.items->node);
  const bool may_be_none =
      variable != nullptr && (variable->name == "tools" || variable->name == "documents");
  return RunLoop(stmt, may_be_none && items.IsNone() ? Values() : ItemsOf(items));
}

Values Interpreter::Filtered(const ForStmt& stmt, Values items) {
  if (!stmt.condition) return items;
  Values kept;
  for (Value& item : items) {
    const InnerScope scope(*this);
    Assign(stmt.target, item);
    if (Eval(*stmt.condition).Truth()) kept.push_back(std::move(item));
  }
  return kept;
}

Value Interpreter::CallLoop(const ForStmt& stmt, const std::shared_ptr<Scope>& closure,
                            const Value& items, int level) {
  const Nesting nesting = rt_.OneLevel();
  const InnerScope scope(*this, closure);
  const int call_line = line_;
  Value output = Capture([&] { RunLoop(stmt, ItemsOf(items), level); });
  line_ = call_line;
  return output;
}

Interpreter::Flow Interpreter::RunLoop(const ForStmt& stmt, Values items, int level) {
  const auto loop = rt_.MakeObject<Loop>(stmt, scope_, Filtered(stmt, std::move(items)), level);
  bool completed = false;  // an iteration reached its end; otherwise Jinja runs the else block
  for (size_t i = 0; i < loop->items().size(); ++i) {
    const InnerScope scope(*this);
    loop->MoveTo(i);
    SetVariable("loop", Value(loop));
    Assign(stmt.target, loop->items()[i]);
    const Flow flow = Exec(stmt.body);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
  }
  if (completed) return Flow::kNext;
  const InnerScope scope(*this);
  return Exec(stmt.otherwise);
}

void Interpreter::Assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) {
    const Value object = Lookup(target.name);
    auto* space = object.IsObject() ? dynamic_cast<Namespace*>(&object.object()) : nullptr;
    if (space == nullptr) {
      RequireDefined(object);
      Fail("cannot assign attribute on non-namespace object");
    }
    space->Set(target.attribute, value);
    return;
  }
  if (target.targets.empty()) return SetVariable(target.name, value);
  if (!IsIterable(value)) Fail("cannot unpack non-iterable ", value.TypeName(), " object");
  const Values items = ItemsOf(value);
  const std::string wanted = "expected " + std::to_string(target.targets.size());
  if (items.size() > target.targets.size()) Fail("too many values to unpack (", wanted, ")");
  if (items.size() < target.targets.size()) {
    Fail("not enough values to unpack (", wanted, ", got ", items.size(), ")");
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(target.targets[i], items[i]);
}

Interpreter::Flow Interpreter::Exec(const SetStmt& stmt) {
  Assign(stmt.target, Eval(*stmt.value));
  return Flow::kNext;
}

Value Interpreter::ApplyFilters(const Expr& filters, const Value& input) {
  const auto& filter = std::get<FilterExpr>(filters.node);
  const Value filtered = filter.input ? ApplyFilters(*filter.input, input) : input;
  return CallFilter(filter.name, filtered, EvalArgs(filter.args));
}

Interpreter::Flow Interpreter::Exec(const SetBlockStmt& stmt) {
  Flow flow;
  Value value;
  {
    const InnerScope scope(*this);
    value = Capture([&] { flow = Exec(stmt.body); });
    if (stmt.filter) value = ApplyFilters(*stmt.filter, value);
  }
  Assign(stmt.target, value);
  return flow;
}

Interpreter::Flow Interpreter::Exec(const FilterStmt& stmt) {
  const InnerScope scope(*this);
  Flow flow;
  const Value text = Capture([&] { flow = Exec(stmt.body); });
  AppendStr(rt_, ApplyFilters(*stmt.filter, text), *out_);
  return flow;
}

Interpreter::Flow Interpreter::Exec(const WithStmt& stmt) {
  Values values;  // evaluated first: no value sees another's variable
  for (const auto& variable : stmt.variables) values.push_back(Eval(*variable.second));
  const InnerScope scope(*this);
  for (size_t i = 0; i < values.size(); ++i) Assign(stmt.variables[i].first, values[i]);
  return Exec(stmt.body);
}

Interpreter::Flow Interpreter::Exec(const MacroStmt& stmt) {
  SetVariable(stmt.name, Value(rt_.MakeObject<Macro>(stmt, scope_)));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Exec(const CallStmt& stmt) {
  const auto& call = std::get<CallExpr>(stmt.call->node);
  const Value callee = Eval(*call.callee);
  Arguments args = EvalArgs(call.args);
  args.named.emplace_back("caller", Value(rt_.MakeObject<Macro>(*stmt.caller, scope_)));
  AppendStr(rt_, Call(callee, args), *out_);
  return Flow::kNext;
}

Value Interpreter::CallMacro(const MacroStmt& macro, const std::shared_ptr<Scope>& closure,
                             const Arguments& args) {
  const Nesting nesting = rt_.OneLevel();
  const InnerScope scope(*this, closure);
  const int call_line = line_;
  auto named = args.named;
  const size_t n = macro.parameters.size();
  for (size_t i = 0; i < n; ++i) {
    rt_.Step(named.size() / 8);
    const Parameter& parameter = macro.parameters[i];
    Value value = MakeUndefined("parameter '" + parameter.name + "' was not provided");
    if (i < args.positional.size()) {
      value = args.positional[i];
    } else if (!TakeNamed(named, parameter.name, value) && parameter.fallback) {
      SetVariable(parameter.name, value);  // a default that names its own parameter sees no value
      value = Eval(*parameter.fallback);
    }
    SetVariable(parameter.name, value);
  }
  const auto explicit_caller = std::ranges::find(macro.parameters, "caller", &Parameter::name);
  if (macro.uses_caller && explicit_caller == macro.parameters.end()) {
    Value caller = MakeUndefined("No caller defined");
    TakeNamed(named, "caller", caller);
    SetVariable("caller", caller);
  }
  if (macro.uses_kwargs) {
    const Value kwargs = rt_.Make(Dict());
    kwargs.dict().SetAll(named);
    SetVariable("kwargs", kwargs);
  } else if (!named.empty()) {
    Fail("macro '", macro.name, "' takes no keyword argument '", named[0].first, "'");
  }
  if (macro.uses_varargs) {
    const auto begin =
        args.positional.begin() + static_cast<ptrdiff_t>(std::min(n, args.positional.size()));
    SetVariable("varargs", rt_.Make(Values(begin, args.positional.end()), List::Kind::kTuple));
  } else if (args.positional.size() > n) {
    Fail("macro '", macro.name, "' takes not more than ", n, " argument(s)");
  }
  Value output = Capture([&] { Exec(macro.body); });
  line_ = call_line;
  return output;
}

// loop.cycle or loop.changed, before it is called. The runtime keeps the loop alive.
class Loop::Method : public Object {
 public:
  Method(Loop& loop, bool is_cycle) : loop_(loop), is_cycle_(is_cycle) {}
  std::string_view TypeName() const override { return "method"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter& in, const Arguments& args) override {
    if (!args.named.empty()) Fail("a method of loop takes no named arguments");
    return is_cycle_ ? loop_.Cycle(args) : loop_.Changed(in, args);
  }

 private:
  Loop& loop_;
  bool is_cycle_;
};

Value Loop::Cycle(const Arguments& args) const {
  if (args.positional.empty()) Fail("no items for cycling given");
  return args.positional[index_ % args.positional.size()];
}

Value Loop::Changed(Interpreter& in, const Arguments& args) {
  const auto equal = [&](const Value& a, const Value& b) { return Equal(in.rt(), a, b); };
  const bool same = was_called_ && std::ranges::equal(args.positional, seen_, equal);
  was_called_ = true;
  seen_ = args.positional;
  return !same;
}

Value Loop::Call(Interpreter& in, const Arguments& args) {
  if (!stmt_.is_recursive) Fail("the loop must have the 'recursive' marker to be called");
  if (args.positional.size() != 1 || !args.named.empty()) Fail("loop() takes one argument");
  return in.CallLoop(stmt_, closure_, args.positional[0], level_ + 1);
}

std::optional<Value> Loop::Attribute(Interpreter& in, std::string_view name) {
  const auto number = [](size_t value) { return Value(static_cast<int64_t>(value)); };
  const size_t n = items_.size();
  if (name == "index") return number(index_ + 1);
  if (name == "index0") return number(index_);
  if (name == "revindex") return number(n - index_);
  if (name == "revindex0") return number(n - index_ - 1);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(index_ + 1 == n);
  if (name == "length") return number(n);
  if (name == "depth") return Value(level_ + 1);
  if (name == "depth0") return Value(level_);
  if (name == "previtem") {
    return index_ > 0 ? items_[index_ - 1] : MakeUndefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index_ + 1 < n ? items_[index_ + 1] : MakeUndefined("there is no next item");
  }
  if (name == "cycle" || name == "changed")
    return Value(in.rt().MakeObject<Method>(*this, name == "cycle"));
  return std::nullopt;
}

}  // namespace tokenizer::jinja
