// Filters for items, and filters for any value.
#include <algorithm>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/interpreter/builtins.h"
#include "tokenizer/jinja/values/arguments.h"
#include "tokenizer/jinja/values/operators.h"
#include "tokenizer/jinja/values/print.h"
#include "tokenizer/jinja/values/strings.h"

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
    for (const Text& step : Split(in.rt(), attribute->text(), ".", -1, false)) {
      const bool digits = !step.empty() && std::all_of(step.view().begin(), step.view().end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
      const auto number = digits ? ParseInt(step.view()) : std::nullopt;
      steps_.push_back(number ? Value(*number) : in.rt().Make(step));
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
Value CaseKey(Interpreter& in, Value key, bool case_sensitive) {
  if (case_sensitive || !key.IsString()) return key;
  return in.rt().Make(LowerText(in.rt(), key.text()));
}

// Stable; `reverse` keeps the order of equal items too.
void SortBy(Interpreter& in, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? Less(in.rt(), b.first, a.first) : Less(in.rt(), a.first, b.first);
  });
}

Value SortedBy(Interpreter& in, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  SortBy(in, keyed, reverse);
  Values out;
  for (auto& entry : keyed) out.push_back(std::move(entry.second));
  return in.rt().Make(std::move(out));
}

Value Sort(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("sort", args, {"reverse", "case_sensitive", "attribute"});
  Runtime& rt = in.rt();
  std::vector<AttributePath> paths;  // "a,b" sorts by a and then by b
  if (params.GetSome(2) != nullptr && params.Get(2)->IsString()) {
    for (Text& name : Split(rt, params.Get(2)->text(), ",", -1, false)) {
      const Value attribute = rt.Make(std::move(name));
      paths.emplace_back(in, &attribute);
    }
  } else {
    paths.emplace_back(in, params.Get(2));
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : ItemsOf(rt, input)) {
    Values keys;
    for (const auto& path : paths) keys.push_back(CaseKey(in, path.Follow(item), params.Flag(1)));
    keyed.emplace_back(rt.Make(std::move(keys)), std::move(item));
  }
  return SortedBy(in, std::move(keyed), params.Flag(0));
}

Value DictSort(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("dictsort", args, {"case_sensitive", "by", "reverse"});
  RequireDefined(input);
  if (!input.IsDict()) Fail("dictsort() needs a dictionary");
  const std::string_view by = params.Get(1) != nullptr ? params.String(1).view() : "key";
  if (by != "key" && by != "value") Fail("dictsort()'s by must be key or value");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : input.dict().entries) {
    keyed.emplace_back(CaseKey(in, by == "key" ? key : value, params.Flag(0)),
                       in.rt().Make(Values{key, value}, List::Kind::kTuple));
  }
  return SortedBy(in, std::move(keyed), params.Flag(2));
}

Value GroupBy(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  Runtime& rt = in.rt();
  const AttributePath path(in, params.Get(0), params.GetSome(1));
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : ItemsOf(rt, input)) {
    keyed.emplace_back(CaseKey(in, path.Follow(item), params.Flag(2)), std::move(item));
  }
  SortBy(in, keyed, false);
  Values groups;
  for (size_t begin = 0, end; begin < keyed.size(); begin = end) {
    Values members;
    for (end = begin; end < keyed.size() && Equal(rt, keyed[begin].first, keyed[end].first);
         ++end) {
      members.push_back(keyed[end].second);
    }
    const Value name = path.Follow(members[0]);
    groups.push_back(rt.Make(Values{name, rt.Make(std::move(members))}, List::Kind::kTuple));
  }
  return rt.Make(std::move(groups));
}

Value Unique(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("unique", args, {"case_sensitive", "attribute"});
  const AttributePath path(in, params.Get(1));
  Dict seen;
  Values out;
  for (Value& item : ItemsOf(in.rt(), input)) {
    const Value key = CaseKey(in, path.Follow(item), params.Flag(0));
    if (in.rt().FindEntry(seen, key) != nullptr) continue;
    in.rt().SetEntry(seen, key, Value());
    out.push_back(std::move(item));
  }
  return in.rt().Make(std::move(out), List::Kind::kGenerator);
}

template <bool largest>
Value Extreme(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params(largest ? "max" : "min", args, {"case_sensitive", "attribute"});
  const AttributePath path(in, params.Get(1));
  const Values items = ItemsOf(in.rt(), input);
  if (items.empty()) return MakeUndefined("No aggregated item, sequence was empty.");
  Value best = items[0], best_key = CaseKey(in, path.Follow(best), params.Flag(0));
  for (size_t i = 1; i < items.size(); ++i) {
    Value key = CaseKey(in, path.Follow(items[i]), params.Flag(0));
    if (largest ? Less(in.rt(), best_key, key) : Less(in.rt(), key, best_key)) {
      best = items[i];
      best_key = std::move(key);
    }
  }
  return best;
}

Value Sum(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("sum", args, {"attribute", "start"});
  const AttributePath path(in, params.Get(0));
  Value sum = params.Or(1, Value(0));
  for (Value& item : ItemsOf(in.rt(), input)) {
    sum = Calculate(in.rt(), BinaryOp::kAdd, sum, path.Follow(std::move(item)));
  }
  return sum;
}

Value JoinFilter(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("join", args, {"d", "attribute"});
  Runtime& rt = in.rt();
  const AttributePath path(in, params.Get(1));
  std::vector<Text> parts;
  for (Value& item : ItemsOf(rt, input)) {
    parts.push_back(Str(rt, path.Follow(std::move(item))));
    rt.PayBytes(sizeof(Text) + parts.back().Cost());
  }
  return rt.Make(JoinTexts(rt, Str(rt, params.Or(0, Value(""))), parts));
}

// The first argument of a filter that calls another by name; the rest is passed to that one.
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

Value Map(Interpreter& in, const Value& input, const Arguments& args) {
  Values out;
  if (!input.Truth()) return in.rt().Make(std::move(out), List::Kind::kGenerator);
  const auto attribute = std::ranges::find(args.named, "attribute", &NamedValue::first);
  if (args.positional.empty() && attribute != args.named.end()) {
    const Params params("map", args, {"attribute", "default"});
    const AttributePath path(in, params.Get(0), params.GetSome(1));
    for (Value& item : ItemsOf(in.rt(), input)) out.push_back(path.Follow(std::move(item)));
  } else {
    const std::string_view filter = NameIn(args, "map");
    const Arguments rest = WithoutFirst(args, 1);
    for (const Value& item : ItemsOf(in.rt(), input)) {
      in.rt().PaySteps();
      out.push_back(in.CallFilter(filter, item, rest));
    }
  }
  return in.rt().Make(std::move(out), List::Kind::kGenerator);
}

// select, reject, selectattr, rejectattr: the items for which a test gives `wanted`; without a
// test, the item's own truth value decides.
template <bool by_attribute, bool wanted>
Value Select(Interpreter& in, const Value& input, const Arguments& args) {
  constexpr std::string_view kName = by_attribute ? "selectattr" : "select";
  Values out;
  if (!input.Truth()) return in.rt().Make(std::move(out), List::Kind::kGenerator);
  if (by_attribute && args.positional.empty()) {
    Fail("Missing parameter for attribute name");
  }
  const AttributePath path(in, by_attribute ? &args.positional[0] : nullptr);
  const Arguments test_args = WithoutFirst(args, by_attribute ? 1 : 0);
  const bool has_test = !test_args.positional.empty();
  const std::string_view test = has_test ? NameIn(test_args, kName) : std::string_view();
  const Arguments rest = has_test ? WithoutFirst(test_args, 1) : Arguments();
  for (Value& item : ItemsOf(in.rt(), input)) {
    in.rt().PaySteps();
    const Value tested = path.Follow(item);
    const bool passes = has_test ? in.CallTest(test, tested, rest) : tested.Truth();
    if (passes == wanted) out.push_back(std::move(item));
  }
  return in.rt().Make(std::move(out), List::Kind::kGenerator);
}

Value ListFilter(Interpreter& in, const Value& input, const Arguments&) {
  return in.rt().Make(ItemsOf(in.rt(), input));
}

Value First(Interpreter& in, const Value& input, const Arguments&) {
  const Values items = ItemsOf(in.rt(), input);
  return items.empty() ? MakeUndefined("No first item, sequence was empty.") : items.front();
}

Value Last(Interpreter& in, const Value& input, const Arguments&) {
  if (input.IsList() && !input.list().HasLength()) Fail("'generator' object is not reversible");
  const Values items = ItemsOf(in.rt(), input);
  return items.empty() ? MakeUndefined("No last item, sequence was empty.") : items.back();
}

Value Reverse(Interpreter& in, const Value& input, const Arguments&) {
  if (input.IsString()) return Slice(in.rt(), input, Value(), Value(), Value(-1));
  Values items = ItemsOf(in.rt(), input);
  std::reverse(items.begin(), items.end());
  return in.rt().Make(std::move(items), List::Kind::kGenerator);
}

Value Length(Interpreter& in, const Value& input, const Arguments&) {
  return LengthOf(in.rt(), input);
}

Value Items(Interpreter& in, const Value& input, const Arguments&) {
  if (!input.IsDict() && !input.IsUndefined()) Fail("Can only get item pairs from a mapping.");
  Values out;
  if (input.IsDict()) {
    for (const auto& [key, value] : input.dict().entries) {
      out.push_back(in.rt().Make(Values{key, value}, List::Kind::kTuple));
    }
  }
  return in.rt().Make(std::move(out), List::Kind::kGenerator);
}

Value Batch(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("batch", args, {"linecount", "fill_with"}, 1);
  Runtime& rt = in.rt();
  const int64_t size = params.Integer(0, 0);
  if (size < 1) Fail("batch() needs a positive count");
  const Values items = ItemsOf(rt, input);
  Values out;
  for (size_t begin = 0; begin < items.size();) {
    const size_t n = std::min(items.size() - begin, static_cast<size_t>(size));
    const auto first = items.begin() + static_cast<ptrdiff_t>(begin);
    const Value batch = rt.Make(Values(first, first + static_cast<ptrdiff_t>(n)));
    for (size_t i = n; params.GetSome(1) != nullptr && i < static_cast<size_t>(size); ++i) {
      rt.Append(batch.list(), *params.Get(1));
    }
    out.push_back(batch);
    begin += n;
  }
  return rt.Make(std::move(out), List::Kind::kGenerator);
}

Value SliceFilter(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("slice", args, {"slices", "fill_with"}, 1);
  Runtime& rt = in.rt();
  if (params.Integer(0, 0) < 1) Fail("slice() needs a positive count");
  const auto slices = static_cast<size_t>(params.Integer(0, 0));
  const Values items = ItemsOf(rt, input);
  rt.PaySteps(slices);
  const size_t each = items.size() / slices, longer = items.size() % slices;
  Values out;
  auto at = items.begin();
  for (size_t i = 0; i < slices; ++i) {
    const auto n = static_cast<ptrdiff_t>(each + (i < longer ? 1 : 0));
    const Value slice = rt.Make(Values(at, at + n));
    if (params.GetSome(1) != nullptr && i >= longer) rt.Append(slice.list(), *params.Get(1));
    out.push_back(slice);
    at += n;
  }
  return rt.Make(std::move(out), List::Kind::kGenerator);
}

Value Default(Interpreter&, const Value& input, const Arguments& args) {
  const Params params("default", args, {"default_value", "boolean"});
  const bool absent = input.IsUndefined() || (params.Flag(1) && !input.Truth());
  return absent ? params.Or(0, Value("")) : input;
}

// Attribute access, but without a dictionary's items.
Value Attribute(Interpreter& in, const Value& input, const Arguments& args) {
  const std::string_view name = Params("attr", args, {"name"}, 1).String(0).view();
  if (input.IsDict() && FindContainerMethod(input, name) == nullptr) {
    in.rt().PayBytes(name.size());
    return MakeUndefined("'dict object' has no attribute '" + std::string(name) + "'");
  }
  return in.GetAttribute(input, name);
}

// clang-format off
constexpr Named<FilterFn> kSequenceFilters[] = {
    {"list", ListFilter}, {"items", Items}, {"attr", Attribute},
    {"d", Default}, {"default", Default}, {"count", Length}, {"length", Length},
    {"first", First}, {"last", Last}, {"min", Extreme<false>}, {"max", Extreme<true>},
    {"sum", Sum}, {"join", JoinFilter}, {"map", Map}, {"batch", Batch}, {"slice", SliceFilter},
    {"select", Select<false, true>}, {"reject", Select<false, false>},
    {"selectattr", Select<true, true>}, {"rejectattr", Select<true, false>},
    {"sort", Sort}, {"dictsort", DictSort}, {"groupby", GroupBy}, {"unique", Unique},
    {"reverse", Reverse},
};
// clang-format on

}  // namespace

FilterFn FindSequenceFilter(std::string_view name) { return FindNamed(kSequenceFilters, name); }

FilterFn FindFilter(std::string_view name) {
  const FilterFn found = FindSequenceFilter(name);
  return found != nullptr ? found : FindTextFilter(name);
}

}  // namespace tokenizer::jinja
