// Qwen: Qwen2 (Yang et al. 2024) has biases of q, k and v, Qwen3 (Yang et al. 2025) norms of query
// and key heads; both have relatives with experts and relatives that read images (Qwen2-VL,
// Qwen3-VL; Bai et al. 2025), of which text runs here. In Qwen3-Next (2025) and Qwen3.5 (2026)
// three of four layers are gated delta nets (Yang et al. 2024), and attention's output is gated.
#include <algorithm>
#include <array>
#include <vector>

#include "engine/model/families/families.h"

namespace engine {
namespace {

using kernels::Router;

// The published models name a window and do not use it (their use_sliding_window is false).
void Qwen2(const Keys& keys, Config& config) { SetWindowsIfListed(keys, config); }

// Without a key for an expert's width, a token's experts together are as wide as a dense network.
void QwenExperts(const Keys& keys, Config& config) {
  Qwen2(keys, config);
  config.router.normed = keys.BoolOr("expert_weights_norm", config.router.normed);
  if (keys.Has("expert_feed_forward_length")) return;
  for (LayerPlan& layer : config.layers)
    layer.expert_length /= std::max<size_t>(config.n_experts_used, 1);
}

void Qwen2Moe(const Keys& keys, Config& config) {
  for (LayerPlan& layer : config.layers) {
    if (layer.shared_ffn_length == 0)
      layer.shared_ffn_length = keys.Count("feed_forward_length", kMaxLength);
  }
  QwenExperts(keys, config);
}

// Ollama's files may lack the sections of relatives that read images: all pairs rotate.
void Qwen2Vl(const Keys& keys, Config& config) {
  if (keys.Has("rope.dimension_sections")) config.ropes[0].sections = ReadSections(keys);
  config.ropes[0].sections_in_turn = false;
}

// In text, time, height and width have one position; pairs that belong to none do not rotate.
void SetSections(const Keys& keys, Config& config) {
  config.ropes[0].sections = ReadSections(keys);
  if (config.ropes[0].sections == std::array<size_t, 4>{}) {
    keys.Fail("rope.dimension_sections", "expected a number above 0, found none");
  }
}

void Qwen3Vl(const Keys& keys, Config& config) {
  if (keys.Has("rope.dimension_sections")) SetSections(keys, config);
  keys.Ignore("n_deepstack_layers");  // rows of images that the first layers get
  if (config.n_experts_used > 0) QwenExperts(keys, config);
  ReadGroups(keys, config);
}

// The last of every `full_attention_interval` layers is attention, unless the file has flags.
void QwenNext(const Keys& keys, Config& config) {
  const size_t inner_size = keys.Count("ssm.inner_size", kMaxLength);
  const RecurrentPlan delta = ReadRecurrent(keys, inner_size);
  if (delta.value_length != delta.key_length) {
    keys.Fail("ssm.inner_size", "expected time_step_rank times state_size, found ", inner_size);
  }
  const LayerPlan attention = config.layers.back();
  const size_t interval = keys.CountOr("full_attention_interval", 4, kMaxLength);
  std::vector<size_t> flags;
  if (keys.Has("attention.recurrent_layers")) {
    flags = keys.PerLayer("attention.recurrent_layers", config.n_layers(), 0, 1);
  }
  for (size_t i = 0; i < config.n_layers(); ++i) {
    const bool listed = flags.empty() ? (i + 1) % interval != 0 : flags[i] != 0;
    const bool recurrent = listed || config.layers[i].n_heads == 0;
    if (recurrent) SetMixer(Mixer::kDeltaNet, delta, config.layers[i]);
  }
  config.router.normed = keys.BoolOr("expert_weights_norm", config.router.normed);
  SkipNextn(keys, config);
  if (config.n_skipped_layers == 1 && attention.n_heads > 0) config.nextn = attention;
}

void Qwen35(const Keys& keys, Config& config) {
  SetSections(keys, config);
  QwenNext(keys, config);
}

constexpr Traits kQwen3 = {.qk_norm = QkNorm::kHeadBeforeRope,
                           .rank = {.from = Pooling::kLast, .softmax = true}};
constexpr Traits kQwen3Next = {.norms = kFfnNormIsPostAttention,
                               .qk_norm = QkNorm::kHeadBeforeRope,
                               .shared_gate = true,
                               .attention_gate = AttentionGate::kInQueries};
constexpr Traits kQwen35 = {.norms = kFfnNormIsPostAttention,
                            .qk_norm = QkNorm::kHeadBeforeRope,
                            .shared_gate = true,
                            .attention_gate = AttentionGate::kInQueries,
                            .tiled_key_heads = true};

constexpr Architecture kQwenRows[] = {
    {.name = "qwen2", .refine = Qwen2},
    {.name = "qwen2moe",
     .traits = {.shared_gate = true, .output = OutputMatrix::kOwn},
     .router = Router{.normed = false},
     .refine = Qwen2Moe},
    {.name = "qwen3", .traits = kQwen3, .refine = Qwen2},
    {.name = "qwen3moe", .traits = kQwen3, .router = Router{}, .refine = QwenExperts},
    {.name = "qwen2vl", .refine = Qwen2Vl},
    {.name = "qwen3vl", .traits = kQwen3, .refine = Qwen3Vl},
    {.name = "qwen3vlmoe", .traits = kQwen3, .router = Router{}, .refine = Qwen3Vl},
    {.name = "qwen35", .traits = kQwen35, .without_heads = Mixer::kDeltaNet, .refine = Qwen35},
    {.name = "qwen35moe",
     .traits = kQwen35,
     .without_heads = Mixer::kDeltaNet,
     .router = Router{},
     .refine = Qwen35},
    {.name = "qwen3next", .traits = kQwen3Next, .router = Router{}, .refine = QwenNext},
};

}  // namespace

std::span<const Architecture> QwenLineage() { return kQwenRows; }

}  // namespace engine
