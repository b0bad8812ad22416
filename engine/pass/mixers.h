// The mixers, through which a token reads earlier ones. Each reads `in` and writes s.delta, both
// [tokens][embedding_length]; a layer's plan says which one it has (config.h).
#ifndef PRONK_ENGINE_PASS_MIXERS_H_
#define PRONK_ENGINE_PASS_MIXERS_H_

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/scratch.h"

namespace engine {

// The mixer of a layer, by which tokens read others. layer: whose part of the state it is.
void MixTokens(const Config& config, size_t layer, const LayerWeights& w, Mixer mixer,
               const float* in, Scratch& s, Pass& pass);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_MIXERS_H_
