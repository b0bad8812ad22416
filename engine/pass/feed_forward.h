// The second half of a layer: each token passes a dense network, a few of many experts, or both.
#pragma once

#include "engine/pass/pass.h"

namespace engine {

// From `in`, the normed scratch.x, to scratch.delta; all are [tokens][embedding_length].
void FeedForward(const LayerView& layer, const float* in, Pass& pass);

}  // namespace engine
