// Sampler: picks the next token from a row of logits.
#ifndef PRONK_ENGINE_SAMPLER_H_
#define PRONK_ENGINE_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/candidates.h"
#include "tokenizer/tokenizer.h"

namespace engine {

enum class SamplerStep { kPenalties, kTopK, kTypical, kTopP, kMinP, kTemperature };

// The step with this name ("penalties", "top_k", "typ_p", "top_p", "min_p", "temperature", as
// llama.cpp spells them), or nothing.
std::optional<SamplerStep> FindSamplerStep(std::string_view name);

struct SamplerOptions {
  uint64_t seed = 0;
  float temperature = 0.8f;  // 0 (or less than a millionth): always the most likely token
  int top_k = 40;
  float typical = 1.0f;
  float top_p = 0.95f;
  float min_p = 0.05f;
  Penalties penalties;
  int repeat_last_n = 64;  // tokens the penalties look back on; -1: all that there are
  std::vector<std::pair<tokenizer::TokenId, float>> logit_bias;  // added before everything else
  // llama.cpp's default order.
  std::vector<SamplerStep> steps = {SamplerStep::kPenalties, SamplerStep::kTopK,
                                    SamplerStep::kTypical,   SamplerStep::kTopP,
                                    SamplerStep::kMinP,      SamplerStep::kTemperature};
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // The next token. The same options, logits and history give the same token on every machine.
  // Throws engine::Error where the logits are not numbers (a broken model).
  tokenizer::TokenId Sample(std::span<const float> logits);
  // Tells the penalties that this token is now part of the text.
  void Accept(tokenizer::TokenId id);
  // The text is now this and nothing else. Random numbers go on.
  void SetHistory(std::span<const tokenizer::TokenId> tokens);

 private:
  void Apply(SamplerStep step);
  size_t MostRecent() const;  // the size that recent_ may have

  SamplerOptions options_;
  std::mt19937_64 random_;
  // A ring of the last repeat_last_n tokens, and a copy for the penalties to sort.
  std::vector<tokenizer::TokenId> recent_, sorted_;
  size_t n_accepted_ = 0;
  Candidates candidates_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_SAMPLER_H_
