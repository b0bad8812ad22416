// Gemma: sandwich norms, GELU, embeddings scaled by the root of their length. Gemma 2 (2024) has
// windows in every other layer and caps on scores and logits; Gemma 3 (2025) windows in five of six
// layers, with their own rope. Gemma 3n (2025) has four residual streams (AltUp, Baykal et al.
// 2023), a low-rank matrix beside each mixer (LAuReL, Menghani et al. 2024), an input for each
// layer, sparse gates, and late layers that see the keys and values of earlier ones. Gemma 4 (2026)
// keeps the last two, and may have experts beside a dense network. EmbeddingGemma (2025) is a Gemma
// 3 with bidirectional attention. Each is described in a report by Google DeepMind.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"

namespace engine {
namespace {

// ---- What a file means.

// The attention scale is 1 / sqrt(key_length), unless a key gives it. The largest model of each
// generation, recognized by its number of layers, has another scale.
void SetLargestScale(const Keys& keys, size_t n_layers_of_largest, Config& config) {
  if (keys.PositiveUnlessZero("attention.scale", 0) > 0) return;
  if (config.layers.size() != n_layers_of_largest) return;
  const size_t width = config.embedding_length / config.layers[0].n_heads;
  SetAttentionScale(1.0f / std::sqrt(static_cast<float>(width)), config);
}

void Gemma2(const Keys& keys, Config& config) {
  SetLargestScale(keys, 46, config);
  config.attention_softcap = static_cast<float>(keys.PositiveOr("attn_logit_softcapping", 50));
  config.logit_softcap = static_cast<float>(keys.PositiveOr("final_logit_softcapping", 30));
}

void Gemma3(const Keys& keys, Config& config) { SetLargestScale(keys, 62, config); }

// Refuses another value of a key that is constant within a family or file.
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
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow) / 2 + 1, 6, config);
  SetLocalBase(keys, Unscaled(config.ropes[0]), 10000, config);
  SeeBothWays(keys, config);
  ReadDense(keys, config);
}

void Gemma3n(const Keys& keys, Config& config) {
  constexpr size_t kPeriod = 5, kFirstShared = 20, kSparse = 10;
  constexpr float kSparsity = 1.6448533535f;  // 5% of a normal distribution lie above
  const size_t n_layers = config.n_layers();
  // Files have keys for these constants, but the writers of the files do not read the keys.
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
  config.logit_softcap = 30;
  config.n_residual_streams = 4;
  config.laurel_length = 64;
  config.per_layer_length = keys.Count("embedding_length_per_layer_input", kMaxLength);
  const size_t window = keys.Count("attention.sliding_window", kMaxWindow);
  for (size_t i = 0; i < n_layers; ++i) {
    LayerPlan& layer = config.layers[i];
    const bool slides = i % kPeriod != kPeriod - 1;
    layer.score_scale = 1;
    if (slides) layer.window = window;
    if (i < kSparse) layer.ffn_sparsity = kSparsity;
    if (i >= kFirstShared) layer.kv_layer = slides ? kFirstShared - 2 : kFirstShared - 1;
  }
  SetLocalBase(keys, config.ropes[0], 10000, config);
}

// Full and sliding layers differ in lengths, ropes and heads. Returns which layers slide.
std::vector<size_t> Gemma4Layers(const Keys& keys, Config& config) {
  const size_t n_layers = config.n_layers();
  config.logit_softcap =
      keys.Has("final_logit_softcapping")
          ? static_cast<float>(keys.PositiveUnlessZero("final_logit_softcapping", 0))
          : 30.0f;
  const size_t window = keys.Count("attention.sliding_window", kMaxWindow);
  const auto slides = keys.PerLayer("attention.sliding_window_pattern", n_layers, 0, 1);
  const size_t key_length = keys.Count("attention.key_length_swa", kMaxStateLength);
  const size_t value_length =
      keys.CountOr("attention.value_length_swa", key_length, kMaxStateLength);
  // In layers with experts, these are the widths of the dense network beside the experts.
  const auto ffn_lengths = keys.PerLayer("feed_forward_length", n_layers, 1, kMaxLength);
  for (size_t i = 0; i < n_layers; ++i) {
    LayerPlan& layer = config.layers[i];
    layer.score_scale = 1;
    layer.ffn_length = ffn_lengths[i];
    if (slides[i] == 0) continue;
    layer.window = window;
    layer.key_length = key_length;
    layer.value_length = value_length;
  }
  RopeConfig local = config.ropes[0];
  local.n_dims = keys.CountOr("rope.dimension_count_swa", local.n_dims, kMaxStateLength);
  local.uses_divisors = false;
  SetLocalBase(keys, local, 10000, config);
  return slides;
}

// Late layers use the keys and values of the last sliding (or full) layer that has its own.
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

// ---- What a folder means.

// Per-layer inputs.
constexpr TensorRule kGemmaPerLayer[] = {
    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"model.per_layer_model_projection", "per_layer_model_proj"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {".per_layer_input_gate", ".inp_gate"},
    {".per_layer_projection", ".proj"},
    {".post_per_layer_input_norm", ".post_norm"},
};

constexpr TensorRule kGemma3n[] = {
    {"model.altup_projections.{e}", "altup_proj"},
    {"model.altup_unembed_projections.{e}", "altup_unembd_proj"},
    {".altup.correct_output_scale", ".altup_correct_scale.weight"},
    {".altup.correction_coefs", ".altup_correct_coef"},
    {".altup.prediction_coefs", ".altup_predict_coef"},
    {".altup.modality_router", ".altup_router"},
    {".altup.router_norm", ".altup_router_norm"},
    {".laurel.linear_left", ".laurel_l"},
    {".laurel.linear_right", ".laurel_r"},
    {".laurel.post_laurel_norm", ".laurel_post_norm"},
};

constexpr TensorRule kGemma4[] = {
    {".layer_scalar", ".layer_output_scale.weight", Order::kVector},
    {".router.proj", ".ffn_gate_inp"},
    {".router.scale", ".ffn_gate_inp.scale"},
    {".router.per_expert_scale", ".ffn_down_exps.scale"},
    {".experts.gate_up_proj", ".ffn_gate_up_exps.weight"},
    {".experts.down_proj", ".ffn_down_exps.weight"},
    {".post_feedforward_layernorm_1", ".post_ffw_norm_1"},
    {".pre_feedforward_layernorm_2", ".pre_ffw_norm_2"},
    {".post_feedforward_layernorm_2", ".post_ffw_norm_2"},
};

// An assistant's tensors beside Gemma 4's layers; clusters of tokens are not used.
constexpr TensorRule kAssistant[] = {
    {"pre_projection", "nextn.pre_projection"},
    {"post_projection", "nextn.post_projection"},
    {"masked_embedding.centroids", ""},
    {"masked_embedding.token_ordering", ""},
};

constexpr TensorRule kDense[] = {{"2_Dense.linear", "dense_2"}, {"3_Dense.linear", "dense_3"}};

constexpr KeyRule kGemma3nKeys[] = {
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input"},
    {"num_kv_shared_layers", "attention.shared_kv_layers"},
    {"altup_active_idx", "altup.active_idx"},
    {"altup_num_inputs", "altup.num_inputs"},
};

constexpr KeyValue kGemmaEmbeddingOnly[] = {{"use_bidirectional_attention", 1}};
constexpr KeyValue kGemma3Only[] = {{"use_bidirectional_attention", 0}};
constexpr KeyValue kGemmaDefaults[] = {
    {"num_key_value_heads", 16}, {"head_dim", 256}, {"rms_norm_eps", 1e-6}};
constexpr KeyValue kGemma2Defaults[] = {
    {"num_key_value_heads", 4},     {"head_dim", 256},
    {"rms_norm_eps", 1e-6},         {"sliding_window", 4096},
    {"attn_logit_softcapping", 50}, {"final_logit_softcapping", 30}};
constexpr KeyValue kGemma3Defaults[] = {
    {"num_attention_heads", 8}, {"num_key_value_heads", 4},          {"head_dim", 256},
    {"vocab_size", 262208},     {"max_position_embeddings", 131072}, {"rms_norm_eps", 1e-6},
    {"sliding_window", 4096}};

// Readers compute Gemma's attention scale from the head's length, except the largest model's.
void AddGemmaScale(OutModel& model, uint64_t n_layers_of_largest) {
  const Fields& config = model.config;
  const bool largest = model.n_layers() == n_layers_of_largest;
  const auto expected = static_cast<double>(
      largest ? config.Count("hidden_size") / model.shapes.n_heads : model.head_dim());
  const double found = config.NumberOr("query_pre_attn_scalar", 256);
  if (!(found > 0)) config.Fail("query_pre_attn_scalar", "expected a number above 0");
  if (found != expected) model.Float("attention.scale", 1 / std::sqrt(found));
}

template <uint64_t kLayersOfLargest>
void GemmaScale(OutModel& model) {
  AddGemmaScale(model, kLayersOfLargest);
}

// After pooling two matrices may widen the vector and narrow it again.
void GemmaEmbedding(OutModel& model) {
  if (!model.config.Has("use_bidirectional_attention"))
    model.config.Fail("use_bidirectional_attention",
                      "expected true: without it tokens see earlier ones alone");
  AddGemmaScale(model, 62);
  AddWindows({.period = 6, .rope = Windows::Rope::kUnscaled, .base = 10000}, model);
  model.Bool("attention.causal", false);
  if (!model.folder.tensors().contains("2_Dense.linear.weight")) return;
  const uint64_t width = model.RowsOf("2_Dense.linear.weight");
  model.Uint("dense_2_feat_in", model.config.Count("hidden_size"));
  model.Uint("dense_2_feat_out", width);
  model.Uint("dense_3_feat_in", width);
  model.Uint("dense_3_feat_out", model.RowsOf("3_Dense.linear.weight"));
}

// Lists of Gemma 3n and 4 for layers with and without windows.
void AddGemmaLayers(OutModel& model) {
  const Fields& config = model.config;
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (local.empty()) config.Fail("layer_types", "expected a name for each layer");
  model.Uint("attention.sliding_window", config.Count("sliding_window"));
  model.PerLayer("attention.sliding_window_pattern", local);
  model.Float("rope.freq_base_swa", LocalBase(config, "rope_local_base_freq"));
  if (config.IsList("intermediate_size")) {
    model.PerLayer("feed_forward_length", WholeNumbers(config, "intermediate_size", local.size()));
  }
}

void Gemma3n(OutModel& model) {
  const Fields& config = model.config;
  AddGemmaLayers(model);
  // The gate's cutoff, in standard deviations above the mean; lower numbers are dropped.
  constexpr float kOf95Percent = 1.6448536f;
  std::vector<float> scales;
  for (const double share : config.Numbers("activation_sparsity_pattern")) {
    if (share != 0 && share != 0.95) {
      config.Fail("activation_sparsity_pattern", "expected 0 or 0.95 for each layer");
    }
    scales.push_back(share == 0 ? -std::numeric_limits<float>::infinity() : kOf95Percent);
  }
  if (!scales.empty()) model.PerLayer("activation_sparsity_scale", scales);
  // Later ids are image and audio tokens.
  if (config.Has("vocab_size_per_layer_input")) {
    model.n_tokens = config.Count("vocab_size_per_layer_input");
  }
}

void Gemma4(OutModel& model) {
  const Fields& config = model.config;
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  const uint64_t length = config.Count("head_dim");
  uint64_t full_length = config.CountOr("global_head_dim", length);
  const Fields by_layer = config.Object("per_layer_config");
  for (size_t i = 0; i < local.size(); ++i) {
    const Fields layer = by_layer.Object(std::to_string(i));
    if (!layer.Has("head_dim")) continue;
    if (local[i]) layer.Fail("head_dim", "expected none in a layer with a window");
    full_length = layer.Count("head_dim");
  }
  for (size_t i = 0; i < local.size() && by_layer.is_there(); ++i) {
    const Fields layer = by_layer.Object(std::to_string(i));
    if (!local[i] && layer.CountOr("head_dim", length) != full_length)
      layer.Fail("head_dim", "expected ", full_length, " in each layer without a window");
  }
  if (!config.Has("final_logit_softcapping")) model.Float("final_logit_softcapping", 0);
  if (config.IsBool("use_bidirectional_attention") &&
      config.BoolOr("use_bidirectional_attention", false))
    config.Fail("use_bidirectional_attention", "expected false");
  model.Uint("attention.key_length_swa", length);
  model.Uint("attention.value_length_swa", length);
  model.Uint("rope.dimension_count_swa", length);
  model.Uint("attention.key_length", full_length);
  model.Uint("attention.value_length", full_length);
  model.Uint("rope.dimension_count", full_length);
  if (config.BoolOr("attention_k_eq_v", false) && config.Has("num_global_key_value_heads")) {
    AddByLayer("attention.head_count_kv", local, model.shapes.n_kv_heads,
               config.Count("num_global_key_value_heads"), model);
  }
  const uint64_t n_shared = config.UintOr("num_kv_shared_layers", 0);
  if (config.BoolOr("use_double_wide_mlp", false)) {
    const uint64_t width = config.Count("intermediate_size");
    std::vector<int32_t> widths;
    for (size_t i = 0; i < local.size(); ++i) {
      widths.push_back(static_cast<int32_t>(i + n_shared >= local.size() ? 2 * width : width));
    }
    model.PerLayer("feed_forward_length", widths);
  }
  model.Uint("attention.shared_kv_layers", n_shared);
  model.Uint("embedding_length_per_layer_input", config.UintOr("hidden_size_per_layer_input", 0));
  AddGemmaLayers(model);
  // In layers without a window the first pairs rotate; the other pairs rotate 1e30 times slower.
  const double part = model.rope().ShareOr("partial_rotary_factor", 1);
  const auto n_rotated =
      static_cast<size_t>(std::floor(part * static_cast<double>(full_length) / 2));
  std::vector<float> divisors(full_length / 2, 1e30f);
  std::fill_n(divisors.begin(), n_rotated, 1.0f);
  model.Computed("rope_freqs.weight", std::move(divisors));
  model.Without("rope.scaling.type");
}

void Gemma4Assistant(OutModel& model) {
  Gemma4(model);
  model.Uint("embedding_length_out", model.config.Count("backbone_hidden_size"));
  model.Uint("nextn_predict_layers", model.n_layers());
}

constexpr Traits kGemma1 = {.activation = kernels::Activation::kGelu,
                            .output = OutputMatrix::kEmbedding},
                 kGemma2 = {.norms = kSandwichNorms,
                            .activation = kernels::Activation::kGelu,
                            .output = OutputMatrix::kEmbedding},
                 kGemma3 = {.norms = kSandwichNorms,
                            .qk_norm = QkNorm::kHeadBeforeRope,
                            .activation = kernels::Activation::kGelu},
                 kGemma4Traits = {.norms = kSandwichNorms,
                                  .qk_norm = QkNorm::kHeadBeforeRope,
                                  .activation = kernels::Activation::kGelu,
                                  .value_norm = true};

constexpr Family kGemmaRows[] = {
    {.name = "gemma",
     .traits = kGemma1,
     .scales_embeddings = true,
     .hf = {.names = {"GemmaForCausalLM"},
            .norms_plus_one = true,
            .tied = true,
            .defaults = kGemmaDefaults}},
    // A Gemma 2 without norms of outputs, and usually without caps (2025).
    {.name = "vaultgemma",
     .traits = kGemma1,
     .scales_embeddings = true,
     .windows = {Windows::When::kAlways, 2},
     .hf = {.names = {"VaultGemmaForCausalLM"},
            .norms_plus_one = true,
            .tied = true,
            .defaults = kGemma2Defaults,
            .add_keys = GemmaScale<0>}},
    {.name = "gemma2",
     .traits = kGemma2,
     .scales_embeddings = true,
     .windows = {Windows::When::kIfGiven, 2, Windows::Rope::kOwnBase, 0, 4096},
     .complete_config = Gemma2,
     .hf = {.names = {"Gemma2ForCausalLM"},
            .norms_plus_one = true,
            .tied = true,
            .defaults = kGemma2Defaults,
            .add_keys = GemmaScale<46>}},
    {.name = "gemma3",
     .traits = kGemma3,
     .scales_embeddings = true,
     .windows = {Windows::When::kIfGiven, 6, Windows::Rope::kUnscaled, 10000},
     .complete_config = Gemma3,
     .hf = {.names = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
            .norms_plus_one = true,
            .tied = true,
            .rope_theta = 1e6,
            .only = kGemma3Only,
            .defaults = kGemma3Defaults,
            .add_keys = GemmaScale<62>}},
    {.name = "gemma-embedding",
     .traits = kGemma3,
     .scales_embeddings = true,
     .complete_config = GemmaEmbedding,
     .hf = {.names = {"Gemma3TextModel"},
            .norms_plus_one = true,
            .rope_theta = 1e6,
            .tensors = {kDense},
            .only = kGemmaEmbeddingOnly,
            .defaults = kGemma3Defaults,
            .add_keys = GemmaEmbedding}},
    {.name = "gemma3n",
     .traits = kGemma4Traits,
     .scales_embeddings = true,
     .complete_config = Gemma3n,
     .hf = {.names = {"Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"},
            .tensors = {kGemma3n, kGemmaPerLayer},
            .keys = {kGemma3nKeys},
            .add_keys = Gemma3n}},
    {.name = "gemma4",
     .traits = kGemma4Traits,
     .scales_embeddings = true,
     .router = kSoftmax,
     .complete_config = Gemma4,
     .hf = {.names = {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"},
            .raw_bpe = true,
            .says_rope = true,
            .tensors = {kGemma4, kGemmaPerLayer},
            .add_keys = Gemma4}},
    {.name = "gemma4-assistant",
     .traits = kGemma3,
     .scales_embeddings = true,
     .complete_config = Gemma4Assistant,
     .hf = {.names = {"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"},
            .raw_bpe = true,
            .tensors = {kAssistant, kGemma4},
            .add_keys = Gemma4Assistant}},
};

}  // namespace

std::span<const Family> GemmaLineage() { return kGemmaRows; }

}  // namespace engine
