// The methods of lists and dictionaries.
//
// Python's sandbox for templates allows only methods that change nothing. Templates for other
// engines append to lists and update dictionaries: allowed here for values of this rendering.
#include <algorithm>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"

namespace tokenizer::jinja {
namespace {

Value Count(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("count", args, {"value"}, 1);
  int64_t count = 0;
  for (const Value& item : self.list().items) {
    if (Equal(in.rt(), item, *params.Get(0))) ++count;
  }
  return count;
}

Value Index(Interpreter& in, const Value& self, const Arguments& args) {
  const Params params("index", args, {"value"}, 1);
  const Values& items = self.list().items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (Equal(in.rt(), items[i], *params.Get(0))) return static_cast<int64_t>(i);
  }
  Fail("the value is not in the list");
}

Value Extend(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("extend", args, {"iterable"}, 1);
  for (Value& item : ItemsOf(*params.Get(0))) self.list().items.push_back(std::move(item));
  return Value();
}

Value Append(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("append", args, {"object"}, 1);
  self.list().items.push_back(*params.Get(0));
  return Value();
}

Value Insert(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("insert", args, {"index", "object"}, 2);
  Values& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  int64_t at = std::clamp(params.Integer(0, 0), -size, size);
  if (at < 0) at += size;
  items.insert(items.begin() + at, *params.Get(1));
  return Value();
}

Value Pop(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("pop", args, {"index"});
  Values& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  int64_t at = params.Integer(0, -1);
  if (at < 0 && at >= -size) at += size;
  if (at < 0 || at >= size) Fail("pop index out of range");
  Value value = items[static_cast<size_t>(at)];
  items.erase(items.begin() + at);
  return value;
}

Value Get(Interpreter&, const Value& self, const Arguments& args) {
  const Params params("get", args, {"key", "default"}, 1);
  const Value* found = self.dict().Find(*params.Get(0));
  return found != nullptr ? *found : params.Or(1, Value());
}

Value DictValues(Interpreter& in, const Value& self, const Arguments&) {
  Values out;
  for (const auto& entry : self.dict().entries) out.push_back(entry.second);
  return in.rt().Make(std::move(out));
}

Value Update(Interpreter&, const Value& self, const Arguments& args) {
  if (args.positional.size() > 1) Fail("update() takes at most 1 argument");
  if (!args.positional.empty()) {
    if (!args.positional[0].IsDict()) Fail("update() needs a dictionary");
    const auto others = args.positional[0].dict().entries;  // a copy: it may be the same dictionary
    self.dict().SetAll(others);
  }
  self.dict().SetAll(args.named);
  return Value();
}

constexpr Named<FilterFn> kSequenceMethods[] = {{"count", Count}, {"index", Index}};
constexpr Named<FilterFn> kListMethods[] = {
    {"append", Append}, {"extend", Extend}, {"insert", Insert}, {"pop", Pop}};
constexpr Named<FilterFn> kDictMethods[] = {
    {"get", Get},       {"items", ItemsFilter}, {"keys", ListFilter},
    {"update", Update}, {"values", DictValues},
};

}  // namespace

FilterFn FindContainerMethod(const Value& self, std::string_view name) {
  if (self.IsDict()) return FindNamed(kDictMethods, name);
  if (!self.IsList() || !self.list().HasLength()) return nullptr;
  if (const FilterFn method = FindNamed(kSequenceMethods, name)) return method;
  return self.list().kind == List::Kind::kList ? FindNamed(kListMethods, name) : nullptr;
}

}  // namespace tokenizer::jinja
