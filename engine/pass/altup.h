// Alternating updates (Baykal et al. 2023), as in Gemma 3n: the residual stream is wider than what
// a layer computes on. Of n_streams streams only the first goes through the layer; the others are
// predicted before it and corrected behind it by what the first has become.
//
// s.streams is [n_streams][tokens][embedding_length]; s.x is the first while a layer works on it.
#ifndef PRONK_ENGINE_PASS_ALTUP_H_
#define PRONK_ENGINE_PASS_ALTUP_H_

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/scratch.h"

namespace engine {

// The streams of tokens whose rows of the embedding are s.x.
void BeginStreams(const Config& config, const Weights& weights, Scratch& s, Pass& pass);

// Before a layer: each stream becomes what all of them let expect, and s.x the first.
void PredictStreams(const Config& config, const LayerWeights& w, Scratch& s, Pass& pass);

// A low-rank matrix beside a layer's mixer (Gemma 3n's "learned augmented residual layer"):
// s.x = (s.x + in + norm(laurel_r laurel_l in)) / sqrt(2), where `in` is what the mixer got.
void Laurel(const Config& config, const LayerWeights& w, const float* in, Scratch& s, Pass& pass);

// Behind a layer: each stream moves with the first, from what was predicted for that to s.x.
void CorrectStreams(const Config& config, const LayerWeights& w, Scratch& s, Pass& pass);
// What the first has now, scaled, for what tokens have for this layer alone: in s.normed; and what
// comes of that, s.delta, to the other streams.
const float* ScaledFirstStream(const Config& config, const LayerWeights& w, Scratch& s, Pass& pass);
void AddToOtherStreams(const Config& config, Scratch& s, Pass& pass);

// Behind all layers: s.x is the mean of the streams, each as long as the first.
void EndStreams(const Config& config, const Weights& weights, Scratch& s, Pass& pass);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_ALTUP_H_
