// LFM2 (Liquid AI 2025): most layers are gated short convolutions, the rest attention. Experts are
// chosen by sigmoids with a bias, as in DeepSeek-V3.

#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

// ---- What a file means.

void Lfm2(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  RecurrentPlan conv;
  conv.n_taps = keys.Count("shortconv.l_cache", kernels::kMaxTaps);
  conv.channels = config.embedding_length;
  for (LayerPlan& layer : config.layers) {
    if (layer.mixer == Mixer::kShortConv) {
      SetMixer(Mixer::kShortConv, conv, layer);
    } else {
      layer.window = window;
    }
  }
}

constexpr Traits kLfm2Traits = {.norms = {.output = "token_embd_norm"},
                                .qk_norm = QkNorm::kHeadBeforeRope};

// ---- What a folder means.

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
    {"sliding_window", "attention.sliding_window"},
};

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
}

constexpr Family kLfm2Rows[] = {
    {.name = "lfm2",
     .traits = kLfm2Traits,
     .without_heads = Mixer::kShortConv,
     .complete_config = Lfm2,
     .hf = {.names = {"Lfm2ForCausalLM", "LFM2ForCausalLM"},
            .rope_theta = 1e6,
            .tensors = {kLfm2},
            .keys = {kLfm2Keys},
            .add_keys = Lfm2}},
    {.name = "lfm2moe",
     .traits = kLfm2Traits,
     .without_heads = Mixer::kShortConv,
     .router = kSigmoid,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .complete_config = Lfm2,
     .hf = {.names = {"Lfm2MoeForCausalLM"},
            .chooses_by_sigmoid = true,
            .rope_theta = 1e6,
            .tensors = {kLfm2},
            .keys = {kLfm2Keys},
            .add_keys = Lfm2}},
};

}  // namespace

std::span<const Family> Lfm2Lineage() { return kLfm2Rows; }

}  // namespace engine
