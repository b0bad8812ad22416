#include "engine/kv_cache.h"

namespace engine {
namespace {

kernels::KvLayer ShapeOf(const Config& config, size_t capacity, kernels::KvType type) {
  kernels::KvLayer shape;
  shape.type = type;
  shape.n_kv_heads = config.n_kv_heads;
  shape.capacity = capacity;
  shape.key_length = config.key_length;
  shape.value_length = config.value_length;
  return shape;
}

}  // namespace

double KvCache::BytesPerPosition(const Config& config, kernels::KvType type) {
  const size_t head =
      kernels::KvBytes(type, config.key_length) + kernels::KvBytes(type, config.value_length);
  return static_cast<double>(config.n_layers) * static_cast<double>(config.n_kv_heads * head);
}

KvCache::KvCache(const Config& config, size_t capacity, kernels::KvType type)
    : shape_(ShapeOf(config, capacity, type)),
      capacity_(capacity),
      k_bytes_(config.n_kv_heads * capacity * kernels::KvBytes(type, config.key_length)),
      v_bytes_(config.n_kv_heads * capacity * kernels::KvBytes(type, config.value_length)),
      bytes_(config.n_layers * (k_bytes_ + v_bytes_)),
      // Untouched pages cost nothing.
      data_(std::make_unique_for_overwrite<std::byte[]>(bytes_)) {}

kernels::KvLayer KvCache::layer(size_t i) const {
  kernels::KvLayer layer = shape_;
  layer.k = data_.get() + i * (k_bytes_ + v_bytes_);
  layer.v = layer.k + k_bytes_;
  return layer;
}

}  // namespace engine
