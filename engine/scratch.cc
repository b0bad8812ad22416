#include "engine/scratch.h"

#include <algorithm>

namespace engine {
namespace {

// Numbers of a token in each buffer: the most of any layer.
struct Widths {
  explicit Widths(const Config& c)
      : stream(c.embedding_length),
        q(c.Widest([](const LayerPlan& l) { return l.n_heads * l.key_length; })),
        k(c.Widest([](const LayerPlan& l) { return l.n_kv_heads * l.key_length; })),
        v(c.Widest([](const LayerPlan& l) { return l.n_kv_heads * l.value_length; })),
        attended(c.Widest([](const LayerPlan& l) { return l.n_heads * l.value_length; })),
        hidden(c.Widest([](const LayerPlan& l) {
          return l.n_experts > 0 ? l.shared_ffn_length : l.ffn_length;
        })),
        n_experts(c.Widest([](const LayerPlan& l) { return l.n_experts; })),
        expert(c.Widest([](const LayerPlan& l) { return l.n_experts > 0 ? l.ffn_length : 0; })),
        shared(c.Widest([](const LayerPlan& l) { return l.shared_ffn_length; }) > 0 ? stream : 0),
        input(std::max({stream, hidden, attended})) {
    for (const RopeConfig& rope : c.ropes) angles += rope.n_dims / 2;
  }

  size_t Floats() const {
    return 3 * stream + q + k + v + attended + hidden + 2 * angles + n_experts + shared + 1;
  }

  size_t stream, q, k, v, attended, hidden, n_experts, expert, shared, input;
  size_t angles = 0;
};

}  // namespace

Scratch::Scratch(const Config& c, size_t n, size_t max_threads)
    : max_tokens(n),
      x(n * Widths(c).stream),
      normed(n * Widths(c).stream),
      q(n * Widths(c).q),
      k(n * Widths(c).k),
      v(n * Widths(c).v),
      attended(n * Widths(c).attended),
      hidden(n * Widths(c).hidden),
      delta(n * Widths(c).stream),
      rope_cos(n * Widths(c).angles),
      rope_sin(n * Widths(c).angles),
      router(n * Widths(c).n_experts),
      chosen(n * c.n_experts_used),
      shares(n * c.n_experts_used),
      shared(n * Widths(c).shared),
      shared_gate(n),
      experts(n, Widths(c).n_experts, c.n_experts_used, c.embedding_length, Widths(c).expert,
              max_threads),
      input(n, Widths(c).input, max_threads) {}

size_t Scratch::BytesFor(const Config& c, size_t n, size_t max_threads) {
  const Widths w(c);
  return n * (w.Floats() * sizeof(float) + c.n_experts_used * (sizeof(float) + sizeof(uint32_t))) +
         kernels::ExpertScratch::BytesFor(n, w.n_experts, c.n_experts_used, c.embedding_length,
                                          w.expert, max_threads) +
         kernels::Activations::BytesFor(n, w.input, max_threads);
}

}  // namespace engine
