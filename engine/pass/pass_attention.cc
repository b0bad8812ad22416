// Pass::Attend(), at the end, and the functions that it calls for a cache of 8 or 4 bits.
//
// Keys and values in blocks (Q8_0, Q4_0) are multiplied by a Hadamard matrix before they are
// stored, which spreads the large numbers of a few channels over all channels. Queries are
// multiplied by the same matrix, which leaves the scores unchanged. The means of values are
// multiplied by its inverse, which is the matrix itself. The trace calls this step "hadamard".
#include <algorithm>

#include "engine/pass/pass.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/latent.h"
#include "kernels/ops/hadamard.h"
#include "kernels/ops/ops.h"

namespace engine {

// The layout of a layer's caches, one for each sequence. Some caches may have quantized blocks
// (Q8_0, Q4_0).
struct Pass::CacheLayout {
  CacheLayout(const LayerView& view, std::span<const SequenceSlice> sequences)
      : layer(CacheOf(view)), values_in_keys(view.plan.values_in_keys) {
    const kernels::KvLayer& cache = sequences[0].state.layer(layer);
    key_width = cache.n_kv_heads * cache.key_length;
    value_width = cache.n_kv_heads * cache.value_length;
    // Rows of the matrices: the largest power of two that divides the length. For latent vectors it
    // also divides the length of the value that the key contains.
    const auto rows_for = [](size_t length) { return length & -length; };
    value_rows = rows_for(cache.value_length);
    key_rows = std::min(rows_for(cache.key_length), values_in_keys ? value_rows : SIZE_MAX);
    any_keys = std::ranges::any_of(
        sequences, [&](const SequenceSlice& sequence) { return KeysAreBlocks(sequence); });
    any_values = std::ranges::any_of(
        sequences, [&](const SequenceSlice& sequence) { return ValuesAreBlocks(sequence); });
  }

  // Whether a sequence's keys, or its values, are stored in blocks.
  bool KeysAreBlocks(const SequenceSlice& sequence) const {
    return kernels::IsBlocks(sequence.state.layer(layer).type.k);
  }
  bool ValuesAreBlocks(const SequenceSlice& sequence) const {
    const kernels::KvTypes type = sequence.state.layer(layer).type;
    return kernels::IsBlocks(values_in_keys ? type.k : type.v);
  }

  size_t layer;
  bool values_in_keys, any_keys, any_values;
  size_t key_width, value_width;  // numbers per token
  size_t key_rows, value_rows;
};

kernels::AttentionParams Pass::ParamsOf(const LayerView& layer) const {
  return {.scale = layer.plan.score_scale,
          .window = layer.plan.window,
          .ahead = layer.plan.n_keys_ahead,
          .softcap = config_.attention_softcap,
          .sinks = layer.w.attn_sinks,
          .slopes = config_.slopes.empty() ? nullptr : config_.slopes.data()};
}

size_t Pass::CacheOf(const LayerView& layer) {
  return layer.plan.kv_layer != LayerPlan::kOwnCache ? layer.plan.kv_layer : layer.index;
}

bool Pass::IsWorthExpanding(const LayerView& layer) const {
  const LayerWeights& w = layer.w;
  if (n_tokens_ <= kernels::kMaxInvariantTokens || w.attn_k_b.bias != nullptr) return false;
  double saved = 0;
  ForEachSequence([&](const SequenceSlice& sequence, size_t /*first*/, size_t n) {
    saved += kernels::SavedByHeads(sequence.state.layer(layer.index), {w.attn_k_b, w.attn_v_b}, n,
                                   sequence.first_position, ParamsOf(layer));
  });
  return saved > 0;
}

// A vector that is added to all keys adds the same number to all scores of a query, which cancels
// in the softmax. Qwen 2's key biases are a hundred times as large as the rest of its keys, in
// pairs that hardly rotate.
std::vector<float> Pass::CommonKeys(const LayerView& layer, const SequenceSlice& sequence) const {
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  if (w.attn_k.bias == nullptr || w.attn_k_norm != nullptr || config_.clamp_qkv != 0 ||
      w.attn_sinks != nullptr || config_.attention_softcap != 0) {
    return {};
  }
  std::vector<float> common(w.attn_k.bias, w.attn_k.bias + plan.n_kv_heads * plan.key_length);
  if (plan.rope != LayerPlan::kNoRope) {
    const RopeConfig& rope = config_.ropes[plan.rope];
    const RopeAngles& angles = sequence.ropes[plan.rope];
    kernels::Rope(common.data() + plan.rope_offset, plan.n_kv_heads, plan.key_length, rope.n_dims,
                  angles.mean_cos(), angles.mean_sin(), rope.pairs);
  }
  return common;
}

void Pass::TransformHeads(float* heads, size_t n, size_t rows) {
  for (size_t i = 0; i < n; i += rows) kernels::Hadamard(heads + i, rows);
}

void Pass::TransformForCache(const LayerView& layer, const CacheLayout& caches, float* q, float* k,
                             float* v) {
  const size_t query_width = layer.plan.n_heads * layer.plan.key_length;
  std::vector<std::vector<float>> common(sequences_.size());  // subtracted from the stored keys
  for (size_t sequence = 0; sequence < sequences_.size(); ++sequence) {
    if (k != nullptr && caches.KeysAreBlocks(sequences_[sequence]))
      common[sequence] = CommonKeys(layer, sequences_[sequence]);
  }
  EachToken("hadamard", [&](size_t t) {
    const size_t sequence = SequenceIndexOf(t);
    if (caches.KeysAreBlocks(sequences_[sequence])) {
      if (q != nullptr) TransformHeads(q + t * query_width, query_width, caches.key_rows);
      if (k != nullptr) {
        float* const keys = k + t * caches.key_width;
        for (size_t i = 0; i < common[sequence].size(); ++i) keys[i] -= common[sequence][i];
        TransformHeads(keys, caches.key_width, caches.key_rows);
      }
    }
    if (caches.ValuesAreBlocks(sequences_[sequence]) && k != nullptr && !caches.values_in_keys) {
      TransformHeads(v + t * caches.value_width, caches.value_width, caches.value_rows);
    }
  });
}

void Pass::TransformMeansBack(const LayerView& layer, const CacheLayout& caches) {
  const size_t width = layer.plan.n_heads * layer.plan.value_length;
  EachToken("hadamard", [&](size_t t) {
    if (!caches.ValuesAreBlocks(sequences_[SequenceIndexOf(t)])) return;
    TransformHeads(scratch_.attended + t * width, width,
                   caches.values_in_keys ? caches.key_rows : caches.value_rows);
  });
}

void Pass::Attend(const LayerView& layer, float* q, float* k, float* v, bool expands_latents) {
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  const CacheLayout caches(layer, sequences_);
  if (caches.any_keys || caches.any_values) {
    TransformForCache(layer, caches, expands_latents ? nullptr : q, k, v);
  }
  RunOperation("attention", 0, [&] {
    ForEachSequence([&](const SequenceSlice& sequence, size_t first, size_t n) {
      const kernels::KvLayer own = sequence.state.layer(caches.layer).From(sequence.cache_begin);
      if (k != nullptr) {
        kernels::StoreKv(pool_, own, sequence.first_position, n, k + first * caches.key_width,
                         v + first * caches.value_width);
      }
      const float* const queries = q + first * plan.n_heads * plan.key_length;
      float* const means = scratch_.attended + first * plan.n_heads * plan.value_length;
      if (expands_latents) {
        kernels::AttendToLatents(pool_, own, {w.attn_k_b, w.attn_v_b}, queries, n,
                                 sequence.first_position, ParamsOf(layer), scratch_.latents,
                                 scratch_.heads, means,
                                 caches.KeysAreBlocks(sequence) ? caches.key_rows : 0);
      } else {
        kernels::Attend(pool_, own, queries, plan.n_heads, n, sequence.first_position,
                        ParamsOf(layer), means);
      }
    });
  });
  if (!expands_latents && caches.any_values) TransformMeansBack(layer, caches);
}

}  // namespace engine
