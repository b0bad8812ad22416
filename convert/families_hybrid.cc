// Families whose layers are not all plain attention, see families.cc and family.h.
#include <array>

#include "convert/family.h"
#include "convert/refine.h"

namespace convert {
namespace {

using std::string_view;
using enum Order;

// In names, L is "model.layers.{i}." and B is "blk.{i}.".
#define L "model.layers.{i}."
#define B "blk.{i}."

constexpr TensorRule kLfm2[] = {
    {"model.embedding_norm", "token_embd_norm"},
    {L "operator_norm", B "attn_norm"},
    {L "ffn_norm", B "ffn_norm"},
    {L "self_attn.out_proj", B "attn_output"},
    {L "self_attn.q_layernorm", B "attn_q_norm"},
    {L "self_attn.k_layernorm", B "attn_k_norm"},
    {L "conv.conv", B "shortconv.conv", kTaps},
    {L "conv.in_proj", B "shortconv.in_proj"},
    {L "conv.out_proj", B "shortconv.out_proj"},
    {L "feed_forward.w1", B "ffn_gate"},
    {L "feed_forward.w2", B "ffn_down"},
    {L "feed_forward.w3", B "ffn_up"},
    {L "feed_forward.gate", B "ffn_gate_inp"},
    {L "feed_forward.expert_bias", B "exp_probs_b.bias"},
    {L "feed_forward.experts.{e}.w1", B "ffn_gate_exps"},
    {L "feed_forward.experts.{e}.w2", B "ffn_down_exps"},
    {L "feed_forward.experts.{e}.w3", B "ffn_up_exps"},
};

constexpr TensorRule kQwen3Next[] = {
    {L "post_attention_layernorm", B "post_attention_norm"},
    {L "linear_attn.in_proj_qkvz", B "attn_qkv", kGroupedQkv},
    {L "linear_attn.in_proj_qkvz", B "attn_gate", kGroupedZ},
    {L "linear_attn.in_proj_ba", B "ssm_ba"},
    {L "linear_attn.conv1d", B "ssm_conv1d", kTaps},
    {L "linear_attn.dt_bias", B "ssm_dt.bias"},
    {L "linear_attn.A_log", B "ssm_a", kSame, Change::kMinusExp},
    {L "linear_attn.norm", B "ssm_norm"},
    {L "linear_attn.out_proj", B "ssm_out"},
};

constexpr TensorRule kQwen35[] = {
    {L "post_attention_layernorm", B "post_attention_norm"},
    {L "linear_attn.in_proj_qkv", B "attn_qkv", kValueHeadsBehind},
    {L "linear_attn.in_proj_z", B "attn_gate", kValueHeads},
    {L "linear_attn.in_proj_b", B "ssm_beta", kValueHeadNumbers},
    {L "linear_attn.in_proj_a", B "ssm_alpha", kValueHeadNumbers},
    {L "linear_attn.conv1d", B "ssm_conv1d", kValueHeadsBehind},
    {L "linear_attn.dt_bias", B "ssm_dt.bias", kValueHeadNumbers},
    {L "linear_attn.A_log", B "ssm_a", kValueHeadNumbers, Change::kMinusExp},
    {L "linear_attn.norm", B "ssm_norm"},
    {L "linear_attn.out_proj", B "ssm_out", kValueHeadColumns},
};

// Experts beside one that all tokens use; stacked, or one by one as most families have them.
constexpr TensorRule kQwenExperts[] = {
    {L "mlp.shared_expert.gate_proj", B "ffn_gate_shexp"},
    {L "mlp.shared_expert.up_proj", B "ffn_up_shexp"},
    {L "mlp.shared_expert.down_proj", B "ffn_down_shexp"},
    {L "mlp.shared_expert_gate", B "ffn_gate_inp_shexp", kVector},
    {L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight", kFirstHalf},
    {L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight", kSecondHalf},
    {L "mlp.experts.down_proj", B "ffn_down_exps.weight"},
};

// A block behind the layers that predicts the token after the next.
constexpr TensorRule kQwenNextn[] = {
    {"mtp.fc", B "nextn.eh_proj"},
    {"mtp.pre_fc_norm_embedding", B "nextn.enorm", kSame, Change::kPlusOne},
    {"mtp.pre_fc_norm_hidden", B "nextn.hnorm", kSame, Change::kPlusOne},
    {"mtp.norm", B "nextn.shared_head_norm"},
    {"mtp.embed_tokens", B "nextn.embed_tokens"},
    {"mtp.lm_head", B "nextn.shared_head_head"},
};

constexpr TensorRule kDeepSeek2[] = {
    {L "self_attn.q_a_proj", B "attn_q_a"},
    {L "self_attn.q_a_layernorm", B "attn_q_a_norm"},
    {L "self_attn.q_b_proj", B "attn_q_b"},
    {L "self_attn.kv_a_proj_with_mqa", B "attn_kv_a_mqa"},
    {L "self_attn.kv_a_layernorm", B "attn_kv_a_norm"},
    {L "self_attn.kv_b_proj", B "attn_k_b", kKeyB},
    {L "self_attn.kv_b_proj", B "attn_v_b", kValueB},
    {L "mlp.gate.e_score_correction_bias", B "exp_probs_b.bias"},
    {L "mlp.shared_experts.gate_proj", B "ffn_gate_shexp"},
    {L "mlp.shared_experts.up_proj", B "ffn_up_shexp"},
    {L "mlp.shared_experts.down_proj", B "ffn_down_shexp"},
};

constexpr TensorRule kGraniteHybrid[] = {
    {L "mamba.in_proj", B "ssm_in"},      {L "mamba.conv1d", B "ssm_conv1d", kTaps},
    {L "mamba.dt_bias", B "ssm_dt.bias"}, {L "mamba.A_log", B "ssm_a", kColumn, Change::kMinusExp},
    {L "mamba.D", B "ssm_d", kColumn},    {L "mamba.norm", B "ssm_norm", kByGroup},
    {L "mamba.out_proj", B "ssm_out"},
};
// Where there are experts, the network beside them; without, it is all there is.
constexpr TensorRule kGraniteExperts[] = {
    {L "block_sparse_moe.router.layer", B "ffn_gate_inp"},
    {L "block_sparse_moe.input_linear", B "ffn_gate_exps", kFirstHalf},
    {L "block_sparse_moe.input_linear", B "ffn_up_exps", kSecondHalf},
    {L "block_sparse_moe.output_linear", B "ffn_down_exps"},
    {L "shared_mlp.input_linear", B "ffn_gate_shexp", kFirstHalf},
    {L "shared_mlp.input_linear", B "ffn_up_shexp", kSecondHalf},
    {L "shared_mlp.output_linear", B "ffn_down_shexp"},
};
constexpr TensorRule kGraniteDense[] = {
    {L "shared_mlp.input_linear", B "ffn_gate", kFirstHalf},
    {L "shared_mlp.input_linear", B "ffn_up", kSecondHalf},
    {L "shared_mlp.output_linear", B "ffn_down"},
};

#define M "backbone.layers.{i}.mixer."
constexpr TensorRule kNemotronH[] = {
    {"backbone.embeddings", "token_embd"},
    {"backbone.norm_f", "output_norm"},
    {"backbone.layers.{i}.norm", B "attn_norm"},
    {M "in_proj", B "ssm_in"},
    {M "conv1d", B "ssm_conv1d", kTaps},
    {M "dt_bias", B "ssm_dt.bias"},
    {M "A_log", B "ssm_a", kColumn, Change::kMinusExp},
    {M "D", B "ssm_d", kColumn},
    {M "norm", B "ssm_norm", kByGroup},
    {M "out_proj", B "ssm_out"},
    {M "q_proj", B "attn_q"},
    {M "k_proj", B "attn_k"},
    {M "v_proj", B "attn_v"},
    {M "o_proj", B "attn_output"},
    {M "up_proj", B "ffn_up"},
    {M "down_proj", B "ffn_down"},
    {M "gate", B "ffn_gate_inp"},
    {M "gate.e_score_correction_bias", B "exp_probs_b.bias"},
    {M "experts.{e}.up_proj", B "ffn_up_exps"},
    {M "experts.{e}.down_proj", B "ffn_down_exps"},
    {M "shared_experts.up_proj", B "ffn_up_shexp"},
    {M "shared_experts.down_proj", B "ffn_down_shexp"},
    {M "fc1_latent_proj", B "ffn_latent_down"},
    {M "fc2_latent_proj", B "ffn_latent_up"},
};
#undef M

constexpr TensorRule kGemma3n[] = {
    {L "post_attention_layernorm", B "post_attention_norm"},
    {L "pre_feedforward_layernorm", B "ffn_norm"},
    {L "post_feedforward_layernorm", B "post_ffw_norm"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"model.per_layer_model_projection", "per_layer_model_proj"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {"model.altup_projections.{e}", "altup_proj"},
    {"model.altup_unembed_projections.{e}", "altup_unembd_proj"},
    {L "per_layer_input_gate", B "inp_gate"},
    {L "per_layer_projection", B "proj"},
    {L "post_per_layer_input_norm", B "post_norm"},
    {L "altup.correct_output_scale", B "altup_correct_scale.weight"},
    {L "altup.correction_coefs", B "altup_correct_coef"},
    {L "altup.prediction_coefs", B "altup_predict_coef"},
    {L "altup.modality_router", B "altup_router"},
    {L "altup.router_norm", B "altup_router_norm"},
    {L "laurel.linear_left", B "laurel_l"},
    {L "laurel.linear_right", B "laurel_r"},
    {L "laurel.post_laurel_norm", B "laurel_post_norm"},
};

constexpr TensorRule kGemma4[] = {
    {L "post_attention_layernorm", B "post_attention_norm"},
    {L "pre_feedforward_layernorm", B "ffn_norm"},
    {L "post_feedforward_layernorm", B "post_ffw_norm"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"model.per_layer_model_projection", "per_layer_model_proj"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {L "per_layer_input_gate", B "inp_gate"},
    {L "per_layer_projection", B "proj"},
    {L "post_per_layer_input_norm", B "post_norm"},
    {L "layer_scalar", B "layer_output_scale.weight", kVector},
    {L "router.proj", B "ffn_gate_inp"},
    {L "router.scale", B "ffn_gate_inp.scale"},
    {L "router.per_expert_scale", B "ffn_down_exps.scale"},
    {L "experts.gate_up_proj", B "ffn_gate_up_exps.weight"},
    {L "experts.down_proj", B "ffn_down_exps.weight"},
    {L "post_feedforward_layernorm_1", B "post_ffw_norm_1"},
    {L "pre_feedforward_layernorm_2", B "pre_ffw_norm_2"},
    {L "post_feedforward_layernorm_2", B "post_ffw_norm_2"},
};
#undef L
#undef B

using enum KeyKind;

constexpr KeyRule kGraniteHybridKeys[] = {
    {"attention_multiplier", "attention.scale", kFloat},
    {"embedding_multiplier", "embedding_scale", kFloat},
    {"residual_multiplier", "residual_scale", kFloat},
    {"logits_scaling", "logit_scale", kFloat},
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"shared_intermediate_size", "expert_shared_feed_forward_length"},
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_n_groups", "ssm.group_count"},
    {"mamba_n_heads", "ssm.time_step_rank"},
};
constexpr KeyRule kLfm2Keys[] = {
    {"conv_L_cache", "shortconv.l_cache"},
    {"norm_eps", "attention.layer_norm_rms_epsilon", kFloat},
    {"block_norm_eps", "attention.layer_norm_rms_epsilon", kFloat},
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"num_dense_layers", "leading_dense_block_count"},
    {"sliding_window", "attention.sliding_window"},
};
constexpr KeyRule kDeltaNetKeys[] = {
    {"linear_conv_kernel_dim", "ssm.conv_kernel"},
    {"linear_key_head_dim", "ssm.state_size"},
    {"linear_num_key_heads", "ssm.group_count"},
    {"linear_num_value_heads", "ssm.time_step_rank"},
    {"full_attention_interval", "full_attention_interval"},
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
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
constexpr KeyRule kNemotronKeys[] = {
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", kFloat},
    {"norm_eps", "attention.layer_norm_rms_epsilon", kFloat},
    {"attention_head_dim", "attention.key_length"},
    {"attention_head_dim", "attention.value_length"},
    {"conv_kernel", "ssm.conv_kernel"},
    {"ssm_state_size", "ssm.state_size"},
    {"n_groups", "ssm.group_count"},
    {"mamba_num_heads", "ssm.time_step_rank"},
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
    {"n_shared_experts", "expert_shared_count"},
    {"routed_scaling_factor", "expert_weights_scale", kFloat},
    {"norm_topk_prob", "expert_weights_norm", kBool},
    {"n_group", "expert_group_count"},
    {"topk_group", "expert_group_used_count"},
    {"moe_latent_size", "moe_latent_size"},
};
constexpr KeyRule kGemma4Keys[] = {
    {"final_logit_softcapping", "final_logit_softcapping", kFloat},
    {"sliding_window", "attention.sliding_window"},
    {"num_experts", "expert_count"},
    {"top_k_experts", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
};
constexpr KeyRule kGemma3nKeys[] = {
    {"final_logit_softcapping", "final_logit_softcapping", kFloat},
    {"sliding_window", "attention.sliding_window"},
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input"},
    {"num_kv_shared_layers", "attention.shared_kv_layers"},
    {"altup_active_idx", "altup.active_idx"},
    {"altup_num_inputs", "altup.num_inputs"},
};

constexpr string_view kLfm2Names[] = {"Lfm2ForCausalLM", "LFM2ForCausalLM"};
constexpr string_view kLfm2MoeNames[] = {"Lfm2MoeForCausalLM"};
constexpr string_view kQwen35Names[] = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"};
constexpr string_view kQwen35MoeNames[] = {"Qwen3_5MoeForCausalLM",
                                           "Qwen3_5MoeForConditionalGeneration"};
constexpr string_view kQwen3NextNames[] = {"Qwen3NextForCausalLM"};
constexpr string_view kGemma3nNames[] = {"Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"};
constexpr string_view kGemma4Names[] = {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"};
constexpr string_view kDeepSeek2Names[] = {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM",
                                           "Glm4MoeLiteForCausalLM"};
constexpr string_view kGraniteHybridNames[] = {"GraniteMoeHybridForCausalLM"};
constexpr string_view kNemotronHNames[] = {"NemotronHForCausalLM"};

constexpr std::array kHybridFamilies = {
    Family{.name = "lfm2", .hf = kLfm2Names, .tensors = kLfm2, .keys = kLfm2Keys, .refine = Lfm2},
    Family{.name = "lfm2moe",
           .hf = kLfm2MoeNames,
           .tensors = kLfm2,
           .keys = kLfm2Keys,
           .refine = Lfm2},
    Family{.name = "qwen35",
           .hf = kQwen35Names,
           .norms_plus_one = true,
           .tensors = kQwen35,
           .more_tensors = kQwenExperts,
           .nextn = kQwenNextn,
           .keys = kDeltaNetKeys,
           .refine = DeltaNet},
    Family{.name = "qwen35moe",
           .hf = kQwen35MoeNames,
           .norms_plus_one = true,
           .tensors = kQwen35,
           .more_tensors = kQwenExperts,
           .nextn = kQwenNextn,
           .keys = kDeltaNetKeys,
           .refine = DeltaNet},
    Family{.name = "qwen3next",
           .hf = kQwen3NextNames,
           .norms_plus_one = true,
           .tensors = kQwen3Next,
           .more_tensors = kQwenExperts,
           .nextn = kQwenNextn,
           .keys = kDeltaNetKeys,
           .refine = DeltaNet},
    Family{.name = "gemma3n",
           .hf = kGemma3nNames,
           .activation = "gelu",
           .tensors = kGemma3n,
           .keys = kGemma3nKeys,
           .refine = Gemma3n},
    Family{.name = "gemma4",
           .hf = kGemma4Names,
           .activation = "gelu",
           .tensors = kGemma4,
           .keys = kGemma4Keys,
           .refine = Gemma4},
    Family{.name = "deepseek2",
           .hf = kDeepSeek2Names,
           .tensors = kDeepSeek2,
           .keys = kDeepSeek2Keys,
           .refine = DeepSeek2},
    Family{.name = "granitehybrid",
           .hf = kGraniteHybridNames,
           .experts = Experts::kSome,
           .pairs_neighbours = true,
           .tensors = kGraniteHybrid,
           .more_tensors = kGraniteExperts,
           .keys = kGraniteHybridKeys,
           .refine = GraniteHybrid},
    Family{.name = "granitehybrid",
           .hf = kGraniteHybridNames,
           .experts = Experts::kNone,
           .pairs_neighbours = true,
           .tensors = kGraniteHybrid,
           .more_tensors = kGraniteDense,
           .keys = kGraniteHybridKeys,
           .refine = GraniteHybrid},
    Family{.name = "nemotron_h",
           .hf = kNemotronHNames,
           .experts = Experts::kNone,
           .activation = "relu2",
           .tensors = kNemotronH,
           .keys = kNemotronKeys,
           .refine = NemotronH},
    Family{.name = "nemotron_h_moe",
           .hf = kNemotronHNames,
           .experts = Experts::kSome,
           .activation = "relu2",
           .tensors = kNemotronH,
           .keys = kNemotronKeys,
           .refine = NemotronH},
};

}  // namespace

std::span<const Family> HybridFamilies() { return kHybridFamilies; }

}  // namespace convert
