#include "engine/kv_cache.h"

#include <new>
#include <string>

#include "engine/error.h"

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

KvCache::KvCache(const Config& config, size_t capacity, kernels::KvType type)
    : shape_(ShapeOf(config, capacity, type)), capacity_(capacity) {
  // In doubles first: a hostile context length must not overflow.
  const auto d = [](size_t n) { return static_cast<double>(n); };
  const double estimate = d(config.n_layers) * d(config.n_kv_heads) * d(capacity) *
                          d(config.key_length + config.value_length) * d(kernels::KvBytes(type, 1));
  const auto refuse = [&] {
    throw Error(
        "a context of " + std::to_string(capacity) + " tokens needs " +
        std::to_string(static_cast<size_t>(estimate / 1e6)) +
        " MB for keys and values, more than this machine gives; choose a smaller one with -c");
  };
  if (estimate > 1e15) refuse();
  k_bytes_ = kernels::KvBytes(type, config.n_kv_heads * capacity * config.key_length);
  v_bytes_ = kernels::KvBytes(type, config.n_kv_heads * capacity * config.value_length);
  bytes_ = config.n_layers * (k_bytes_ + v_bytes_);
  try {
    data_ = std::make_unique_for_overwrite<std::byte[]>(bytes_);  // untouched pages cost nothing
  } catch (const std::bad_alloc&) {
    refuse();
  }
}

kernels::KvLayer KvCache::layer(size_t i) const {
  kernels::KvLayer layer = shape_;
  layer.k = data_.get() + i * (k_bytes_ + v_bytes_);
  layer.v = layer.k + k_bytes_;
  return layer;
}

}  // namespace engine
