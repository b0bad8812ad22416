// The steps of sampling, which Sampler runs in order (sampler.h). A step removes candidates or
// changes their logits. Probabilities are the softmax over the remaining candidates.
#pragma once

#include <span>

#include "engine/sampling/candidates.h"

namespace engine {

// Dividing logits by less than this could overflow a float.
inline constexpr float kMinTemperature = 1e-6f;

// Penalizes recent tokens. The logit of a token that occurs is divided by `repeat` (multiplied if
// negative; Keskar et al. 2019, CTRL), and lowered by `frequency` for each occurrence and by
// `presence` once (OpenAI's API). `recent` has the last tokens in any order, and is sorted here.
struct Penalties {
  float repeat = 1.0f;
  float frequency = 0.0f;
  float presence = 0.0f;
  bool Active() const { return repeat != 1.0f || frequency != 0.0f || presence != 0.0f; }
};
void ApplyPenalties(Candidates& candidates, std::span<tokenizer::TokenId> recent,
                    const Penalties& penalties);

// Keeps the k most likely tokens (Fan et al. 2018). k <= 0 keeps all.
void TopK(Candidates& candidates, int k);

// Keeps the most likely tokens, at least one, until their probabilities add up to p: the nucleus
// (Holtzman et al. 2019). p >= 1 keeps all.
void TopP(Candidates& candidates, float p);

// Keeps the tokens that are at least min_p times as likely as the most likely one (Nguyen et al.
// 2024). 0 keeps all.
void MinP(Candidates& candidates, float min_p);

// Keeps the tokens whose surprisal is closest to the entropy, until their probabilities sum to p:
// locally typical sampling (Meister et al. 2022). p >= 1 keeps all.
void Typical(Candidates& candidates, float p);

// Keeps candidates whose logits are at most n standard deviations (of the remaining logits) below
// the best (Tang et al. 2024, "Top-n-sigma"). n <= 0 keeps all.
void TopNSigma(Candidates& candidates, float n);

// Excludes top choices: of the candidates with a probability of at least `threshold`, keeps only
// the least likely (p-e-w 2024, text-generation-webui, pull request 6335).
void Xtc(Candidates& candidates, float threshold);

// Mirostat 2's cut: drops the tokens with a surprisal, -log2 p, of more than mu bits, but
// always keeps one.
void DropAboveSurprisal(Candidates& candidates, double mu);

// Dynamic temperature: low + (high - low) * h^exponent, where h is the entropy divided by its
// maximum, the log of the number of candidates (kalomaze 2023, as in llama.cpp; similar to EDT,
// Zhang et al. 2024). A single candidate is left alone.
void DynamicTemperature(Candidates& candidates, float low, float high, float exponent);

// Divides logits by the temperature.
void Temperature(Candidates& candidates, float temperature);

}  // namespace engine
