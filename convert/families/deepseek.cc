// DeepSeek-V2 and V3, and models built like them. engine/model/families/deepseek.cc explains the
// arithmetic.
#include <algorithm>
#include <string>

#include "convert/families/families.h"
#include "gguf/error.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

constexpr TensorRule kDeepSeek2[] = {
    {".self_attn.q_a_proj", ".attn_q_a"},
    {".self_attn.q_a_layernorm", ".attn_q_a_norm"},
    {".self_attn.q_b_proj", ".attn_q_b"},
    {".self_attn.kv_a_proj_with_mqa", ".attn_kv_a_mqa"},
    {".self_attn.kv_a_layernorm", ".attn_kv_a_norm"},
    {".self_attn.kv_b_proj", ".attn_k_b", kKeyB},
    {".self_attn.kv_b_proj", ".attn_v_b", kValueB},
    {".mlp.gate.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mlp.shared_experts.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_experts.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_experts.down_proj", ".ffn_down_shexp"},
};

constexpr KeyRule kDeepSeek2Keys[] = {
    {"q_lora_rank", "attention.q_lora_rank"},
    {"kv_lora_rank", "attention.kv_lora_rank"},
    {"first_k_dense_replace", "leading_dense_block_count"},
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"n_shared_experts", "expert_shared_count"},
    {"routed_scaling_factor", "expert_weights_scale", kFloat},
    {"norm_topk_prob", "expert_weights_norm", kBool},
};

void DeepSeek2(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t rotated = config.Count("qk_rope_head_dim"), latent = config.Count("kv_lora_rank");
  model.shapes.head_plain = config.Count("qk_nope_head_dim");
  model.shapes.head_value = config.Count("v_head_dim");
  model.Uint("rope.dimension_count", rotated);
  model.Uint("attention.head_count_kv", 1);
  model.Uint("attention.key_length", latent + rotated);
  model.Uint("attention.value_length", latent);
  model.Uint("attention.key_length_mla", model.shapes.head_plain + rotated);
  model.Uint("attention.value_length_mla", model.shapes.head_value);
  // Used if the key is missing: only experts chosen by sigmoid have such a bias.
  const bool biased = std::ranges::any_of(model.folder.tensors(), [](const auto& tensor) {
    return tensor.first.ends_with(".e_score_correction_bias");
  });
  const std::string scoring = config.TextOr("scoring_func", biased ? "sigmoid" : "softmax");
  if (scoring != "softmax" && scoring != "sigmoid") {
    config.Fail("scoring_func", "expected softmax or sigmoid, found " + gguf::Quoted(scoring, 40));
  }
  model.Uint("expert_gating_func", scoring == "sigmoid" ? 2 : 1);
  const uint64_t n_groups = config.CountOr("n_group", 1);
  if (n_groups > 1) {
    if (scoring == "softmax") {
      model.notes.push_back(
          "groups of experts are chosen by their two best experts, as all readers "
          "of such files do; the original takes the best one alone");
    }
    model.Uint("expert_group_count", n_groups);
    model.Uint("expert_group_used_count", config.Count("topk_group"));
  }
  const Fields rope = model.rope();
  const double all = rope.NumberOr("mscale_all_dim", 0);
  if (all == 0) return;
  if (rope.NumberOr("mscale", all) != all) rope.Fail("mscale", "expected as mscale_all_dim");
  model.Float("rope.scaling.yarn_log_multiplier", 0.1 * all);
}

constexpr Family kDeepSeekRows[] = {
    {.name = "deepseek2",
     .hf = {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "Glm4MoeLiteForCausalLM"},
     .tensors = {kDeepSeek2},
     .keys = {kDeepSeek2Keys},
     .refine = DeepSeek2},
};

}  // namespace

std::span<const Family> DeepSeekLineage() { return kDeepSeekRows; }

}  // namespace convert
