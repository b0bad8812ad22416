// Lineages with a single supported architecture: Phi-3 (Abdin et al. 2024), gpt-oss (OpenAI 2025),
// OLMo 2 and 3 (OLMo et al. 2025), GLM-4 (GLM et al. 2024), BitNet (Ma et al. 2025), ERNIE 4.5
// (Baidu 2025), Hunyuan dense (Tencent 2025), EXAONE 4 (LG AI Research 2025).
#include <cmath>
#include <string>
#include <string_view>

#include "engine/model/families/families.h"
#include "gguf/error.h"

namespace engine {
namespace {

using kernels::Activation;
using enum kernels::RopePairs;

// Published files name a window that the model was not trained with.
void Phi3(const Keys& keys, Config&) { keys.Ignore("attention.sliding_window"); }

void GptOss(const Keys& keys, Config& config) {
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow), 2, config);
  RopeConfig local = config.ropes[0];
  local.base = keys.PositiveOr("rope.freq_base_swa", local.base);
  SetLocalRope(local, config);
}

// OLMo 2 has no window, OLMo 3 has one.
void Olmo2(const Keys& keys, Config& config) {
  SetWindows(keys, keys.UintOr("attention.sliding_window", 0, kMaxWindow), 4, config);
  RopeConfig local = Unscaled(config.ropes[0]);
  local.base = keys.PositiveOr("rope.freq_base_swa", local.base);
  local.attention_factor = 1;
  SetLocalRope(local, config);
}

// Models that also read images (GLM-4.6V-Flash) are published with their rows of q and k in the
// order of halves.
void Glm4(const Keys& keys, Config& config) {
  if (CheckSections(keys)) config.ropes[0].pairs = kHalves;
  SkipNextn(keys, config);
}

void Ernie45(const Keys& keys, Config&) { CheckSections(keys); }

// Models older than 2B4T lack this key.
void BitNet(const Keys& keys, Config& config) {
  const std::string_view activation = keys.StringOr("hidden_activation", "silu");
  if (activation == "relu2") {
    config.activation = Activation::kGatedReluSquared;
  } else if (activation != "silu") {
    keys.Fail("hidden_activation", "expected silu or relu2, found " + gguf::Quoted(activation, 40));
  }
}

void Hunyuan(const Keys& keys, Config& config) {
  const auto length = static_cast<double>(config.layers[0].key_length);
  const double alpha = keys.PositiveUnlessZero("rope.scaling.alpha", 1);
  keys.Ignore("expert_shared_count");  // of relatives with experts
  if (length > 2) config.ropes[0].base *= std::pow(alpha, length / (length - 2));
}

// Only the models of 64 layers have windows; their other layers have no rope.
void Exaone4(const Keys& keys, Config& config) {
  SkipNextn(keys, config);
  CheckSections(keys);
  keys.Ignore("attention.sliding_window_pattern");
  const size_t window = keys.CountOr("attention.sliding_window", 4096, kMaxWindow);
  if (config.layers.size() != 64) return;
  SetWindows(keys, window, 4, config);
  for (LayerPlan& layer : config.layers) {
    if (layer.window == 0) layer.rope = LayerPlan::kNoRope;
  }
}

constexpr Architecture kSingleRows[] = {
    {.name = "phi3", .refine = Phi3},
    {.name = "gpt-oss",
     .traits = {.norms = kFfnNormIsPostAttention,
                .activation = Activation::kSwigluOai,
                .sinks = true,
                .biases = true},
     .router = kernels::Router{},
     .refine = GptOss},
    {.name = "olmo2",
     .traits = {.norms = kPostNorms,
                .qk_norm = QkNorm::kAllBeforeRope,
                .output = OutputMatrix::kOwn},
     .refine = Olmo2},
    {.name = "glm4", .rope_pairs = kAdjacent, .traits = {.norms = kSandwichNorms}, .refine = Glm4},
    {.name = "bitnet",
     .traits = {.sub_norms = true, .output = OutputMatrix::kEmbedding},
     .refine = BitNet},
    {.name = "ernie4_5", .rope_pairs = kAdjacent, .refine = Ernie45},
    {.name = "hunyuan-dense", .traits = {.qk_norm = QkNorm::kHeadAfterRope}, .refine = Hunyuan},
    {.name = "exaone4",
     .traits = {.norms = kPostNorms, .qk_norm = QkNorm::kHeadBeforeRope},
     .refine = Exaone4},
};

}  // namespace

std::span<const Architecture> SingleLineages() { return kSingleRows; }

}  // namespace engine
