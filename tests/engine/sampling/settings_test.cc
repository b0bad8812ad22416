// What a file recommends for sampling, by llama.cpp's keys.
#include "engine/sampling/settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/error_of.h"

namespace engine {
namespace {

TEST(FileSampling, TakesEveryKeyOfLlamaCpp) {
  gguf::Metadata file;
  file.SetString("general.sampling.sequence", "penalties;nucleus;temp");
  const std::vector<std::pair<std::string, double>> numbers = {
      {"temp", 0.25},          {"top_p", 0.5},           {"min_p", 0.125},
      {"xtc_threshold", 0.25}, {"xtc_probability", 0.5}, {"penalty_repeat", 1.5},
      {"mirostat_tau", 3},     {"mirostat_eta", 0.5}};
  for (const auto& [key, number] : numbers) file.SetFloat("general.sampling." + key, number);
  file.SetInt("general.sampling.top_k", 20);
  file.SetInt("general.sampling.penalty_last_n", -1);
  file.SetInt("general.sampling.mirostat", 2);
  Sampling options;
  EXPECT_TRUE(ReadSampling(file, options).empty());
  EXPECT_EQ(options.temperature.origin, pronk::Origin::kFile);
  EXPECT_EQ(options.seed.origin, pronk::Origin::kDefault);
  EXPECT_EQ(options.temperature, 0.25f);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.5f);
  EXPECT_EQ(options.min_p, 0.125f);
  EXPECT_EQ(options.xtc_threshold, 0.25f);
  EXPECT_EQ(options.xtc_probability, 0.5f);
  EXPECT_EQ(options.repeat_penalty, 1.5f);
  EXPECT_EQ(options.repeat_last_n, -1);
  EXPECT_EQ(options.mirostat.version, 2);
  EXPECT_EQ(options.mirostat.tau, 3.0f);
  EXPECT_EQ(options.mirostat.eta, 0.5f);
  EXPECT_EQ(options.steps.value,
            (std::vector<SamplerStep>{SamplerStep::kPenalties, SamplerStep::kTopP,
                                      SamplerStep::kTemperature}));
}

TEST(FileSampling, LeavesTheRestAlone) {
  const gguf::Metadata none;
  Sampling options = {.temperature = 0.5f};
  EXPECT_TRUE(ReadSampling(none, options).empty());
  EXPECT_EQ(options.temperature, 0.5f);
  EXPECT_EQ(options.top_p.origin, pronk::Origin::kDefault);
  gguf::Metadata file;
  file.SetFloat("general.sampling.temp", 0.25);
  file.SetString("general.sampling.sequence", "temp");
  options.steps = {SamplerStep::kTopK};
  ReadSampling(file, options);
  EXPECT_EQ(options.temperature, 0.5f);
  EXPECT_EQ(options.steps.value, std::vector{SamplerStep::kTopK});
}

// Each key is checked at both ends of its range, and its type is, too.
TEST(FileSampling, AStrangersValuesAreChecked) {
  const auto error = [](const std::string& key, const auto& set) {
    gguf::Metadata file;
    set(file, "general.sampling." + key);
    Sampling options;
    const std::string says = test::ErrorOf([&] { ReadSampling(file, options); });
    EXPECT_TRUE(test::Has(says, "general.sampling." + key)) << key << ": " << says;
    return says;
  };
  Sampling any;
  size_t n_keys = 0;
  for (const Setting& setting : Settings(any)) {
    if (setting.key.empty() || !setting.is_number()) continue;
    ++n_keys;
    for (const double wrong : {setting.low - 1, setting.high * 2 + 1}) {
      const auto set = [&](gguf::Metadata& file, const std::string& key) {
        setting.is_whole() ? file.SetInt(key, static_cast<int64_t>(wrong))
                           : file.SetFloat(key, wrong);
      };
      EXPECT_TRUE(test::Has(error(std::string(setting.key), set), "expected a number from"));
    }
    error(std::string(setting.key), [](auto& file, const auto& key) { file.SetString(key, "x"); });
  }
  EXPECT_EQ(n_keys, 11u);
  error("temp", [](auto& file, const auto& key) { file.SetFloat(key, NAN); });
  error("top_k", [](auto& file, const auto& key) { file.SetFloat(key, 1.5); });
  error("sequence", [](auto& file, const auto& key) { file.SetInt(key, 1); });
}

TEST(FileSampling, NotesOnceWhatItPassesOver) {
  gguf::Metadata file;
  file.SetString("general.sampling.sequence", "top_k;infill;adaptive_p;temperature");
  file.SetFloat("general.sampling.adaptive_target", 0.5);
  file.SetFloat("general.sampling.adaptive_decay", 0.5);
  Sampling options;
  const std::vector<std::string> notes = ReadSampling(file, options);
  EXPECT_EQ(options.steps.value,
            (std::vector<SamplerStep>{SamplerStep::kTopK, SamplerStep::kTemperature}));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(notes[0].starts_with("general.sampling.sequence: 'infill' is none of"));
  EXPECT_EQ(notes[1], "general.sampling.adaptive_target: there is no such sampler here");
  // If no step of a file's order is known, the default order applies.
  file.SetString("general.sampling.sequence", "infill");
  Sampling usual;
  ReadSampling(file, usual);
  EXPECT_EQ(usual.steps.value, Sampling().steps.value);
}

}  // namespace
}  // namespace engine
