// KvCache: the keys and values of every token seen so far, so that a new token computes only its
// own.
#ifndef PRONK_ENGINE_KV_CACHE_H_
#define PRONK_ENGINE_KV_CACHE_H_

#include <cstddef>
#include <memory>

#include "engine/config.h"
#include "kernels/attention.h"

namespace engine {

class KvCache {
 public:
  // Room for `capacity` positions. Memory is reserved here and becomes resident as positions are
  // written. Whether the machine has that much is asked before (memory.h). Throws std::bad_alloc.
  KvCache(const Config& config, size_t capacity, kernels::KvType type);

  // A double, so that products with what a file or a user asks for cannot overflow.
  static double BytesPerPosition(const Config& config, kernels::KvType type);

  size_t capacity() const { return capacity_; }
  size_t bytes() const { return bytes_; }
  kernels::KvLayer layer(size_t i) const;

 private:
  kernels::KvLayer shape_;  // of every layer; k and v unset
  size_t capacity_;
  size_t k_bytes_, v_bytes_;           // of one layer
  size_t bytes_;                       // of all layers
  std::unique_ptr<std::byte[]> data_;  // per layer: keys, then values
};

}  // namespace engine

#endif  // PRONK_ENGINE_KV_CACHE_H_
