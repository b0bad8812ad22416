// SequenceState: what a model remembers of the text so far, so that a new token computes only its
// own part. Each layer keeps keys and values, of all positions or, where a window bounds what it
// sees, of the last ones in a ring.
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
  // Room for `capacity` positions, read in batches of up to `batch`. Memory is reserved here and
  // becomes resident as positions are written. Whether the machine has that much is asked before
  // (memory.h). Throws std::bad_alloc.
  SequenceState(const Config& config, size_t capacity, size_t batch, kernels::KvType type);

  // The bytes of that. A double, so that what a file or a user asks for cannot overflow.
  static double BytesFor(const Config& config, size_t capacity, size_t batch, kernels::KvType type);

  size_t capacity() const { return capacity_; }
  size_t bytes() const { return bytes_; }
  const kernels::KvLayer& layer(size_t i) const { return layers_[i].kv; }

  // To be told after each batch: positions up to `end` are there.
  void Extend(size_t end);
  // Forgets everything from `position` on. Returns the position that was reached: a ring may have
  // overwritten what comes before `position`, and then all is forgotten.
  size_t Rewind(size_t position);

 private:
  struct Layer {
    kernels::KvLayer kv;
    size_t window;
  };

  size_t capacity_;
  size_t bytes_;
  size_t end_ = 0;                     // the furthest position that is in the rings
  std::unique_ptr<std::byte[]> data_;  // per layer: keys, then values
  std::vector<Layer> layers_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_SEQUENCE_STATE_H_
