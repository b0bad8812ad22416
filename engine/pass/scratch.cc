#include "engine/pass/scratch.h"

#include <algorithm>

namespace engine {
namespace {

// What a matrix gives that is taken apart behind it.
size_t Joined(const Config& c, const LayerPlan& l) {
  const RecurrentPlan& r = l.recurrent;
  switch (l.mixer) {
    case Mixer::kNone:
      return 0;
    case Mixer::kAttention:
      return std::max(c.attention_gate ? 2 * l.n_heads * l.key_length : 0,
                      l.ffn_sparsity > 0 ? l.ffn_length : 0);
    case Mixer::kLatentAttention:
      return l.query_rank + l.n_heads * (l.head_key_length + l.head_value_length) +
             (l.values_in_keys ? 0 : 2 * l.latent_length + l.key_length);
    case Mixer::kShortConv:
      return r.channels;
    case Mixer::kDeltaNet:
      return r.channels + r.width() + 2 * r.n_value_heads;
    case Mixer::kMamba2:
      return 0;
  }
  return 0;
}

// Numbers of a token in each buffer: the most of any layer.
struct Widths {
  explicit Widths(const Config& c)
      : stream(c.embedding_length),
        q(c.Widest([](const LayerPlan& l) { return l.n_heads * l.key_length; })),
        k(c.Widest([](const LayerPlan& l) { return l.n_kv_heads * l.key_length; })),
        v(c.Widest([](const LayerPlan& l) { return l.n_kv_heads * l.value_length; })),
        channels(c.Widest([](const LayerPlan& l) { return l.recurrent.channels; })),
        gate(c.Widest([](const LayerPlan& l) {
          return l.mixer == Mixer::kShortConv ? l.recurrent.channels : l.recurrent.width();
        })),
        value_heads(c.Widest([](const LayerPlan& l) { return l.recurrent.n_value_heads; })),
        streams(c.n_streams * c.embedding_length),
        stream_coefs(c.n_streams * (c.n_streams + 1)),
        per_layer(c.n_layers() * c.per_layer_length),
        hidden(c.Widest(
            [](const LayerPlan& l) { return std::max(l.ffn_length, l.shared_ffn_length); })),
        n_experts(c.Widest([](const LayerPlan& l) { return l.n_experts; })),
        expert(c.Widest([](const LayerPlan& l) { return l.expert_length; })),
        expert_width(c.expert_width != 0 ? c.expert_width : stream),
        expert_rows(c.expert_width != 0 ? c.expert_width
                    : n_experts > 0     ? stream
                                        : 0),
        shared(n_experts > 0 ? stream : 0) {
    attended = c.Widest([](const LayerPlan& l) {
      return std::max(l.n_heads * std::max(l.value_length, l.head_value_length),
                      std::max(l.recurrent.width(), l.recurrent.channels));
    });
    latent = c.Widest([](const LayerPlan& l) {
      return l.values_in_keys ? std::max(l.latent_length, l.head_key_length) : 0;
    });
    for (const LayerPlan& l : c.layers) joined = std::max(joined, Joined(c, l));
    if (c.attention_gate) gate = std::max(gate, q);
    if (c.joins_hidden) joined = std::max(joined, 2 * stream);
    hidden = std::max({hidden, c.per_layer_length, c.laurel_length});
    input = std::max({stream, hidden, attended, joined, expert_width, gate});
    for (const RopeConfig& rope : c.ropes) angles += rope.n_dims / 2;
  }

  size_t Floats() const {
    return 3 * stream + joined + q + k + v + attended + gate + 2 * channels + 2 * value_heads +
           streams + stream_coefs + 2 * per_layer + hidden + 2 * angles + n_experts + shared + 1 +
           2 * expert_rows;
  }

  size_t stream, q, k, v, channels, gate, value_heads, streams, stream_coefs, per_layer, hidden,
      n_experts, expert, expert_width, expert_rows, shared;
  size_t attended = 0, joined = 0, latent = 0, input = 0, angles = 0;
};

}  // namespace

Scratch::Scratch(const Config& c, size_t n, size_t max_threads)
    : max_tokens(n),
      x(n * Widths(c).stream),
      normed(n * Widths(c).stream),
      joined(n * Widths(c).joined),
      q(n * Widths(c).q),
      k(n * Widths(c).k),
      v(n * Widths(c).v),
      attended(n * Widths(c).attended),
      hidden(n * Widths(c).hidden),
      delta(n * Widths(c).stream),
      gate(n * Widths(c).gate),
      conv_in(n * Widths(c).channels),
      conv_out(n * Widths(c).channels),
      alpha(n * Widths(c).value_heads),
      beta(n * Widths(c).value_heads),
      per_layer(n * Widths(c).per_layer),
      per_layer_rows(n * Widths(c).per_layer),
      streams(n * c.n_streams * Widths(c).stream),
      stream_coefs(n * Widths(c).stream_coefs),
      rope_cos(n * Widths(c).angles),
      rope_sin(n * Widths(c).angles),
      router(n * Widths(c).n_experts),
      chosen(n * c.n_experts_used),
      shares(n * c.n_experts_used),
      shared(n * Widths(c).shared),
      shared_gate(n),
      expert_in(n * Widths(c).expert_rows),
      expert_out(n * Widths(c).expert_rows),
      experts(n, Widths(c).n_experts, c.n_experts_used, Widths(c).expert_width, Widths(c).expert,
              max_threads),
      heads(Widths(c).latent > 0 ? n : 0, Widths(c).latent, max_threads),
      input(n, Widths(c).input, max_threads) {}

size_t Scratch::BytesFor(const Config& c, size_t n, size_t max_threads) {
  const Widths w(c);
  return n * (w.Floats() * sizeof(float) + c.n_experts_used * (sizeof(float) + sizeof(uint32_t))) +
         kernels::ExpertScratch::BytesFor(n, w.n_experts, c.n_experts_used, w.expert_width,
                                          w.expert, max_threads) +
         kernels::HeadScratch::BytesFor(w.latent > 0 ? n : 0, w.latent, max_threads) +
         kernels::Activations::BytesFor(n, w.input, max_threads);
}

}  // namespace engine
