// The second half of a layer: a dense network, a few of many experts, or both, for each token.
#pragma once

#include "engine/pass/pass.h"

namespace engine {

// Reads `in`, the normed scratch.x, and writes scratch.delta; all are [tokens][embedding_length].
void FeedForward(const LayerView& layer, const float* in, Pass& pass);

}  // namespace engine
