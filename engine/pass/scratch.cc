// The sizes of a batch's buffers.
#include "engine/pass/scratch.h"

#include <algorithm>
#include <utility>

namespace engine {
namespace {

// Width of Scratch::temp for this layer.
size_t TempWidth(const Config& c, const LayerPlan& l) {
  const RecurrentPlan& r = l.recurrent;
  switch (l.mixer) {
    case Mixer::kNone:
    case Mixer::kMamba2:
      return 0;
    case Mixer::kAttention:
      return std::max(c.attention_gate != AttentionGate::kNone ? 2 * l.n_heads * l.key_length : 0,
                      l.ffn_sparsity > 0 ? l.ffn_length : 0);
    case Mixer::kLatentAttention:
      return l.query_rank + l.n_heads * (l.head_key_length + l.head_value_length + 1) +
             (l.values_in_keys ? 0 : 2 * l.latent_length + l.key_length);
    case Mixer::kShortConv:
    case Mixer::kLightning:
      return r.channels;
    case Mixer::kMamba:
      return r.rank;
    case Mixer::kDeltaNet:
      return r.channels + r.width() + 2 * r.n_value_heads;
  }
  return 0;
}

}  // namespace

// The only list of buffers: widths in floats per token, the largest of any layer; kernels' scratch.
struct Scratch::Layout {
  explicit Layout(const Config& c);

  std::vector<std::pair<float * Scratch::*, size_t>> rows;
  size_t n_experts, expert, expert_width, latent, input;
};

Scratch::Layout::Layout(const Config& c) {
  const auto widest = [&](size_t (*width)(const LayerPlan&)) { return c.Widest(width); };
  const size_t stream = c.embedding_length;
  const size_t q_width = widest([](const LayerPlan& l) { return l.n_heads * l.key_length; });
  const size_t channels = widest([](const LayerPlan& l) { return l.recurrent.channels; });
  const size_t attended_width = widest([](const LayerPlan& l) {
    return std::max({l.n_heads * std::max(l.value_length, l.head_value_length), l.recurrent.width(),
                     l.recurrent.channels});
  });
  const size_t hidden_width = std::max(
      {widest([](const LayerPlan& l) { return std::max(l.ffn_length, l.shared_ffn_length); }),
       c.per_layer_length, c.laurel_length, c.dense_length});
  const size_t gate_width = std::max(
      c.attention_gate != AttentionGate::kNone ? attended_width : 0, widest([](const LayerPlan& l) {
        return l.mixer == Mixer::kShortConv ? l.recurrent.channels : l.recurrent.width();
      }));
  const size_t per_layer_width = c.n_layers() * c.per_layer_length;
  size_t temp_width = 2 * (c.joins_hidden ? stream : c.backbone_length), angles = 0;
  for (const LayerPlan& l : c.layers) temp_width = std::max(temp_width, TempWidth(c, l));
  for (const RopeConfig& rope : c.ropes) angles += rope.n_dims / 2;
  n_experts = widest([](const LayerPlan& l) { return l.n_experts; });
  expert = widest([](const LayerPlan& l) { return l.expert_length; });
  expert_width = c.expert_width != 0 ? c.expert_width : stream;
  const size_t expert_rows = c.expert_width != 0 || n_experts > 0 ? expert_width : 0;
  latent = widest([](const LayerPlan& l) {
    return l.values_in_keys ? std::max(l.latent_length, l.head_key_length) : 0;
  });
  input = std::max({stream, hidden_width, attended_width, temp_width, expert_width, gate_width});
  using S = Scratch;
  rows = {{&S::x, stream},
          {&S::normed, stream},
          {&S::temp, temp_width},
          {&S::q, q_width},
          {&S::k, widest([](const LayerPlan& l) { return l.n_kv_heads * l.key_length; })},
          {&S::v, widest([](const LayerPlan& l) { return l.n_kv_heads * l.value_length; })},
          {&S::attended, attended_width},
          {&S::hidden, hidden_width},
          {&S::delta, stream},
          {&S::transformed, c.uses_hadamard ? input : 0},
          {&S::gate, gate_width},
          {&S::conv_in, channels},
          {&S::conv_out, channels},
          {&S::alpha, widest([](const LayerPlan& l) { return l.recurrent.n_alpha; })},
          {&S::beta, widest([](const LayerPlan& l) { return l.recurrent.n_beta; })},
          {&S::per_layer, per_layer_width},
          {&S::per_layer_rows, per_layer_width},
          {&S::streams, c.n_residual_streams * stream},
          {&S::stream_coefs, c.n_residual_streams * (c.n_residual_streams + 1)},
          {&S::rope_cos, angles},
          {&S::rope_sin, angles},
          {&S::router, n_experts},
          {&S::expert_weights, c.n_experts_used},
          {&S::shared, n_experts > 0 ? stream : 0},
          {&S::shared_gate, 1},
          {&S::expert_in, expert_rows},
          {&S::expert_out, expert_rows}};
}

Scratch::Scratch(const Config& c, size_t n, size_t max_threads)
    : Scratch(c, Layout(c), n, max_threads) {}

Scratch::Scratch(const Config& c, const Layout& layout, size_t n, size_t max_threads)
    : max_tokens(n),
      experts(n, layout.n_experts, c.n_experts_used, layout.expert_width, layout.expert,
              max_threads),
      heads(layout.latent > 0 ? n : 0, layout.latent, max_threads),
      latents(max_threads),
      input(n, layout.input, max_threads, c.residual_cols),
      chosen_(n * c.n_experts_used) {
  chosen = chosen_.get();
  rows_.reserve(layout.rows.size());
  for (const auto& [row, width] : layout.rows) this->*row = rows_.emplace_back(n * width).get();
}

size_t Scratch::BytesFor(const Config& c, size_t n, size_t max_threads) {
  const Layout l(c);
  size_t width = c.n_experts_used;  // of `chosen`
  for (const auto& row : l.rows) width += row.second;
  static_assert(sizeof(float) == sizeof(uint32_t));
  return n * width * sizeof(float) +
         kernels::ExpertScratch::BytesFor(n, l.n_experts, c.n_experts_used, l.expert_width,
                                          l.expert, max_threads) +
         kernels::HeadScratch::BytesFor(l.latent > 0 ? n : 0, l.latent, max_threads) +
         kernels::Activations::BytesFor(n, l.input, max_threads, c.residual_cols);
}

}  // namespace engine
