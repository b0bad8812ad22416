// SequenceState: what a model remembers of the text so far, so that a new token computes only its
// own part. Layers with attention keep keys and values, of all positions or, where a window bounds
// what it sees, of the last ones in a ring. Recurrent layers keep numbers that every token changes.
#ifndef PRONK_ENGINE_PASS_SEQUENCE_STATE_H_
#define PRONK_ENGINE_PASS_SEQUENCE_STATE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/config.h"
#include "kernels/attention/attention.h"

namespace engine {

class SequenceState {
 public:
  // So many snapshots of the recurrent layers are kept.
  static constexpr size_t kSnapshots = 4;

  struct Size {
    size_t capacity = 0;  // positions that there is room for
    size_t batch = 0;     // tokens that are read at a time, at most
    size_t max_undo = 0;  // of these, at most so many in a batch that Undo() can take back
    kernels::KvType kv_type = kernels::KvType::kF16;
  };
  // Memory is reserved here and becomes resident as positions are written. Whether the machine has
  // that much is asked before (memory.h). Throws std::bad_alloc.
  SequenceState(const Config& config, const Size& size);

  // The bytes of that. A double, so that what a file or a user asks for cannot overflow.
  static double BytesFor(const Config& config, const Size& size);

  // What a recurrent layer remembers (RecurrentPlan).
  struct Recurrent {
    float* history;   // [n_taps - 1][channels] the convolution's last inputs
    float* matrices;  // [n_value_heads][key_length][value_length]
    // Where the next batch may be undone: room for both as they are before it; else null.
    float* before;
    // Of the last batch that could be undone, what the recurrence read:
    float* conv_in;  // [max_undo][channels]
    float* alpha;    // [max_undo][n_value_heads]
    float* beta;     // [max_undo][n_value_heads]
  };

  size_t capacity() const { return size_.capacity; }
  size_t bytes() const { return bytes_; }
  bool is_recurrent() const { return n_floats_ > 0; }
  kernels::KvType kv_type() const { return size_.kv_type; }
  // The keys and values that the layer sees.
  const kernels::KvLayer& layer(size_t i) const { return layers_[layers_[i].kv_layer].kv; }
  Recurrent recurrent(size_t i) const;

  // The next batch may be undone: it has at most Size::max_undo tokens.
  void ExpectUndo() { may_undo_ = true; }
  // To be told after each batch: positions up to `end` are there.
  void Extend(size_t end);
  // Forgets the last batch, which was announced by ExpectUndo(), but for its first tokens: keys and
  // values up to `position` stay, and recurrent layers are as they were before the batch. What they
  // read of it stays in conv_in, alpha and beta, for Replay() (forward.h).
  void Undo(size_t position);
  // Keeps what recurrent layers know at this point of the text, so that Rewind() can come back to
  // it. The snapshot of the earliest position makes way for the newest.
  void Snapshot();
  // What the next token sees of the text so far, piece by piece: of each layer and head the keys,
  // then the values, oldest first; then what recurrent layers know. `Piece` gets the bytes of the
  // buffers themselves, to be read, or to be written where a text of `position` tokens is to be
  // remembered, of which nothing is known yet.
  using Piece = std::function<void(std::span<std::byte> bytes)>;
  void ForEachPiece(size_t position, const Piece& piece);
  // The sum of their bytes.
  size_t PieceBytes(size_t position);
  // To be told when they are written: the text has `position` tokens, and no snapshots.
  void Restore(size_t position);

  // Forgets everything from `position` on. Returns the position that was reached, which may be an
  // earlier one: recurrent layers go back to the last snapshot before `position`, or to the
  // beginning; and where a ring has overwritten what the next token would see, all is forgotten.
  size_t Rewind(size_t position);

 private:
  struct Layer {
    kernels::KvLayer kv;
    size_t window;
    size_t kv_layer;
    // Where they begin among the floats.
    size_t history, matrices, conv_in, alpha, beta;
  };
  struct Kept {
    size_t position;
    size_t slot;
  };

  float* now() const { return slot(now_); }
  float* slot(size_t i) const { return recurrent_.get() + i * n_floats_; }
  size_t RewindRecurrent(size_t position);
  bool IsInRings(size_t position) const;

  Size size_;
  size_t bytes_;
  size_t position_ = 0;                 // of the next token
  size_t end_ = 0;                      // the furthest position that the text had
  size_t restored_ = 0;                 // the one that Restore() was told
  std::unique_ptr<std::byte[]> data_;   // per layer: keys, then values
  size_t n_floats_ = 0;                 // of all recurrent layers
  size_t n_slots_ = 0;                  // now, the snapshots, before the last batch
  size_t now_ = 0, before_ = 0;         // slots
  std::unique_ptr<float[]> recurrent_;  // [n_slots][n_floats], then the inputs of all layers
  bool may_undo_ = false;
  std::vector<Kept> kept_;  // by position
  std::vector<Layer> layers_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_SEQUENCE_STATE_H_
