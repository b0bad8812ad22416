// Granite, dense, with experts, and with Mamba-2. engine/model/families/granite.cc explains the
// arithmetic.
#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

// In models with experts, shared_mlp is the shared expert; otherwise it is the whole network.
constexpr TensorRule kGraniteExperts[] = {
    {".block_sparse_moe.router.layer", ".ffn_gate_inp"},
    {".block_sparse_moe.input_linear", ".ffn_gate_exps", kFirstHalf},
    {".block_sparse_moe.input_linear", ".ffn_up_exps", kSecondHalf},
    {".block_sparse_moe.output_linear", ".ffn_down_exps"},
    {".shared_mlp.input_linear", ".ffn_gate_shexp", kFirstHalf},
    {".shared_mlp.input_linear", ".ffn_up_shexp", kSecondHalf},
    {".shared_mlp.output_linear", ".ffn_down_shexp"},
};
constexpr TensorRule kGraniteDense[] = {
    {".shared_mlp.input_linear", ".ffn_gate", kFirstHalf},
    {".shared_mlp.input_linear", ".ffn_up", kSecondHalf},
    {".shared_mlp.output_linear", ".ffn_down"},
};

constexpr TensorRule kGraniteMamba[] = {
    {".mamba.in_proj", ".ssm_in"},      {".mamba.conv1d", ".ssm_conv1d", kTaps},
    {".mamba.dt_bias", ".ssm_dt.bias"}, {".mamba.A_log", ".ssm_a", kColumn, Change::kMinusExp},
    {".mamba.D", ".ssm_d", kColumn},    {".mamba.norm", ".ssm_norm", kByGroup},
    {".mamba.out_proj", ".ssm_out"},
};

constexpr KeyRule kGraniteKeys[] = {
    {"attention_multiplier", "attention.scale", kFloat},
    {"embedding_multiplier", "embedding_scale", kFloat},
    {"residual_multiplier", "residual_scale", kFloat},
    {"logits_scaling", "logit_scale", kFloat},
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"shared_intermediate_size", "expert_shared_feed_forward_length"},
};
constexpr KeyRule kGraniteMambaKeys[] = {
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_n_groups", "ssm.group_count"},
    {"mamba_n_heads", "ssm.time_step_rank"},
};

void GraniteHybrid(OutModel& model) {
  const Fields& config = model.config;
  const std::vector<bool> attends = LayersOfType(model, "attention");
  if (attends.empty()) config.Fail("layer_types", "expected a name for each layer");
  AddHeads(attends, model);
  model.shapes.n_groups = config.CountOr("mamba_n_groups", 1);
  model.Uint("ssm.inner_size", config.CountOr("mamba_expand", 2) * config.Count("hidden_size"));
  const std::string positions = config.TextOr("position_embedding_type", "rope");
  model.Bool("rope.scaling.finetuned", positions == "rope");
  if (config.UintOr("num_local_experts", 0) > 0) return;
  model.Uint("feed_forward_length", config.Count("shared_intermediate_size"));
  for (const char* const key :
       {"expert_count", "expert_used_count", "expert_shared_feed_forward_length"}) {
    model.Without(key);
  }
}

constexpr Family kGraniteRows[] = {
    {.name = "granite",
     .hf = {"GraniteForCausalLM"},
     .pairs_neighbours = true,
     .keys = {kGraniteKeys}},
    {.name = "granitemoe",
     .hf = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"},
     .pairs_neighbours = true,
     .tensors = {kGraniteExperts},
     .keys = {kGraniteKeys}},
    {.name = "granitehybrid",
     .hf = {"GraniteMoeHybridForCausalLM"},
     .experts = Experts::kSome,
     .pairs_neighbours = true,
     .tensors = {kGraniteMamba, kGraniteExperts},
     .keys = {kGraniteKeys, kGraniteMambaKeys},
     .refine = GraniteHybrid},
    {.name = "granitehybrid",
     .hf = {"GraniteMoeHybridForCausalLM"},
     .experts = Experts::kNone,
     .pairs_neighbours = true,
     .tensors = {kGraniteMamba, kGraniteDense},
     .keys = {kGraniteKeys, kGraniteMambaKeys},
     .refine = GraniteHybrid},
};

}  // namespace

std::span<const Family> GraniteLineage() { return kGraniteRows; }

}  // namespace convert
