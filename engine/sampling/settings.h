// One table of numbers and their ranges, for flags, chat's /set, pronk.h and what files recommend.
#ifndef PRONK_ENGINE_SAMPLING_SETTINGS_H_
#define PRONK_ENGINE_SAMPLING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/sampling/sampler.h"
#include "gguf/metadata.h"

namespace engine {

// More than any machine can use, and small enough that sizes computed from them do not overflow.
inline constexpr int kMaxThreads = 1024;
inline constexpr int kMaxTokens = 1 << 30;

struct Setting {
  bool is_whole() const { return !std::holds_alternative<float*>(value); }
  double Get() const;
  void Set(double number) const;  // from low to high

  std::string_view name;  // of the field in pronk.h
  std::variant<float*, int*, int64_t*, uint64_t*> value;
  double low, high;
  std::string_view key = {};  // general.sampling.KEY in a file; "": llama.cpp has none
};

// All numbers of these options.
std::vector<Setting> Settings(SamplerOptions& options);
const Setting& FindSetting(const std::vector<Setting>& settings, std::string_view name);

// "" if the number is from low to high, else "expected ..., found ...".
std::string RangeFault(double number, double low, double high);
// Throws engine::Error, which names the field, if the number is not from low to high.
void CheckRange(std::string_view name, double number, double low, double high);

inline constexpr std::string_view kSamplingPrefix = "general.sampling.";
inline constexpr std::string_view kSteps = "steps";  // the name of SamplerOptions::steps

struct FileSampling {
  std::vector<std::string_view> names;  // of the settings that the file has
  std::vector<std::string> notes;       // what is passed over, a line each
};
// Puts what the file recommends for its model into the options: llama.cpp's general.sampling.*
// keys. Throws gguf::Error if a value has the wrong type or is out of range.
FileSampling ReadSampling(const gguf::Metadata& metadata, SamplerOptions& options);

}  // namespace engine

#endif  // PRONK_ENGINE_SAMPLING_SETTINGS_H_
