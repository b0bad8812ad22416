// The lineages of models, a file each, and what several of them share. engine/model/families, which
// has files of the same names, explains the arithmetic.
#ifndef PRONK_CONVERT_FAMILIES_FAMILIES_H_
#define PRONK_CONVERT_FAMILIES_FAMILIES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "convert/family.h"

namespace convert {

// The rows of each lineage.
std::span<const Family> LlamaLineage();
std::span<const Family> QwenLineage();
std::span<const Family> GraniteLineage();
std::span<const Family> GemmaLineage();
std::span<const Family> SingleLineages();
std::span<const Family> Lfm2Lineage();
std::span<const Family> DeepSeekLineage();
std::span<const Family> NemotronLineage();
std::span<const Family> ExpertsLineage();
std::span<const Family> MambaLineage();
std::span<const Family> GptLineage();
std::span<const Family> BertLineage();

inline constexpr TensorRule kFfnNormIsPostAttention[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
};

// Sandwich norms (Gemma).
inline constexpr TensorRule kSandwichNorms[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".pre_feedforward_layernorm", ".ffn_norm"},
    {".post_feedforward_layernorm", ".post_ffw_norm"},
};
// Post norms (OLMo 2, EXAONE 4).
inline constexpr TensorRule kPostNorms[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".post_feedforward_layernorm", ".post_ffw_norm"},
};
// Experts under Mixtral's names.
inline constexpr TensorRule kBlockSparse[] = {
    {".mlp.experts.{e}.w1", ".ffn_gate_exps"},
    {".mlp.experts.{e}.w2", ".ffn_down_exps"},
    {".mlp.experts.{e}.w3", ".ffn_up_exps"},
};
// What is beside other experts: the bias of their choice, and the shared one.
inline constexpr TensorRule kSharedExperts[] = {
    {".mlp.gate.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mlp.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mlp.expert_bias", ".exp_probs_b.bias"},
    {".mlp.shared_experts.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_experts.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_experts.down_proj", ".ffn_down_shexp"},
};
// Blocks after the layers that predict further tokens.
inline constexpr TensorRule kNextn[] = {
    {".eh_proj", ".nextn.eh_proj"},
    {".enorm", ".nextn.enorm"},
    {".hnorm", ".nextn.hnorm"},
    {".embed_tokens", ".nextn.embed_tokens"},
    {".shared_head.head", ".nextn.shared_head_head"},
    {".shared_head.norm", ".nextn.shared_head_norm"},
    {".transformer.shared_head.output", ".nextn.shared_head_head"},
    {".transformer.shared_head.norm", ".nextn.shared_head_norm"},
    {".final_layernorm", ".layer_output_norm"},
    // The same in a part of its own.
    {"mtp.fc", ".nextn.eh_proj"},
    {"mtp.pre_fc_norm_embedding", ".nextn.enorm"},
    {"mtp.pre_fc_norm_hidden", ".nextn.hnorm"},
    {"mtp.norm", ".nextn.shared_head_norm"},
    {"mtp.embed_tokens", ".nextn.embed_tokens"},
    {"mtp.lm_head", ".nextn.shared_head_head"},
};
// Experts' sizes, under the names that families have for them.
inline constexpr KeyRule kExpertSizes[] = {
    {"num_experts n_routed_experts num_local_experts moe_num_experts", "expert_count"},
    {"num_experts_per_tok moe_k moe_top_k top_k_experts", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"moe_shared_expert_intermediate_size shared_expert_intermediate_size share_expert_dim",
     "expert_shared_feed_forward_length"},
};
// How they are chosen and weighted, and which layers have them.
inline constexpr KeyRule kExpertKeys[] = {
    {"n_shared_experts num_shared_experts", "expert_shared_count"},
    {"first_k_dense_replace num_dense_layers moe_layer_start_index", "leading_dense_block_count"},
    {"routed_scaling_factor route_scale moe_routed_scaling_factor moe_router_scaling_factor",
     "expert_weights_scale", KeyKind::kFloat},
    {"norm_topk_prob route_norm norm_expert_weight", "expert_weights_norm", KeyKind::kBool},
    {"n_group", "expert_group_count"},
    {"topk_group", "expert_group_used_count"},
};
// Mamba-2.
inline constexpr TensorRule kMixer[] = {
    {".norm", ".attn_norm"},
    {".mixer.in_proj", ".ssm_in"},
    {".mixer.conv1d", ".ssm_conv1d", Order::kTaps},
    {".mixer.dt_bias", ".ssm_dt.bias"},
    {".mixer.A_log", ".ssm_a", Order::kColumn, Change::kMinusExp},
    {".mixer.D", ".ssm_d", Order::kColumn},
    {".mixer.norm", ".ssm_norm", Order::kByGroup},
    {".mixer.out_proj", ".ssm_out"},
};
inline constexpr KeyRule kMixerKeys[] = {
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_n_groups", "ssm.group_count"},
    {"mamba_n_heads", "ssm.time_step_rank"},
};
inline constexpr KeyRule kWindowKeys[] = {{"sliding_window", "attention.sliding_window"}};

// For each layer, whether layer_types gives it this name; empty if config.json has no such list.
// Throws gguf::Error if the list has another length.
std::vector<bool> LayersOfType(const OutModel& model, std::string_view type);
// The base of rope in layers with a window, under this key or with that of the others.
double LocalBase(const Fields& config, std::string_view key);
// Throws gguf::Error unless only the last (or first) of every `period` layers sees all positions.
void ExpectPeriod(const OutModel& model, size_t period, bool first = false);
// Writes a list of the layers that have a window, unless only the last of every `period` (0: none)
// has none, as readers assume.
void AddWindows(size_t period, OutModel& model);
// Writes that list for readers that assume no windows at all, and says so in a note.
void AddWindowsAsList(OutModel& model);
// How experts are chosen: by softmax or by sigmoid, as `fallback` says where config.json does not.
// True for sigmoid. Throws gguf::Error.
bool AddGating(bool fallback, OutModel& model);
// Those blocks, which config.json does not always list. Adds block_count.
void AddNextn(OutModel& model);
// The number of dense layers before those with experts, if mlp_layer_types lists them. Throws
// gguf::Error if others are dense.
void AddLeadingDense(OutModel& model);
// A number for the layers that are chosen, and one for the others.
void AddByLayer(std::string_view key, const std::vector<bool>& chosen, uint64_t of_chosen,
                uint64_t of_others, OutModel& model);
// Key-value heads of layers with attention, 0 for the others.
void AddHeads(const std::vector<bool>& is_attention, OutModel& model);
// A key of ours names the activation where it is not `usual`, which readers compute without one.
void AddActivation(std::string_view key, std::string_view fallback, std::string_view usual,
                   OutModel& model);
// A list of n non-negative integers. Throws gguf::Error.
std::vector<int32_t> WholeNumbers(const Fields& config, std::string_view key, size_t n);

}  // namespace convert

#endif  // PRONK_CONVERT_FAMILIES_FAMILIES_H_
