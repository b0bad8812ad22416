// Binds the tensors of one layer according to its plan and the config (weights.h).
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "engine/model/binder.h"
#include "engine/model/weights.h"

namespace engine {
namespace {

class LayerBinder {
  static constexpr size_t kMany = 24;

 public:
  LayerBinder(const Binder& bind, const Config& config, size_t layer)
      : bind_(bind.Of("blk." + std::to_string(config.file_layer(layer)) + ".")),
        config_(config),
        plan_(config.layers[layer]),
        is_first_(layer == 0),
        is_last_of_many_(layer + 1 == config.layers.size() && layer + 1 >= kMany),
        width_(config.embedding_length) {}

  LayerWeights Bind() {
    LayerWeights w;
    if (config_.has_first_norm || !is_first_) {
      // Falcon 7B has one norm for mixer and network, 40B has two norms.
      const bool one =
          config_.parallel_residual && config_.norms_have_weights && !HasNorm(config_.norms.attn);
      const std::string_view name = one ? config_.norms.ffn : config_.norms.attn;
      w.attn_norm = Norm(name, width_);
      w.attn_norm_bias = NormBias(name);
      if (one) shares_norm_ = true;
    }
    w.attn_post_norm = Norm(config_.norms.attn_post, width_);
    w.attn_sum_norm = bind_.Norm(std::string(config_.norms.attn_sum), width_);
    const bool one_part = plan_.mixer == Mixer::kNone || plan_.ffn_length + plan_.n_experts == 0;
    if (plan_.mixer == Mixer::kNone) std::swap(w.attn_norm, w.ffn_norm);
    if (!one_part && !(config_.parallel_residual && !HasNorm(config_.norms.ffn)) && !shares_norm_) {
      w.ffn_norm = Norm(config_.norms.ffn, width_);
      w.ffn_norm_bias = NormBias(config_.norms.ffn);
    }
    w.ffn_post_norm = Norm(config_.norms.ffn_post, width_);
    w.ffn_sum_norm = bind_.Norm(std::string(config_.norms.ffn_sum), width_);
    BindMixer(plan_.mixer, w);
    BindMixer(plan_.second_mixer, w);
    if (plan_.ffn_length > 0) BindFeedForward(w);
    if (plan_.n_experts > 0) BindExperts(w);
    if (config_.per_layer_length > 0) {
      w.inp_gate = bind_.Matrix("inp_gate", config_.per_layer_length, width_);
      w.proj = bind_.Matrix("proj", width_, config_.per_layer_length);
      w.post_norm = bind_.Vector("post_norm", width_);
    }
    if (config_.n_residual_streams > 0) BindStreams(w);
    w.layer_output_scale = bind_.OptionalFloats("layer_output_scale.weight", {1});
    w.matrix_elements = bind_.matrix_elements();
    return w;
  }

 private:
  void BindMixer(Mixer mixer, LayerWeights& w) {
    switch (mixer) {
      case Mixer::kNone:
        break;
      case Mixer::kAttention:
        return BindAttention(w);
      case Mixer::kLatentAttention:
        return BindLatentAttention(w);
      case Mixer::kShortConv:
        return BindShortConv(w);
      case Mixer::kDeltaNet:
        return BindDeltaNet(w);
      case Mixer::kMamba:
        return BindMamba(w);
      case Mixer::kMamba2:
        return BindMamba2(w);
      case Mixer::kLightning:
        return BindLightning(w);
    }
  }

  const float* Norm(std::string_view name, size_t n) {
    if (name.empty()) return nullptr;
    return config_.norms_have_weights ? bind_.Vector(std::string(name), n) : bind_.Ones(n);
  }
  const float* NormBias(std::string_view name) {
    if (name.empty() || !config_.layer_norm) return nullptr;
    return bind_.OptionalFloats(std::string(name) + ".bias", {width_});
  }
  bool HasNorm(std::string_view name) const { return bind_.Has(std::string(name)); }

  const float* QkNormOf(const char* name, size_t n) {
    if (!config_.norms_have_weights) return bind_.Ones(n);
    return config_.qk_norm_optional ? bind_.OptionalVector(name, n) : bind_.Vector(name, n);
  }
  // LayerNorm: with a bias, or with weights for each head.
  void BindHeadNorms(LayerWeights& w) {
    if (config_.qk_norm_optional && !bind_.Has("attn_q_norm")) return;
    const size_t length = plan_.key_length;
    w.qk_norm_weights_by_head = bind_.Rows("attn_q_norm") > 1;
    if (w.qk_norm_weights_by_head) {
      w.attn_q_norm = bind_.Floats("attn_q_norm.weight", {length, plan_.n_heads});
      w.attn_k_norm = bind_.Floats("attn_k_norm.weight", {length, plan_.n_kv_heads});
      return;
    }
    w.attn_q_norm = bind_.Vector("attn_q_norm", length);
    w.attn_k_norm = bind_.Vector("attn_k_norm", length);
    w.attn_q_norm_bias = bind_.OptionalFloats("attn_q_norm.bias", {length});
    w.attn_k_norm_bias = bind_.OptionalFloats("attn_k_norm.bias", {length});
  }

  void BindAttention(LayerWeights& w) {
    const size_t q_rows = plan_.n_heads * plan_.key_length;
    const size_t k_rows = plan_.n_kv_heads * plan_.key_length;
    const size_t v_rows = plan_.n_kv_heads * plan_.value_length;
    const size_t out_cols = plan_.n_heads * plan_.value_length;
    const bool own_kv = plan_.kv_layer == LayerPlan::kOwnCache;
    const bool gates = config_.attention_gate == AttentionGate::kInQueries;
    const bool joined = own_kv && !gates && bind_.Has("attn_qkv");
    if (!joined) w.attn_q = bind_.Matrix("attn_q", gates ? 2 * q_rows : q_rows, width_);
    if (joined) {
      const WeightView qkv = bind_.Matrix("attn_qkv", q_rows + k_rows + v_rows, width_);
      w.attn_q = Binder::Rows(qkv, 0, q_rows);
      w.attn_k = Binder::Rows(qkv, q_rows, k_rows);
      w.attn_v = Binder::Rows(qkv, q_rows + k_rows, v_rows);
    } else if (own_kv) {
      w.attn_k = bind_.Matrix("attn_k", k_rows, width_);
      const bool from_keys = config_.keys_as_values && v_rows == k_rows;
      if (!from_keys || bind_.Has("attn_v")) {
        w.attn_v = bind_.Matrix("attn_v", v_rows, width_);
      }
    }
    // Values are added to the text's vectors unchanged: their errors are a quarter of the whole
    // loss by rounding. With grouped queries the matrix is small.
    w.attn_v.uses_residual = 2 * v_rows <= q_rows;
    if (config_.qk_norm != QkNorm::kNone && config_.qk_layer_norm) {
      BindHeadNorms(w);
    } else if (config_.qk_norm != QkNorm::kNone) {
      const bool all = config_.qk_norm == QkNorm::kAllBeforeRope;
      w.attn_q_norm = QkNormOf("attn_q_norm", all ? q_rows : plan_.key_length);
      if (own_kv) w.attn_k_norm = QkNormOf("attn_k_norm", all ? k_rows : plan_.key_length);
    }
    if (!own_kv) {  // some files have these unused tensors
      for (const char* const name : {"attn_k.", "attn_v.", "attn_k_norm."}) bind_.Skip(name);
    }
    if (config_.sinks == Presence::kRequired ||
        (config_.sinks == Presence::kOptional && bind_.Has("attn_sinks"))) {
      w.attn_sinks = bind_.Vector("attn_sinks", plan_.n_heads);
    }
    if (config_.attention_gate == AttentionGate::kSeparateMatrix ||
        (config_.attention_gate == AttentionGate::kSeparateMatrixIfPresent &&
         bind_.Has("attn_gate"))) {
      const bool gate_by_head = bind_.Rows("attn_gate") == plan_.n_heads;
      w.attn_gate = bind_.Matrix("attn_gate", gate_by_head ? plan_.n_heads : out_cols, width_);
    }
    if (config_.has_sub_norms) w.attn_sub_norm = bind_.Vector("attn_sub_norm", out_cols);
    w.attn_output = bind_.Matrix("attn_output", width_, out_cols);
    if (config_.requires_biases) bind_.RequireBias({"attn_q", "attn_k", "attn_v", "attn_output"});
  }

  void BindLatentAttention(LayerWeights& w) {
    const size_t latent = plan_.latent_length, n_heads = plan_.n_heads;
    const size_t n_rotated = plan_.key_length - plan_.rope_offset;
    const size_t n_unrotated = plan_.head_key_length - n_rotated, value = plan_.head_value_length;
    const size_t q_rows = n_heads * plan_.head_key_length;
    if (plan_.query_rank == 0 || bind_.Has("attn_q")) {
      w.attn_q = bind_.Matrix("attn_q", q_rows, width_);
    } else {
      w.attn_q_a = bind_.Matrix("attn_q_a", plan_.query_rank, width_);
      w.attn_q_a_norm = bind_.Vector("attn_q_a_norm", plan_.query_rank);
      w.attn_q_b = bind_.Matrix("attn_q_b", q_rows, plan_.query_rank);
    }
    w.attn_kv_a_mqa = bind_.Matrix("attn_kv_a_mqa", latent + n_rotated, width_);
    w.attn_kv_a_norm = bind_.Vector("attn_kv_a_norm", latent);
    if (plan_.values_in_keys) {
      w.attn_k_b = bind_.Experts("attn_k_b", n_heads, latent, n_unrotated);
      w.attn_v_b = bind_.Experts("attn_v_b", n_heads, value, latent);
    } else {
      w.attn_kv_b = bind_.Matrix("attn_kv_b", n_heads * (n_unrotated + value), latent);
    }
    if (config_.attention_gate == AttentionGate::kSeparateMatrix)
      w.attn_gate = bind_.Matrix("attn_gate", n_heads, width_);
    w.attn_output = bind_.Matrix("attn_output", width_, n_heads * value);
  }

  std::array<const float*, 3> Taps(const char* name) {
    return {bind_.Floats(name, {plan_.recurrent.n_taps, plan_.recurrent.channels})};
  }

  void BindShortConv(LayerWeights& w) {
    const WeightView in = bind_.Matrix("shortconv.in_proj", 3 * width_, width_);
    w.conv_gate = Binder::Rows(in, 0, width_);
    w.mixer_gate = Binder::Rows(in, width_, width_);
    w.conv_in = Binder::Rows(in, 2 * width_, width_);
    w.conv = Taps("shortconv.conv.weight");
    w.mixer_out = bind_.Matrix("shortconv.out_proj", width_, width_);
  }

  void BindDeltaNet(LayerWeights& w) {
    const RecurrentPlan& r = plan_.recurrent;
    if (r.decay_by_channel) return BindDeltaNetByChannel(w);
    if (bind_.Has("ssm_in")) {
      w.ssm_in = bind_.Matrix("ssm_in", r.channels + r.width(), width_);
    } else {
      w.conv_in = bind_.Matrix("attn_qkv", r.channels, width_);
      w.mixer_gate = bind_.Matrix("attn_gate", r.width(), width_);
    }
    if (bind_.Has("ssm_ba")) {
      w.ssm_ba = bind_.Matrix("ssm_ba", 2 * r.n_value_heads, width_);
    } else {
      w.ssm_alpha = bind_.Matrix("ssm_alpha", r.n_value_heads, width_);
      w.ssm_beta = bind_.Matrix("ssm_beta", r.n_value_heads, width_);
    }
    w.conv = Taps("ssm_conv1d.weight");
    w.ssm_dt_bias = bind_.Floats("ssm_dt.bias", {r.n_value_heads});
    w.ssm_a = bind_.Floats("ssm_a", {r.n_value_heads});
    w.ssm_norm = bind_.Vector("ssm_norm", r.value_length);
    w.mixer_out = bind_.Matrix("ssm_out", width_, r.width());
  }

  void BindDeltaNetByChannel(LayerWeights& w) {
    const RecurrentPlan& r = plan_.recurrent;
    w.attn_q = bind_.Matrix("attn_q", r.width(), width_);
    w.attn_k = bind_.Matrix("attn_k", r.width(), width_);
    w.attn_v = bind_.Matrix("attn_v", r.width(), width_);
    for (size_t i = 0; i < 3; ++i) {
      w.conv[i] = bind_.Floats("ssm_conv1d_" + std::string(1, "qkv"[i]) + ".weight",
                               {r.n_taps, 1, r.width()});
    }
    if (r.rank == 0) {
      w.ssm_alpha = bind_.Matrix("ssm_f_a", r.n_alpha, width_);
      w.mixer_gate = bind_.Matrix("ssm_g_a", r.width(), width_);
    } else {
      w.alpha_in = bind_.Matrix("ssm_f_a", r.rank, width_);
      w.ssm_alpha = bind_.Matrix("ssm_f_b", r.n_alpha, r.rank);
      w.gate_in = bind_.Matrix("ssm_g_a", r.rank, width_);
      w.mixer_gate = bind_.Matrix("ssm_g_b", r.width(), r.rank);
    }
    w.ssm_beta = bind_.Matrix("ssm_beta", r.n_beta, width_);
    w.ssm_dt_bias = bind_.Floats("ssm_dt.bias", {r.n_alpha});
    w.ssm_a = bind_.Floats("ssm_a", {1, r.n_value_heads});
    // Rates are below 0 for softplus, above 0 for sigmoid.
    const bool positive = r.lowest_decay != 0;
    if (std::any_of(w.ssm_a, w.ssm_a + r.n_value_heads,
                    [&](float a) { return positive ? a < 0 : a > 0; }))
      bind_.Fail("ssm_a", "expected numbers ", positive ? "above" : "below", " 0");
    w.ssm_norm = bind_.Vector("ssm_norm", r.value_length);
    w.mixer_out = bind_.Matrix("attn_output", width_, r.width());
  }

  void BindMamba(LayerWeights& w) {
    const RecurrentPlan& r = plan_.recurrent;
    const WeightView in = bind_.Matrix("ssm_in", 2 * r.channels, width_);
    w.conv_in = Binder::Rows(in, 0, r.channels);
    w.mixer_gate = Binder::Rows(in, r.channels, r.channels);
    w.conv = Taps("ssm_conv1d.weight");
    w.conv_bias = bind_.Floats("ssm_conv1d.bias", {r.channels});
    const WeightView x = bind_.Matrix("ssm_x", r.rank + r.n_beta, r.channels);
    w.alpha_in = Binder::Rows(x, 0, r.rank);
    w.ssm_beta = Binder::Rows(x, r.rank, r.n_beta);
    w.ssm_alpha = bind_.Matrix("ssm_dt", r.n_alpha, r.rank);
    bind_.RequireBias({"ssm_dt"});
    if (config_.ssm_norms == Presence::kRequired) {
      w.ssm_norms = {bind_.Vector("ssm_dt_norm", r.rank), bind_.Vector("ssm_b_norm", r.key_length),
                     bind_.Vector("ssm_c_norm", r.key_length)};
    }
    w.ssm_a = bind_.Floats("ssm_a", {r.key_length, r.channels});
    w.ssm_d = bind_.Floats("ssm_d", {r.channels});
    w.mixer_out = bind_.Matrix("ssm_out", width_, r.channels);
  }

  void BindMamba2(LayerWeights& w) {
    const RecurrentPlan& r = plan_.recurrent;
    const WeightView in = bind_.Matrix("ssm_in", r.width() + r.channels + r.n_value_heads, width_);
    w.mixer_gate = Binder::Rows(in, 0, r.width());
    w.conv_in = Binder::Rows(in, r.width(), r.channels);
    w.ssm_alpha = Binder::Rows(in, r.width() + r.channels, r.n_value_heads);
    w.conv = Taps("ssm_conv1d.weight");
    w.conv_bias = bind_.OptionalFloats("ssm_conv1d.bias", {r.channels});
    w.ssm_dt_bias = bind_.Floats("ssm_dt.bias", {r.n_value_heads});
    w.ssm_a = bind_.Floats("ssm_a", {1, r.n_value_heads});
    w.ssm_d = bind_.Floats("ssm_d", {1, r.n_value_heads});
    if (config_.ssm_norms == Presence::kRequired || bind_.Has("ssm_norm")) {
      w.ssm_norm = bind_.Floats("ssm_norm.weight", {r.width() / r.n_key_heads, r.n_key_heads});
    }
    w.mixer_out = bind_.Matrix("ssm_out", width_, r.width());
  }

  void BindLightning(LayerWeights& w) {
    const RecurrentPlan& r = plan_.recurrent;
    w.conv_in = bind_.Matrix("attn_qkv", r.channels, width_);
    w.conv = {bind_.Ones(r.channels)};
    w.mixer_gate = bind_.Matrix("attn_gate", r.width(), width_);
    w.ssm_norm = bind_.Vector("attn_norm_2", r.width());
    w.mixer_out = bind_.Matrix("attn_output", width_, r.width());
  }

  void BindStreams(LayerWeights& w) {
    const size_t n = config_.n_residual_streams, rank = config_.laurel_length;
    w.laurel_l = bind_.Matrix("laurel_l", rank, width_);
    w.laurel_r = bind_.Matrix("laurel_r", width_, rank);
    w.laurel_post_norm = bind_.Vector("laurel_post_norm", width_);
    w.altup_router = bind_.Matrix("altup_router", n, width_);
    w.altup_router.scale /= static_cast<float>(width_);
    w.altup_router_norm = bind_.Vector("altup_router_norm", width_);
    w.altup_predict_coef = bind_.Matrix("altup_predict_coef", n * n, n);
    w.altup_correct_coef = bind_.Matrix("altup_correct_coef", n, n);
    w.altup_correct_scale = bind_.Vector("altup_correct_scale", width_);
  }

  // Networks with a one-input activation have no gate.
  bool IsGated() const { return kernels::IsGated(config_.activation) && !plan_.xielu; }

  void BindFeedForward(LayerWeights& w) {
    const size_t hidden = plan_.ffn_length;
    if (!IsGated()) {
      w.ffn_up = bind_.Matrix("ffn_up", hidden, width_);
    } else if (bind_.Has("ffn_gate")) {
      w.ffn_gate = bind_.Matrix("ffn_gate", hidden, width_);
      w.ffn_up = bind_.Matrix("ffn_up", hidden, width_);
    } else {  // both in one, the gate's rows first
      const WeightView both = bind_.Matrix("ffn_up", 2 * hidden, width_);
      w.ffn_gate = Binder::Rows(both, 0, hidden);
      w.ffn_up = Binder::Rows(both, hidden, hidden);
    }
    if (config_.has_sub_norms) w.ffn_sub_norm = bind_.Vector("ffn_sub_norm", hidden);
    w.ffn_down = bind_.Matrix("ffn_down", width_, hidden);
    // No later layer evens out rounding errors here.
    w.ffn_up.uses_residual = w.ffn_down.uses_residual = is_last_of_many_;
  }

  void BindExperts(LayerWeights& w) {
    const size_t n = plan_.n_experts, hidden = plan_.expert_length,
                 shared = plan_.shared_ffn_length;
    const size_t width = config_.expert_width != 0 ? config_.expert_width : width_;
    BindRouter(w);
    if (config_.expert_width != 0) {
      w.ffn_latent_down = bind_.Matrix("ffn_latent_down", width, width_);
      w.ffn_latent_up = bind_.Matrix("ffn_latent_up", width_, width);
    }
    if (bind_.Has("ffn_gate_up_exps")) {  // both in one, each gate's rows first
      const ExpertsView both = bind_.Experts("ffn_gate_up_exps", n, 2 * hidden, width);
      w.ffn_gate_exps = Binder::Rows(both, 0, hidden);
      w.ffn_up_exps = Binder::Rows(both, hidden, hidden);
    } else {
      if (IsGated()) w.ffn_gate_exps = bind_.Experts("ffn_gate_exps", n, hidden, width);
      w.ffn_up_exps = bind_.Experts("ffn_up_exps", n, hidden, width);
    }
    w.ffn_down_exps = bind_.Experts("ffn_down_exps", n, width, hidden);
    if (plan_.ffn_length > 0) {
      w.ffn_post_norm_1 = bind_.Vector("post_ffw_norm_1", width_);
      w.ffn_pre_norm_2 = bind_.Vector("pre_ffw_norm_2", width_);
      w.ffn_post_norm_2 = bind_.Vector("post_ffw_norm_2", width_);
    }
    if (config_.requires_biases)
      bind_.RequireBias({"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"});
    if (shared == 0) return;
    if (config_.shared_gate) {
      w.ffn_gate_inp_shexp = bind_.OneRow("ffn_gate_inp_shexp", width_);
    }
    if (IsGated() && !bind_.Has("ffn_gate_shexp")) {  // both in one, the gate's rows first
      const WeightView both = bind_.Matrix("ffn_up_shexp", 2 * shared, width_);
      w.ffn_gate_shexp = Binder::Rows(both, 0, shared);
      w.ffn_up_shexp = Binder::Rows(both, shared, shared);
    } else {
      if (IsGated()) w.ffn_gate_shexp = bind_.Matrix("ffn_gate_shexp", shared, width_);
      w.ffn_up_shexp = bind_.Matrix("ffn_up_shexp", shared, width_);
    }
    w.ffn_down_shexp = bind_.Matrix("ffn_down_shexp", width_, shared);
  }

  void BindRouter(LayerWeights& w) {
    const size_t n = plan_.n_experts;
    if (plan_.ffn_length > 0) {  // beside a dense network the router reads the scaled stream
      w.ffn_gate_inp = bind_.Table("ffn_gate_inp", n, width_);
      w.ffn_gate_inp.scale = 1 / std::sqrt(static_cast<float>(width_));
      w.ffn_gate_inp_scale = bind_.Floats("ffn_gate_inp.scale", {width_});
    } else {
      w.ffn_gate_inp = bind_.Matrix("ffn_gate_inp", n, width_);
    }
    if (config_.router_bias == Presence::kRequired) bind_.RequireBias({"exp_probs_b"});
    if (config_.router_bias != Presence::kNone) {
      w.exp_probs_b = bind_.OptionalFloats("exp_probs_b.bias", {n});
    }
  }

  Binder bind_;
  const Config& config_;
  const LayerPlan& plan_;
  bool is_first_;
  bool is_last_of_many_;      // the last layer, whose products are few among many
  bool shares_norm_ = false;  // the network reads the mixer's input
  size_t width_;
};

}  // namespace

LayerWeights LayerWeights::Bind(const Binder& bind, const Config& config, size_t layer) {
  return LayerBinder(bind, config, layer).Bind();
}

}  // namespace engine
