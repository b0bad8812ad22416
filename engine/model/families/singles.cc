// Lineages with a single supported architecture: Phi-3 (Abdin et al. 2024), gpt-oss (OpenAI 2025),
// OLMo 2 and 3 (OLMo et al. 2025), GLM-4 (GLM et al. 2024), BitNet (Ma et al. 2025), ERNIE 4.5
// (Baidu 2025), Hunyuan dense (Tencent 2025), EXAONE 4 (LG AI Research 2025), Seed-OSS (ByteDance
// 2025), Command R7B and A (Cohere 2024, 2025), Apertus (Swiss AI 2025).
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "engine/model/families/families.h"
#include "gguf/error.h"

namespace engine {
namespace {

using kernels::Activation;
using enum kernels::RopePairs;

// llama.cpp's files name a window, which no program uses.
void Phi3(const Keys& keys, Config& config) { SetWindowsIfListed(keys, config); }

// The published models do not round the two dimensions, which files of llama.cpp's converter do not
// say.
void GptOss(const Keys& keys, Config& config) {
  config.ropes[0].truncated = keys.BoolOr("rope.scaling.yarn_truncate", false);
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow), 2, config);
  SetLocalBase(keys, config.ropes[0], config.ropes[0].base, config);
}

// OLMo 2 has no window, OLMo 3 has one.
void Olmo2(const Keys& keys, Config& config) {
  SetWindows(keys, keys.UintOr("attention.sliding_window", 0, kMaxWindow), 4, config);
  RopeConfig local = Unscaled(config.ropes[0]);
  local.attention_factor = 1;
  SetLocalBase(keys, local, local.base, config);
}

// Models that also read images (GLM-4.6V-Flash) have their rows of q and k in the order of halves.
void Glm4(const Keys& keys, Config& config) {
  if (CheckSections(keys)) config.ropes[0].pairs = kHalves;
  SkipNextn(keys, config);
}

void Ernie45(const Keys& keys, Config&) { CheckSections(keys); }

// nanochat (Karpathy 2025): norms have no weights, and the embedding has one, too.
void NanoChat(const Keys& keys, Config& config) {
  config.logit_softcap = static_cast<float>(keys.PositiveUnlessZero("final_logit_softcapping", 0));
}

// Models older than 2B4T lack this key; bitnet.cpp has other names for the newer ones.
void BitNet(const Keys& keys, Config& config) {
  const char* const usual = config.architecture == "bitnet" ? "silu" : "relu2";
  const std::string_view activation = keys.StringOr("hidden_activation", usual);
  if (activation == "relu2") {
    config.activation = Activation::kGatedReluSquared;
  } else if (activation != "silu") {
    keys.Fail("hidden_activation", "expected silu or relu2, found ", gguf::Quoted(activation, 40));
  }
}

void Hunyuan(const Keys& keys, Config& config) {
  const auto length = static_cast<double>(config.layers[0].key_length);
  const double alpha = keys.PositiveUnlessZero("rope.scaling.alpha", 1);
  keys.Ignore("expert_shared_count");  // of relatives with experts
  if (length > 2) config.ropes[0].base *= std::pow(alpha, length / (length - 2));
}

// Only the models of 64 layers, or with a list, have windows; their other layers have no rope.
void Exaone4(const Keys& keys, Config& config) {
  SkipNextn(keys, config);
  CheckSections(keys);
  const bool listed = keys.Length("attention.sliding_window_pattern") > 0;
  const size_t window = keys.CountOr("attention.sliding_window", 4096, kMaxWindow);
  if (config.layers.size() != 64 && !listed) return;
  SetWindows(keys, window, 4, config);
  RotateInWindowsOnly(config);
}

void Cohere2(const Keys& keys, Config& config) {
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow), 4, config);
  RotateInWindowsOnly(config);
  keys.Ignore("rope.freq_base_swa");
  config.logit_scale = static_cast<float>(keys.Positive("logit_scale"));
}

// The activation's parameters have keys without the architecture's name.
void Apertus(const Keys& of_architecture, Config& config) {
  const Keys keys = of_architecture.Of("xielu");
  const size_t n = config.n_layers();
  const auto numbers = [&](const char* key) {
    std::vector<double> found = keys.Numbers(key, n);
    for (const double x : found) {
      if (!std::isfinite(x)) keys.Fail(key, "expected finite numbers, found ", x);
    }
    return found;
  };
  const auto alpha_n = numbers("alpha_n"), alpha_p = numbers("alpha_p");
  const auto beta = numbers("beta"), eps = numbers("eps");
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  for (size_t i = 0; i < n; ++i) {
    config.layers[i].xielu = {.positive = static_cast<float>(softplus(alpha_p[i])),
                              .negative = static_cast<float>(beta[i] + softplus(alpha_n[i])),
                              .beta = static_cast<float>(beta[i]),
                              .eps = static_cast<float>(eps[i])};
  }
}

constexpr Architecture kSingleRows[] = {
    {.name = "phi3", .refine = Phi3},
    {.name = "gpt-oss",
     .traits = {.norms = kFfnNormIsPostAttention,
                .activation = Activation::kSwigluOai,
                .sinks = Presence::kRequired,
                .biases = true},
     .router = kernels::Router{},
     .refine = GptOss},
    {.name = "olmo2",
     .traits = {.norms = kPostNorms,
                .qk_norm = QkNorm::kAllBeforeRope,
                .output = OutputMatrix::kOwn},
     .refine = Olmo2},
    {.name = "glm4", .rope_pairs = kAdjacent, .traits = {.norms = kSandwichNorms}, .refine = Glm4},
    {.name = "chatglm", .rope_pairs = kAdjacent},
    {.name = "exaone"},
    {.name = "nanochat",
     .traits = {.norms = {.embedding = "token_embd_norm"},
                .norm_weights = false,
                .qk_norm = QkNorm::kHeadAfterRope,
                .activation = Activation::kReluSquared},
     .refine = NanoChat},
    {.name = "bitnet",
     .other_names = {"bitnet-b1.58", "bitnet-25"},
     .traits = {.sub_norms = true, .output = OutputMatrix::kEmbedding},
     .refine = BitNet},
    {.name = "ernie4_5", .rope_pairs = kAdjacent, .refine = Ernie45},
    {.name = "hunyuan-dense", .traits = {.qk_norm = QkNorm::kHeadAfterRope}, .refine = Hunyuan},
    {.name = "exaone4",
     .traits = {.norms = kPostNorms, .qk_norm = QkNorm::kHeadBeforeRope},
     .refine = Exaone4},
    {.name = "seed_oss", .traits = {.norms = kFfnNormIsPostAttention}},
    {.name = "cohere2",
     .rope_pairs = kAdjacent,
     .traits = {.norms = {.ffn = ""},
                .layer_norm = true,
                .parallel = true,
                .output = OutputMatrix::kEmbedding},
     .refine = Cohere2},
    {.name = "apertus",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOwn},
     .refine = Apertus},
};

}  // namespace

std::span<const Architecture> SingleLineages() { return kSingleRows; }

}  // namespace engine
