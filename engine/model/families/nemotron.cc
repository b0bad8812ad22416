// Nemotron-H (NVIDIA 2025, arXiv 2504.03624): each layer is only Mamba-2, attention without RoPE,
// or a feed-forward network with squared ReLU. In Nemotron 3 the networks are experts.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"
#include "gguf/error.h"

namespace engine {
namespace {

// ---- What a file means.

void NemotronH(const Keys& keys, Config& config) {
  SetMamba2(keys, config);
  LeaveOutRope(config);
  if (config.n_experts_used == 0) return;
  config.expert_width = keys.UintOr("moe_latent_size", 0, kMaxLength);
}

constexpr Traits kNemotronTraits = {.activation = kernels::Activation::kReluSquared};

// ---- What a folder means.

constexpr TensorRule kNemotronH[] = {
    {".mixer.q_proj", ".attn_q"},
    {".mixer.k_proj", ".attn_k"},
    {".mixer.v_proj", ".attn_v"},
    {".mixer.o_proj", ".attn_output"},
    {".mixer.up_proj", ".ffn_up"},
    {".mixer.down_proj", ".ffn_down"},
    {".mixer.gate", ".ffn_gate_inp"},
    {".mixer.gate.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mixer.experts.{e}.up_proj", ".ffn_up_exps"},
    {".mixer.experts.{e}.down_proj", ".ffn_down_exps"},
    {".mixer.shared_experts.up_proj", ".ffn_up_shexp"},
    {".mixer.shared_experts.down_proj", ".ffn_down_shexp"},
    {".mixer.fc1_latent_proj", ".ffn_latent_down"},
    {".mixer.fc2_latent_proj", ".ffn_latent_up"},
};

constexpr KeyRule kNemotronKeys[] = {
    {"attention_head_dim head_dim", "attention.key_length"},
    {"attention_head_dim head_dim", "attention.value_length"},
    {"conv_kernel", "ssm.conv_kernel"},
    {"ssm_state_size", "ssm.state_size"},
    {"n_groups", "ssm.group_count"},
    {"mamba_num_heads", "ssm.time_step_rank"},
    {"moe_latent_size", "moe_latent_size"},
};

void NemotronH(OutModel& model) {
  const Fields& config = model.config;
  constexpr std::pair<std::string_view, char> kKinds[] = {
      {"mamba", 'M'},     {"linear_attention", 'M'},
      {"attention", '*'}, {"full_attention", '*'},
      {"mlp", '-'},       {"moe", 'E'}};
  std::string pattern = config.TextOr("hybrid_override_pattern", "");
  for (const std::string& name : config.Texts("layers_block_type")) {
    if (config.Has("hybrid_override_pattern")) break;
    const auto kind = std::ranges::find(kKinds, name, &std::pair<std::string_view, char>::first);
    if (kind == std::end(kKinds)) {
      config.Fail("layers_block_type", "expected mamba, attention, mlp and moe, found ",
                  gguf::Quoted(name, 40));
    }
    pattern += kind->second;
  }
  if (config.TextOr("mamba_hidden_act", "silu") != "silu")
    config.Fail("mamba_hidden_act", "expected silu");
  if (pattern.size() != model.n_layers()) {
    config.Fail("hybrid_override_pattern", "expected a letter for each of ", model.n_layers(),
                " layers");
  }
  const bool experts = model.architecture == "nemotron_h_moe";
  const char network = experts ? 'E' : '-';
  const auto width =
      static_cast<int32_t>(config.Count(experts ? "moe_intermediate_size" : "intermediate_size"));
  std::vector<bool> attends;
  std::vector<int32_t> widths;
  for (const char kind : pattern) {
    if (kind != 'M' && kind != '*' && kind != network) {
      config.Fail("hybrid_override_pattern", "expected M, * and ", std::string(1, network),
                  ", found ", gguf::Quoted(std::string(1, kind)));
    }
    attends.push_back(kind == '*');
    widths.push_back(kind == network ? width : 0);
  }
  AddHeads(attends, model);
  model.PerLayer("feed_forward_length", widths);
  model.shapes.n_groups = config.CountOr("n_groups", 1);
  model.Uint("ssm.inner_size", config.Count("mamba_num_heads") * config.Count("mamba_head_dim"));
  model.Float("attention.layer_norm_epsilon",
              config.NumberOr("layer_norm_epsilon", config.NumberOr("norm_eps", 1e-5)));
  model.Bool("rope.scaling.finetuned", false);
}

constexpr HfClass kNemotronClass = {.names = {"NemotronHForCausalLM"},
                                    .experts = HasExperts::kNone,
                                    .tensors = {kNemotronH, kMixer},
                                    .keys = {kNemotronKeys},
                                    .add_keys = NemotronH};
constexpr HfClass kNemotronMoeClass = [] {
  HfClass with_experts = kNemotronClass;
  with_experts.experts = HasExperts::kSome;
  return with_experts;
}();

constexpr Family kNemotronRows[] = {
    {.name = "nemotron_h",
     .traits = kNemotronTraits,
     .without_heads = Mixer::kNone,
     .complete_config = NemotronH,
     .hf = kNemotronClass},
    {.name = "nemotron_h_moe",
     .traits = kNemotronTraits,
     .without_heads = Mixer::kNone,
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .complete_config = NemotronH,
     .hf = kNemotronMoeClass},
};

}  // namespace

std::span<const Family> NemotronLineage() { return kNemotronRows; }

}  // namespace engine
