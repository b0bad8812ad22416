// All that a user would do with a model, and what it took: what the programs share that make models
// to break it with.
#ifndef PRONK_TESTS_FUZZ_USE_MODEL_H_
#define PRONK_TESTS_FUZZ_USE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "gguf/file.h"

namespace fuzz {

struct Outcome {
  std::string error;  // empty: tokens were generated
  double seconds = 0;
  size_t bytes = 0;        // most memory held at once
  size_t state_bytes = 0;  // of that, keys and values
};

// Opens a model, cuts texts, renders the chat template for a question, reads what it makes, and
// generates four tokens, in a context of so many at most. An error is kept; what is no error of
// ours is thrown on.
Outcome UseModel(const std::function<gguf::File()>& open, size_t most_context = SIZE_MAX);

struct Counts {
  size_t n = 0, refused = 0;
  double slowest = 0;
  size_t largest = 0;
  bool failed = false;
};

// What every model may take at most, besides the KV cache and its own size.
inline constexpr double kMostSeconds = 5;  // of processor time, under sanitizers, too
// For fuzzers: it bounds what a template makes, megabytes of which take libFuzzer's hook in each
// allocation a minute.
inline constexpr size_t kContextOfFuzzers = 128;
inline constexpr size_t kMostBytes = 64'000'000;
inline constexpr size_t kMostBytesOfTemplates = 270'000'000;  // where a template makes all it may

// Counts an outcome. One that took more, or whose error is more than a printable line, is printed
// with its name, and then `failed` is set; returns false of such a one.
bool Add(const Outcome& outcome, size_t model_bytes, const std::string& name, Counts& counts,
         size_t most_bytes = kMostBytes);
void Print(const std::string& what, const Counts& counts);

}  // namespace fuzz

#endif  // PRONK_TESTS_FUZZ_USE_MODEL_H_
