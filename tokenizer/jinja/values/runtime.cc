#include "tokenizer/jinja/values/runtime.h"

namespace tokenizer::jinja {

Runtime::~Runtime() {
  for (const auto& list : lists_) list->items.clear();
  for (const auto& dict : dicts_) dict->entries.clear();
  for (const auto& object : objects_) object->Clear();
}

void Runtime::PaySteps(size_t n) {
  if (n > limits_.steps - steps_) {
    Fail("the template does not come to an end (more than ", limits_.steps, " steps)");
  }
  constexpr size_t kTick = size_t{1} << 14;  // steps between two calls
  const size_t before = std::exchange(steps_, steps_ + n);
  if (interrupted_ && before / kTick != steps_ / kTick && interrupted_()) throw Interrupted();
}

void Runtime::PayBytes(size_t n) {
  if (n > limits_.bytes - bytes_) {
    Fail("the template uses too much memory (more than ", limits_.bytes >> 20, " MiB)");
  }
  bytes_ += n;
}

void Runtime::PayForCall(const Value& input, const Arguments& args) {
  const auto pay = [this](const Value& value) {
    if (value.IsString()) PayCharacters(value.view().size());
  };
  PaySteps();
  pay(input);
  for (const Value& arg : args.positional) pay(arg);
  for (const auto& [name, arg] : args.named) pay(arg);
}

Value Runtime::Make(Text text) {
  PayBytes(kOverhead + text.Cost());
  return Value(std::move(text));
}

Value Runtime::Make(Values items, List::Kind kind) {
  PaySteps(items.size());
  PayBytes(kOverhead + items.size() * sizeof(Value));
  lists_.push_back(std::make_shared<List>(List{.items = std::move(items), .kind = kind}));
  return lists_.back();
}

Value Runtime::Make(Dict dict) {
  PaySteps(dict.entries.size());
  PayBytes(kOverhead + dict.entries.size() * kEntryCost);
  dicts_.push_back(std::make_shared<Dict>(std::move(dict)));
  return dicts_.back();
}

void Runtime::Append(List& list, Value item) {
  PayBytes(2 * sizeof(Value));  // a growing vector takes up to twice its contents
  list.items.push_back(std::move(item));
}

void Runtime::SetEntry(Dict& dict, const Value& key, Value value) {
  PayBytes(kEntryCost + (key.IsString() ? key.view().size() : 0));
  dict.Set(key, std::move(value));
}

const Value* Runtime::FindEntry(const Dict& dict, const Value& key) {
  if (key.IsString()) PayReading(key.view().size());
  return dict.Find(key);
}

}  // namespace tokenizer::jinja
