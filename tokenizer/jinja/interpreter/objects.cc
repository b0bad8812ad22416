#include "tokenizer/jinja/interpreter/objects.h"

#include <chrono>
#include <string>

#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
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
  if (name == "cycle") return BoundMethod::Of(in, *this, &Loop::Cycle);
  if (name == "changed") return BoundMethod::Of(in, *this, &Loop::Changed);
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

}  // namespace tokenizer::jinja
