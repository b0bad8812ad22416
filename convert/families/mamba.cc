// Mamba, Mamba-2, Jamba and Falcon-H1.
#include <cstdint>
#include <vector>

#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

constexpr TensorRule kMamba[] = {
    {".mixer.x_proj", ".ssm_x"},
    {".mixer.dt_proj", ".ssm_dt"},
    {".mixer.A_log", ".ssm_a", kSame, Change::kMinusExp},
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
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", kFloat},
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

constexpr UsualValue kFalconH1Usual[] = {
    {"attention_bias", 0}, {"mlp_bias", 0}, {"mamba_norm_before_gate", 0}};

// A text may have any length; there are no heads.
constexpr std::string_view kMambaDefaults = R"({
    "max_position_embeddings": 1048576, "num_attention_heads": 1})";

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
  if (config.UintOr("num_experts", 16) < 2) return;
  model.Uint("expert_count", config.CountOr("num_experts", 16));
  model.Uint("expert_used_count", config.CountOr("num_experts_per_tok", 2));
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
     .hf = {"MambaForCausalLM", "FalconMambaForCausalLM"},
     .tensors = {kMamba, kMixer},
     .keys = {kMambaKeys},
     .refine = MambaAlone,
     .defaults = kMambaDefaults},
    {.name = "mamba2",
     .hf = {"Mamba2ForCausalLM"},
     .tensors = {kMixer},
     .keys = {kMamba2Keys, kMambaKeys},
     .refine = MambaAlone,
     .defaults = kMambaDefaults},
    {.name = "jamba",
     .hf = {"JambaForCausalLM"},
     .tensors = {kJamba, kMamba, kMixer},
     .keys = {kJambaKeys},
     .refine = Jamba},
    {.name = "falcon-h1",
     .hf = {"FalconH1ForCausalLM"},
     .tensors = {kFalconH1, kMixer, kJamba},
     .keys = {kMixerKeys},
     .usual = kFalconH1Usual,
     .refine = FalconH1},
};

}  // namespace

std::span<const Family> MambaLineage() { return kMambaRows; }

}  // namespace convert
