// The residual stream, which layers read and add to. Most models have one vector per token, x. With
// "alternating updates" (AltUp, Baykal et al. 2023) there are several streams. A layer computes
// only on the first. The other streams are predicted before the layer, and corrected after it by
// the first stream's change.
#pragma once

#include <array>
#include <cstddef>

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/scratch.h"

namespace engine {

// Works on a batch's rows in Scratch: x is [tokens][embedding_length], streams are
// [n_residual_streams][tokens][embedding_length]. If x is the only stream, operations on several
// streams do nothing.
class ResidualStream {
 public:
  explicit ResidualStream(Pass& pass) : config_(pass.config()), s_(pass.scratch()), pass_(pass) {}

  // Makes the streams from the tokens' embeddings, x.
  void Begin(const Weights& weights);
  // Before a layer: predicts all streams; x becomes the first stream.
  void BeginLayer(const LayerWeights& w);
  // x = stream_scale * x + residual_scale * s.delta, which is a mixer's or network's output. Then x
  // is normed if the norm has weights.
  void AddDelta(const NormView& norm);
  // After a layer: corrects all streams by the change of the first one, from its prediction to x.
  void EndLayer(const LayerWeights& w);
  // The gate of a per-layer embedding: x, or the first stream scaled. Then s.delta, computed from
  // that embedding, is added to x, or to all streams but the first.
  const float* PerLayerGate(const LayerWeights& w);
  void AddPerLayer();
  // After all layers: x = the mean of the streams, each scaled to the first stream's norm.
  void End(const Weights& weights);

 private:
  static constexpr size_t kMaxStreams = 8;

  bool has_single_stream() const { return config_.n_residual_streams == 0; }
  size_t width() const { return config_.embedding_length; }
  float* x() const { return s_.x; }
  float* Stream(size_t i) const { return s_.streams + i * pass_.n_tokens() * width(); }
  std::array<float*, kMaxStreams> RowsOf(size_t token) const;
  const float* Coefficients(const LayerWeights& w, const WeightView& coefs, const float* in);

  const Config& config_;
  Scratch& s_;
  Pass& pass_;
};

}  // namespace engine
