// LFM2.
#include "convert/families/families.h"

namespace convert {
namespace {

using enum KeyKind;

constexpr TensorRule kLfm2[] = {
    {"model.embedding_norm", "token_embd_norm"},
    {".operator_norm", ".attn_norm"},
    {".ffn_norm", ".ffn_norm"},
    {".self_attn.out_proj", ".attn_output"},
    {".self_attn.q_layernorm", ".attn_q_norm"},
    {".self_attn.k_layernorm", ".attn_k_norm"},
    {".conv.conv", ".shortconv.conv", Order::kTaps},
    {".conv.in_proj", ".shortconv.in_proj"},
    {".conv.out_proj", ".shortconv.out_proj"},
    {".feed_forward.w1", ".ffn_gate"},
    {".feed_forward.w2", ".ffn_down"},
    {".feed_forward.w3", ".ffn_up"},
    {".feed_forward.gate", ".ffn_gate_inp"},
    {".feed_forward.expert_bias", ".exp_probs_b.bias"},
    {".feed_forward.experts.{e}.w1", ".ffn_gate_exps"},
    {".feed_forward.experts.{e}.w2", ".ffn_down_exps"},
    {".feed_forward.experts.{e}.w3", ".ffn_up_exps"},
};

constexpr KeyRule kLfm2Keys[] = {
    {"conv_L_cache", "shortconv.l_cache"},
    {"norm_eps block_norm_eps", "attention.layer_norm_rms_epsilon", kFloat},
    {"num_dense_layers", "leading_dense_block_count"},
    {"sliding_window", "attention.sliding_window"},
    {"routed_scaling_factor", "expert_weights_scale", kFloat},
};

constexpr UsualValue kLfm2Usual[] = {{"norm_topk_prob", 1}};

void Lfm2(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> attends = LayersOfType(model, "full_attention");
  if (attends.empty()) {
    attends.resize(model.n_layers());
    for (const double i : config.Numbers("full_attn_idxs")) {
      if (i >= 0 && i < static_cast<double>(attends.size())) attends[static_cast<size_t>(i)] = true;
    }
  }
  AddHeads(attends, model);
  // config.json has the width before rounding.
  model.Uint("feed_forward_length", model.RowsOf("model.layers.0.feed_forward.w1.weight"));
  if (model.architecture == "lfm2moe") model.Uint("expert_gating_func", 2);  // sigmoid
}

constexpr Family kLfm2Rows[] = {
    {.name = "lfm2",
     .hf = {"Lfm2ForCausalLM", "LFM2ForCausalLM"},
     .tensors = {kLfm2},
     .keys = {kLfm2Keys},
     .refine = Lfm2,
     .rope_theta = 1e6},
    {.name = "lfm2moe",
     .hf = {"Lfm2MoeForCausalLM"},
     .tensors = {kLfm2},
     .keys = {kLfm2Keys, kExpertSizes},
     .usual = kLfm2Usual,
     .refine = Lfm2,
     .rope_theta = 1e6},
};

}  // namespace

std::span<const Family> Lfm2Lineage() { return kLfm2Rows; }

}  // namespace convert
