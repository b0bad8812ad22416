// Gemma 2, 3, 3n and 4, EmbeddingGemma.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "convert/families/families.h"

namespace convert {
namespace {

using enum KeyKind;

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

// What an assistant has beside Gemma 4's layers; clusters of tokens are not used.
constexpr TensorRule kAssistant[] = {
    {"pre_projection", "nextn.pre_projection"},
    {"post_projection", "nextn.post_projection"},
    {"masked_embedding.centroids", ""},
    {"masked_embedding.token_ordering", ""},
};

constexpr TensorRule kVaultGemma[] = {{".pre_feedforward_layernorm", ".ffn_norm"}};
constexpr TensorRule kDense[] = {{"2_Dense.linear", "dense_2"}, {"3_Dense.linear", "dense_3"}};
constexpr UsualValue kGemmaEmbeddingUsual[] = {{"use_bidirectional_attention", 1}};
constexpr UsualValue kGemma3Usual[] = {{"use_bidirectional_attention", 0}};

constexpr KeyRule kGemmaKeys[] = {
    {"final_logit_softcapping", "final_logit_softcapping", kFloat},
    {"sliding_window", "attention.sliding_window"},
};
constexpr KeyRule kGemma2Keys[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", kFloat},
};
constexpr KeyRule kGemma3nKeys[] = {
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input"},
    {"num_kv_shared_layers", "attention.shared_kv_layers"},
    {"altup_active_idx", "altup.active_idx"},
    {"altup_num_inputs", "altup.num_inputs"},
};

// Readers take Gemma's attention scale from the head's length, but for the largest model's.
void AddGemmaScale(OutModel& model, uint64_t n_layers_of_largest) {
  const Fields& config = model.config;
  const bool largest = model.n_layers() == n_layers_of_largest;
  const auto expected = static_cast<double>(
      largest ? config.Count("hidden_size") / model.shapes.n_heads : model.head_dim());
  const double found = config.NumberOr("query_pre_attn_scalar", 256);
  if (!(found > 0)) config.Fail("query_pre_attn_scalar", "expected a number above 0");
  if (found != expected) model.Float("attention.scale", 1 / std::sqrt(found));
}

void Gemma2(OutModel& model) {
  AddGemmaScale(model, 46);
  AddWindows(2, model);
}

void VaultGemma(OutModel& model) {
  AddGemmaScale(model, 0);
  AddWindows(2, model);
}

// Hugging Face's defaults for keys that config.json of a model with images omits.
constexpr std::string_view kGemma3Defaults = R"({
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "sliding_window": 4096})";
constexpr std::string_view kGemmaDefaults =
    R"({"num_key_value_heads": 16, "head_dim": 256, "rms_norm_eps": 1e-6})";
constexpr std::string_view kGemma2Defaults =
    R"({"num_key_value_heads": 4, "head_dim": 256, "rms_norm_eps": 1e-6, "sliding_window": 4096,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0})";

void Gemma3(OutModel& model) {
  const Fields& config = model.config;
  AddGemmaScale(model, 62);
  const double base = LocalBase(config, "rope_local_base_freq");
  if (base != 10000) model.Float("rope.freq_base_swa", base);
  const uint64_t period =
      config.UintOr("sliding_window_pattern", config.UintOr("_sliding_window_pattern", 6));
  if (period != 6) model.Uint("attention.sliding_window_pattern", period);
  AddWindows(period, model);
}

// After pooling two matrices may widen the vector and narrow it again.
void GemmaEmbedding(OutModel& model) {
  Gemma3(model);
  if (!model.config.Has("use_bidirectional_attention"))
    model.config.Fail("use_bidirectional_attention",
                      "expected true: without it tokens see earlier ones alone");
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
  // In layers without a window only the first pairs rotate, the others 1e30 times slower.
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

constexpr Family kGemmaRows[] = {
    {.name = "gemma",
     .hf = {"GemmaForCausalLM"},
     .norms_plus_one = true,
     .activation = "gelu",
     .tied = true,
     .defaults = kGemmaDefaults},
    {.name = "vaultgemma",
     .hf = {"VaultGemmaForCausalLM"},
     .norms_plus_one = true,
     .activation = "gelu",
     .tensors = {kVaultGemma},
     .keys = {kGemma2Keys, kGemmaKeys},
     .refine = VaultGemma,
     .tied = true,
     .defaults = kGemma2Defaults},
    {.name = "gemma2",
     .hf = {"Gemma2ForCausalLM"},
     .norms_plus_one = true,
     .activation = "gelu",
     .tensors = {kSandwichNorms},
     .keys = {kGemma2Keys, kGemmaKeys},
     .refine = Gemma2,
     .tied = true,
     .defaults = kGemma2Defaults},
    {.name = "gemma3",
     .hf = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
     .norms_plus_one = true,
     .activation = "gelu",
     .tensors = {kSandwichNorms},
     .keys = {kGemma2Keys, kGemmaKeys},
     .usual = kGemma3Usual,
     .refine = Gemma3,
     .rope_theta = 1e6,
     .tied = true,
     .defaults = kGemma3Defaults},
    {.name = "gemma-embedding",
     .hf = {"Gemma3TextModel"},
     .norms_plus_one = true,
     .activation = "gelu",
     .tensors = {kDense, kSandwichNorms},
     .keys = {kGemma2Keys, kGemmaKeys},
     .usual = kGemmaEmbeddingUsual,
     .refine = GemmaEmbedding,
     .rope_theta = 1e6,
     .defaults = kGemma3Defaults},
    {.name = "gemma3n",
     .hf = {"Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"},
     .activation = "gelu",
     .tensors = {kGemma3n, kSandwichNorms, kGemmaPerLayer},
     .keys = {kGemmaKeys, kGemma3nKeys},
     .refine = Gemma3n},
    {.name = "gemma4",
     .hf = {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"},
     .raw_bpe = true,
     .activation = "gelu",
     .tensors = {kGemma4, kSandwichNorms, kGemmaPerLayer},
     .keys = {kGemmaKeys, kExpertSizes},
     .refine = Gemma4},
    {.name = "gemma4-assistant",
     .hf = {"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"},
     .raw_bpe = true,
     .activation = "gelu",
     .tensors = {kAssistant, kGemma4, kSandwichNorms},
     .keys = {kGemmaKeys},
     .refine = Gemma4Assistant},
};

}  // namespace

std::span<const Family> GemmaLineage() { return kGemmaRows; }

}  // namespace convert
