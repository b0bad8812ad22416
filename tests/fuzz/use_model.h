// Does with a model everything that a user would do, and measures the cost. Shared by the programs
// that make broken models.
#pragma once

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

// Opens a model, tokenizes texts, renders the chat template for a question, tokenizes the result,
// and generates four tokens, in a context of at most `most_context`. Keeps the project's own errors
// and rethrows any other error.
Outcome UseModel(const std::function<gguf::File()>& open, size_t most_context = SIZE_MAX);

struct Counts {
  size_t n = 0, refused = 0;
  double slowest = 0;
  size_t largest = 0;
  bool failed = false;
};

// The most that a model may take, besides the KV cache and its own size.
struct Limits {
  double seconds = 5;  // of processor time, under sanitizers, too
  size_t bytes = 64'000'000;
};
// For templates that make the most text allowed, a megabyte. Its tokens take 0.15 s, and 5 to 7 s
// under sanitizers, depending on the CPU. libFuzzer's hook in each allocation adds more.
inline constexpr Limits kLimitsOfTemplates = {.seconds = 20, .bytes = 270'000'000};
// The tokens that fit into this context, of at most 16 KB each, have two megabytes of text.
inline constexpr size_t kContextOfFuzzers = 128;

// Counts an outcome. If it exceeds the limits, or its error is more than one printable line, prints
// it with its name, sets `failed` and returns false.
bool Add(const Outcome& outcome, size_t model_bytes, const std::string& name, Counts& counts,
         const Limits& limits = {});
void Print(const std::string& what, const Counts& counts);

}  // namespace fuzz
