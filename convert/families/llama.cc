// Llama, Mistral, Mixtral, SmolLM3, Ministral 3, Arcee, Nanbeige.
#include "convert/families/families.h"

namespace convert {
namespace {

constexpr KeyRule kNanbeigeKeys[] = {
    {"num_loops", "num_loops"},
    {"skip_loop_final_norm", "skip_loop_final_norm", KeyKind::kBool},
};
constexpr UsualValue kSmolLm3Usual[] = {{"no_rope_layer_interval", 4}, {"use_sliding_window", 0}};

// Values that the classes have where config.json omits them.
constexpr std::string_view kMistralDefaults = R"({"num_key_value_heads": 8})";
constexpr std::string_view kCwmDefaults = R"({"num_key_value_heads": 8, "head_dim": 128})";
constexpr std::string_view kHeliumDefaults =
    R"({"num_key_value_heads": 20, "head_dim": 128, "rms_norm_eps": 1e-8})";

// Mistral's window is in all layers, unless a list says otherwise.
void Mistral(OutModel& model) {
  const Fields& config = model.config;
  if (config.Has("sliding_window") &&
      config.Count("sliding_window") < config.Count("max_position_embeddings")) {
    AddWindowsAsList(model);
  }
}

void Cwm(OutModel& model) {
  if (LayersOfType(model, "full_attention").empty())
    model.config.Fail("layer_types", "expected a name for each layer");
  AddWindowsAsList(model);
}

void SmolLm3(OutModel& model) {
  const std::vector<double> rotates = model.config.Numbers("no_rope_layers");  // 0: no rope
  for (size_t i = 0; i < rotates.size(); ++i) {
    if ((rotates[i] == 0) == (i % 4 == 3)) continue;
    model.config.Fail("no_rope_layers", "expected 0 for every fourth layer alone");
  }
}

void Mistral3(OutModel& model) {
  Mistral(model);
  const Fields rope = model.rope();
  if (!rope.is_there())
    model.config.Fail("rope_parameters", "expected how RoPE is scaled, found nothing");
  if (rope.Has("mscale_all_dim")) {
    const double all = rope.Number("mscale_all_dim");
    model.log_multiplier = all;
    if (all != 0) model.Float("rope.scaling.yarn_log_multiplier", all);
  }
  if (rope.Has("llama_4_scaling_beta")) {
    model.Float("attention.temperature_scale", rope.Number("llama_4_scaling_beta"));
  }
}

constexpr Family kLlamaRows[] = {
    {.name = "llama",
     .hf = {"LlamaForCausalLM", "LLaMAForCausalLM", "IQuestCoderForCausalLM"},
     .pairs_neighbours = true,
     .tensors = {kBlockSparse},
     .keys = {kExpertSizes, kExpertKeys}},
    {.name = "llama",
     .hf = {"MistralForCausalLM", "MinistralForCausalLM"},
     .pairs_neighbours = true,
     .tensors = {kBlockSparse},
     .keys = {kExpertSizes, kExpertKeys},
     .refine = Mistral,
     .defaults = kMistralDefaults},
    {.name = "llama",
     .hf = {"MixtralForCausalLM"},
     .pairs_neighbours = true,
     .tensors = {kBlockSparse},
     .keys = {kExpertSizes, kExpertKeys},
     .refine = Mistral,
     .rope_theta = 1e6,
     .defaults = kMistralDefaults},
    {.name = "llama",
     .hf = {"CwmForCausalLM"},
     .pairs_neighbours = true,
     .refine = Cwm,
     .says_rope = true,
     .rope_theta = 1e6,
     .defaults = kCwmDefaults},
    // It pairs neighbours, too.
    {.name = "llama", .hf = {"HeliumForCausalLM"}, .rope_theta = 1e5, .defaults = kHeliumDefaults},
    {.name = "smollm3",
     .hf = {"SmolLM3ForCausalLM"},
     .pairs_neighbours = true,
     .usual = kSmolLm3Usual,
     .refine = SmolLm3,
     .rope_theta = 2e6},
    {.name = "mistral3",
     .hf = {"Ministral3ForCausalLM"},
     .pairs_neighbours = true,
     .refine = Mistral3,
     .says_rope = true},
    {.name = "arcee", .hf = {"ArceeForCausalLM"}, .pairs_neighbours = true, .activation = "relu2"},
    {.name = "nanbeige",
     .hf = {"NanbeigeForCausalLM"},
     .pairs_neighbours = true,
     .keys = {kNanbeigeKeys}},
};

}  // namespace

std::span<const Family> LlamaLineage() { return kLlamaRows; }

}  // namespace convert
