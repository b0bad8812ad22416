// Gemma: sandwich norms, GELU, embeddings scaled by the root of their length. Gemma 2 (2024) has
// windows in every other layer and caps on scores and logits; Gemma 3 (2025) windows in five of six
// layers, with their own rope. Gemma 3n (2025) has four residual streams (AltUp, Baykal et al.
// 2023), a low-rank matrix beside each mixer (LAuReL, Menghani et al. 2024), an input for each
// layer, sparse gates, and late layers that see the keys and values of earlier ones. Gemma 4 (2026)
// keeps the last two, and may have experts beside a dense network. EmbeddingGemma (2025) is a Gemma
// 3 that sees both ways. All are reports of Google DeepMind's.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "engine/model/families/families.h"

namespace engine {
namespace {

using kernels::Activation;

// The attention scale is 1 / sqrt(key_length), except in the largest model of each generation,
// which is recognized by its number of layers; or a key has it.
void SetGemmaScales(const Keys& keys, size_t n_layers_of_largest, Config& config) {
  ScaleEmbeddings(config);
  const double scale = keys.PositiveUnlessZero("attention.scale", 0);
  if (scale > 0) return SetAttentionScale(static_cast<float>(scale), config);
  if (config.layers.size() == n_layers_of_largest) {
    const size_t width = config.embedding_length / config.layers[0].n_heads;
    SetAttentionScale(1.0f / std::sqrt(static_cast<float>(width)), config);
  }
}

void Gemma(const Keys&, Config& config) { ScaleEmbeddings(config); }

// VaultGemma (2025) is a Gemma 2 without norms of outputs, and usually without caps.
void VaultGemma(const Keys& keys, Config& config) {
  ScaleEmbeddings(config);
  const double scale = keys.PositiveUnlessZero("attention.scale", 0);
  if (scale > 0) SetAttentionScale(static_cast<float>(scale), config);
  config.attention_softcap =
      static_cast<float>(keys.PositiveUnlessZero("attn_logit_softcapping", 0));
  config.logit_softcap = static_cast<float>(keys.PositiveUnlessZero("final_logit_softcapping", 0));
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow), 2, config);
}

void Gemma2(const Keys& keys, Config& config) {
  SetGemmaScales(keys, 46, config);
  config.attention_softcap = static_cast<float>(keys.PositiveOr("attn_logit_softcapping", 50));
  config.logit_softcap = static_cast<float>(keys.PositiveOr("final_logit_softcapping", 30));
  SetWindows(keys, keys.CountOr("attention.sliding_window", 4096, kMaxWindow), 2, config);
  SetLocalBase(keys, config.ropes[0], config.ropes[0].base, config);
}

void Gemma3(const Keys& keys, Config& config) {
  SetGemmaScales(keys, 62, config);
  config.logit_softcap = static_cast<float>(keys.PositiveUnlessZero("final_logit_softcapping", 0));
  SetWindows(keys, keys.UintOr("attention.sliding_window", 0, kMaxWindow), 6, config);
  SetLocalBase(keys, Unscaled(config.ropes[0]), 10000, config);
}

// For keys with a constant value within a family or file.
void Expect(const Keys& keys, std::string_view key, size_t value) {
  if (!keys.Has(key) || keys.Number(key) == static_cast<double>(value)) return;
  keys.Fail(key, "expected ", value, ", found ", keys.Number(key));
}

template <class IsConstant>
void ExpectOfLayers(const Keys& keys, std::string_view key, size_t n_layers,
                    IsConstant is_constant) {
  if (!keys.Has(key)) return;
  const std::vector<double> found = keys.Numbers(key, n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    if (is_constant(i, found[i])) continue;
    keys.Fail(key, "expected what models of this architecture have, found ", found[i],
              " for layer ", i);
  }
}

// After pooling two matrices may widen the vector and narrow it again.
void ReadDense(const Keys& keys, Config& config) {
  config.dense_length = keys.UintOr("dense_2_feat_out", 0, kMaxLength);
  Expect(keys, "dense_2_feat_in", config.embedding_length);
  Expect(keys, "dense_3_feat_in", config.dense_length);
  Expect(keys, "dense_3_feat_out", config.embedding_length);
}

// A window is half on each side of the token.
void GemmaEmbedding(const Keys& keys, Config& config) {
  ScaleEmbeddings(config);
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow) / 2 + 1, 6, config);
  SetLocalBase(keys, Unscaled(config.ropes[0]), 10000, config);
  SeeBothWays(keys, config);
  ReadDense(keys, config);
}

void Gemma3n(const Keys& keys, Config& config) {
  constexpr size_t kPeriod = 5, kFirstShared = 20, kSparse = 10;
  constexpr float kSparsity = 1.6448533535f;  // 5% of a normal distribution are above it
  const size_t n_layers = config.n_layers();
  // Files have keys for these constants, but the engines that wrote them do not read the keys.
  Expect(keys, "altup.active_idx", 0);
  Expect(keys, "altup.num_inputs", 4);
  Expect(keys, "attention.shared_kv_layers", n_layers - std::min(n_layers, kFirstShared));
  Expect(keys, "final_logit_softcapping", 30);
  ExpectOfLayers(keys, "attention.sliding_window_pattern", n_layers, [](size_t i, double found) {
    return (found != 0) == (i % kPeriod != kPeriod - 1);
  });
  ExpectOfLayers(keys, "activation_sparsity_scale", n_layers, [](size_t i, double found) {
    return i < kSparse ? std::abs(found - kSparsity) < 1e-4 : !(found > 0);
  });
  ScaleEmbeddings(config);
  config.logit_softcap = 30;
  config.n_streams = 4;
  config.laurel_length = 64;
  config.per_layer_length = keys.Count("embedding_length_per_layer_input", kMaxLength);
  const size_t window = keys.Count("attention.sliding_window", kMaxWindow);
  for (size_t i = 0; i < n_layers; ++i) {
    LayerPlan& layer = config.layers[i];
    const bool slides = i % kPeriod != kPeriod - 1;
    layer.attention_scale = 1;
    if (slides) layer.window = window;
    if (i < kSparse) layer.ffn_sparsity = kSparsity;
    if (i >= kFirstShared) layer.kv_layer = slides ? kFirstShared - 2 : kFirstShared - 1;
  }
  SetLocalBase(keys, config.ropes[0], 10000, config);
}

// Full and sliding layers differ in lengths, ropes and heads. Returns which layers slide.
std::vector<size_t> Gemma4Layers(const Keys& keys, Config& config) {
  const size_t n_layers = config.n_layers();
  ScaleEmbeddings(config);
  config.logit_softcap =
      keys.Has("final_logit_softcapping")
          ? static_cast<float>(keys.PositiveUnlessZero("final_logit_softcapping", 0))
          : 30.0f;
  const size_t window = keys.Count("attention.sliding_window", kMaxWindow);
  const auto slides = keys.PerLayer("attention.sliding_window_pattern", n_layers, 0, 1);
  const size_t key_length = keys.Count("attention.key_length_swa", kMaxStateLength);
  const size_t value_length =
      keys.CountOr("attention.value_length_swa", key_length, kMaxStateLength);
  // Where there are experts, too, these widths are of the dense network beside them.
  const auto ffn_lengths = keys.PerLayer("feed_forward_length", n_layers, 1, kMaxLength);
  for (size_t i = 0; i < n_layers; ++i) {
    LayerPlan& layer = config.layers[i];
    layer.attention_scale = 1;
    layer.ffn_length = ffn_lengths[i];
    if (slides[i] == 0) continue;
    layer.window = window;
    layer.key_length = key_length;
    layer.value_length = value_length;
  }
  RopeConfig local = config.ropes[0];
  local.n_dims = keys.CountOr("rope.dimension_count_swa", local.n_dims, kMaxStateLength);
  local.divided = false;
  SetLocalBase(keys, local, 10000, config);
  return slides;
}

// Late layers use the keys and values of the last sliding or full layer that has its own.
void Gemma4(const Keys& keys, Config& config) {
  const std::vector<size_t> slides = Gemma4Layers(keys, config);
  const size_t n_layers = config.n_layers();
  config.keys_as_values = true;
  const size_t n_shared = keys.UintOr("attention.shared_kv_layers", 0, n_layers);
  const size_t n_own = n_layers - n_shared;
  if (n_shared > 0 && n_own < 2) {
    keys.Fail("attention.shared_kv_layers", "expected two fewer than layers at most, found ",
              n_shared);
  }
  for (size_t i = n_own; i < n_layers; ++i) {
    LayerPlan& layer = config.layers[i];
    layer.kv_layer = slides[i] != 0 ? n_own - 2 : n_own - 1;
    if (slides[layer.kv_layer] != slides[i]) {
      keys.Fail("attention.sliding_window_pattern", "layer ", i, " uses what layer ",
                layer.kv_layer, " keeps: expected ", slides[i], " for that, found ",
                slides[layer.kv_layer]);
    }
  }
  config.per_layer_length = keys.UintOr("embedding_length_per_layer_input", 0, kMaxLength);
}

// All layers use keys and values of the model that it drafts for (draft/assistant.h).
void Gemma4Assistant(const Keys& keys, Config& config) {
  const std::vector<size_t> slides = Gemma4Layers(keys, config);
  const size_t n_layers = config.n_layers();
  config.backbone_length = keys.Count("embedding_length_out", kMaxLength);
  Expect(keys, "nextn_predict_layers", n_layers);
  Expect(keys, "attention.shared_kv_layers", n_layers);
  Expect(keys, "embedding_length_per_layer_input", 0);
  for (size_t i = 0; i < n_layers; ++i) {
    const auto first = std::find(slides.begin(), slides.end(), slides[i]);
    config.layers[i].kv_layer = static_cast<size_t>(first - slides.begin());
  }
}

constexpr Traits kGemma3Traits = {.norms = kSandwichNorms,
                                  .qk_norm = QkNorm::kHeadBeforeRope,
                                  .activation = Activation::kGelu},
                 kGemma3nTraits = {.norms = kSandwichNorms,
                                   .qk_norm = QkNorm::kHeadBeforeRope,
                                   .activation = Activation::kGelu,
                                   .value_norm = true};

constexpr Architecture kGemmaRows[] = {
    {.name = "gemma",
     .traits = {.activation = Activation::kGelu, .output = OutputMatrix::kEmbedding},
     .refine = Gemma},
    {.name = "vaultgemma",
     .traits = {.activation = Activation::kGelu, .output = OutputMatrix::kEmbedding},
     .refine = VaultGemma},
    {.name = "gemma2",
     .traits = {.norms = kSandwichNorms,
                .activation = Activation::kGelu,
                .output = OutputMatrix::kEmbedding},
     .refine = Gemma2},
    {.name = "gemma3", .traits = kGemma3Traits, .refine = Gemma3},
    {.name = "gemma-embedding", .traits = kGemma3Traits, .refine = GemmaEmbedding},
    {.name = "gemma3n", .traits = kGemma3nTraits, .refine = Gemma3n},
    {.name = "gemma4", .traits = kGemma3nTraits, .router = kernels::Router{}, .refine = Gemma4},
    {.name = "gemma4-assistant", .traits = kGemma3Traits, .refine = Gemma4Assistant},
};

}  // namespace

std::span<const Architecture> GemmaLineage() { return kGemmaRows; }

}  // namespace engine
