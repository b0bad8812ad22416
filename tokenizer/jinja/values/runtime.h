// The limits of one rendering, and the owner of its values.
//
// A template is untrusted. It pays in two places: the allocator of values (text.h) charges bytes,
// and steps for writing them; the evaluator charges steps for each expression and statement, and
// for reading the arguments of an operator, filter, test, method or function. TemplateError ends a
// rendering that used up its budget. Lists, dictionaries and objects live until the rendering ends,
// so lists that contain themselves and chains of a million lists are destroyed safely.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

struct Limits {
  // A step takes about 0.1 us, so the slowest template takes about a second. A conversation of
  // 1000 messages takes 200,000 steps, and 2 for each of its bytes.
  size_t steps = 4'000'000;
  size_t bytes = 128 << 20;  // at a time
  // Added for long conversations: enough to read and copy each of their bytes 16 times.
  size_t bytes_per_input_byte = 16, steps_per_input_byte = 2;
  int depth = 400;  // nesting of expressions, statements, macro calls and printed values
};

class Runtime {
 public:
  // Charges this thread's allocations from now on. should_stop: called regularly; true ends the
  // rendering with tokenizer::Interrupted.
  explicit Runtime(const Limits& limits, std::function<bool()> should_stop = nullptr);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void GrantFor(size_t input_bytes) {
    limits_.bytes += input_bytes * limits_.bytes_per_input_byte;
    limits_.steps += input_bytes * limits_.steps_per_input_byte;
  }

  size_t steps() const { return work_ / kStep; }  // steps so far

  // One step, and steps for looking at all of the value's characters or items. Throws TemplateError
  // when the limit is reached, or Interrupted.
  void Read(const Value& value);
  void Read(const Arguments& args);
  void Step(size_t n = 1) { Work(n * kStep); }
  // Counts a step of the rendering that runs on this thread, if there is one.
  static void StepOfCurrent() {
    if (current_ != nullptr) current_->Step();
  }

  Value Make(Values items, List::Kind kind = List::Kind::kList);
  Value Make(Dict dict);
  template <typename T, typename... Args>
  std::shared_ptr<T> MakeObject(Args&&... args) {
    auto object = MakeShared<T>(std::forward<Args>(args)...);
    objects_.push_back(object);
    return object;
  }

  Nesting OneLevel() { return {depth_, limits_.depth}; }

 private:
  friend void ChargeBytes(size_t n);
  friend void ReturnBytes(size_t n) noexcept;

  static constexpr size_t kStep = 64;  // bytes that are written in the time of a step
  void Work(size_t bytes);

  static thread_local Runtime* current_;
  Runtime* const outer_;
  Limits limits_;
  std::function<bool()> should_stop_;
  size_t work_ = 0, bytes_ = 0;
  int depth_ = 0;
  Vector<std::shared_ptr<List>> lists_;
  Vector<std::shared_ptr<Dict>> dicts_;
  Vector<std::shared_ptr<Object>> objects_;
};

}  // namespace tokenizer::jinja
