// The second half of a layer: each token passes a dense network, a few of many experts, or both.
#ifndef PRONK_ENGINE_PASS_FEED_FORWARD_H_
#define PRONK_ENGINE_PASS_FEED_FORWARD_H_

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/residual.h"
#include "engine/pass/scratch.h"

namespace engine {

// From `in`, the normed x, to s.delta; all are [tokens][embedding_length].
void FeedForward(const Config& config, const LayerPlan& plan, const LayerWeights& w, const float* x,
                 const float* in, Scratch& s, Pass& pass);

// A low-rank path beside the mixer ("learned augmented residual layer", LAuReL; Menghani et al.
// 2024): s.x = (s.x + in + norm(laurel_r laurel_l in)) / sqrt(2), `in` being the mixer's input.
// Does nothing without the matrices.
void AugmentResidual(const LayerWeights& w, const float* in, Scratch& s, Pass& pass);

// Adds the token's embedding for this layer (Pass::PerLayerEmbeddings), gated by the residual
// stream, projected to its width and normed. Does nothing without the matrices.
void AddPerLayerEmbedding(const LayerWeights& w, size_t layer, size_t width,
                          ResidualStream& residual, Scratch& s, Pass& pass);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_FEED_FORWARD_H_
