// Decoders with LayerNorm, most of them older than Llama: GPT-2 (Radford et al. 2019), StarCoder
// (Li et al. 2023), OPT (Zhang et al. 2022) and XGLM (Lin et al. 2021) with a vector for each
// position; BLOOM (2022) and MPT (MosaicML 2023) with ALiBi; GPT-J (Wang and Komatsuzaki 2021),
// GPT-NeoX (Black et al. 2022), Falcon (TII 2023), Persimmon (Adept 2023), Phi-2 (Microsoft 2023),
// StableLM (Stability AI 2023), StarCoder2 (Lozhkov et al. 2024), OLMo (Groeneveld et al. 2024),
// Nemotron (Parmar et al. 2024), Command R (Cohere 2024), Phi-3.5-MoE (Abdin et al. 2024) and Jais
// 2 (2025) with rope.
#include <cmath>

#include "engine/model/families/families.h"

namespace engine {
namespace {

using kernels::Activation;
using enum kernels::RopePairs;

// The exponent of the last head's slope in all published models.
constexpr double kAlibiBias = 8;

void LearnedPositions(const Keys& keys, Config& config) {
  LeaveOutRope(config);
  ReadActivation(keys, config);
}

void Xglm(const Keys& keys, Config& config) {
  LearnedPositions(keys, config);
  config.embedding_scale = static_cast<float>(keys.PositiveUnlessZero("embedding_scale", 1));
}

void Bloom(const Keys& keys, Config& config) {
  ReadActivation(keys, config);
  SetSlopes(keys.PositiveUnlessZero("attention.max_alibi_bias", kAlibiBias), config);
}

void Mpt(const Keys& keys, Config& config) {
  ReadActivation(keys, config);
  ReadClamp(keys, config);
  const double scale = keys.PositiveUnlessZero("attention.scale", 0);
  if (scale > 0) SetAttentionScale(static_cast<float>(scale), config);
  const double bias = keys.PositiveUnlessZero("attention.max_alibi_bias", 0);
  if (bias > 0) return SetSlopes(bias, config);
  LeaveOutRope(config);
  config.learned_positions = true;
}

// Mixer and network may read the stream side by side.
void GptNeoX(const Keys& keys, Config& config) {
  ReadActivation(keys, config);
  config.parallel = keys.BoolOr("use_parallel_residual", config.parallel);
}

void StarCoder2(const Keys& keys, Config& config) {
  ReadActivation(keys, config);
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  if (window > 0) SetWindows(keys, window, 0, config);
}

void Olmo(const Keys& keys, Config& config) { ReadClamp(keys, config); }

void CommandR(const Keys& keys, Config& config) {
  config.logit_scale = static_cast<float>(keys.Positive("logit_scale"));
}

constexpr Traits kGpt = {.layer_norm = true, .activation = Activation::kGeluAlone};
constexpr Traits kGptLearned = {
    .layer_norm = true, .activation = Activation::kGeluAlone, .learned_positions = true};
constexpr Traits kGptParallel = {
    .layer_norm = true, .parallel = true, .activation = Activation::kGeluAlone};
// Norms of heads, where the file has them.
constexpr Traits kGptHeadNorms = {.layer_norm = true,
                                  .qk_norm = QkNorm::kHeadBeforeRope,
                                  .qk_norm_optional = true,
                                  .qk_layer_norm = true};

constexpr Traits With(Traits traits, Activation activation) {
  traits.activation = activation;
  return traits;
}
constexpr Traits Parallel(Traits traits) {
  traits.parallel = true;
  return traits;
}

constexpr Architecture kGptRows[] = {
    {.name = "gpt2", .traits = kGptLearned, .refine = LearnedPositions},
    {.name = "starcoder", .traits = kGptLearned, .refine = LearnedPositions},
    {.name = "opt", .traits = With(kGptLearned, Activation::kRelu), .refine = LearnedPositions},
    {.name = "xglm", .traits = With(kGptLearned, Activation::kGeluErf), .refine = Xglm},
    {.name = "bloom",
     .traits = {.norms = {.embedding = "token_embd_norm"},
                .layer_norm = true,
                .activation = Activation::kGeluAlone},
     .refine = Bloom},
    {.name = "mpt", .traits = kGpt, .refine = Mpt},
    {.name = "gptj", .rope_pairs = kAdjacent, .traits = kGptParallel, .refine = GptNeoX},
    {.name = "gptneox", .traits = kGptParallel, .refine = GptNeoX},
    {.name = "falcon",
     .traits = {.norms = {.attn = "attn_norm_2", .ffn = "attn_norm"},
                .layer_norm = true,
                .parallel = true,
                .activation = Activation::kGeluAlone},
     .refine = GptNeoX},
    {.name = "persimmon", .traits = With(kGptHeadNorms, Activation::kReluSquared)},
    {.name = "phi2",
     .traits = Parallel(With(kGptHeadNorms, Activation::kGeluAlone)),
     .refine = GptNeoX},
    {.name = "stablelm", .traits = kGptHeadNorms, .refine = GptNeoX},
    {.name = "starcoder2", .traits = kGpt, .refine = StarCoder2},
    {.name = "nemotron", .traits = With(kGpt, Activation::kReluSquared)},
    {.name = "jais2", .traits = With(kGpt, Activation::kReluSquared)},
    {.name = "olmo",
     .rope_pairs = kAdjacent,
     .traits = {.layer_norm = true, .norm_weights = false},
     .refine = Olmo},
    {.name = "command-r",
     .rope_pairs = kAdjacent,
     .traits = Parallel(kGptHeadNorms),
     .refine = CommandR},
    {.name = "phimoe",
     .traits = {.layer_norm = true},
     .router = kernels::Router{.gate = kernels::Router::Gate::kSparseMixer, .normed = false}},
};

}  // namespace

std::span<const Architecture> GptLineage() { return kGptRows; }

}  // namespace engine
