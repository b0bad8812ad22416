// Granite, dense, with experts, and with Mamba-2.
#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

// In models with experts, shared_mlp is the shared expert; otherwise it is the whole network.
constexpr TensorRule kGraniteExperts[] = {
    {".mlp.router.layer", ".ffn_gate_inp"},
    {".mlp.input_linear", ".ffn_gate_exps", kFirstHalf},
    {".mlp.input_linear", ".ffn_up_exps", kSecondHalf},
    {".mlp.output_linear", ".ffn_down_exps"},
    {".shared_mlp.input_linear", ".ffn_gate_shexp", kFirstHalf},
    {".shared_mlp.input_linear", ".ffn_up_shexp", kSecondHalf},
    {".shared_mlp.output_linear", ".ffn_down_shexp"},
};
constexpr TensorRule kGraniteDense[] = {
    {".shared_mlp.input_linear", ".ffn_gate", kFirstHalf},
    {".shared_mlp.input_linear", ".ffn_up", kSecondHalf},
    {".shared_mlp.output_linear", ".ffn_down"},
};

constexpr KeyRule kGraniteKeys[] = {
    {"attention_multiplier", "attention.scale", kFloat},
    {"embedding_multiplier", "embedding_scale", kFloat},
    {"residual_multiplier", "residual_scale", kFloat},
    {"logits_scaling", "logit_scale", kFloat},
    {"shared_intermediate_size", "expert_shared_feed_forward_length"},
};

constexpr std::string_view kGraniteDefaults = R"({"attention_multiplier": 1.0,
    "embedding_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0})";

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
  model.Without("expert_shared_feed_forward_length");
}

constexpr Family kGraniteRows[] = {
    {.name = "granite",
     .hf = {"GraniteForCausalLM"},
     .pairs_neighbours = true,
     .keys = {kGraniteKeys},
     .defaults = kGraniteDefaults},
    {.name = "granitemoe",
     .hf = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"},
     .pairs_neighbours = true,
     .tensors = {kGraniteExperts},
     .keys = {kGraniteKeys, kExpertSizes},
     .defaults = kGraniteDefaults},
    {.name = "granitehybrid",
     .hf = {"GraniteMoeHybridForCausalLM"},
     .experts = Experts::kSome,
     .pairs_neighbours = true,
     .tensors = {kMixer, kGraniteExperts},
     .keys = {kGraniteKeys, kExpertSizes, kMixerKeys},
     .refine = GraniteHybrid,
     .defaults = kGraniteDefaults},
    {.name = "granitehybrid",
     .hf = {"GraniteMoeHybridForCausalLM"},
     .experts = Experts::kNone,
     .pairs_neighbours = true,
     .tensors = {kMixer, kGraniteDense},
     .keys = {kGraniteKeys, kMixerKeys},
     .refine = GraniteHybrid,
     .defaults = kGraniteDefaults},
};

}  // namespace

std::span<const Family> GraniteLineage() { return kGraniteRows; }

}  // namespace convert
