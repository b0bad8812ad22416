// The steps of a layer that a Llama lacks. A Llama has a norm, a mixer and a sum, a norm, a network
// and a sum; Layers() (forward.cc) calls these between them.
#pragma once

#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/residual.h"

namespace engine {

// Before a layer: a norm between runs of the same layers, predictions of several streams.
void BeginLayer(const LayerView& layer, const Weights& weights, ResidualStream& residual,
                Pass& pass);
// Between the mixer and its sum, which changes x: the input of a network that reads x as the mixer
// did, scratch.normed. It has a norm of its own, or stays as the mixer's norm left it.
void MakeParallelInput(const LayerView& layer, Pass& pass);
// Between the mixer and its sum: the norm of its output, scratch.delta.
void FinishMixer(const LayerView& layer, Pass& pass);
// After that sum: what runs beside the mixer, on its input `in`.
void AddBesideMixer(const LayerView& layer, const float* in, ResidualStream& residual, Pass& pass);
// Between the network and its sum: the norm of its output, scratch.delta.
void FinishNetwork(const LayerView& layer, Pass& pass);
// After a layer: corrections of several streams, a token's embedding for this layer, a scale.
void FinishLayer(const LayerView& layer, ResidualStream& residual, Pass& pass);

}  // namespace engine
