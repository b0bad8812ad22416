// SequenceState: what a model remembers of the text so far, so that a new token computes only its
// own part. Layers with attention keep keys and values, of all positions or, where a window bounds
// what it sees, of the last ones in a ring. Recurrent layers keep numbers that every token changes.
#ifndef PRONK_ENGINE_SEQUENCE_STATE_H_
#define PRONK_ENGINE_SEQUENCE_STATE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/config.h"
#include "kernels/attention.h"

namespace engine {

class SequenceState {
 public:
  // So many snapshots of the recurrent layers are kept.
  static constexpr size_t kSnapshots = 4;

  // Room for `capacity` positions, read in batches of up to `batch`. Memory is reserved here and
  // becomes resident as positions are written. Whether the machine has that much is asked before
  // (memory.h). Throws std::bad_alloc.
  SequenceState(const Config& config, size_t capacity, size_t batch, kernels::KvType type);

  // The bytes of that. A double, so that what a file or a user asks for cannot overflow.
  static double BytesFor(const Config& config, size_t capacity, size_t batch, kernels::KvType type);

  // What a recurrent layer remembers (RecurrentPlan).
  struct Recurrent {
    float* history;   // [n_taps - 1][channels] the convolution's last inputs
    float* matrices;  // [n_value_heads][key_length][value_length]
  };

  size_t capacity() const { return capacity_; }
  size_t bytes() const { return bytes_; }
  bool is_recurrent() const { return n_floats_ > 0; }
  // The keys and values that the layer sees.
  const kernels::KvLayer& layer(size_t i) const { return layers_[layers_[i].kv_layer].kv; }
  Recurrent recurrent(size_t i) const {
    return {now() + layers_[i].history, now() + layers_[i].matrices};
  }

  // To be told after each batch: positions up to `end` are there.
  void Extend(size_t end);
  // Keeps what recurrent layers know at this point of the text, so that Rewind() can come back to
  // it. The snapshot of the earliest position makes way for the newest.
  void Snapshot();
  // Forgets everything from `position` on. Returns the position that was reached, which may be an
  // earlier one: recurrent layers go back to the last snapshot before `position`, or to the
  // beginning; and where a ring has overwritten what the next token would see, all is forgotten.
  size_t Rewind(size_t position);

 private:
  struct Layer {
    kernels::KvLayer kv;
    size_t window;
    size_t kv_layer;
    size_t history, matrices;  // where they begin among the floats
  };
  struct Kept {
    size_t position;
    size_t slot;  // 1 .. kSnapshots
  };

  float* now() const { return recurrent_.get(); }
  float* slot(size_t i) const { return recurrent_.get() + i * n_floats_; }
  size_t RewindRecurrent(size_t position);
  bool IsInRings(size_t position) const;

  size_t capacity_;
  size_t bytes_;
  size_t position_ = 0;                 // of the next token
  size_t end_ = 0;                      // the furthest position that is in the rings
  std::unique_ptr<std::byte[]> data_;   // per layer: keys, then values
  size_t n_floats_ = 0;                 // of all recurrent layers
  std::unique_ptr<float[]> recurrent_;  // [1 + kSnapshots][n_floats]: now, then the snapshots
  std::vector<Kept> kept_;              // by position
  std::vector<Layer> layers_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_SEQUENCE_STATE_H_
