// SequenceState: the KV cache and recurrent states of a sequence (a text's tokens so far), so that
// a new token computes only its own part. Attention layers keep keys and values of all positions,
// or, with a window, of the last ones in a ring buffer. Recurrent layers keep a state of fixed
// size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/config.h"
#include "engine/pass/rope.h"
#include "kernels/attention/kv_cache.h"
#include "kernels/matmul/matmul.h"

namespace engine {

// The most tokens in a pass that generates. In passes up to this size a token's results have the
// same bits as in a pass of its own.
inline constexpr size_t kMaxDecodeTokens = kernels::kMaxInvariantTokens;
// The most drafts in such a pass: every token but the first.
inline constexpr size_t kMaxDrafts = kMaxDecodeTokens - 1;

class SequenceState {
 public:
  static constexpr size_t kSnapshots = 4;  // the most snapshots of the recurrent layers

  struct Size {
    size_t capacity = 0;  // the number of positions
    size_t batch = 0;     // the largest number of tokens in a pass
    size_t max_undo = 0;  // the largest number of tokens that Undo() can take back
    kernels::KvTypes kv_type = {};
  };
  // Reserves memory, which becomes resident as positions are written. Throws std::bad_alloc.
  SequenceState(const Config& config, const Size& size);

  // Makes room for more positions. New buffers get the contents. If it throws std::bad_alloc,
  // nothing is lost.
  void Grow(const Config& config, size_t capacity);

  // The bytes reserved. A double, so that no request of a file or a user can overflow.
  static double BytesFor(const Config& config, const Size& size);

  // A recurrent layer's state (RecurrentPlan).
  struct Recurrent {
    float* history;   // [n_taps - 1][channels] the convolution's last inputs
    float* matrices;  // [n_value_heads][key_length][value_length]
    // A copy of both from before the next batch, if that may be undone; otherwise null.
    float* before;
    // The recurrence's input of the last batch that could be undone:
    float* conv_in;  // [max_undo][channels]
    float* alpha;    // [max_undo][n_alpha]
    float* beta;     // [max_undo][n_beta]
  };

  size_t capacity() const { return size_.capacity; }
  size_t bytes() const { return bytes_; }
  bool is_recurrent() const { return n_floats_ > 0; }
  kernels::KvTypes kv_type() const { return size_.kv_type; }
  // A layer's own keys and values. It has none if it uses an earlier layer's (LayerPlan::kv_layer).
  const kernels::KvLayer& layer(size_t i) const { return layers_[i].kv; }
  Recurrent recurrent(size_t i) const;

  // The next batch, of at most Size::max_undo tokens, may be undone.
  void ExpectUndo() { may_undo_ = true; }
  // Called after each batch: positions before `end` are stored.
  void Extend(size_t end);
  // Forgets the last batch, announced by ExpectUndo(), from `position` on. Recurrent layers return
  // to their state before it; conv_in, alpha and beta keep its input for Replay() (forward.h).
  void Undo(size_t position);
  // Announces that the next batch may be abandoned: copies the recurrent layers' states.
  void ExpectAbandon() { std::copy_n(now(), n_floats_, copy(before_)); }
  // Abandons that batch, which stored at most positions before `end`: returns to the state before.
  void Abandon(size_t end);
  // Copies the recurrent layers' states, so that Rewind() can return to this position. The newest
  // snapshot replaces the earliest if there are kSnapshots.
  void Snapshot();
  // Calls chunk(bytes) for each part of the state that the next token sees: for each layer and head
  // the keys, then the values, oldest first; then the recurrent states. The bytes are the buffers'
  // own: `chunk` may read them, or write them before Restore(position).
  using Chunk = std::function<void(std::span<std::byte> bytes)>;
  void ForEachChunk(size_t position, const Chunk& chunk);
  // The sum of the chunks' bytes.
  size_t ChunkBytes(size_t position);
  // Called after ForEachChunk() has written a state: the sequence now has `position` tokens, and no
  // snapshots.
  void Restore(size_t position);

  // Forgets everything from `position` on. Returns the position reached, which may be earlier:
  // recurrent layers go back to the last snapshot up to `position`, or to the beginning; if a ring
  // buffer has overwritten keys that the next token needs, everything is forgotten.
  size_t Rewind(size_t position);

 private:
  struct Layer {
    std::unique_ptr<std::byte[]> data;  // the keys, then the values
    kernels::KvLayer kv;
    size_t window;
    size_t history, matrices, conv_in, alpha, beta;  // offsets among the floats
  };
  // A snapshot.
  struct Kept {
    size_t position;
    size_t copy;  // the index of its copy of the states
  };

  float* now() const { return copy(now_); }
  // Copy i of all recurrent layers' states.
  float* copy(size_t i) const { return recurrent_.get() + i * n_floats_; }
  size_t RewindRecurrent(size_t position);
  bool IsInRings(size_t position) const;

  Size size_;
  size_t bytes_;
  size_t position_ = 0;                 // the next token's position
  size_t end_ = 0;                      // the furthest position that was written
  size_t restored_ = 0;                 // the position of the last Restore()
  size_t n_floats_ = 0;                 // numbers in the states of all recurrent layers
  size_t now_ = 0, before_ = 0;         // indices of the current and the earlier copy
  std::unique_ptr<float[]> recurrent_;  // [copies][n_floats], then the inputs of all layers
  bool may_undo_ = false;
  std::vector<Kept> kept_;  // sorted by position
  std::vector<Layer> layers_;
};

// The tokens of a batch that belong to one sequence. Tokens of other sequences neither see nor
// change its state.
struct SequenceSlice {
  std::span<const RopeAngles> ropes;  // one for each of Config::ropes
  SequenceState& state;               // has the earlier positions; these tokens are added
  size_t first_position;              // the first token's position in the sequence
  size_t batch_end;                   // the index in the batch after the last token
  // The place in the caches where position 0 is. Sequences may share the caches of a state that has
  // no windows.
  size_t cache_begin = 0;
};

}  // namespace engine
