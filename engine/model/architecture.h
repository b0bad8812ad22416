// The table of architectures: the only place that knows model families by name.
//
// A row says what can be seen neither from the tensors that are there nor from the keys that all
// families share. Its function reads the keys that are the family's own, and what no key says.
#ifndef PRONK_ENGINE_MODEL_ARCHITECTURE_H_
#define PRONK_ENGINE_MODEL_ARCHITECTURE_H_

#include <optional>
#include <span>
#include <string_view>

#include "engine/model/config.h"
#include "engine/model/keys.h"
#include "kernels/matmul/experts.h"
#include "kernels/ops/ops.h"

namespace engine {

struct Architecture {
  std::string_view name;  // general.architecture
  kernels::RopePairs rope_pairs;
  // What a part of a layer does otherwise than llama.
  NormRoles norms = {};
  QkNorm qk_norm = QkNorm::kNone;
  kernels::Activation activation = kernels::Activation::kSilu;
  bool sub_norms = false;
  bool sinks = false;
  bool biases = false;
  bool shared_gate = false;
  bool value_norm = false;
  bool attention_gate = false;
  bool tiled_key_heads = false;
  // Layers that have no key-value heads gather otherwise.
  Mixer without_heads = Mixer::kAttention;
  OutputMatrix output = OutputMatrix::kOwnOrEmbedding;
  // Of families whose layers may have experts.
  std::optional<kernels::Router> router = {};
  Presence router_bias = Presence::kNone;
  bool leading_dense = false;  // a key says how many layers come before those with experts
  // Completes a config that holds all that the common keys say; or null.
  void (*refine)(const Keys& keys, Config& config) = nullptr;
};

std::span<const Architecture> Architectures();

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_ARCHITECTURE_H_
