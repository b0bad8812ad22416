// The methods of lists and dictionaries.
//
// Python's sandbox for templates allows only methods that change nothing. Templates for other
// engines append to lists and update dictionaries: that is allowed here, on values of this
// rendering.
#include <algorithm>
#include <utility>

#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/template_error.h"

namespace tokenizer::jinja {
namespace {

using NamedMethod = std::pair<std::string_view, MethodFn>;

Value Count(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("count", args, {"value"}, 1);
  int64_t count = 0;
  for (const Value& item : self.list().items) {
    if (Equal(in.runtime(), item, *params.Get(0))) ++count;
  }
  return count;
}

Value Index(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("index", args, {"value"}, 1);
  const Values& items = self.list().items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (Equal(in.runtime(), items[i], *params.Get(0))) return static_cast<int64_t>(i);
  }
  throw TemplateError("the value is not in the list");
}

Value Append(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("append", args, {"object"}, 1);
  in.runtime().Append(self.list(), *params.Get(0));
  return Value();
}

Value Extend(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("extend", args, {"iterable"}, 1);
  for (Value& item : ItemsOf(in.runtime(), *params.Get(0))) {
    in.runtime().Append(self.list(), std::move(item));
  }
  return Value();
}

Value Insert(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("insert", args, {"index", "object"}, 2);
  Values& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  int64_t at = std::clamp(params.Integer(0, 0), -size, size);
  if (at < 0) at += size;
  in.runtime().PaySteps(items.size());
  in.runtime().PayBytes(2 * sizeof(Value));
  items.insert(items.begin() + at, *params.Get(1));
  return Value();
}

Value Pop(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("pop", args, {"index"});
  Values& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  int64_t at = params.Integer(0, -1);
  if (at < 0 && at >= -size) at += size;
  if (at < 0 || at >= size) throw TemplateError("pop index out of range");
  in.runtime().PaySteps(items.size());
  Value value = items[static_cast<size_t>(at)];
  items.erase(items.begin() + at);
  return value;
}

Value CopyList(Interpreter& in, const Value& self, const Arguments&) {
  return in.runtime().Make(self.list().items);
}

Value Get(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("get", args, {"key", "default"}, 1);
  const Value* found = in.runtime().FindEntry(self.dict(), *params.Get(0));
  return found != nullptr ? *found : params.Or(1, Value());
}

enum class Part { kKeys, kValues, kItems };

template <Part part>
Value View(Interpreter& in, const Value& self, const Arguments&) {
  Runtime& rt = in.runtime();
  Values out;
  for (const auto& [key, value] : self.dict().entries) {
    if (part == Part::kKeys) {
      out.push_back(key);
    } else if (part == Part::kValues) {
      out.push_back(value);
    } else {
      out.push_back(rt.Make(Values{key, value}, List::Kind::kTuple));
    }
  }
  return rt.Make(std::move(out), part == Part::kKeys     ? List::Kind::kKeys
                                 : part == Part::kValues ? List::Kind::kValues
                                                         : List::Kind::kItems);
}

Value CopyDict(Interpreter& in, const Value& self, const Arguments&) {
  const Value copy = in.runtime().Make(Dict());
  for (const auto& [key, value] : self.dict().entries) {
    in.runtime().SetEntry(copy.dict(), key, value);
  }
  return copy;
}

Value Update(Interpreter& in, const Value& self, const Arguments& args) {
  if (args.positional.size() > 1) throw TemplateError("update() takes at most 1 argument");
  if (!args.positional.empty()) {
    if (!args.positional[0].IsDict()) throw TemplateError("update() needs a dictionary");
    in.runtime().PaySteps(args.positional[0].dict().entries.size());
    const auto others = args.positional[0].dict().entries;  // a copy: it may be the same dictionary
    for (const auto& [key, value] : others) {
      in.runtime().SetEntry(self.dict(), key, value);
    }
  }
  for (const auto& [name, value] : args.named) {
    in.runtime().SetEntry(self.dict(), Value(name), value);
  }
  return Value();
}

constexpr NamedMethod kSequenceMethods[] = {{"count", Count}, {"index", Index}};
constexpr NamedMethod kListMethods[] = {
    {"append", Append}, {"copy", CopyList}, {"extend", Extend}, {"insert", Insert}, {"pop", Pop}};
constexpr NamedMethod kDictMethods[] = {
    {"copy", CopyDict},          {"get", Get},       {"items", View<Part::kItems>},
    {"keys", View<Part::kKeys>}, {"update", Update}, {"values", View<Part::kValues>},
};

}  // namespace

MethodFn FindContainerMethod(const Value& self, std::string_view name) {
  if (self.IsDict()) return FindNamed(kDictMethods, name);
  if (!self.IsList() || !self.list().CanIndex()) return nullptr;
  if (const MethodFn method = FindNamed(kSequenceMethods, name)) return method;
  return self.list().kind == List::Kind::kList ? FindNamed(kListMethods, name) : nullptr;
}

}  // namespace tokenizer::jinja
