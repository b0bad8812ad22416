// Granite, dense, with experts, and with Mamba-2.
#include <algorithm>
#include <string>
#include <vector>

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

// Bamba (IBM 2024) is a Granite 4 with a dense network and rope of half of a head.
constexpr TensorRule kBamba[] = {
    {"model.final_layernorm", "output_norm"}, {".pre_ff_layernorm", ".ffn_norm"},
    {".feed_forward.gate_proj", ".ffn_gate"}, {".feed_forward.up_proj", ".ffn_up"},
    {".feed_forward.down_proj", ".ffn_down"},
};
constexpr std::string_view kBambaDefaults = R"({"attention_multiplier": 0, "logits_scaling": 1.0,
    "num_key_value_heads": 8, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_d_state": 256,
    "mamba_n_heads": 128})";

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
  std::vector<bool> attends = LayersOfType(model, "attention");
  if (std::ranges::count(attends, true) == 0) attends = LayersOfType(model, "full_attention");
  if (attends.empty()) config.Fail("layer_types", "expected a name for each layer");
  AddHeads(attends, model);
  model.shapes.n_groups = config.CountOr("mamba_n_groups", 1);
  model.Uint("ssm.inner_size", config.CountOr("mamba_expand", 2) * config.Count("hidden_size"));
  const std::string positions = config.TextOr("position_embedding_type", "nope");
  model.Bool("rope.scaling.finetuned", positions == "rope");
  if (config.UintOr("num_local_experts", 0) > 0) return;
  model.Uint("feed_forward_length", config.Count("shared_intermediate_size"));
  model.Without("expert_shared_feed_forward_length");
}

void Bamba(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> attends = LayersOfType(model, "full_attention");
  if (attends.empty()) {
    attends.resize(model.n_layers());
    for (const uint64_t i : config.Wholes("attn_layer_indices", attends.size()))
      if (i < attends.size()) attends[i] = true;
  }
  AddHeads(attends, model);
  model.shapes.n_groups = config.Count("mamba_n_groups");
  model.Uint("ssm.inner_size", config.CountOr("mamba_expand", 2) * config.Count("hidden_size"));
}

constexpr Family kGraniteRows[] = {
    {.name = "granitehybrid",
     .hf = {"BambaForCausalLM"},
     .pairs_neighbours = true,
     .tensors = {kBamba, kMixer},
     .keys = {kGraniteKeys, kMixerKeys},
     .refine = Bamba,
     .rotary_part = 0.5,
     .defaults = kBambaDefaults},
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
