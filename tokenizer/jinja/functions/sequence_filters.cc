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
Value SortedBy(Interpreter& in, Vector<std::pair<Value, Value>> keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? Less(in.rt(), b.first, a.first) : Less(in.rt(), a.first, b.first);
  });
  Values out;
  for (auto& entry : keyed) out.push_back(std::move(entry.second));
  return in.rt().Make(std::move(out));
}

Value Sort(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("sort", args, {"reverse", "case_sensitive", "attribute"});
  const AttributePath path(in, params.Get(2));
  Vector<std::pair<Value, Value>> keyed;
  for (Value& item : ItemsOf(input)) {
    keyed.emplace_back(CaseKey(path.Follow(item), params.Flag(1)), std::move(item));
  }
  return SortedBy(in, std::move(keyed), params.Flag(0));
}

Value DictSort(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("dictsort", args, {"case_sensitive", "by", "reverse"});
  RequireDefined(input);
  if (!input.IsDict()) Fail("dictsort() needs a dictionary");
  const std::string_view by = params.Get(1) != nullptr ? params.String(1).view() : "key";
  if (by != "key" && by != "value") Fail("dictsort()'s by must be key or value");
  Vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : input.dict().entries) {
    keyed.emplace_back(CaseKey(by == "key" ? key : value, params.Flag(0)),
                       in.rt().Make(Values{key, value}, List::Kind::kTuple));
  }
  return SortedBy(in, std::move(keyed), params.Flag(2));
}

// min and max: the first item whose key is the least or the largest.
template <bool is_max>
Value Extreme(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params(is_max ? "max" : "min", args, {"case_sensitive", "attribute"});
  const AttributePath path(in, params.Get(1));
  Value best = MakeUndefined("No aggregated item, sequence was empty."), best_key;
  for (const Value& item : ItemsOf(input)) {
    Value key = CaseKey(path.Follow(item), params.Flag(0));
    const bool is_first = best.IsUndefined();
    if (!is_first && !(is_max ? Less(in.rt(), best_key, key) : Less(in.rt(), key, best_key)))
      continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Value Sum(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("sum", args, {"attribute", "start"});
  const AttributePath path(in, params.Get(0));
  Value sum = params.Or(1, Value(0));
  for (const Value& item : ItemsOf(input)) {
    sum = Calculate(in.rt(), BinaryOp::kAdd, sum, path.Follow(item));
  }
  return sum;
}

// Pairs of a key and the items that have it, sorted by keys.
Value GroupBy(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  Runtime& rt = in.rt();
  const AttributePath path(in, params.Get(0), params.GetSome(1));
  Vector<std::pair<Value, Value>> keyed;
  for (Value& item : ItemsOf(input)) {
    keyed.emplace_back(CaseKey(path.Follow(item), params.Flag(2)), std::move(item));
  }
  const Value sorted = SortedBy(in, keyed, false);
  Values groups, group;
  const auto end = [&] {
    if (group.empty()) return;
    Value key = path.Follow(group[0]);  // as the first item spells it
    const Value pair =
        rt.Make(Values{std::move(key), rt.Make(std::exchange(group, {}))}, List::Kind::kTuple);
    pair.list().is_group = true;
    groups.push_back(pair);
  };
  Value last;
  for (const Value& item : sorted.list().items) {
    Value key = CaseKey(path.Follow(item), params.Flag(2));
    if (!group.empty() && !Equal(rt, key, last)) end();
    last = std::move(key);
    group.push_back(item);
  }
  end();
  return rt.Make(std::move(groups));
}

// Lists of `linecount` items each; the last is filled up if a filling is given.
Value Batch(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("batch", args, {"linecount", "fill_with"}, 1);
  Runtime& rt = in.rt();
  const auto size = static_cast<size_t>(std::max<int64_t>(params.Integer(0, 1), 0));
  Values batches, batch;
  for (Value& item : ItemsOf(input)) {
    if (!batch.empty() && batch.size() == size)
      batches.push_back(rt.Make(std::exchange(batch, {})));
    batch.push_back(std::move(item));
  }
  if (!batch.empty()) {
    if (const Value* filling = params.GetSome(1); filling != nullptr && batch.size() < size) {
      batch.resize(size, *filling);
    }
    batches.push_back(rt.Make(std::move(batch)));
  }
  return rt.Make(std::move(batches), List::Kind::kGenerator);
}

// That many lists of about equal lengths.
Value SliceFilter(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("slice", args, {"slices", "fill_with"}, 1);
  Runtime& rt = in.rt();
  const Values items = ItemsOf(input);
  const int64_t n = params.Integer(0, 1);
  if (n <= 0) Fail("slice() needs a number of slices above 0");
  const size_t n_slices = static_cast<size_t>(n);
  const size_t least = items.size() / n_slices, n_longer = items.size() % n_slices;
  Values slices;
  for (size_t i = 0, at = 0; i < n_slices; ++i) {
    const size_t size = least + (i < n_longer ? 1 : 0);
    const auto begin = items.begin() + static_cast<ptrdiff_t>(at);
    Values slice(begin, begin + static_cast<ptrdiff_t>(size));
    at += size;
    if (const Value* filling = params.GetSome(1); filling != nullptr && i >= n_longer) {
      slice.push_back(*filling);
    }
    slices.push_back(rt.Make(std::move(slice)));
  }
  return rt.Make(std::move(slices), List::Kind::kGenerator);
}

// Some item. A prompt does not depend on chance here: which one it is follows from the template.
Value Random(Interpreter& in, const Value& input, const Arguments&) {
  const Values items = ItemsOf(input);
  if (items.empty()) return MakeUndefined("No random item, sequence was empty.");
  return items[in.rt().steps() % items.size()];
}

// An attribute or method, never an item.
Value Attr(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("attr", args, {"name"}, 1);
  const std::string_view name = params.String(0).view();
  const bool is_item = input.IsDict() && FindContainerMethod(input, name) == nullptr;
  return is_item ? MakeUndefined("there is no such attribute") : in.GetAttribute(input, name);
}

Value Unique(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("unique", args, {"case_sensitive", "attribute"});
  const AttributePath path(in, params.Get(1));
  Dict seen;
  Values out;
  for (Value& item : ItemsOf(input)) {
    const Value key = CaseKey(path.Follow(item), params.Flag(0));
    if (seen.Find(key) != nullptr) continue;
    seen.Set(key, Value());
    out.push_back(std::move(item));
  }
  return in.rt().Make(std::move(out), List::Kind::kGenerator);
}

Value JoinFilter(Interpreter& in, const Value& input, const Arguments& args) {
  const Params params("join", args, {"d", "attribute"});
  Runtime& rt = in.rt();
  const AttributePath path(in, params.Get(1));
  Vector<Text> parts;
  for (Value& item : ItemsOf(input)) {
    parts.push_back(Str(rt, path.Follow(std::move(item))));
  }
  return JoinTexts(Str(rt, params.Or(0, Value(""))), parts);
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
    for (Value& item : ItemsOf(input)) out.push_back(path.Follow(std::move(item)));
  } else {
    const std::string_view filter = NameIn(args, "map");
    const Arguments rest = WithoutFirst(args, 1);
    for (const Value& item : ItemsOf(input)) out.push_back(in.CallFilter(filter, item, rest));
  }
  return in.rt().Make(std::move(out), List::Kind::kGenerator);
}

// select, reject, selectattr, rejectattr: items whose test (without one: truth value) is `wanted`.
template <bool by_attribute, bool wanted>
Value Select(Interpreter& in, const Value& input, const Arguments& args) {
  constexpr std::string_view kName = by_attribute ? "selectattr" : "select";
  Values out;
  if (!input.Truth()) return in.rt().Make(std::move(out), List::Kind::kGenerator);
  if (by_attribute && args.positional.empty()) Fail("Missing parameter for attribute name");
  const AttributePath path(in, by_attribute ? &args.positional[0] : nullptr);
  const Arguments test_args = WithoutFirst(args, by_attribute ? 1 : 0);
  const bool has_test = !test_args.positional.empty();
  const std::string_view test = has_test ? NameIn(test_args, kName) : std::string_view();
  const Arguments rest = has_test ? WithoutFirst(test_args, 1) : Arguments();
  for (Value& item : ItemsOf(input)) {
    const Value tested = path.Follow(item);
    const bool passes = has_test ? in.CallTest(test, tested, rest) : tested.Truth();
    if (passes == wanted) out.push_back(std::move(item));
  }
  return in.rt().Make(std::move(out), List::Kind::kGenerator);
}

Value First(Interpreter&, const Value& input, const Arguments&) {
  const Values items = ItemsOf(input);
  return items.empty() ? MakeUndefined("No first item, sequence was empty.") : items.front();
}

Value Last(Interpreter&, const Value& input, const Arguments&) {
  if (input.IsList() && !input.list().HasLength()) Fail("'generator' object is not reversible");
  const Values items = ItemsOf(input);
  return items.empty() ? MakeUndefined("No last item, sequence was empty.") : items.back();
}

Value Reverse(Interpreter& in, const Value& input, const Arguments&) {
  if (input.IsString()) return Slice(in.rt(), input, Value(), Value(), Value(-1));
  Values items = ItemsOf(input);
  std::reverse(items.begin(), items.end());
  return in.rt().Make(std::move(items), List::Kind::kGenerator);
}

Value Length(Interpreter&, const Value& input, const Arguments&) { return LengthOf(input); }

Value Default(Interpreter&, const Value& input, const Arguments& args) {
  const Params params("default", args, {"default_value", "boolean"});
  const bool absent = input.IsUndefined() || (params.Flag(1) && !input.Truth());
  return absent ? params.Or(0, Value("")) : input;
}

// clang-format off
constexpr Named<FilterFn> kSequenceFilters[] = {
    {"list", ListFilter}, {"items", ItemsFilter}, {"d", Default}, {"default", Default},
    {"count", Length}, {"length", Length}, {"first", First}, {"last", Last},
    {"join", JoinFilter}, {"map", Map},
    {"select", Select<false, true>}, {"reject", Select<false, false>},
    {"selectattr", Select<true, true>}, {"rejectattr", Select<true, false>},
    {"sort", Sort}, {"dictsort", DictSort}, {"unique", Unique}, {"reverse", Reverse},
    {"min", Extreme<false>}, {"max", Extreme<true>}, {"sum", Sum}, {"groupby", GroupBy},
    {"batch", Batch}, {"slice", SliceFilter}, {"random", Random}, {"attr", Attr},
};
// clang-format on

}  // namespace

Value ListFilter(Interpreter& in, const Value& input, const Arguments&) {
  return in.rt().Make(ItemsOf(input));
}

Value ItemsFilter(Interpreter& in, const Value& input, const Arguments&) {
  if (!input.IsDict() && !input.IsUndefined()) Fail("Can only get item pairs from a mapping.");
  Values out;
  if (input.IsDict()) {
    for (const auto& [key, value] : input.dict().entries) {
      out.push_back(in.rt().Make(Values{key, value}, List::Kind::kTuple));
    }
  }
  return in.rt().Make(std::move(out));
}

FilterFn FindFilter(std::string_view name) {
  const FilterFn found = FindNamed(kSequenceFilters, name);
  return found != nullptr ? found : FindTextFilter(name);
}

}  // namespace tokenizer::jinja
