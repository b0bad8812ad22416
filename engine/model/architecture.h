// An architecture as a row (in families/, by lineage): what tensors and common keys do not tell.
#ifndef PRONK_ENGINE_MODEL_ARCHITECTURE_H_
#define PRONK_ENGINE_MODEL_ARCHITECTURE_H_

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "engine/model/config.h"
#include "engine/model/keys.h"
#include "kernels/matmul/experts.h"
#include "kernels/ops/ops.h"

namespace engine {

// Which layers of a family with experts have a dense network instead.
enum class DenseLayers {
  kNone,
  kLeading,        // a key gives their number
  kWithoutRouter,  // no key does: those without ffn_gate_inp
};

struct Architecture {
  std::string_view name;                             // general.architecture
  std::array<std::string_view, 2> other_names = {};  // in files of other programs
  kernels::RopePairs rope_pairs = kernels::RopePairs::kHalves;
  Traits traits = {};
  // The mixer of layers that have no key-value heads.
  Mixer without_heads = Mixer::kAttention;
  // Of families whose layers may have experts.
  std::optional<kernels::Router> router = {};
  Presence router_bias = Presence::kNone;
  DenseLayers dense_layers = DenseLayers::kNone;
  // Completes a config that was read from the common keys; or null. Throws gguf::Error.
  void (*refine)(const Keys& keys, Config& config) = nullptr;
};

// The rows of all lineages, in the order in which messages list them.
std::span<const Architecture> Architectures();

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_ARCHITECTURE_H_
