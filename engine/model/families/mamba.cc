// Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024) as models of their own; Falcon-Mamba (TII
// 2024), a Mamba with norms inside; Jamba (AI21 2024), which has attention without rope in some
// layers and experts in others; Falcon-H1 (TII 2025), which has Mamba-2 beside attention;
// MiniMax-01 (2025), whose layers are lightning attention (Qin et al. 2024) but for every eighth.

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
    layer.second_mixer = Mixer::kMamba2;
    layer.recurrent = ReadMamba2(keys);
  }
  config.ropes[0].uses_divisors = false;
  for (LayerPlan& layer : config.layers)  // even if a key says otherwise
    layer.score_scale = 1 / std::sqrt(static_cast<float>(layer.key_length));
}

// Head j of n fades at the rate 2^(-8 (j + 1) / n), more slowly in later layers. Norms of mixers'
// and networks' inputs replace the stream.
void MiniMax01(const Keys& keys, Config& config) {
  config.stream_scale = static_cast<float>(keys.Positive("residual_scale"));
  config.residual_scale = 1;
  const size_t n_layers = config.n_layers();
  const std::vector<bool> recurrent = ReadRecurrentLayers(keys, 8, n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    if (!recurrent[i]) continue;
    LayerPlan& layer = config.layers[i];
    const size_t n = layer.n_heads, length = layer.key_length;
    if (length > kMaxStateLength || layer.value_length != length) {
      keys.Fail("attention.value_length", "expected as key_length, up to ", kMaxStateLength,
                ", found ", layer.value_length, " and ", length);
    }
    RecurrentPlan plan = {.n_taps = 1,
                          .channels = 3 * n * length,
                          .n_key_heads = n,
                          .n_value_heads = n,
                          .key_length = length,
                          .value_length = length,
                          .n_alpha = n,
                          .norm_eps = 1e-6f,
                          .rates = {}};
    const double depth = static_cast<double>(i) / (static_cast<double>(n_layers - 1) + 1e-5);
    for (size_t j = 0; j < n; ++j) {
      const double power = 8 * static_cast<double>(j + 1) / static_cast<double>(n);
      plan.rates.push_back(static_cast<float>(-std::exp2(-power) * (1 - depth + 1e-5)));
    }
    SetMixer(Mixer::kLightning, plan, layer);
  }
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

constexpr TensorRule kMiniMax01[] = {
    {".self_attn.qkv_proj", ".attn_qkv"},
    {".self_attn.norm", ".attn_norm_2"},
    {".self_attn.output_gate", ".attn_gate"},
    {".self_attn.out_proj", ".attn_output"},
    // Computed from the numbers of layers and heads.
    {".self_attn.slope_rate", ""},
    {".self_attn.query_decay", ""},
    {".self_attn.key_decay", ""},
    {".self_attn.diagonal_decay", ""},
};

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

constexpr KeyValue kFalconH1Only[] = {
    {"attention_bias", 0}, {"mlp_bias", 0}, {"mamba_norm_before_gate", 0}};

// A text may have any length; there are no heads.
constexpr KeyValue kMambaDefaults[] = {{"max_position_embeddings", 1 << 20},
                                       {"num_attention_heads", 1}};
constexpr KeyValue kMiniMax01Only[] = {
    {"full_attn_beta_factor", 1}, {"linear_attn_beta_factor", 1}, {"mlp_beta_factor", 1}};
constexpr KeyValue kMiniMax01Defaults[] = {{"num_key_value_heads", 8},
                                           {"num_local_experts", 8},
                                           {"num_experts_per_tok", 2},
                                           {"rms_norm_eps", 1e-5},
                                           {"mlp_alpha_factor", 1}};
constexpr KeyValue kJambaDefaults[] = {{"num_experts", 16}, {"num_experts_per_tok", 2}};

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

// A file has one scale of the stream. The authors' code rotates a part of each head, which
// transformers' class cannot.
void MiniMax01(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> recurrent = LayersOfType(model, "linear_attention");
  const std::vector<bool> attends = LayersOfType(model, "full_attention");
  for (size_t i = 0; i < recurrent.size(); ++i) {
    if (recurrent[i] == attends[i])
      config.Fail("layer_types", "expected full_attention or linear_attention");
  }
  for (size_t i = recurrent.size(); i < model.n_layers(); ++i) recurrent.push_back(i % 2 != 0);
  model.PerLayer("attention.recurrent_layers", recurrent);
  const double scale = config.Number("mlp_alpha_factor");
  for (const char* const key : {"full_attn_alpha_factor", "linear_attn_alpha_factor"}) {
    if (config.NumberOr(key, 1) != scale)
      config.Fail(key, "expected as mlp_alpha_factor, ", scale, ": a file has one number for both");
  }
  model.Float("residual_scale", scale);
  if (config.UintOr("rotary_dim", model.head_dim()) != model.head_dim())
    config.Fail("rotary_dim", "expected head_dim, ", model.head_dim());
  if (config.Has("sliding_window")) config.Fail("sliding_window", "expected none");
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
     .complete_config = MambaLayers,
     .hf = {.names = {"MambaForCausalLM", "FalconMambaForCausalLM"},
            .tensors = {kMamba, kMixer},
            .keys = {kMambaKeys},
            .defaults = kMambaDefaults,
            .add_keys = MambaAlone}},
    {.name = "mamba2",
     .without_heads = Mixer::kMamba2,
     .complete_config = SetMamba2,
     .hf = {.names = {"Mamba2ForCausalLM"},
            .tensors = {kMixer},
            .keys = {kMamba2Keys, kMambaKeys},
            .defaults = kMambaDefaults,
            .add_keys = MambaAlone}},
    {.name = "jamba",
     .without_heads = Mixer::kMamba,
     .router = kByKeys,
     .dense_layers = DenseLayers::kWithoutRouter,
     .complete_config = MambaLayers,
     .hf = {.names = {"JambaForCausalLM"},
            .tensors = {kJamba, kMamba, kMixer},
            .keys = {kJambaKeys},
            .defaults = kJambaDefaults,
            .add_keys = Jamba}},
    {.name = "falcon-h1",
     .traits = {.ssm_norms = Presence::kOptional},
     .complete_config = FalconH1,
     .hf = {.names = {"FalconH1ForCausalLM"},
            .tensors = {kFalconH1, kMixer, kJamba},
            .keys = {kMixerKeys},
            .only = kFalconH1Only,
            .add_keys = FalconH1}},
    {.name = "minimax-01",
     .traits = {.norms_stream = true},
     .router = kSoftmax,
     .complete_config = MiniMax01,
     .hf = {.names = {"MiniMaxForCausalLM"},
            .rope_theta = 1e6,
            .tensors = {kMiniMax01},
            .only = kMiniMax01Only,
            .defaults = kMiniMax01Defaults,
            .add_keys = MiniMax01}},
};

}  // namespace

std::span<const Family> MambaLineage() { return kMambaRows; }

}  // namespace engine
