#include "tokenizer/jinja/objects.h"

#include <chrono>
#include <string>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/print.h"
#include "tokenizer/jinja/strftime.h"
#include "tokenizer/template_error.h"

namespace tokenizer::jinja {

std::optional<Value> Namespace::Attribute(Interpreter&, std::string_view name) {
  const auto found = attributes_.find(name);
  return found == attributes_.end() ? std::nullopt : std::optional<Value>(found->second);
}

std::optional<Value> Macro::Attribute(Interpreter& in, std::string_view name) {
  if (name == "name") return in.runtime().Make(Text(stmt_.name));
  if (name != "arguments") return std::nullopt;
  Values names;
  for (const Parameter& parameter : stmt_.parameters) {
    names.push_back(in.runtime().Make(Text(parameter.name)));
  }
  return in.runtime().Make(std::move(names), List::Kind::kTuple);
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
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem") {
    return index_ > 0 ? items_[index_ - 1] : MakeUndefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index_ + 1 < n ? items_[index_ + 1] : MakeUndefined("there is no next item");
  }
  const auto method = [&](BoundMethod::Fn fn) {
    // This loop itself is what the method is bound to; it lives as long as the rendering.
    const std::shared_ptr<Object> self(std::shared_ptr<Object>(), this);
    return Value(in.runtime().MakeObject<BoundMethod>(Value(self), fn));
  };
  if (name == "cycle") return method(&Loop::Cycle);
  if (name == "changed") return method(&Loop::Changed);
  return std::nullopt;
}

Value Loop::Call(Interpreter& in, const Arguments& args) {
  if (!stmt_.recursive) {
    throw TemplateError("The loop must have the 'recursive' marker to be called recursively.");
  }
  const Params params("loop", args, {"iterable"}, 1);
  return in.RunLoopAgain(stmt_, scope_, *params.Get(0), depth_ + 1);
}

void Loop::Clear() {
  scope_.reset();
  items_.clear();
  last_changed_.reset();
}

Value Loop::Cycle(Interpreter&, const Value& self, const Arguments& args) {
  if (args.positional.empty()) throw TemplateError("no items for cycling given");
  const auto& loop = static_cast<Loop&>(self.object());
  return args.positional[loop.index_ % args.positional.size()];
}

Value Loop::Changed(Interpreter& in, const Value& self, const Arguments& args) {
  auto& loop = static_cast<Loop&>(self.object());
  const Values& now = args.positional;
  bool same = loop.last_changed_ && loop.last_changed_->size() == now.size();
  for (size_t i = 0; same && i < now.size(); ++i) {
    same = Equal(in.runtime(), (*loop.last_changed_)[i], now[i]);
  }
  if (!same) loop.last_changed_ = now;
  return !same;
}

std::optional<Value> Cycler::Attribute(Interpreter& in, std::string_view name) {
  const auto method = [&](BoundMethod::Fn fn) {
    const std::shared_ptr<Object> self(std::shared_ptr<Object>(), this);
    return Value(in.runtime().MakeObject<BoundMethod>(Value(self), fn));
  };
  if (name == "current") return items_[at_];
  if (name == "next") {
    return method([](Interpreter&, const Value& self, const Arguments&) {
      auto& cycler = static_cast<Cycler&>(self.object());
      Value value = cycler.items_[cycler.at_];
      cycler.at_ = (cycler.at_ + 1) % cycler.items_.size();
      return value;
    });
  }
  if (name == "reset") {
    return method([](Interpreter&, const Value& self, const Arguments&) {
      static_cast<Cycler&>(self.object()).at_ = 0;
      return Value();
    });
  }
  return std::nullopt;
}

Value Joiner::Call(Interpreter&, const Arguments&) {
  return std::exchange(used_, true) ? separator_ : Value("");
}

namespace {

constexpr int64_t kMaxRange = 100'000;  // as Jinja's sandbox has it

Value Range(Interpreter& in, const Arguments& args) {
  const Params params("range", args, {"start", "stop", "step"}, 1);
  const bool has_start = params.Get(1) != nullptr;
  const int64_t start = has_start ? params.Integer(0, 0) : 0;
  const int64_t stop = params.Integer(has_start ? 1 : 0, 0);
  const int64_t step = params.Integer(2, 1);
  if (step == 0) throw TemplateError("range() arg 3 must not be zero");
  Values items;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (items.size() >= kMaxRange) {
      throw TemplateError("range too big: more than " + std::to_string(kMaxRange) + " items");
    }
    items.push_back(Value(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  const Value range = in.runtime().Make(std::move(items), List::Kind::kRange);
  range.list().range = {start, stop, step};
  return range;
}

// dict(mapping or pairs, name=value...)
Value MakeDict(Interpreter& in, const Arguments& args) {
  Runtime& rt = in.runtime();
  if (args.positional.size() > 1) throw TemplateError("dict() takes at most 1 argument");
  Value out = rt.Make(Dict());
  if (!args.positional.empty() && args.positional[0].IsDict()) {
    for (const auto& [key, value] : args.positional[0].dict().entries) {
      rt.SetEntry(out.dict(), key, value);
    }
  } else if (!args.positional.empty()) {
    for (const Value& pair : ItemsOf(rt, args.positional[0])) {
      const Values items = ItemsOf(rt, pair);
      if (items.size() != 2) throw TemplateError("dict() needs pairs");
      rt.SetEntry(out.dict(), items[0], items[1]);
    }
  }
  for (const auto& [name, value] : args.named) rt.SetEntry(out.dict(), Value(name), value);
  return out;
}

Value MakeNamespace(Interpreter& in, const Arguments& args) {
  const Value attributes = MakeDict(in, args);
  const auto space = in.runtime().MakeObject<Namespace>();
  for (const auto& [name, value] : attributes.dict().entries) {
    space->Set(std::string(Str(in.runtime(), name).view()), value);
  }
  return Value(space);
}

Value MakeCycler(Interpreter& in, const Arguments& args) {
  if (args.positional.empty()) throw TemplateError("at least one item has to be provided");
  return Value(in.runtime().MakeObject<Cycler>(args.positional));
}

Value MakeJoiner(Interpreter& in, const Arguments& args) {
  const Params params("joiner", args, {"sep"});
  return Value(in.runtime().MakeObject<Joiner>(params.Or(0, Value(", "))));
}

Value RaiseException(Interpreter& in, const Arguments& args) {
  const Params params("raise_exception", args, {"message"}, 1);
  throw TemplateError(std::string(Str(in.runtime(), *params.Get(0)).view()));
}

Value StrftimeNow(Interpreter& in, const Arguments& args) {
  const Params params("strftime_now", args, {"format"}, 1);
  const std::string_view format = params.String(0).view();
  in.runtime().PaySteps(format.size());
  in.runtime().PayBytes(12 * format.size());  // %c becomes 24
  return in.runtime().Make(Text(FormatTime(in.now(), format)));
}

}  // namespace

void AddGlobals(Interpreter& in) {
  const auto add = [&](const char* name, Function::Fn fn) {
    in.SetVariable(name, Value(in.runtime().MakeObject<Function>(fn)));
  };
  add("range", Range);
  add("dict", MakeDict);
  add("namespace", MakeNamespace);
  add("cycler", MakeCycler);
  add("joiner", MakeJoiner);
  add("raise_exception", RaiseException);
  add("strftime_now", StrftimeNow);
}

}  // namespace tokenizer::jinja
