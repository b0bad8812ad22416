// Llama, Mistral, Mixtral, SmolLM3, Ministral 3, Arcee, Nanbeige.
#include "convert/families/families.h"

namespace convert {
namespace {

constexpr KeyRule kNanbeigeKeys[] = {
    {"num_loops", "num_loops"},
    {"skip_loop_final_norm", "skip_loop_final_norm", KeyKind::kBool},
};
constexpr UsualValue kSmolLm3Usual[] = {{"no_rope_layer_interval", 4}};

void Llama(OutModel& model) {
  if (model.config.Has("sliding_window")) LeaveOutWindow(model);
}

void SmolLm3(OutModel& model) {
  const std::vector<double> rotates = model.config.Numbers("no_rope_layers");  // 0: no rope
  for (size_t i = 0; i < rotates.size(); ++i) {
    if ((rotates[i] == 0) == (i % 4 == 3)) continue;
    model.config.Fail("no_rope_layers", "expected 0 for every fourth layer alone");
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
     .tensors = {kBlockSparse},
     .keys = {kExpertSizes, kExpertKeys},
     .refine = Llama},
    {.name = "smollm3",
     .hf = {"SmolLM3ForCausalLM"},
     .pairs_neighbours = true,
     .usual = kSmolLm3Usual,
     .refine = SmolLm3},
    {.name = "mistral3",
     .hf = {"Ministral3ForCausalLM"},
     .pairs_neighbours = true,
     .refine = Mistral3},
    {.name = "arcee", .hf = {"ArceeForCausalLM"}, .pairs_neighbours = true, .activation = "relu2"},
    {.name = "nanbeige",
     .hf = {"NanbeigeForCausalLM"},
     .pairs_neighbours = true,
     .keys = {kNanbeigeKeys}},
};

}  // namespace

std::span<const Family> LlamaLineage() { return kLlamaRows; }

}  // namespace convert
