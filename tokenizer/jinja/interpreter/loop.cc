// The variable `loop`.
#include <algorithm>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/objects.h"
#include "tokenizer/jinja/values/operators.h"

namespace tokenizer::jinja {

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
