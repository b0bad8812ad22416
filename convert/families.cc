// The table of families, see family.h. What each row means for the arithmetic is in
// engine/architecture.cc, by the same names.
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

constexpr TensorRule kCommon[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {L "input_layernorm", B "attn_norm"},
    {L "post_attention_layernorm", B "ffn_norm"},
    {L "self_attn.q_proj", B "attn_q"},
    {L "self_attn.k_proj", B "attn_k"},
    {L "self_attn.v_proj", B "attn_v"},
    {L "self_attn.o_proj", B "attn_output"},
    {L "self_attn.q_norm", B "attn_q_norm"},
    {L "self_attn.k_norm", B "attn_k_norm"},
    {L "mlp.gate_proj", B "ffn_gate"},
    {L "mlp.up_proj", B "ffn_up"},
    {L "mlp.down_proj", B "ffn_down"},
    // Experts, as most families name them.
    {L "mlp.gate", B "ffn_gate_inp"},
    {L "mlp.experts.{e}.gate_proj", B "ffn_gate_exps"},
    {L "mlp.experts.{e}.up_proj", B "ffn_up_exps"},
    {L "mlp.experts.{e}.down_proj", B "ffn_down_exps"},
    // Worked out anew by whoever reads the file.
    {L "self_attn.rotary_emb.inv_freq", ""},
    {"model.rotary_emb.inv_freq", ""},
};

constexpr TensorRule kMixtral[] = {
    {L "block_sparse_moe.gate", B "ffn_gate_inp"},
    {L "block_sparse_moe.experts.{e}.w1", B "ffn_gate_exps"},
    {L "block_sparse_moe.experts.{e}.w2", B "ffn_down_exps"},
    {L "block_sparse_moe.experts.{e}.w3", B "ffn_up_exps"},
};

constexpr TensorRule kQwenShared[] = {
    {L "mlp.shared_expert.gate_proj", B "ffn_gate_shexp"},
    {L "mlp.shared_expert.up_proj", B "ffn_up_shexp"},
    {L "mlp.shared_expert.down_proj", B "ffn_down_shexp"},
    {L "mlp.shared_expert_gate", B "ffn_gate_inp_shexp", kVector},
};

// Norms before and after each block (Gemma 2 and 3).
constexpr TensorRule kNormsAround[] = {
    {L "post_attention_layernorm", B "post_attention_norm"},
    {L "pre_feedforward_layernorm", B "ffn_norm"},
    {L "post_feedforward_layernorm", B "post_ffw_norm"},
};
// Norms after each block only (OLMo 2, EXAONE 4).
constexpr TensorRule kNormsBehind[] = {
    {L "post_attention_layernorm", B "post_attention_norm"},
    {L "post_feedforward_layernorm", B "post_ffw_norm"},
};

constexpr TensorRule kPhi3[] = {
    {L "self_attn.qkv_proj", B "attn_qkv"},
    {L "mlp.gate_up_proj", B "ffn_up"},
};

constexpr TensorRule kGlm4[] = {
    {L "post_self_attn_layernorm", B "post_attention_norm"},
    {L "post_mlp_layernorm", B "post_ffw_norm"},
    {L "mlp.gate_up_proj", B "ffn_up"},
};

constexpr TensorRule kHunyuan[] = {
    {L "self_attn.query_layernorm", B "attn_q_norm"},
    {L "self_attn.key_layernorm", B "attn_k_norm"},
};

constexpr TensorRule kGraniteMoe[] = {
    {L "block_sparse_moe.router.layer", B "ffn_gate_inp"},
    {L "block_sparse_moe.input_linear", B "ffn_gate_exps", kFirstHalf},
    {L "block_sparse_moe.input_linear", B "ffn_up_exps", kSecondHalf},
    {L "block_sparse_moe.output_linear", B "ffn_down_exps"},
    {L "shared_mlp.input_linear", B "ffn_gate_shexp", kFirstHalf},
    {L "shared_mlp.input_linear", B "ffn_up_shexp", kSecondHalf},
    {L "shared_mlp.output_linear", B "ffn_down_shexp"},
};

constexpr TensorRule kBitNet[] = {
    {L "self_attn.attn_sub_norm", B "attn_sub_norm"},
    {L "mlp.ffn_sub_norm", B "ffn_sub_norm"},
    // The same by their older names.
    {L "self_attn.inner_attn_ln", B "attn_sub_norm"},
    {L "mlp.ffn_layernorm", B "ffn_sub_norm"},
};

constexpr TensorRule kGptOss[] = {
    {L "post_attention_layernorm", B "post_attention_norm"},
    {L "self_attn.sinks", B "attn_sinks.weight"},
    {L "mlp.router", B "ffn_gate_inp"},
    {L "mlp.experts.gate_up_proj_blocks", B "ffn_gate_exps.weight", kEven},
    {L "mlp.experts.gate_up_proj_blocks", B "ffn_up_exps.weight", kOdd},
    {L "mlp.experts.down_proj_blocks", B "ffn_down_exps.weight"},
    {L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight", kEvenTurned},
    {L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight", kOddTurned},
    {L "mlp.experts.down_proj", B "ffn_down_exps.weight", kTurned},
    {L "mlp.experts.gate_up_proj_bias", B "ffn_gate_exps.bias", kEven},
    {L "mlp.experts.gate_up_proj_bias", B "ffn_up_exps.bias", kOdd},
    {L "mlp.experts.down_proj_bias", B "ffn_down_exps.bias"},
};

#undef L
#undef B

using enum KeyKind;

constexpr KeyRule kMixtralKeys[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};
constexpr KeyRule kQwenMoeKeys[] = {
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
};
constexpr KeyRule kGemmaKeys[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", kFloat},
    {"final_logit_softcapping", "final_logit_softcapping", kFloat},
    {"sliding_window", "attention.sliding_window"},
};
constexpr KeyRule kPhi3Keys[] = {
    {"sliding_window", "attention.sliding_window"},
    {"original_max_position_embeddings", "rope.scaling.original_context_length"},
};
constexpr KeyRule kWindowKeys[] = {{"sliding_window", "attention.sliding_window"}};
constexpr KeyRule kGraniteKeys[] = {
    {"attention_multiplier", "attention.scale", kFloat},
    {"embedding_multiplier", "embedding_scale", kFloat},
    {"residual_multiplier", "residual_scale", kFloat},
    {"logits_scaling", "logit_scale", kFloat},
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"shared_intermediate_size", "expert_shared_feed_forward_length"},
};
constexpr KeyRule kGptOssKeys[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"intermediate_size", "expert_feed_forward_length"},
    {"sliding_window", "attention.sliding_window"},
};
constexpr string_view kLlamaNames[] = {"LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM",
                                       "MixtralForCausalLM"};
constexpr string_view kQwen2Names[] = {"Qwen2ForCausalLM"};
constexpr string_view kQwen2MoeNames[] = {"Qwen2MoeForCausalLM"};
constexpr string_view kQwen3Names[] = {"Qwen3ForCausalLM"};
constexpr string_view kQwen3MoeNames[] = {"Qwen3MoeForCausalLM"};
constexpr string_view kPhi3Names[] = {"Phi3ForCausalLM"};
constexpr string_view kGraniteNames[] = {"GraniteForCausalLM"};
constexpr string_view kGraniteMoeNames[] = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"};
constexpr string_view kSmolLm3Names[] = {"SmolLM3ForCausalLM"};
constexpr string_view kMistral3Names[] = {"Ministral3ForCausalLM"};
constexpr string_view kGemma2Names[] = {"Gemma2ForCausalLM"};
constexpr string_view kGemma3Names[] = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"};
constexpr string_view kGptOssNames[] = {"GptOssForCausalLM"};
constexpr string_view kOlmo2Names[] = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"};
constexpr string_view kGlm4Names[] = {"Glm4ForCausalLM"};
constexpr string_view kBitNetNames[] = {"BitNetForCausalLM", "BitnetForCausalLM"};
constexpr string_view kErnieNames[] = {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"};
constexpr string_view kHunyuanNames[] = {"HunYuanDenseV1ForCausalLM"};
constexpr string_view kExaone4Names[] = {"Exaone4ForCausalLM"};
constexpr std::array kFamilies = {
    Family{.name = "llama",
           .hf = kLlamaNames,
           .pairs_neighbours = true,
           .tensors = kMixtral,
           .keys = kMixtralKeys,
           .refine = Llama},
    Family{.name = "qwen2", .hf = kQwen2Names, .refine = Qwen},
    Family{.name = "qwen2moe",
           .hf = kQwen2MoeNames,
           .tensors = kQwenShared,
           .keys = kQwenMoeKeys,
           .refine = Qwen},
    Family{.name = "qwen3", .hf = kQwen3Names, .refine = Qwen},
    Family{.name = "qwen3moe", .hf = kQwen3MoeNames, .keys = kQwenMoeKeys, .refine = Qwen},
    Family{.name = "phi3", .hf = kPhi3Names, .tensors = kPhi3, .keys = kPhi3Keys},
    Family{.name = "granite", .hf = kGraniteNames, .pairs_neighbours = true, .keys = kGraniteKeys},
    Family{.name = "granitemoe",
           .hf = kGraniteMoeNames,
           .pairs_neighbours = true,
           .tensors = kGraniteMoe,
           .keys = kGraniteKeys},
    Family{.name = "smollm3", .hf = kSmolLm3Names, .pairs_neighbours = true, .refine = SmolLm3},
    Family{.name = "mistral3", .hf = kMistral3Names, .pairs_neighbours = true, .refine = Mistral3},
    Family{.name = "gemma2",
           .hf = kGemma2Names,
           .norms_plus_one = true,
           .activation = "gelu",
           .tensors = kNormsAround,
           .keys = kGemmaKeys,
           .refine = Gemma2},
    Family{.name = "gemma3",
           .hf = kGemma3Names,
           .norms_plus_one = true,
           .activation = "gelu",
           .tensors = kNormsAround,
           .keys = kGemmaKeys,
           .refine = Gemma3,
           .defaults = Gemma3Defaults},
    Family{.name = "gpt-oss",
           .hf = kGptOssNames,
           .tensors = kGptOss,
           .keys = kGptOssKeys,
           .refine = GptOss},
    Family{.name = "olmo2",
           .hf = kOlmo2Names,
           .tensors = kNormsBehind,
           .keys = kWindowKeys,
           .refine = Olmo2},
    Family{.name = "glm4", .hf = kGlm4Names, .tensors = kGlm4},
    Family{.name = "bitnet",
           .hf = kBitNetNames,
           .activation = "",  // one of two
           .tensors = kBitNet,
           .refine = BitNet},
    Family{.name = "ernie4_5", .hf = kErnieNames},
    Family{.name = "hunyuan-dense", .hf = kHunyuanNames, .tensors = kHunyuan, .refine = Hunyuan},
    Family{.name = "exaone4",
           .hf = kExaone4Names,
           .tensors = kNormsBehind,
           .keys = kWindowKeys,
           .refine = Exaone4},
};

}  // namespace

std::span<const Family> Families() { return kFamilies; }
std::span<const TensorRule> CommonTensors() { return kCommon; }

}  // namespace convert
