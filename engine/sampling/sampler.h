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
#include "engine/sampling/dry_penalty.h"
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

  // Sets the options for the following tokens. Random numbers continue if the seed is unchanged.
  void SetOptions(const Sampling& options, std::vector<tokenizer::TokenId> breakers = {});

  // Draws the next token after `text`, in which the penalties look for repetitions. The same
  // options, logits and text give the same token on every machine. `allowed` has a bit for each id,
  // as in Candidates::Assign(), and at least one bit is set; steps see only allowed tokens. An
  // empty `allowed` allows every token. If a single token is allowed, no random number is drawn.
  // Throws engine::Error if the logits are not numbers (a broken model).
  tokenizer::TokenId Sample(std::span<const float> logits, std::span<const uint64_t> allowed = {},
                            std::span<const tokenizer::TokenId> text = {});
  // Whether some logits of allowed tokens were not finite, because of broken weights. Such tokens
  // are never drawn.
  bool has_met_bad_logits() const { return has_met_bad_logits_; }

 private:
  bool IsGreedy() const;
  // Whether the step runs with these options: greedy sampling and Mirostat skip truncating steps.
  bool IsUsed(SamplerStep step) const;
  void Apply(SamplerStep step, std::span<const tokenizer::TokenId> text);
  size_t Draw();  // draws a candidate by the probabilities; returns its index
  tokenizer::TokenId DrawByMirostat();

  Sampling options_;
  std::vector<std::pair<tokenizer::TokenId, float>> biases_;  // options_.logit_bias, by id
  std::vector<tokenizer::TokenId> breakers_;
  std::mt19937_64 random_;
  std::vector<tokenizer::TokenId> recent_;  // the last repeat_last_n, for the penalties to sort
  DryPenalty dry_;
  double mu_ = 0;  // Mirostat's limit of surprisal
  bool has_met_bad_logits_ = false;
  Candidates candidates_;
};

}  // namespace engine
