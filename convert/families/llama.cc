// Llama, Mistral, Mixtral, SmolLM3, Ministral 3. engine/model/families/llama.cc explains the
// arithmetic.
#include "convert/families/families.h"

namespace convert {
namespace {

constexpr TensorRule kMixtral[] = {
    {".block_sparse_moe.gate", ".ffn_gate_inp"},
    {".block_sparse_moe.experts.{e}.w1", ".ffn_gate_exps"},
    {".block_sparse_moe.experts.{e}.w2", ".ffn_down_exps"},
    {".block_sparse_moe.experts.{e}.w3", ".ffn_up_exps"},
};

constexpr KeyRule kMixtralKeys[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};

void Llama(OutModel& model) {
  if (model.config.Has("sliding_window")) LeaveOutWindow(model);
}

void SmolLm3(OutModel& model) {
  const std::vector<double> rotates = model.config.Numbers("no_rope_layers");  // 0: no rope
  for (size_t i = 0; i < rotates.size(); ++i) {
    if ((rotates[i] == 0) == (i % 4 == 3)) continue;
    model.config.Fail("no_rope_layers", "expected 0 for every fourth layer alone");
  }
  if (model.config.UintOr("no_rope_layer_interval", 4) != 4) {
    model.config.Fail("no_rope_layer_interval", "expected 4");
  }
}

void Mistral3(OutModel& model) {
  const Fields rope = model.rope();
  if (rope.Has("mscale_all_dim")) {
    const double all = rope.Number("mscale_all_dim");
    if (rope.NumberOr("mscale", all) != all) rope.Fail("mscale", "expected as mscale_all_dim");
    model.Float("rope.scaling.yarn_log_multiplier", all);
  }
  if (rope.Has("llama_4_scaling_beta")) {
    model.Float("attention.temperature_scale", rope.Number("llama_4_scaling_beta"));
  }
}

constexpr Family kLlamaRows[] = {
    {.name = "llama",
     .hf = {"LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM", "MixtralForCausalLM"},
     .pairs_neighbours = true,
     .tensors = {kMixtral},
     .keys = {kMixtralKeys},
     .refine = Llama},
    {.name = "smollm3", .hf = {"SmolLM3ForCausalLM"}, .pairs_neighbours = true, .refine = SmolLm3},
    {.name = "mistral3",
     .hf = {"Ministral3ForCausalLM"},
     .pairs_neighbours = true,
     .refine = Mistral3},
};

}  // namespace

std::span<const Family> LlamaLineage() { return kLlamaRows; }

}  // namespace convert
