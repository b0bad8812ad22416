#include "engine/weights.h"

#include <string>
#include <string_view>
#include <vector>

#include "engine/binder.h"

namespace engine {
namespace {

// The tensors of one layer.
class LayerBinder {
 public:
  LayerBinder(Binder& bind, const Config& config, size_t layer)
      : bind_(bind),
        config_(config),
        plan_(config.layers[layer]),
        blk_("blk." + std::to_string(layer) + "."),
        width_(config.embedding_length) {}

  LayerWeights Bind() {
    LayerWeights w;
    w.attn_norm = Norm(config_.norms.attn, width_);
    w.attn_post_norm = Norm(config_.norms.attn_post, width_);
    w.ffn_norm = Norm(config_.norms.ffn, width_);
    w.ffn_post_norm = Norm(config_.norms.ffn_post, width_);
    BindAttention(w);
    if (plan_.n_experts > 0) {
      BindExperts(w);
    } else {
      BindFeedForward(w);
    }
    return w;
  }

 private:
  std::string Name(std::string_view name) const { return blk_ + std::string(name); }

  const float* Norm(std::string_view name, size_t n) {
    return name.empty() ? nullptr : bind_.Vector(Name(name), n);
  }

  void BindAttention(LayerWeights& w) {
    const size_t q_rows = plan_.n_heads * plan_.key_length;
    const size_t k_rows = plan_.n_kv_heads * plan_.key_length;
    const size_t v_rows = plan_.n_kv_heads * plan_.value_length;
    const size_t out_cols = plan_.n_heads * plan_.value_length;
    if (bind_.Has(Name("attn_qkv"))) {
      const WeightView qkv = bind_.Matrix(Name("attn_qkv"), q_rows + k_rows + v_rows, width_);
      w.attn_q = Binder::Rows(qkv, 0, q_rows);
      w.attn_k = Binder::Rows(qkv, q_rows, k_rows);
      w.attn_v = Binder::Rows(qkv, q_rows + k_rows, v_rows);
    } else {
      w.attn_q = bind_.Matrix(Name("attn_q"), q_rows, width_);
      w.attn_k = bind_.Matrix(Name("attn_k"), k_rows, width_);
      w.attn_v = bind_.Matrix(Name("attn_v"), v_rows, width_);
    }
    if (config_.qk_norm != QkNorm::kNone) {
      const bool all = config_.qk_norm == QkNorm::kAllBeforeRope;
      w.attn_q_norm = bind_.Vector(Name("attn_q_norm"), all ? q_rows : plan_.key_length);
      w.attn_k_norm = bind_.Vector(Name("attn_k_norm"), all ? k_rows : plan_.key_length);
    }
    if (config_.sinks) w.attn_sinks = bind_.Vector(Name("attn_sinks"), plan_.n_heads);
    if (config_.sub_norms) w.attn_sub_norm = bind_.Vector(Name("attn_sub_norm"), out_cols);
    w.attn_output = bind_.Matrix(Name("attn_output"), width_, out_cols);
    if (config_.biases) {
      for (const char* const name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
        bind_.RequireBias(Name(name));
      }
    }
  }

  void BindFeedForward(LayerWeights& w) {
    const size_t hidden = plan_.ffn_length;
    if (bind_.Has(Name("ffn_gate"))) {
      w.ffn_gate = bind_.Matrix(Name("ffn_gate"), hidden, width_);
      w.ffn_up = bind_.Matrix(Name("ffn_up"), hidden, width_);
    } else {  // both in one, the gate's rows first
      const WeightView both = bind_.Matrix(Name("ffn_up"), 2 * hidden, width_);
      w.ffn_gate = Binder::Rows(both, 0, hidden);
      w.ffn_up = Binder::Rows(both, hidden, hidden);
    }
    if (config_.sub_norms) w.ffn_sub_norm = bind_.Vector(Name("ffn_sub_norm"), hidden);
    w.ffn_down = bind_.Matrix(Name("ffn_down"), width_, hidden);
  }

  void BindExperts(LayerWeights& w) {
    const size_t n = plan_.n_experts, hidden = plan_.ffn_length, shared = plan_.shared_ffn_length;
    w.ffn_gate_inp = bind_.Matrix(Name("ffn_gate_inp"), n, width_);
    w.ffn_gate_exps = bind_.Experts(Name("ffn_gate_exps"), n, hidden, width_);
    w.ffn_up_exps = bind_.Experts(Name("ffn_up_exps"), n, hidden, width_);
    w.ffn_down_exps = bind_.Experts(Name("ffn_down_exps"), n, width_, hidden);
    if (config_.biases) {
      for (const char* const name :
           {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
        bind_.RequireBias(Name(name));
      }
    }
    if (shared == 0) return;
    if (config_.shared_gate) {
      w.ffn_gate_inp_shexp = bind_.OneRow(Name("ffn_gate_inp_shexp"), width_);
    }
    w.ffn_gate_shexp = bind_.Matrix(Name("ffn_gate_shexp"), shared, width_);
    w.ffn_up_shexp = bind_.Matrix(Name("ffn_up_shexp"), shared, width_);
    w.ffn_down_shexp = bind_.Matrix(Name("ffn_down_shexp"), width_, shared);
  }

  Binder& bind_;
  const Config& config_;
  const LayerPlan& plan_;
  std::string blk_;
  size_t width_;
};

}  // namespace

std::vector<const WeightView*> LayerWeights::Matrices() const {
  std::vector<const WeightView*> there;
  for (const WeightView* view :
       {&attn_q, &attn_k, &attn_v, &attn_output, &ffn_gate, &ffn_up, &ffn_down, &ffn_gate_inp,
        &ffn_gate_inp_shexp, &ffn_gate_shexp, &ffn_up_shexp, &ffn_down_shexp}) {
    if (view->tensor != nullptr) there.push_back(view);
  }
  return there;
}

Weights Weights::Bind(const gguf::File& file, const Config& config) {
  Binder bind(file);
  const size_t width = config.embedding_length, n_pairs = config.ropes[0].n_dims / 2;
  Weights w;
  w.token_embd = bind.Table("token_embd", config.vocab_size, width);
  w.rope_freqs = bind.OptionalVector("rope_freqs", n_pairs);
  if (bind.Has("rope_factors_short") || bind.Has("rope_factors_long")) {
    w.rope_factors_short = bind.Vector("rope_factors_short", n_pairs);
    w.rope_factors_long = bind.Vector("rope_factors_long", n_pairs);
  }
  for (size_t layer = 0; layer < config.n_layers(); ++layer) {
    w.layers.push_back(LayerBinder(bind, config, layer).Bind());
  }
  for (size_t i = 0; i < config.n_skipped_layers; ++i) {
    w.skipped_bytes += bind.Skip("blk." + std::to_string(config.n_layers() + i) + ".");
  }
  w.output_norm = bind.Vector("output_norm", width);
  const bool own = config.output == OutputMatrix::kOwn ||
                   (config.output == OutputMatrix::kOwnOrEmbedding && bind.Has("output"));
  w.output = own ? bind.Matrix("output", config.vocab_size, width) : w.token_embd;
  bind.RequireAllBound();
  return w;
}

}  // namespace engine
