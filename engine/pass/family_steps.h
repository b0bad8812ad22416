// The steps of a layer that a Llama lacks. A Llama has a norm, a mixer and a sum, then a norm, a
// network and a sum; Layers() (forward.cc) calls these functions between them.
#pragma once

#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/residual.h"

namespace engine {

// Called before a layer: norms x between runs of the same layers; predicts several streams.
void BeginLayer(const LayerView& layer, const Weights& weights, ResidualStream& residual,
                Pass& pass);
// Called between the mixer and its sum, which changes x. Writes to scratch.normed the input of a
// network that reads the same x as the mixer: x through the network's own norm, or, if it has none,
// the mixer's norm, which is already in scratch.normed.
void MakeParallelInput(const LayerView& layer, Pass& pass);
// Called between the mixer and its sum: norms the mixer's output, scratch.delta.
void FinishMixer(const LayerView& layer, Pass& pass);
// Called after that sum: adds what a second mixer or a low-rank path makes of `in`, the mixer's
// input.
void AddBesideMixer(const LayerView& layer, const float* in, ResidualStream& residual, Pass& pass);
// Called between the network and its sum: norms the network's output, scratch.delta.
void FinishNetwork(const LayerView& layer, Pass& pass);
// Called after a layer: corrects several streams, adds a token's embedding for this layer, scales
// x.
void FinishLayer(const LayerView& layer, ResidualStream& residual, Pass& pass);

}  // namespace engine
