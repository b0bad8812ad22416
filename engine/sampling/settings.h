// The numbers that options may have: one table of ranges for the program's flags, chat's /set and
// pronk.h.
#ifndef PRONK_ENGINE_SAMPLING_SETTINGS_H_
#define PRONK_ENGINE_SAMPLING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/sampling/sampler.h"

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
};

// All numbers of these options.
std::vector<Setting> Settings(SamplerOptions& options);
const Setting& FindSetting(const std::vector<Setting>& settings, std::string_view name);

// Throws engine::Error, which names the field, if the number is not from low to high.
void CheckRange(std::string_view name, double number, double low, double high);

}  // namespace engine

#endif  // PRONK_ENGINE_SAMPLING_SETTINGS_H_
