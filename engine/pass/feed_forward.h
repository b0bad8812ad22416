// The second half of a layer: each token passes a dense network, a few of many experts, or both.
#pragma once

#include "engine/pass/pass.h"
#include "engine/pass/residual.h"

namespace engine {

// From `in`, the normed scratch.x, to scratch.delta; all are [tokens][embedding_length].
void FeedForward(const LayerView& layer, const float* in, Pass& pass);

// A low-rank path beside the mixer ("learned augmented residual layer", LAuReL; Menghani et al.
// 2024): x = (x + in + norm(laurel_r laurel_l in)) / sqrt(2), `in` being the mixer's input. Does
// nothing without the matrices.
void AugmentResidual(const LayerWeights& w, const float* in, Pass& pass);

// Adds the token's embedding for this layer (Pass::PerLayerEmbeddings), gated by the residual
// stream, projected to its width and normed. Does nothing without the matrices.
void AddPerLayerEmbedding(const LayerView& layer, ResidualStream& residual, Pass& pass);

}  // namespace engine
