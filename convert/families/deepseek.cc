// DeepSeek-V2, V3 and Kimi Linear.
#include <algorithm>
#include <cmath>
#include <string>

#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;

constexpr TensorRule kLatent[] = {
    {".self_attn.q_a_proj", ".attn_q_a"},
    {".self_attn.q_a_layernorm", ".attn_q_a_norm"},
    {".self_attn.q_b_proj", ".attn_q_b"},
    {".self_attn.kv_a_proj_with_mqa", ".attn_kv_a_mqa"},
    {".self_attn.kv_a_layernorm", ".attn_kv_a_norm"},
    {".self_attn.kv_b_proj", ".attn_k_b", kKeyB},
    {".self_attn.kv_b_proj", ".attn_v_b", kValueB},
};
constexpr TensorRule kKimiLinear[] = {
    {".self_attn.q_conv1d", ".ssm_conv1d_q", kTapsApart},
    {".self_attn.k_conv1d", ".ssm_conv1d_k", kTapsApart},
    {".self_attn.v_conv1d", ".ssm_conv1d_v", kTapsApart},
    {".self_attn.f_a_proj", ".ssm_f_a"},
    {".self_attn.f_b_proj", ".ssm_f_b"},
    {".self_attn.g_a_proj", ".ssm_g_a"},
    {".self_attn.g_b_proj", ".ssm_g_b"},
    {".self_attn.b_proj", ".ssm_beta"},
    {".self_attn.A_log", ".ssm_a", kColumn, Change::kMinusExp},
    {".self_attn.dt_bias", ".ssm_dt.bias", kVector},
    {".self_attn.o_norm", ".ssm_norm"},
};

constexpr KeyRule kLatentKeys[] = {
    {"q_lora_rank", "attention.q_lora_rank"},
    {"kv_lora_rank", "attention.kv_lora_rank"},
    {"num_experts_per_token", "expert_used_count"},
    {"num_expert_group", "expert_group_count"},
};
constexpr UsualValue kDeepSeek2Usual[] = {{"rope_interleave", 1}};
// Values that the classes have where config.json omits them.
constexpr std::string_view kDeepSeek3Defaults =
    R"({"norm_topk_prob": true, "routed_scaling_factor": 2.5})";
constexpr std::string_view kGlmLiteDefaults =
    R"({"norm_topk_prob": true, "routed_scaling_factor": 1.8})";
constexpr std::pair<std::string_view, std::string_view> kKimiLinearNames[] = {
    {"model_max_length", "max_position_embeddings"}};
constexpr UsualValue kKimiLinearUsual[] = {{"mla_use_nope", 1}, {"moe_renormalize", 1}};

void AddLatent(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t rotated = config.Count("qk_rope_head_dim"), latent = config.Count("kv_lora_rank");
  model.shapes.head_plain = config.Count("qk_nope_head_dim");
  model.shapes.head_value = config.Count("v_head_dim");
  model.Uint("rope.dimension_count", rotated);
  model.shapes.n_kv_heads = 1;
  model.Uint("attention.key_length", latent + rotated);
  model.Uint("attention.value_length", latent);
  model.Uint("attention.key_length_mla", model.shapes.head_plain + rotated);
  model.Uint("attention.value_length_mla", model.shapes.head_value);
}

void DeepSeek2(OutModel& model) {
  const Fields& config = model.config;
  AddNextn(model);
  AddLatent(model);
  // Used if the key is missing: only experts chosen by sigmoid have such a bias.
  const bool biased = std::ranges::any_of(model.folder.tensors(), [](const auto& tensor) {
    return tensor.first.ends_with(".e_score_correction_bias");
  });
  const bool sigmoid = AddGating(biased, model);
  if (!sigmoid && config.CountOr("n_group", 1) > 1) {
    model.notes.push_back(
        "groups of experts are chosen by their two best experts, as all readers "
        "of such files do; the original takes the best one alone");
  }
  const Fields rope = model.rope();
  const std::string type = rope.TextOr("rope_type", rope.TextOr("type", "default"));
  if (type == "default") return;
  const double all = rope.NumberOr("mscale_all_dim", 0), factor = rope.NumberOr("factor", 1);
  if (type == "yarn" && all != 0 && rope.NumberOr("mscale", 0) == all &&
      !rope.Has("attention_factor")) {
    model.log_multiplier = 1;
    model.Float("rope.scaling.yarn_log_multiplier", 0.1 * all);
    return;
  }
  // Readers of such files take the scale of scores from the other keys, but for this one of ours.
  const double growth = factor > 1 ? 1 + 0.1 * all * std::log(factor) : 1;
  const double length = static_cast<double>(config.Count("qk_rope_head_dim")) +
                        static_cast<double>(config.Count("qk_nope_head_dim"));
  model.Float("attention.scale", growth * growth / std::sqrt(length));
  model.notes.push_back(
      "the key deepseek2.attention.scale has the scale of its scores: programs "
      "that do not know that key compute something else");
}

// Layers are counted from 1 here.
void KimiLinear(OutModel& model) {
  const Fields& config = model.config;
  const Fields delta = config.Object("linear_attn_config");
  AddLatent(model);
  std::vector<bool> attends = LayersOfType(model, "full_attention");
  attends.resize(model.n_layers());
  for (const double layer : delta.Numbers("full_attn_layers")) {
    if (layer >= 1 && layer <= static_cast<double>(attends.size()))
      attends[static_cast<size_t>(layer) - 1] = true;
  }
  AddHeads(attends, model);
  if (delta.is_there()) {
    model.Uint("kda.head_dim", delta.Count("head_dim"));
    model.Uint("ssm.conv_kernel", delta.Count("short_conv_kernel_size"));
  } else {
    model.Uint("kda.head_dim", config.Count("linear_head_dim"));
    model.Uint("ssm.conv_kernel", config.CountOr("linear_conv_kernel_dim", 4));
    if (config.Count("linear_num_heads") != model.shapes.n_heads)
      config.Fail("linear_num_heads", "expected as num_attention_heads");
  }
  AddLeadingDense(model);
  AddGating(true, model);
}

constexpr Family kDeepSeekRows[] = {
    {.name = "deepseek2",
     .hf = {"DeepseekV2ForCausalLM"},
     .tensors = {kLatent, kSharedExperts, kNextn},
     .keys = {kLatentKeys, kExpertSizes, kExpertKeys},
     .usual = kDeepSeek2Usual,
     .refine = DeepSeek2},
    {.name = "deepseek2",
     .hf = {"DeepseekV3ForCausalLM"},
     .tensors = {kLatent, kSharedExperts, kNextn},
     .keys = {kLatentKeys, kExpertSizes, kExpertKeys},
     .usual = kDeepSeek2Usual,
     .refine = DeepSeek2,
     .defaults = kDeepSeek3Defaults},
    {.name = "deepseek2",
     .hf = {"Glm4MoeLiteForCausalLM"},
     .tensors = {kLatent, kSharedExperts, kNextn},
     .keys = {kLatentKeys, kExpertSizes, kExpertKeys},
     .usual = kDeepSeek2Usual,
     .refine = DeepSeek2,
     .defaults = kGlmLiteDefaults},
    {.name = "deepseek2",
     .hf = {"YoutuForCausalLM"},
     .tensors = {kLatent},
     .keys = {kLatentKeys},
     .usual = kDeepSeek2Usual,
     .refine = DeepSeek2},
    {.name = "kimi-linear",
     .hf = {"KimiLinearForCausalLM", "KimiLinearModel"},
     .tensors = {kLatent, kKimiLinear, kBlockSparse, kSharedExperts},
     .keys = {kLatentKeys, kExpertSizes, kExpertKeys},
     .usual = kKimiLinearUsual,
     .refine = KimiLinear,
     .defaults = R"({"routed_scaling_factor": 2.446})",
     .renamed = kKimiLinearNames},
};

}  // namespace

std::span<const Family> DeepSeekLineage() { return kDeepSeekRows; }

}  // namespace convert
