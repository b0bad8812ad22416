// The mixers, through which a token reads earlier ones: attention, or a recurrence.
#pragma once

#include "engine/pass/pass.h"

namespace engine {

// Reads `in` and writes scratch.delta, both [tokens][embedding_length]. The layer's plan says which
// mixers it has (config.h).
void MixTokens(const LayerView& layer, Mixer mixer, const float* in, Pass& pass);

}  // namespace engine
