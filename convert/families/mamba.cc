// Mamba, Falcon-Mamba, Mamba-2 and Jamba. engine/model/families/mamba.cc explains the arithmetic.
#include <string>

#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

#define M "backbone.layers.{i}.mixer."
constexpr TensorRule kBackbone[] = {
    {"backbone.embeddings", "token_embd"},      {"backbone.norm_f", "output_norm"},
    {"backbone.layers.{i}.norm", ".attn_norm"}, {M "in_proj", ".ssm_in"},
    {M "conv1d", ".ssm_conv1d", kTaps},         {M "out_proj", ".ssm_out"},
};
constexpr TensorRule kMamba[] = {
    {M "x_proj", ".ssm_x"},
    {M "dt_proj", ".ssm_dt"},
    {M "A_log", ".ssm_a", kSame, Change::kMinusExp},
    {M "D", ".ssm_d"},
};
constexpr TensorRule kMamba2[] = {
    {M "dt_bias", ".ssm_dt.bias"},
    {M "A_log", ".ssm_a", kColumn, Change::kMinusExp},
    {M "D", ".ssm_d", kColumn},
    {M "norm", ".ssm_norm", kByGroup},
};
#undef M

constexpr TensorRule kJamba[] = {
    {"model.final_layernorm", "output_norm"},
    {".pre_ff_layernorm", ".ffn_norm"},
    {".mamba.in_proj", ".ssm_in"},
    {".mamba.conv1d", ".ssm_conv1d", kTaps},
    {".mamba.x_proj", ".ssm_x"},
    {".mamba.dt_proj", ".ssm_dt"},
    {".mamba.dt_layernorm", ".ssm_dt_norm"},
    {".mamba.b_layernorm", ".ssm_b_norm"},
    {".mamba.c_layernorm", ".ssm_c_norm"},
    {".mamba.A_log", ".ssm_a", kSame, Change::kMinusExp},
    {".mamba.D", ".ssm_d"},
    {".mamba.out_proj", ".ssm_out"},
    {".feed_forward.gate_proj", ".ffn_gate"},
    {".feed_forward.up_proj", ".ffn_up"},
    {".feed_forward.down_proj", ".ffn_down"},
    {".feed_forward.router", ".ffn_gate_inp"},
    {".feed_forward.experts.{e}.gate_proj", ".ffn_gate_exps"},
    {".feed_forward.experts.{e}.up_proj", ".ffn_up_exps"},
    {".feed_forward.experts.{e}.down_proj", ".ffn_down_exps"},
};

constexpr KeyRule kMambaKeys[] = {
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", kFloat},
    {"conv_kernel", "ssm.conv_kernel"},
    {"state_size", "ssm.state_size"},
    {"time_step_rank", "ssm.time_step_rank"},
    {"num_heads", "ssm.time_step_rank"},
    {"n_groups", "ssm.group_count"},
};
constexpr KeyRule kJambaKeys[] = {
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_dt_rank", "ssm.time_step_rank"},
};

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
  if (is_falcon) model.Bool("ssm.dt_b_c_rms", true);
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

constexpr Family kMambaRows[] = {
    {.name = "mamba",
     .hf = {"MambaForCausalLM", "FalconMambaForCausalLM"},
     .tensors = {kBackbone, kMamba},
     .keys = {kMambaKeys},
     .refine = MambaAlone,
     .defaults = kMambaDefaults},
    {.name = "mamba2",
     .hf = {"Mamba2ForCausalLM"},
     .tensors = {kBackbone, kMamba2},
     .keys = {kMambaKeys},
     .refine = MambaAlone,
     .defaults = kMambaDefaults},
    {.name = "jamba",
     .hf = {"JambaForCausalLM"},
     .tensors = {kJamba},
     .keys = {kJambaKeys},
     .refine = Jamba},
};

}  // namespace

std::span<const Family> MambaLineage() { return kMambaRows; }

}  // namespace convert
