// The table of sampling's settings, from which pronk.h's options as text, the flags with their
// help, requests in JSON, chat's /set and what files recommend are read. A new sampler is a row
// here, a member of Sampling, and its step in sampler.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/sampling/sampler.h"
#include "engine/sampling/sampling.h"
#include "gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// More than any machine can use, and small enough that sizes computed from them do not overflow.
inline constexpr int kMaxThreads = 1024;
inline constexpr int kMaxTokens = 1 << 30;

struct Setting {
  using Variable =
      std::variant<pronk::Value<float>*, pronk::Value<int>*, pronk::Value<int64_t>*, int*, int64_t*,
                   size_t*, bool*, pronk::Value<std::vector<SamplerStep>>*,
                   pronk::Value<std::vector<std::string>>*,
                   std::vector<std::pair<tokenizer::TokenId, float>>*>;

  // A number has a range and can be set as one.
  bool is_number() const { return high > low; }
  bool is_whole() const { return !std::holds_alternative<pronk::Value<float>*>(variable); }
  double Get() const;
  // "" if the setting may have this value, else "expected ..., found ...".
  std::string Fault(double number) const;
  void Set(double number) const;  // a number without a fault
  // Sets the value from text; a list of texts or biases gets one more element. Returns what is
  // wrong with the text, "" if nothing is.
  std::string Read(const std::string& text) const;
  pronk::Origin origin() const;

  std::string_view name;  // the member's name in pronk.h
  Variable variable;
  double low = 0, high = 0;
  std::string_view key = {};    // general.sampling.KEY in a file; "": llama.cpp has none
  std::string_view flags = {};  // "--temp,--temperature X"
  std::string_view help = {};
};

std::vector<Setting> Settings(Sampling& sampling);
// Finds a setting by its name, one of its flags or its key in files, in which _ - and . mean the
// same. Null if there is none.
const Setting* FindSetting(const std::vector<Setting>& settings, std::string_view name);

// "" if the number is from low to high, else "expected ..., found ...".
std::string RangeFault(double number, double low, double high);
// Throws engine::Error, which names the field, if the number is not from low to high.
void CheckRange(std::string_view name, double number, double low, double high);

inline constexpr std::string_view kSamplingPrefix = "general.sampling.";

// Fills settings that are not set with the file's recommendations: llama.cpp's general.sampling.*
// keys. Returns a line for each recommendation that is ignored. Throws gguf::Error if a value has
// the wrong type or is out of range.
std::vector<std::string> ReadSampling(const gguf::Metadata& metadata, Sampling& sampling);

// ReadSampling(), and a seed that is drawn for -1. Throws engine::Error, too: if a number is out of
// its range, the vocabulary lacks a token of logit_bias, or no token holds a text of dry.breakers.
std::vector<std::string> ResolveSampling(const gguf::Metadata& metadata,
                                         const tokenizer::Tokenizer& tokenizer, Sampling& sampling);

}  // namespace engine
