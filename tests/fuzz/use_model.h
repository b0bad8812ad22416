// All that a user would do with a model, and what it took: what the programs share that make models
// to break it with.
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

// Opens a model, cuts texts, renders the chat template for a question, reads what it makes, and
// generates four tokens, in a context of `most_context` at most. An error of ours is kept; others
// are rethrown.
Outcome UseModel(const std::function<gguf::File()>& open, size_t most_context = SIZE_MAX);

struct Counts {
  size_t n = 0, refused = 0;
  double slowest = 0;
  size_t largest = 0;
  bool failed = false;
};

// What a model may take at most, besides the KV cache and its own size.
struct Limits {
  double seconds = 5;  // of processor time, under sanitizers, too
  size_t bytes = 64'000'000;
};
// Where a template makes all it may: a megabyte of text, whose tokens take 0.15 s, under sanitizers
// 5 to 7 s, depending on the CPU, and with libFuzzer's hook in each allocation more.
inline constexpr Limits kLimitsOfTemplates = {.seconds = 20, .bytes = 270'000'000};
// The tokens that fit into this context, 16 KB each at most, have two megabytes.
inline constexpr size_t kContextOfFuzzers = 128;

// Counts an outcome. One that took more, or whose error is more than a printable line, is printed
// with its name, and then `failed` is set; returns false of such a one.
bool Add(const Outcome& outcome, size_t model_bytes, const std::string& name, Counts& counts,
         const Limits& limits = {});
void Print(const std::string& what, const Counts& counts);

}  // namespace fuzz
