#include "tokenizer/jinja/values/runtime.h"

#include <algorithm>

namespace tokenizer::jinja {

thread_local Runtime* Runtime::current_ = nullptr;

Runtime::Runtime(const Limits& limits, std::function<bool()> should_stop)
    : outer_(std::exchange(current_, this)),
      limits_(limits),
      should_stop_(std::move(should_stop)) {}

Runtime::~Runtime() {
  for (const auto& list : lists_) list->items.clear();
  for (const auto& dict : dicts_) dict->entries.clear();
  for (const auto& object : objects_) object->Clear();
  current_ = outer_;
}

void Runtime::Work(size_t bytes) {
  if (bytes > limits_.steps * kStep - work_) {
    Fail("the template does not come to an end (more than ", limits_.steps, " steps)");
  }
  constexpr size_t kTick = kStep << 14;  // between two calls
  const size_t before = std::exchange(work_, work_ + bytes);
  if (should_stop_ && before / kTick != work_ / kTick && should_stop_()) throw Interrupted();
}

void ChargeBytes(size_t n) {
  Runtime* const rt = Runtime::current_;
  if (rt == nullptr) return;
  if (rt->bytes_ > rt->limits_.bytes || n > rt->limits_.bytes - rt->bytes_) {
    Fail("the template uses too much memory (more than ", rt->limits_.bytes >> 20, " MiB)");
  }
  constexpr size_t kSearch = 16;  // places that are tried
  rt->Work(n + kSearch);
  rt->bytes_ += n;
}

void ReturnBytes(size_t n) noexcept {
  Runtime* const rt = Runtime::current_;
  if (rt != nullptr) rt->bytes_ -= std::min(n, rt->bytes_);  // some memory is older
}

void Runtime::Read(const Value& value) {
  constexpr size_t kCharacter = 8, kItem = 3;  // bytes that are written in the time of each
  size_t work = kStep;
  if (value.IsString()) work += value.text().Cost() * kCharacter;
  if (value.IsList()) work += value.list().items.size() * kItem;
  if (value.IsDict()) work += value.dict().entries.size() * kItem;
  Work(work);
}

void Runtime::Read(const Arguments& args) {
  for (const Value& arg : args.positional) Read(arg);
  for (const auto& [name, arg] : args.named) Read(arg);
}

Value Runtime::Make(Values items, List::Kind kind) {
  lists_.push_back(MakeShared<List>(List{.items = std::move(items), .kind = kind}));
  return lists_.back();
}

Value Runtime::Make(Dict dict) {
  dicts_.push_back(MakeShared<Dict>(std::move(dict)));
  return dicts_.back();
}

}  // namespace tokenizer::jinja
