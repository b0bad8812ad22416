// Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024) as models of their own; Falcon-Mamba (TII
// 2024), a Mamba with norms inside; Jamba (AI21 2024), which has attention without rope in some
// layers and experts in others; Falcon-H1 (TII 2025), which has Mamba-2 beside attention.

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

// ---- What a file means.

void MambaLayers(const Keys& keys, Config& config) {
  RecurrentPlan mamba;
  mamba.n_taps = keys.Count("ssm.conv_kernel", kernels::kMaxTaps);
  mamba.channels = mamba.n_value_heads = keys.Count("ssm.inner_size", kMaxLength);
  mamba.n_key_heads = mamba.value_length = 1;
  mamba.key_length = keys.Count("ssm.state_size", kMaxStateLength);
  mamba.rank = keys.Count("ssm.time_step_rank", kMaxLength);
  mamba.n_alpha = mamba.channels;
  mamba.n_beta = 2 * mamba.key_length;
  mamba.normed = keys.BoolOr("ssm.dt_b_c_rms", false) || config.ssm_norms == Presence::kRequired;
  mamba.norm_eps = static_cast<float>(keys.PositiveOr("ssm.dt_b_c_rms_epsilon", config.norm_eps));
  for (LayerPlan& layer : config.layers) {
    layer.rope = LayerPlan::kNoRope;
    if (layer.mixer == Mixer::kMamba) SetMixer(Mixer::kMamba, mamba, layer);
  }
}

void FalconH1(const Keys& keys, Config& config) {
  for (LayerPlan& layer : config.layers) {
    layer.beside = Mixer::kMamba2;
    layer.recurrent = ReadMamba2(keys);
  }
  config.ropes[0].divided = false;
  for (LayerPlan& layer : config.layers)  // whatever a key says
    layer.attention_scale = 1 / std::sqrt(static_cast<float>(layer.key_length));
}

// ---- What a folder means.

using enum KeyKind;

constexpr TensorRule kMamba[] = {
    {".mixer.x_proj", ".ssm_x"},
    {".mixer.dt_proj", ".ssm_dt"},
    {".mixer.A_log", ".ssm_a", Order::kSame, Change::kMinusExp},
    {".mixer.D", ".ssm_d"},
};
constexpr TensorRule kJamba[] = {
    {"model.final_layernorm", "output_norm"},
    {".pre_ff_layernorm", ".ffn_norm"},
    {".mixer.dt_layernorm", ".ssm_dt_norm"},
    {".mixer.b_layernorm", ".ssm_b_norm"},
    {".mixer.c_layernorm", ".ssm_c_norm"},
    {".feed_forward.gate_proj", ".ffn_gate"},
    {".feed_forward.up_proj", ".ffn_up"},
    {".feed_forward.down_proj", ".ffn_down"},
    {".feed_forward.router", ".ffn_gate_inp"},
    {".feed_forward.experts.{e}.gate_proj", ".ffn_gate_exps"},
    {".feed_forward.experts.{e}.up_proj", ".ffn_up_exps"},
    {".feed_forward.experts.{e}.down_proj", ".ffn_down_exps"},
};
constexpr TensorRule kFalconH1[] = {{".pre_ff_layernorm", ".ffn_norm."}};

constexpr KeyRule kMambaKeys[] = {
    {"conv_kernel", "ssm.conv_kernel"},
    {"state_size", "ssm.state_size"},
    {"time_step_rank", "ssm.time_step_rank"},
    {"n_groups", "ssm.group_count"},
};
constexpr KeyRule kMamba2Keys[] = {{"num_heads", "ssm.time_step_rank"}};
constexpr KeyRule kJambaKeys[] = {
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_dt_rank", "ssm.time_step_rank"},
};

constexpr Usual kFalconH1Only[] = {
    {"attention_bias", 0}, {"mlp_bias", 0}, {"mamba_norm_before_gate", 0}};

// A text may have any length; there are no heads.
constexpr Usual kMambaDefaults[] = {{"max_position_embeddings", 1 << 20},
                                    {"num_attention_heads", 1}};
constexpr Usual kJambaDefaults[] = {{"num_experts", 16}, {"num_experts_per_tok", 2}};

void MambaAlone(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t expanded = config.CountOr("expand", 2) * config.Count("hidden_size");
  const uint64_t inner = config.Has("num_heads")
                             ? config.Count("num_heads") * config.Count("head_dim")
                             : config.CountOr("intermediate_size", expanded);
  model.Uint("attention.head_count", 0);
  model.Uint("feed_forward_length", 0);
  model.Uint("ssm.inner_size", inner);
  model.shapes.n_groups = config.CountOr("n_groups", 1);
  const bool is_falcon = model.folder.config().Texts("architectures")[0].starts_with("Falcon");
  if (is_falcon) {
    model.Bool("ssm.dt_b_c_rms", true);
    model.Float("ssm.dt_b_c_rms_epsilon", config.NumberOr("mixer_rms_eps", 1e-6));
  }
  for (const char* const key : {"attention.head_count_kv", "attention.key_length",
                                "attention.value_length", "rope.dimension_count"}) {
    model.Without(key);
  }
}

void Jamba(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t period = config.CountOr("attn_layer_period", 8);
  const uint64_t offset = config.UintOr("attn_layer_offset", 4);
  std::vector<bool> attends(model.n_layers());
  for (uint64_t i = offset; i < attends.size(); i += period) attends[i] = true;
  AddHeads(attends, model);
  model.Uint("ssm.inner_size", config.CountOr("mamba_expand", 2) * config.Count("hidden_size"));
  model.Without("rope.dimension_count");
  if (config.UintOr("num_experts", 16) > 1) return;
  for (const char* const key : {"expert_count", "expert_used_count"}) model.Without(key);
}

// Multipliers become part of the weights.
void FalconH1(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t expanded = config.CountOr("mamba_expand", 2) * config.Count("hidden_size");
  const uint64_t inner = config.CountOr("mamba_d_ssm", expanded);
  model.Uint("ssm.inner_size", inner);
  model.shapes.n_groups = config.CountOr("mamba_n_groups", 1);
  const uint64_t group = model.shapes.n_groups * config.Count("mamba_d_state");
  // Number i of n.
  const auto factor = [&](const char* key, size_t i = 0, size_t n = 1) {
    const std::vector<double> found = config.Numbers(key);
    if (!found.empty() && found.size() != n) config.Fail(key, "expected ", n, " numbers");
    return found.empty() ? 1 : static_cast<float>(found[i]);
  };
  const auto scale = [&](std::string_view tensor, float by, uint64_t end = UINT64_MAX) {
    model.factors[tensor].emplace_back(end, by);
  };
  const float in = factor("attention_in_multiplier"), ssm_in = factor("ssm_in_multiplier");
  scale("token_embd", factor("embedding_multiplier"));
  scale("output", factor("lm_head_multiplier"));
  scale(".attn_q", in);
  scale(".attn_k", in * factor("key_multiplier"));
  scale(".attn_v", in);
  scale(".attn_output", factor("attention_out_multiplier"));
  scale(".ffn_gate", factor("mlp_multipliers", 0, 2));
  scale(".ffn_down", factor("mlp_multipliers", 1, 2));
  scale(".ssm_out", factor("ssm_out_multiplier"));
  const uint64_t ends[] = {inner, 2 * inner, 2 * inner + group, 2 * (inner + group), UINT64_MAX};
  for (size_t i = 0; i < 5; ++i)
    scale(".ssm_in", ssm_in * factor("ssm_multipliers", i, 5), ends[i]);
  if (config.BoolOr("tie_word_embeddings", false) &&
      factor("embedding_multiplier") != factor("lm_head_multiplier"))
    config.Fail("lm_head_multiplier", "expected as embedding_multiplier: they share a matrix");
}

constexpr Family kMambaRows[] = {
    {.name = "mamba",
     .traits = {.ssm_norms = Presence::kNone},
     .without_heads = Mixer::kMamba,
     .refine = MambaLayers,
     .hf = {.names = {"MambaForCausalLM", "FalconMambaForCausalLM"},
            .tensors = {kMamba, kMixer},
            .keys = {kMambaKeys},
            .defaults = kMambaDefaults,
            .refine = MambaAlone}},
    {.name = "mamba2",
     .without_heads = Mixer::kMamba2,
     .refine = SetMamba2,
     .hf = {.names = {"Mamba2ForCausalLM"},
            .tensors = {kMixer},
            .keys = {kMamba2Keys, kMambaKeys},
            .defaults = kMambaDefaults,
            .refine = MambaAlone}},
    {.name = "jamba",
     .without_heads = Mixer::kMamba,
     .router = kByKeys,
     .dense_layers = DenseLayers::kWithoutRouter,
     .refine = MambaLayers,
     .hf = {.names = {"JambaForCausalLM"},
            .tensors = {kJamba, kMamba, kMixer},
            .keys = {kJambaKeys},
            .defaults = kJambaDefaults,
            .refine = Jamba}},
    {.name = "falcon-h1",
     .traits = {.ssm_norms = Presence::kOptional},
     .refine = FalconH1,
     .hf = {.names = {"FalconH1ForCausalLM"},
            .tensors = {kFalconH1, kMixer, kJamba},
            .keys = {kMixerKeys},
            .only = kFalconH1Only,
            .refine = FalconH1}},
};

}  // namespace

std::span<const Family> MambaLineage() { return kMambaRows; }

}  // namespace engine
