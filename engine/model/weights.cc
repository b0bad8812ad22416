// Binds the tensors that a Config implies to their roles.
#include "engine/model/weights.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/model/binder.h"

namespace engine {

namespace {

NextnWeights BindNextn(const Binder& all, const Config& config) {
  const size_t width = config.embedding_length, n_layers = config.n_layers();
  Binder bind = all.Of("blk." + std::to_string(n_layers) + ".");
  NextnWeights w;
  // Files may keep a part of this block, which text does not need.
  for (const char* const needed :
       {"nextn.eh_proj", "nextn.enorm", "nextn.hnorm", "attn_norm", "attn_output"}) {
    if (!bind.Has(needed)) return w;
  }
  if (!bind.Has("ffn_down") && !bind.Has("ffn_down_exps")) return w;
  Config with = config;
  with.layers.push_back(*config.nextn);
  w.layer = LayerWeights::Bind(all, with, n_layers);
  w.eh_proj = bind.Matrix("nextn.eh_proj", width, 2 * width);
  w.enorm = bind.Vector("nextn.enorm", width);
  w.hnorm = bind.Vector("nextn.hnorm", width);
  w.shared_head_norm = bind.OptionalVector("nextn.shared_head_norm", width);
  if (w.shared_head_norm == nullptr)
    w.shared_head_norm = bind.OptionalVector("layer_output_norm", width);
  if (bind.Has("nextn.embed_tokens"))
    w.embed_tokens = bind.Embedding("nextn.embed_tokens", width, config.vocab_size);
  if (bind.Has("nextn.shared_head_head"))
    w.shared_head_head = bind.Matrix("nextn.shared_head_head", config.vocab_size, width);
  return w;
}

PoolingWeights BindPooling(Binder& bind, const Config& config) {
  const size_t width = config.embedding_length;
  PoolingWeights w;
  if (config.dense_length > 0 && bind.Has("dense_2")) {
    w.dense_2 = bind.Matrix("dense_2", config.dense_length, width);
    w.dense_3 = bind.Matrix("dense_3", width, config.dense_length);
  }
  if (config.pooling != Pooling::kRank) return w;
  if (bind.Has("cls")) w.cls = bind.Matrix("cls", width, width);
  w.cls_norm = bind.OptionalVector("cls.norm", width);
  w.cls_output = bind.Matrix("cls.output", config.n_labels, width);
  return w;
}

// A gate and the values that it multiplies have one input.
void CheckHadamard(const gguf::File& file, const LayerWeights& w) {
  const std::pair<const WeightView*, const WeightView*> pairs[] = {
      {&w.ffn_gate, &w.ffn_up}, {&w.ffn_gate_shexp, &w.ffn_up_shexp}};
  for (const auto& [gate, up] : pairs) {
    if (gate->tensor == nullptr || gate->hadamard == up->hadamard) continue;
    gguf::Fail(file.path(), "tensor ", gguf::Quoted(gate->tensor->name),
               ": prism.hadamard's keys name it or ", gguf::Quoted(up->tensor->name),
               ", but not both");
  }
}

}  // namespace

Weights Weights::Bind(const gguf::File& file, const Config& config, bool exact) {
  Binder bind(file, exact);
  size_t n_ones = config.Widest(
      [](const LayerPlan& l) { return l.mixer == Mixer::kLightning ? l.recurrent.channels : 0; });
  if (!config.norms_have_weights) {
    n_ones = std::max({n_ones, config.embedding_length,
                       config.Widest([](const LayerPlan& l) { return l.key_length; })});
  }
  if (n_ones > 0) bind.MakeOnes(n_ones);
  const size_t width = config.embedding_length, n_pairs = config.ropes[0].n_dims / 2;
  const size_t n_freqs = config.n_rope_freqs != 0 ? config.n_rope_freqs : n_pairs;
  Weights w;
  w.token_embd = bind.Embedding("token_embd", width, config.vocab_size);
  if (config.learned_positions)
    w.position_embd = bind.Table("position_embd", config.context_length, width);
  if (config.n_token_types > 0 && bind.Has("token_types"))
    w.token_types = bind.Table("token_types", config.n_token_types, width);
  if (config.norms_have_weights) {
    w.token_embd_norm = bind.Norm(std::string(config.norms.embedding), width);
  } else if (!config.norms.embedding.empty()) {
    w.token_embd_norm.weight = bind.Ones(width);
  }
  w.rope_freqs = bind.OptionalVector("rope_freqs", n_freqs);
  if (bind.Has("rope_factors_short") || bind.Has("rope_factors_long")) {
    w.rope_factors_short = bind.Vector("rope_factors_short", n_pairs);
    w.rope_factors_long = bind.Vector("rope_factors_long", n_pairs);
  }
  if (config.per_layer_length > 0) {
    const size_t all = config.n_layers() * config.per_layer_length;
    w.per_layer_token_embd = bind.Table("per_layer_token_embd", config.vocab_size, all);
    w.per_layer_model_proj = bind.Matrix("per_layer_model_proj", all, width);
    w.per_layer_proj_norm = bind.Vector("per_layer_proj_norm", config.per_layer_length);
  }
  if (config.n_residual_streams > 0) {
    w.altup_proj = bind.Experts("altup_proj", config.n_residual_streams - 1, width, width);
    w.altup_unembd_proj =
        bind.Experts("altup_unembd_proj", config.n_residual_streams - 1, width, width);
  }
  for (size_t layer = 0; layer < config.n_layers(); ++layer) {
    w.layers.push_back(LayerWeights::Bind(bind, config, layer));
  }
  w.pooling = BindPooling(bind, config);
  if (config.nextn) w.nextn = BindNextn(bind, config);
  if (config.backbone_length > 0) {
    w.pre_projection = bind.Matrix("nextn.pre_projection", width, 2 * config.backbone_length);
    w.post_projection = bind.Matrix("nextn.post_projection", config.backbone_length, width);
    w.skipped_bytes += bind.Skip("masked_embd_");  // token clusters: all logits are computed
  }
  for (size_t i = 0; i < config.n_skipped_layers; ++i) {
    w.skipped_bytes += bind.Skip("blk." + std::to_string(config.n_layers() + i) + ".");
  }
  if (!config.norms.output.empty()) {
    const std::string name(config.norms.output);
    w.output_norm = config.norms_have_weights ? bind.Vector(name, width) : bind.Ones(width);
    if (config.layer_norm) w.output_norm_bias = bind.OptionalFloats(name + ".bias", {width});
  }
  w.ones = bind.ones();
  w.hadamard_transforms = bind.hadamard_transforms();
  for (const LayerWeights& layer : w.layers) CheckHadamard(file, layer);
  CheckHadamard(file, w.nextn.layer);
  const bool own = config.output == OutputMatrix::kOutputTensor ||
                   (config.output == OutputMatrix::kOutputTensorOrEmbedding && bind.Has("output"));
  w.output = own ? bind.Matrix("output", config.vocab_size, width) : w.token_embd;
  for (const char* const encoder : {"v.", "a.", "mm."}) w.encoder_bytes += bind.Skip(encoder);
  w.skipped_bytes += w.encoder_bytes + bind.Skip("mtp.");  // and drafts, in Ollama's files
  bind.RequireAllBound();
  return w;
}

size_t Weights::ResidualCols() const {
  size_t cols = 0;
  const auto add = [&](const kernels::Matrix& w) {
    if (kernels::UsesResiduals(w)) cols = std::max(cols, w.cols);
  };
  const auto add_layer = [&](const LayerWeights& w) {
    for (const WeightView* const matrix : {&w.attn_v, &w.ffn_up, &w.ffn_down}) add(*matrix);
  };
  for (const LayerWeights& w : layers) add_layer(w);
  add_layer(nextn.layer);
  kernels::Matrix largest_logits = output;
  largest_logits.uses_residual = true;
  add(largest_logits);
  return cols;
}

}  // namespace engine
