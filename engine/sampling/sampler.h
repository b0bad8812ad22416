// Sampler: picks the next token from a row of logits.
#pragma once

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
#include "engine/sampling/sampling.h"
#include "tokenizer/tokenizer.h"

namespace engine {

using pronk::SamplerStep;
using pronk::Sampling;

// The step with this name, or nothing.
std::optional<SamplerStep> FindSamplerStep(std::string_view name);
// All names, in llama.cpp's spelling and default order:
// "penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature".
std::string SamplerStepNames();

class Sampler {
 public:
  // breakers: the tokens that contain one of options.dry.breakers (TokensWith).
  explicit Sampler(Sampling options, std::vector<tokenizer::TokenId> breakers = {});

  // Applies to the following tokens; random numbers continue if the seed is unchanged.
  void SetOptions(const Sampling& options, std::vector<tokenizer::TokenId> breakers = {});

  // The next token after `text`, which the penalties look back on. The same options, logits and
  // text give the same token on every machine. Throws engine::Error if the logits are not numbers
  // (a broken model). allowed: a bit for each id (constraint.h), at least one of them set; no step
  // sees the other tokens. Empty: all are allowed. A single allowed token takes no random number.
  tokenizer::TokenId Sample(std::span<const float> logits, std::span<const uint64_t> allowed = {},
                            std::span<const tokenizer::TokenId> text = {});
  // Whether some logits of allowed tokens were not finite, because of broken weights. Those tokens
  // were left out.
  bool has_met_broken() const { return has_met_broken_; }

 private:
  bool IsGreedy() const;
  bool IsUsed(SamplerStep step) const;
  void Apply(SamplerStep step, std::span<const tokenizer::TokenId> text);
  size_t Draw();  // the index of a candidate, by their probabilities
  tokenizer::TokenId DrawByMirostat();

  Sampling options_;
  std::vector<std::pair<tokenizer::TokenId, float>> biases_;  // options_.logit_bias, by id
  std::vector<tokenizer::TokenId> breakers_;
  std::mt19937_64 random_;
  std::vector<tokenizer::TokenId> recent_;  // the last repeat_last_n, for the penalties to sort
  Dry dry_;
  double mu_ = 0;  // of Mirostat
  bool has_met_broken_ = false;
  Candidates candidates_;
};

}  // namespace engine
