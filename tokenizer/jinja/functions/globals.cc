// Functions that a template can call without an object: range, namespace, strftime_now and so on.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/interpreter/interpreter.h"
#include "tokenizer/jinja/interpreter/objects.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

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

// joiner(", "): empty on the first call, the separator on later ones.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view TypeName() const override { return "Joiner"; }
  bool IsCallable() const override { return true; }
  Value Call(Interpreter&, const Arguments&) override {
    return std::exchange(used_, true) ? separator_ : Value("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

constexpr size_t kMaxDateFormat = 1000;
constexpr int64_t kMaxRange = 100'000;  // as in Jinja's sandbox

Value MakeRange(Interpreter& in, const Arguments& args) {
  const Params params("range", args, {"start", "stop", "step"}, 1);
  const bool has_start = params.Get(1) != nullptr;
  const int64_t start = has_start ? params.Integer(0, 0) : 0;
  const int64_t stop = params.Integer(has_start ? 1 : 0, 0);
  const int64_t step = params.Integer(2, 1);
  if (step == 0) Fail("range() arg 3 must not be zero");
  Values items;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (items.size() >= kMaxRange) Fail("range too big: more than ", kMaxRange, " items");
    items.push_back(Value(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return in.rt().Make(std::move(items));
}

// dict(mapping or pairs, name=value...)
Value MakeDict(Interpreter& in, const Arguments& args) {
  Runtime& rt = in.rt();
  if (args.positional.size() > 1) Fail("dict() takes at most 1 argument");
  Value out = rt.Make(Dict());
  if (!args.positional.empty() && args.positional[0].IsDict()) {
    out.dict().SetAll(args.positional[0].dict().entries);
  } else if (!args.positional.empty()) {
    for (const Value& pair : ItemsOf(args.positional[0])) {
      const Values items = ItemsOf(pair);
      if (items.size() != 2) Fail("dict() needs pairs");
      out.dict().Set(items[0], items[1]);
    }
  }
  out.dict().SetAll(args.named);
  return out;
}

Value MakeNamespace(Interpreter& in, const Arguments& args) {
  const Value attributes = MakeDict(in, args);
  const auto space = in.rt().MakeObject<Namespace>();
  for (const auto& [name, value] : attributes.dict().entries) {
    space->Set(Str(in.rt(), name).view(), value);
  }
  return Value(space);
}

Value MakeJoiner(Interpreter& in, const Arguments& args) {
  const Params params("joiner", args, {"sep"});
  return Value(in.rt().MakeObject<Joiner>(params.Or(0, Value(", "))));
}

Value RaiseException(Interpreter& in, const Arguments& args) {
  const Params params("raise_exception", args, {"message"}, 1);
  Fail(Str(in.rt(), *params.Get(0)).view());
}

Value StrftimeNow(Interpreter& in, const Arguments& args) {
  const Params params("strftime_now", args, {"format"}, 1);
  const std::string_view format = params.String(0).view();
  if (format.size() > kMaxDateFormat) Fail("a date's format of more than 1000 bytes");
  return FormatTime(in.now(), format);
}

}  // namespace

void AddGlobals(Interpreter& in) {
  const auto add = [&](const char* name, Function::Fn fn) {
    in.SetVariable(name, Value(in.rt().MakeObject<Function>(fn)));
  };
  add("range", MakeRange);
  add("dict", MakeDict);
  add("namespace", MakeNamespace);
  add("joiner", MakeJoiner);
  add("raise_exception", RaiseException);
  add("strftime_now", StrftimeNow);
}

}  // namespace tokenizer::jinja
