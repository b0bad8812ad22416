// The second half of a layer: each token by itself, through one network, through a few of many
// experts, or through both.
#ifndef PRONK_ENGINE_PASS_FEED_FORWARD_H_
#define PRONK_ENGINE_PASS_FEED_FORWARD_H_

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/residual.h"
#include "engine/pass/scratch.h"

namespace engine {

// `in`, which is x behind the layer's norm, to s.delta; both are [tokens][embedding_length].
void FeedForward(const Config& config, const LayerPlan& plan, const LayerWeights& w, const float* x,
                 const float* in, Scratch& s, Pass& pass);

// A low-rank matrix beside a layer's mixer (Gemma 3n's "learned augmented residual layer"), where
// there is one: s.x = (s.x + in + norm(laurel_r laurel_l in)) / sqrt(2), `in` being the mixer's
// input.
void Laurel(const LayerWeights& w, const float* in, Scratch& s, Pass& pass);

// Where a layer has them: the token's inputs for this layer alone (Pass::PerLayerInputs), gated by
// the residual stream, are projected to the stream's width, normed and added to it.
void PerLayer(const LayerWeights& w, size_t layer, size_t width, ResidualStream& residual,
              Scratch& s, Pass& pass);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_FEED_FORWARD_H_
