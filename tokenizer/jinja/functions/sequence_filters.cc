// Filters for items, and filters for any value.
#include <algorithm>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

// "a.b.0" as the path a, b and 0 into a value; a number is one step, None is none.
class AttributePath {
 public:
  AttributePath(Interpreter& in, const Value* attribute, const Value* fallback = nullptr)
      : in_(in), fallback_(fallback) {
    if (attribute == nullptr || attribute->IsNone()) return;
    if (!attribute->IsString()) {
      steps_.push_back(*attribute);
      return;
    }
    for (const Text& step : Split(attribute->text(), ".", -1, false)) {
      const bool digits = step.view().find_first_not_of("0123456789") == kNotFound;
      const auto number = digits ? ParseInt(step.view()) : std::nullopt;
      steps_.push_back(number ? Value(*number) : Value(step));
    }
  }

  Value Follow(Value value) const {
    for (const Value& step : steps_) {
      value = in_.GetItem(value, step);
      if (value.IsUndefined() && fallback_ != nullptr) value = *fallback_;
    }
    return value;
  }

 private:
  Interpreter& in_;
  const Value* fallback_;
  Values steps_;
};

// Strings are compared case-insensitively unless case_sensitive is set.
Value CaseKey(Value key, bool case_sensitive) {
  if (case_sensitive || !key.IsString()) return key;
  return LowerText(key.text());
}

// Stable; `reverse` keeps the order of equal items too.
Value SortedBy(Runtime& rt, Vector<std::pair<Value, Value>> keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? Less(rt, b.first, a.first) : Less(rt, a.first, b.first);
  });
  Values out;
  for (auto& entry : keyed) out.push_back(std::move(entry.second));
  return rt.Make(std::move(out));
}

// Sorts by an attribute, or by several, as in "a,b".
Value Sort(const BuiltinCall& call) {
  Vector<AttributePath> paths;
  const Value* const attribute = call.Get(2);
  if (attribute != nullptr && attribute->IsString()) {
    for (const Text& one : Split(attribute->text(), ",", -1, false)) {
      const Value name(one);
      paths.emplace_back(call.in, &name);
    }
  } else {
    paths.emplace_back(call.in, attribute);
  }
  Vector<std::pair<Value, Value>> keyed;
  for (Value& item : ItemsOf(call.self)) {
    Values key;
    for (const AttributePath& path : paths) key.push_back(CaseKey(path.Follow(item), call.Flag(1)));
    keyed.emplace_back(call.rt.Make(std::move(key)), std::move(item));
  }
  return SortedBy(call.rt, std::move(keyed), call.Flag(0));
}

Value DictSort(const BuiltinCall& call) {
  RequireDefined(call.self);
  if (!call.self.IsDict()) Fail("dictsort() needs a dictionary");
  const std::string_view by = call.Get(1) != nullptr ? call.String(1).view() : "key";
  if (by != "key" && by != "value") Fail("dictsort()'s by must be key or value");
  Vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : call.self.dict().entries) {
    keyed.emplace_back(CaseKey(by == "key" ? key : value, call.Flag(0)),
                       call.rt.Make(Values{key, value}, List::Kind::kTuple));
  }
  return SortedBy(call.rt, std::move(keyed), call.Flag(2));
}

// min and max: the first item whose key is the least or the largest.
template <bool is_max>
Value Extreme(const BuiltinCall& call) {
  const AttributePath path(call.in, call.Get(1));
  Value best = MakeUndefined("No aggregated item, sequence was empty."), best_key;
  for (const Value& item : ItemsOf(call.self)) {
    Value key = CaseKey(path.Follow(item), call.Flag(0));
    const bool is_first = best.IsUndefined();
    if (!is_first && !(is_max ? Less(call.rt, best_key, key) : Less(call.rt, key, best_key)))
      continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Value Sum(const BuiltinCall& call) {
  const AttributePath path(call.in, call.Get(0));
  Value sum = call.Or(1, Value(0));
  for (const Value& item : ItemsOf(call.self)) {
    sum = Calculate(call.rt, BinaryOp::kAdd, sum, path.Follow(item));
  }
  return sum;
}

// Pairs of a key and the items that have it, sorted by keys.
Value GroupBy(const BuiltinCall& call) {
  const AttributePath path(call.in, call.Get(0), call.GetSome(1));
  Vector<std::pair<Value, Value>> keyed;
  for (Value& item : ItemsOf(call.self)) {
    keyed.emplace_back(CaseKey(path.Follow(item), call.Flag(2)), std::move(item));
  }
  const Value sorted = SortedBy(call.rt, keyed, false);
  Values groups, group;
  const auto end = [&] {
    if (group.empty()) return;
    Value key = path.Follow(group[0]);  // the first item's spelling
    const Value pair = call.rt.Make(Values{std::move(key), call.rt.Make(std::exchange(group, {}))},
                                    List::Kind::kTuple);
    pair.list().is_group = true;
    groups.push_back(pair);
  };
  Value last;
  for (const Value& item : sorted.list().items) {
    Value key = CaseKey(path.Follow(item), call.Flag(2));
    if (!group.empty() && !Equal(call.rt, key, last)) end();
    last = std::move(key);
    group.push_back(item);
  }
  end();
  return call.rt.Make(std::move(groups));
}

// Lists of `linecount` items each; the last is filled up if a filling is given.
Value Batch(const BuiltinCall& call) {
  const auto size = static_cast<size_t>(std::max<int64_t>(call.Integer(0, 1), 0));
  Values batches, batch;
  for (Value& item : ItemsOf(call.self)) {
    if (!batch.empty() && batch.size() == size)
      batches.push_back(call.rt.Make(std::exchange(batch, {})));
    batch.push_back(std::move(item));
  }
  if (!batch.empty()) {
    if (const Value* filling = call.GetSome(1); filling != nullptr && batch.size() < size) {
      batch.resize(size, *filling);
    }
    batches.push_back(call.rt.Make(std::move(batch)));
  }
  return call.rt.Make(std::move(batches), List::Kind::kGenerator);
}

// A number of lists of about equal lengths.
Value SliceFilter(const BuiltinCall& call) {
  const Values items = ItemsOf(call.self);
  const int64_t n = call.Integer(0, 1);
  if (n <= 0) Fail("slice() needs a number of slices above 0");
  const size_t n_slices = static_cast<size_t>(n);
  const size_t least = items.size() / n_slices, n_longer = items.size() % n_slices;
  Values slices;
  for (size_t i = 0, at = 0; i < n_slices; ++i) {
    const size_t size = least + (i < n_longer ? 1 : 0);
    const auto begin = items.begin() + static_cast<ptrdiff_t>(at);
    Values slice(begin, begin + static_cast<ptrdiff_t>(size));
    at += size;
    if (const Value* filling = call.GetSome(1); filling != nullptr && i >= n_longer) {
      slice.push_back(*filling);
    }
    slices.push_back(call.rt.Make(std::move(slice)));
  }
  return call.rt.Make(std::move(slices), List::Kind::kGenerator);
}

// An arbitrary item, which depends only on the template: a prompt must not depend on chance.
Value Random(const BuiltinCall& call) {
  const Values items = ItemsOf(call.self);
  if (items.empty()) return MakeUndefined("No random item, sequence was empty.");
  return items[call.rt.steps() % items.size()];
}

// An attribute or method, never an item.
Value Attr(const BuiltinCall& call) {
  const std::string_view name = call.String(0).view();
  const bool is_item = call.self.IsDict() && FindMethod(call.self, name) == nullptr;
  return is_item ? MakeUndefined("there is no such attribute")
                 : call.in.GetAttribute(call.self, name);
}

Value Unique(const BuiltinCall& call) {
  const AttributePath path(call.in, call.Get(1));
  Dict seen;
  Values out;
  for (Value& item : ItemsOf(call.self)) {
    const Value key = CaseKey(path.Follow(item), call.Flag(0));
    if (seen.Find(key) != nullptr) continue;
    seen.Set(key, Value());
    out.push_back(std::move(item));
  }
  return call.rt.Make(std::move(out), List::Kind::kGenerator);
}

Value JoinFilter(const BuiltinCall& call) {
  const AttributePath path(call.in, call.Get(1));
  Vector<Text> parts;
  for (Value& item : ItemsOf(call.self)) {
    parts.push_back(Str(call.rt, path.Follow(std::move(item))));
  }
  return JoinTexts(Str(call.rt, call.Or(0, Value(""))), parts);
}

// The first argument of a filter that calls another by name; the other arguments are passed on.
std::string_view NameIn(const Arguments& args, std::string_view filter) {
  if (args.positional.empty()) Fail(filter, "() lacks the name of a filter or test");
  const Value& name = args.positional[0];
  RequireDefined(name);
  if (!name.IsString()) Fail(filter, "()'s name must be a string");
  return name.view();
}

Arguments WithoutFirst(const Arguments& args, size_t n) {
  Arguments out;
  out.positional.assign(args.positional.begin() + static_cast<ptrdiff_t>(n), args.positional.end());
  out.named = args.named;
  return out;
}

Value Map(const BuiltinCall& call) {
  Values out;
  if (!call.self.Truth()) return call.rt.Make(std::move(out), List::Kind::kGenerator);
  const auto attribute = std::ranges::find(call.args.named, "attribute", &NamedValue::first);
  if (call.args.positional.empty() && attribute != call.args.named.end()) {
    const BuiltinCall named(call.in, {Owner::kFilter, "map", Map, "attribute | default"}, call.self,
                            call.args);
    const AttributePath path(call.in, named.Get(0), named.GetSome(1));
    for (Value& item : ItemsOf(call.self)) out.push_back(path.Follow(std::move(item)));
  } else {
    const std::string_view filter = NameIn(call.args, "map");
    const Arguments rest = WithoutFirst(call.args, 1);
    for (const Value& item : ItemsOf(call.self))
      out.push_back(call.in.CallFilter(filter, item, rest));
  }
  return call.rt.Make(std::move(out), List::Kind::kGenerator);
}

// select, reject, selectattr, rejectattr: items whose test (without one: truth value) is `wanted`.
template <bool by_attribute, bool wanted>
Value Select(const BuiltinCall& call) {
  constexpr std::string_view kName = by_attribute ? "selectattr" : "select";
  Values out;
  if (!call.self.Truth()) return call.rt.Make(std::move(out), List::Kind::kGenerator);
  if (by_attribute && call.args.positional.empty()) Fail("Missing parameter for attribute name");
  const AttributePath path(call.in, by_attribute ? &call.args.positional[0] : nullptr);
  const Arguments test_args = WithoutFirst(call.args, by_attribute ? 1 : 0);
  const bool has_test = !test_args.positional.empty();
  const std::string_view test = has_test ? NameIn(test_args, kName) : std::string_view();
  const Arguments rest = has_test ? WithoutFirst(test_args, 1) : Arguments();
  for (Value& item : ItemsOf(call.self)) {
    const Value tested = path.Follow(item);
    const bool passes = has_test ? call.in.CallTest(test, tested, rest) : tested.Truth();
    if (passes == wanted) out.push_back(std::move(item));
  }
  return call.rt.Make(std::move(out), List::Kind::kGenerator);
}

Value First(const BuiltinCall& call) {
  const Values items = ItemsOf(call.self);
  return items.empty() ? MakeUndefined("No first item, sequence was empty.") : items.front();
}

Value Last(const BuiltinCall& call) {
  if (call.self.IsList() && !call.self.list().HasLength())
    Fail("'generator' object is not reversible");
  const Values items = ItemsOf(call.self);
  return items.empty() ? MakeUndefined("No last item, sequence was empty.") : items.back();
}

Value Reverse(const BuiltinCall& call) {
  if (call.self.IsString()) return Slice(call.rt, call.self, Value(), Value(), Value(-1));
  Values items = ItemsOf(call.self);
  std::reverse(items.begin(), items.end());
  return call.rt.Make(std::move(items), List::Kind::kGenerator);
}

Value Length(const BuiltinCall& call) { return LengthOf(call.self); }

Value Default(const BuiltinCall& call) {
  const bool absent = call.self.IsUndefined() || (call.Flag(1) && !call.self.Truth());
  return absent ? call.Or(0, Value("")) : call.self;
}

// clang-format off
constexpr Builtin kSequenceFilters[] = {
    {Owner::kFilter, "list", ListFilter},
    {Owner::kFilter, "items", ItemsFilter},
    {Owner::kFilter, "default", Default, "| default_value boolean"},
    {Owner::kFilter, "d", Default, "| default_value boolean"},
    {Owner::kFilter, "count", Length},
    {Owner::kFilter, "length", Length},
    {Owner::kFilter, "first", First},
    {Owner::kFilter, "last", Last},
    {Owner::kFilter, "random", Random},
    {Owner::kFilter, "reverse", Reverse},
    {Owner::kFilter, "join", JoinFilter, "| d attribute"},
    {Owner::kFilter, "map", Map, "*"},
    {Owner::kFilter, "select", Select<false, true>, "*"},
    {Owner::kFilter, "reject", Select<false, false>, "*"},
    {Owner::kFilter, "selectattr", Select<true, true>, "*"},
    {Owner::kFilter, "rejectattr", Select<true, false>, "*"},
    {Owner::kFilter, "sort", Sort, "| reverse case_sensitive attribute"},
    {Owner::kFilter, "dictsort", DictSort, "| case_sensitive by reverse"},
    {Owner::kFilter, "unique", Unique, "| case_sensitive attribute"},
    {Owner::kFilter, "min", Extreme<false>, "| case_sensitive attribute"},
    {Owner::kFilter, "max", Extreme<true>, "| case_sensitive attribute"},
    {Owner::kFilter, "sum", Sum, "| attribute start"},
    {Owner::kFilter, "groupby", GroupBy, "attribute | default case_sensitive"},
    {Owner::kFilter, "batch", Batch, "linecount | fill_with"},
    {Owner::kFilter, "slice", SliceFilter, "slices | fill_with"},
    {Owner::kFilter, "attr", Attr, "name"},
};
// clang-format on

}  // namespace

Value ListFilter(const BuiltinCall& call) { return call.rt.Make(ItemsOf(call.self)); }

Value ItemsFilter(const BuiltinCall& call) {
  if (!call.self.IsDict() && !call.self.IsUndefined())
    Fail("Can only get item pairs from a mapping.");
  Values out;
  if (call.self.IsDict()) {
    for (const auto& [key, value] : call.self.dict().entries) {
      out.push_back(call.rt.Make(Values{key, value}, List::Kind::kTuple));
    }
  }
  return call.rt.Make(std::move(out));
}

std::span<const Builtin> SequenceFilters() { return kSequenceFilters; }

}  // namespace tokenizer::jinja
