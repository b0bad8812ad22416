// Llama (Touvron et al. 2023): pre-norm, rope on pairs of neighbours, SwiGLU, grouped-query
// attention. Mistral 7B (Jiang et al. 2023), Mixtral (Jiang et al. 2024, with experts) and many
// others are published as "llama". SmolLM3 (Hugging Face 2025) and Ministral 3 (Mistral AI 2025)
// change the positions, Arcee (AFM, 2025) the activation; Nanbeige (2026) repeats its layers.
#include <algorithm>
#include <vector>

#include "engine/model/families/families.h"

namespace engine {
namespace {

using enum kernels::RopePairs;

constexpr size_t kMaxRunLayers = 1u << 12;

// Mistral 7B v0.1 was trained with a window of 4096 in all layers, CWM with one in most.
void Llama(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  if (window > 0) SetWindows(keys, window, 0, config);
}

void SmolLm3(const Keys&, Config& config) { LeaveOutFourthRope(config); }

void Mistral3(const Keys& keys, Config& config) {
  SetWindowsIfListed(keys, config);
  SetAttentionTemperature(keys, config);
}

void Nanbeige(const Keys& keys, Config& config) {
  const std::vector<LayerPlan> run = config.layers;
  config.n_runs = keys.CountOr("num_loops", 1, std::max<size_t>(kMaxRunLayers / run.size(), 1));
  for (size_t i = 1; i < config.n_runs; ++i) {
    config.layers.insert(config.layers.end(), run.begin(), run.end());
  }
  config.norm_between_runs = !keys.BoolOr("skip_loop_final_norm", false);
}

constexpr Architecture kLlamaRows[] = {
    {.name = "llama", .rope_pairs = kAdjacent, .router = kernels::Router{}, .refine = Llama},
    {.name = "smollm3", .rope_pairs = kAdjacent, .refine = SmolLm3},
    {.name = "mistral3", .rope_pairs = kAdjacent, .refine = Mistral3},
    {.name = "arcee",
     .rope_pairs = kAdjacent,
     .traits = {.activation = kernels::Activation::kReluSquared}},
    {.name = "nanbeige", .rope_pairs = kAdjacent, .refine = Nanbeige},
};

}  // namespace

std::span<const Architecture> LlamaLineage() { return kLlamaRows; }

}  // namespace engine
