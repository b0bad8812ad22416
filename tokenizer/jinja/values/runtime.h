// The limits of one rendering, and the owner of its values.
//
// A template is untrusted: every operation pays in steps for time and in bytes for memory, and
// throws TemplateError when the budget is used up. No value is freed before the rendering ends, so
// lists that contain themselves and chains of a million lists are destroyed safely.
#ifndef PRONK_TOKENIZER_JINJA_VALUES_RUNTIME_H_
#define PRONK_TOKENIZER_JINJA_VALUES_RUNTIME_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

struct Limits {
  // Operations, about 0.1 us each: the slowest template takes about a second. A conversation of
  // 1000 messages takes 200,000 and 2 for each of its bytes.
  size_t steps = 5'000'000;
  size_t bytes = 128 << 20;  // all strings and lists made, including unused ones
  // Added for long conversations: enough to read and copy each of their bytes 16 times.
  size_t bytes_per_input_byte = 16, steps_per_input_byte = 2;
  int depth = 400;  // nesting of expressions, statements, macro calls and printed values
};

class Runtime {
 public:
  // interrupted: called regularly; true ends the rendering with tokenizer::Interrupted.
  explicit Runtime(const Limits& limits, std::function<bool()> interrupted = nullptr)
      : limits_(limits), interrupted_(std::move(interrupted)) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void GrantFor(size_t input_bytes) {
    limits_.bytes += input_bytes * limits_.bytes_per_input_byte;
    limits_.steps += input_bytes * limits_.steps_per_input_byte;
  }

  size_t steps() const { return steps_; }  // taken so far

  // Throw TemplateError when the limit is reached; PaySteps also Interrupted.
  void PaySteps(size_t n = 1);
  void PayBytes(size_t n);
  // For operations that scan n bytes as memcmp does: comparing, copies.
  void PayReading(size_t n) { PaySteps(n / 64); }
  // For operations on each character of n bytes.
  void PayCharacters(size_t n) { PaySteps(n / 8); }
  // What every filter, method and function pays before it is called, for the characters of the
  // strings that it is given. It pays itself only for what it makes, and for items of lists. Tests,
  // of which few look at more than a type, pay themselves.
  void PayForCall(const Value& input, const Arguments& args);

  Value Make(Text text);
  Value Make(Values items, List::Kind kind = List::Kind::kList);
  Value Make(Dict dict);
  template <typename T, typename... Args>
  std::shared_ptr<T> MakeObject(Args&&... args) {
    PayBytes(sizeof(T) + kOverhead);
    auto object = std::make_shared<T>(std::forward<Args>(args)...);
    objects_.push_back(object);
    return object;
  }
  // Changes to lists and dictionaries of this runtime.
  void Append(List& list, Value item);
  void SetEntry(Dict& dict, const Value& key, Value value);
  // Each of pairs whose first is a Value or a text.
  template <typename Entries>
  void SetEntries(Dict& dict, const Entries& entries) {
    for (const auto& [key, value] : entries) SetEntry(dict, Value(key), value);
  }
  // The value of a key or null, like Dict::Find.
  const Value* FindEntry(const Dict& dict, const Value& key);

  Nesting OneLevel() { return {depth_, limits_.depth}; }

 private:
  static constexpr size_t kOverhead = 64;    // bytes of a shared allocation, roughly
  static constexpr size_t kEntryCost = 160;  // bytes of a dictionary's entry: two values, an index

  Limits limits_;
  std::function<bool()> interrupted_;
  size_t steps_ = 0, bytes_ = 0;
  int depth_ = 0;
  std::vector<std::shared_ptr<List>> lists_;
  std::vector<std::shared_ptr<Dict>> dicts_;
  std::vector<std::shared_ptr<Object>> objects_;
};

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_RUNTIME_H_
