// DeepSeek-V2 and V3, and models built like them. engine/model/families/deepseek.cc explains the
// arithmetic.
#include <algorithm>

#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;

constexpr TensorRule kDeepSeek2[] = {
    {".self_attn.q_a_proj", ".attn_q_a"},
    {".self_attn.q_a_layernorm", ".attn_q_a_norm"},
    {".self_attn.q_b_proj", ".attn_q_b"},
    {".self_attn.kv_a_proj_with_mqa", ".attn_kv_a_mqa"},
    {".self_attn.kv_a_layernorm", ".attn_kv_a_norm"},
    {".self_attn.kv_b_proj", ".attn_k_b", kKeyB},
    {".self_attn.kv_b_proj", ".attn_v_b", kValueB},
};

constexpr KeyRule kDeepSeek2Keys[] = {
    {"q_lora_rank", "attention.q_lora_rank"},
    {"kv_lora_rank", "attention.kv_lora_rank"},
};

void DeepSeek2(OutModel& model) {
  const Fields& config = model.config;
  AddNextn(model);
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
  const bool sigmoid = AddGating(biased, model);
  if (!sigmoid && config.CountOr("n_group", 1) > 1) {
    model.notes.push_back(
        "groups of experts are chosen by their two best experts, as all readers "
        "of such files do; the original takes the best one alone");
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
     .tensors = {kDeepSeek2, kSharedExperts, kNextn},
     .keys = {kDeepSeek2Keys, kExpertKeys},
     .refine = DeepSeek2},
};

}  // namespace

std::span<const Family> DeepSeekLineage() { return kDeepSeekRows; }

}  // namespace convert
