// The second half of a layer: each token by itself, through one network, through a few of many
// experts, or through both.
#ifndef PRONK_ENGINE_PASS_FEED_FORWARD_H_
#define PRONK_ENGINE_PASS_FEED_FORWARD_H_

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/scratch.h"

namespace engine {

// `in`, which is x behind the layer's norm, to s.delta; both are [tokens][embedding_length].
void FeedForward(const Config& config, const LayerPlan& plan, const LayerWeights& w, const float* x,
                 const float* in, Scratch& s, Pass& pass);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_FEED_FORWARD_H_
