// Sampler: picks the next token from a row of logits.
#ifndef PRONK_ENGINE_SAMPLING_SAMPLER_H_
#define PRONK_ENGINE_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/sampling/candidates.h"
#include "engine/sampling/dry.h"
#include "tokenizer/tokenizer.h"

namespace engine {

enum class SamplerStep {
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

// The step with this name, or nothing.
std::optional<SamplerStep> FindSamplerStep(std::string_view name);
// All names, in llama.cpp's spelling and default order:
// "penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature".
std::string SamplerStepNames();

// Mirostat 2 (Basu et al. 2021, algorithm 2) keeps the surprise of the text near a target and
// replaces the truncating steps: it drops tokens with a surprise above mu, samples from the rest,
// and moves mu against the sampled token's difference from the target.
struct Mirostat {
  int version = 0;   // 0: off; others are 2
  float tau = 5.0f;  // the target, in bits
  float eta = 0.1f;  // how fast it learns
};

struct SamplerOptions {
  uint64_t seed = 0;
  float temperature = 0.8f;        // 0 (or less than a millionth): always the most likely token
  float temperature_range = 0.0f;  // above 0: dynamic, from temperature - range to + range
  float temperature_exponent = 1.0f;
  int top_k = 40;
  float typical = 1.0f;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float top_n_sigma = -1.0f;
  float xtc_probability = 0.0f;  // how often top choices are excluded
  float xtc_threshold = 0.1f;    // above 0.5 it never drops any
  DryOptions dry = {};
  Mirostat mirostat = {};
  Penalties penalties = {};
  int repeat_last_n = 64;  // tokens the penalties look back on; -1: all
  // Added before everything else.
  std::vector<std::pair<tokenizer::TokenId, float>> logit_bias = {};
  // llama.cpp's default order.
  std::vector<SamplerStep> steps = {
      SamplerStep::kPenalties, SamplerStep::kDry,     SamplerStep::kTopNSigma,
      SamplerStep::kTopK,      SamplerStep::kTypical, SamplerStep::kTopP,
      SamplerStep::kMinP,      SamplerStep::kXtc,     SamplerStep::kTemperature};
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // Applies to the following tokens; random numbers continue if the seed is unchanged.
  void SetOptions(const SamplerOptions& options);

  // The next token after `text`, which the penalties look back on. The same options, logits and
  // text give the same token on every machine. Throws engine::Error if the logits are not numbers
  // (a broken model). allowed: a bit for each id (constraint.h), at least one of them set; no step
  // sees the other tokens. Empty: all are allowed. A single allowed token takes no random number.
  tokenizer::TokenId Sample(std::span<const float> logits, std::span<const uint64_t> allowed = {},
                            std::span<const tokenizer::TokenId> text = {});
  // Whether some logits were no finite numbers: of broken weights. Their tokens were left out.
  bool has_met_broken() const { return has_met_broken_; }

 private:
  void AddBiases();
  void Apply(SamplerStep step, std::span<const tokenizer::TokenId> text);
  size_t Draw();  // the index of a candidate, by their probabilities
  tokenizer::TokenId DrawByMirostat();

  SamplerOptions options_;
  std::mt19937_64 random_;
  std::vector<tokenizer::TokenId> recent_;  // the last repeat_last_n, for the penalties to sort
  Dry dry_;
  double mu_ = 0;  // of Mirostat
  bool has_met_broken_ = false;
  Candidates candidates_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_SAMPLING_SAMPLER_H_
