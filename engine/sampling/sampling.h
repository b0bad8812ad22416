// How the next token is chosen: the settings of applications, flags and files. A part of
// <pronk/pronk.h>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pronk {

// Where a value comes from.
enum class Origin : std::uint8_t { kDefault, kFile, kCaller };

// A default value of a setting.
template <class T>
struct Default {
  explicit Default(T given) : value(std::move(given)) {}
  T value;
};

// A value that an application may set, by assigning to it. The model's file may recommend another
// value for one that is not set.
template <class T>
struct Value {
  Value(T given)  // NOLINT(google-explicit-constructor): the setting is used as its value
      : value(std::move(given)), origin(Origin::kCaller) {}
  Value(Default<T> given)  // NOLINT(google-explicit-constructor): only in the declarations below
      : value(std::move(given.value)) {}
  template <class Item,
            class = std::enable_if_t<std::is_constructible_v<T, std::initializer_list<Item>>>>
  Value& operator=(std::initializer_list<Item> items) {
    return *this = Value(T(items));
  }
  operator const T&() const { return value; }  // NOLINT(google-explicit-constructor): as above
  bool is_set() const { return origin == Origin::kCaller; }

  T value;
  Origin origin = Origin::kDefault;
};

// The steps of sampling. By default they run in this order, which is llama.cpp's.
enum class SamplerStep : std::uint8_t {
  kPenalties,
  kDry,
  kTopNSigma,
  kTopK,
  kTypical,
  kTopP,
  kMinP,
  kXtc,
  kTemperature,
  kCount  // the number of steps, not a step
};

// All steps, in their order. Each step has an option that turns it off.
inline std::vector<SamplerStep> AllSamplerSteps() {
  std::vector<SamplerStep> steps(static_cast<std::size_t>(SamplerStep::kCount));
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<SamplerStep>(i);
  return steps;
}

// "Don't repeat yourself": lowers the logit of a token that continues a repetition by multiplier *
// base^(its length - allowed_length).
struct Dry {
  Value<float> multiplier = Default(0.0f);  // 0: off
  Value<float> base = Default(1.75f);       // at least 1
  Value<int> allowed_length = Default(2);   // tokens of a repetition without penalty
  Value<int> last_n = Default(-1);          // recent tokens that it considers; -1: all, 0: off
  // No repetition extends across these texts.
  Value<std::vector<std::string>> breakers =
      Default(std::vector<std::string>{"\n", ":", "\"", "*"});

  bool IsOn() const { return multiplier != 0 && last_n != 0; }
};

// Mirostat 2 (Basu et al. 2021, algorithm 2) keeps the surprisal of the text near a target and
// replaces the truncating steps: it drops tokens with a surprisal above mu, samples from the rest,
// and moves mu against the sampled token's difference from the target.
struct Mirostat {
  Value<int> version = Default(0);   // 0: off; any other number: on
  Value<float> tau = Default(5.0f);  // the target, in bits
  Value<float> eta = Default(0.1f);  // how fast it learns
};

// Equal options give equal texts, except with a seed of -1. A setting that is not set takes the
// value that the model's file recommends (llama.cpp's general.sampling.* keys), else the value
// here. A number out of range is an error that names the range.
struct Sampling {
  Value<std::int64_t> seed = Default<std::int64_t>(0);  // -1: another one each time
  Value<float> temperature = Default(0.8f);             // 0: always the most likely token
  Value<float> temperature_range = Default(0.0f);       // above 0: temperature +- range, by entropy
  Value<float> temperature_exponent = Default(1.0f);    // the power of the normalized entropy
  Value<int> top_k = Default(40);                       // keeps the k most likely tokens; 0: all
  Value<float> typical_p = Default(1.0f);               // keeps tokens of expected surprisal
  Value<float> top_p = Default(0.95f);           // keeps the most likely tokens up to this sum
  Value<float> min_p = Default(0.05f);           // keeps tokens with p >= this * the best one's p
  Value<float> top_n_sigma = Default(-1.0f);     // keeps logits within n standard deviations of the
                                                 // best; 0 or less: all
  Value<float> xtc_probability = Default(0.0f);  // how often XTC drops likely tokens, but the last
  Value<float> xtc_threshold = Default(0.1f);    // the least probability of a likely token
  Dry dry = {};
  Mirostat mirostat = {};
  Value<float> repeat_penalty = Default(1.0f);     // above 1: makes recent tokens less likely
  Value<float> frequency_penalty = Default(0.0f);  // lowers the logit for each recent occurrence
  Value<float> presence_penalty = Default(0.0f);   // lowers it once for recent tokens
  Value<int> repeat_last_n = Default(64);          // recent tokens; -1: all
  std::vector<std::pair<std::int32_t, float>> logit_bias = {};  // added to the logits of tokens
  bool ignore_end = false;                                      // no token that ends the text
  Value<std::vector<SamplerStep>> steps = Default(AllSamplerSteps());
};

}  // namespace pronk
