// Qwen2, Qwen3, and Qwen3-Next and Qwen3.5 with delta nets. engine/model/families/qwen.cc explains
// the arithmetic.
#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;

// The shared expert; the others in one stack, unless they are stored one by one.
constexpr TensorRule kQwenExperts[] = {
    {".mlp.shared_expert.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_expert.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_expert.down_proj", ".ffn_down_shexp"},
    {".mlp.shared_expert_gate", ".ffn_gate_inp_shexp", kVector},
    {".mlp.experts.gate_up_proj", ".ffn_gate_exps.weight", kFirstHalf},
    {".mlp.experts.gate_up_proj", ".ffn_up_exps.weight", kSecondHalf},
    {".mlp.experts.down_proj", ".ffn_down_exps.weight"},
};

constexpr TensorRule kQwen3Next[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".linear_attn.in_proj_qkvz", ".attn_qkv", kGroupedQkv},
    {".linear_attn.in_proj_qkvz", ".attn_gate", kGroupedZ},
    {".linear_attn.in_proj_ba", ".ssm_ba"},
    {".linear_attn.conv1d", ".ssm_conv1d", kTaps},
    {".linear_attn.dt_bias", ".ssm_dt.bias"},
    {".linear_attn.A_log", ".ssm_a", kSame, Change::kMinusExp},
    {".linear_attn.norm", ".ssm_norm"},
    {".linear_attn.out_proj", ".ssm_out"},
};

constexpr TensorRule kQwen35[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".linear_attn.in_proj_qkv", ".attn_qkv", kValueHeadsAfter},
    {".linear_attn.in_proj_z", ".attn_gate", kValueHeads},
    {".linear_attn.in_proj_b", ".ssm_beta", kValueHeadNumbers},
    {".linear_attn.in_proj_a", ".ssm_alpha", kValueHeadNumbers},
    {".linear_attn.conv1d", ".ssm_conv1d", kValueHeadsAfter},
    {".linear_attn.dt_bias", ".ssm_dt.bias", kValueHeadNumbers},
    {".linear_attn.A_log", ".ssm_a", kValueHeadNumbers, Change::kMinusExp},
    {".linear_attn.norm", ".ssm_norm"},
    {".linear_attn.out_proj", ".ssm_out", kValueHeadColumns},
};

// A block after the layers that predicts the token after the next.
constexpr TensorRule kQwenNextn[] = {
    {"mtp.fc", ".nextn.eh_proj"},
    {"mtp.pre_fc_norm_embedding", ".nextn.enorm", kSame, Change::kPlusOne},
    {"mtp.pre_fc_norm_hidden", ".nextn.hnorm", kSame, Change::kPlusOne},
    {"mtp.norm", ".nextn.shared_head_norm"},
    {"mtp.embed_tokens", ".nextn.embed_tokens"},
    {"mtp.lm_head", ".nextn.shared_head_head"},
};

constexpr KeyRule kQwenMoeKeys[] = {
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
};

constexpr KeyRule kDeltaNetKeys[] = {
    {"linear_conv_kernel_dim", "ssm.conv_kernel"},
    {"linear_key_head_dim", "ssm.state_size"},
    {"linear_num_key_heads", "ssm.group_count"},
    {"linear_num_value_heads", "ssm.time_step_rank"},
    {"full_attention_interval", "full_attention_interval"},
};

void Qwen(OutModel& model) {
  if (model.config.BoolOr("use_sliding_window", false)) LeaveOutWindow(model);
}

// One block after the layers, which config.json does not always list.
void AddNextn(OutModel& model) {
  if (!model.folder.tensors().contains("mtp.fc.weight")) return;
  if (model.config.UintOr("mtp_num_hidden_layers", 1) != 1) return;
  model.n_nextn = 1;
  model.Uint("nextn_predict_layers", model.n_nextn);
  model.Uint("block_count", model.n_layers() + model.n_nextn);
}

void DeltaNet(OutModel& model) {
  AddNextn(model);
  const Fields& config = model.config;
  Shapes& shapes = model.shapes;
  shapes.n_key_heads = config.Count("linear_num_key_heads");
  shapes.n_value_heads = config.Count("linear_num_value_heads");
  shapes.state = config.Count("linear_key_head_dim");
  if (config.Count("linear_value_head_dim") != shapes.state) {
    config.Fail("linear_value_head_dim", "expected as linear_key_head_dim");
  }
  if (shapes.n_value_heads % shapes.n_key_heads != 0) {
    config.Fail("linear_num_value_heads", "expected a multiple of linear_num_key_heads");
  }
  model.Uint("ssm.inner_size", shapes.n_value_heads * shapes.state);
  const uint64_t interval = config.CountOr("full_attention_interval", 4);
  model.Uint("full_attention_interval", interval);
  ExpectPeriod(model, interval);
  if (model.architecture == "qwen35moe") model.Without("feed_forward_length");
  if (model.architecture == "qwen3next") return;
  std::vector<int32_t> sections = WholeNumbers(model.rope(), "mrope_section", 3);
  sections.push_back(0);
  model.PerLayer("rope.dimension_sections", sections);
}

constexpr Family kQwenRows[] = {
    {.name = "qwen2", .hf = {"Qwen2ForCausalLM"}, .refine = Qwen},
    {.name = "qwen2moe",
     .hf = {"Qwen2MoeForCausalLM"},
     .tensors = {kQwenExperts},
     .keys = {kQwenMoeKeys},
     .refine = Qwen},
    {.name = "qwen3", .hf = {"Qwen3ForCausalLM"}, .refine = Qwen},
    {.name = "qwen3moe", .hf = {"Qwen3MoeForCausalLM"}, .keys = {kQwenMoeKeys}, .refine = Qwen},
    {.name = "qwen35",
     .hf = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"},
     .norms_plus_one = true,
     .tensors = {kQwen35, kQwenExperts, kQwenNextn},
     .keys = {kDeltaNetKeys, kQwenMoeKeys},
     .refine = DeltaNet},
    {.name = "qwen35moe",
     .hf = {"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"},
     .norms_plus_one = true,
     .tensors = {kQwen35, kQwenExperts, kQwenNextn},
     .keys = {kDeltaNetKeys, kQwenMoeKeys},
     .refine = DeltaNet},
    {.name = "qwen3next",
     .hf = {"Qwen3NextForCausalLM"},
     .norms_plus_one = true,
     .tensors = {kQwen3Next, kQwenExperts, kQwenNextn},
     .keys = {kDeltaNetKeys, kQwenMoeKeys},
     .refine = DeltaNet},
};

}  // namespace

std::span<const Family> QwenLineage() { return kQwenRows; }

}  // namespace convert
