// How the next token is chosen: the settings of applications, flags and files. A part of
// <pronk/pronk.h>.
#pragma once

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
struct Usual {
  explicit Usual(T usual) : value(std::move(usual)) {}
  T value;
};

// A value that an application may set, by assigning to it. The model's file may recommend another
// value for one that is not set.
template <class T>
struct Value {
  Value(T given)  // NOLINT(google-explicit-constructor): the setting is used as its value
      : value(std::move(given)), origin(Origin::kCaller) {}
  Value(Usual<T> usual)  // NOLINT(google-explicit-constructor): only in the declarations below
      : value(std::move(usual.value)) {}
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

// In the order in which they run by default, which is llama.cpp's.
enum class SamplerStep : std::uint8_t {
  kPenalties,
  kDry,
  kTopNSigma,
  kTopK,
  kTypical,
  kTopP,
  kMinP,
  kXtc,
  kTemperature
};

// All steps, each of which may be off by its own option, in their order.
inline std::vector<SamplerStep> AllSamplerSteps() {
  std::vector<SamplerStep> steps;
  for (int i = 0; i <= static_cast<int>(SamplerStep::kTemperature); ++i)
    steps.push_back(static_cast<SamplerStep>(i));
  return steps;
}

// "Don't repeat yourself": lowers the logit of a token that continues a repetition by multiplier *
// base^(its length - allowed_length).
struct Dry {
  Value<float> multiplier = Usual(0.0f);  // 0: off
  Value<float> base = Usual(1.75f);       // at least 1
  Value<int> allowed_length = Usual(2);   // tokens of a repetition without penalty
  Value<int> last_n = Usual(-1);          // tokens it looks back on; -1: all, 0: off
  // No repetition extends across these texts.
  Value<std::vector<std::string>> breakers = Usual(std::vector<std::string>{"\n", ":", "\"", "*"});

  bool IsOn() const { return multiplier != 0 && last_n != 0; }
};

// Mirostat 2 (Basu et al. 2021, algorithm 2) keeps the surprise of the text near a target and
// replaces the truncating steps: it drops tokens with a surprise above mu, samples from the rest,
// and moves mu against the sampled token's difference from the target.
struct Mirostat {
  Value<int> version = Usual(0);   // 0: off; any other number: on
  Value<float> tau = Usual(5.0f);  // the target, in bits
  Value<float> eta = Usual(0.1f);  // how fast it learns
};

// Equal options give equal texts, except with a seed of -1. A setting that is not set takes the
// value that the model's file recommends (llama.cpp's general.sampling.* keys), else the value
// here. A number out of range is an error that names the range.
struct Sampling {
  Value<std::int64_t> seed = Usual<std::int64_t>(0);  // -1: another one each time
  Value<float> temperature = Usual(0.8f);             // 0: always the most likely token
  Value<float> temperature_range = Usual(0.0f);       // above 0: temperature - range to + range,
  Value<float> temperature_exponent = Usual(1.0f);    // by the normalized entropy to this power
  Value<int> top_k = Usual(40);                       // keeps the k most likely tokens; 0: all
  Value<float> typical_p = Usual(1.0f);               // keeps tokens of expected surprise
  Value<float> top_p = Usual(0.95f);                  // keeps the most likely tokens up to this sum
  Value<float> min_p = Usual(0.05f);           // keeps tokens this share as likely as the best
  Value<float> top_n_sigma = Usual(-1.0f);     // keeps logits within n standard deviations of the
                                               // best; 0 or less: all
  Value<float> xtc_probability = Usual(0.0f);  // how often all likely tokens but the least likely
  Value<float> xtc_threshold = Usual(0.1f);    // are dropped; likely means at least this
  Dry dry = {};
  Mirostat mirostat = {};
  Value<float> repeat_penalty = Usual(1.0f);     // above 1: makes recent tokens less likely
  Value<float> frequency_penalty = Usual(0.0f);  // lowers the logit for each recent occurrence
  Value<float> presence_penalty = Usual(0.0f);   // lowers it once for recent tokens
  Value<int> repeat_last_n = Usual(64);          // recent tokens; -1: all
  std::vector<std::pair<std::int32_t, float>> logit_bias = {};  // added to the logits of tokens
  bool ignore_end = false;                                      // no token that ends the text
  Value<std::vector<SamplerStep>> steps = Usual(AllSamplerSteps());
};

}  // namespace pronk
