#include "engine/sequence_state.h"

#include <algorithm>

namespace engine {
namespace {

// Positions that a layer has room for. A ring holds the window of a batch's first token and the
// batch behind it, which is also how far a text can be taken back.
size_t Positions(const LayerPlan& plan, size_t capacity, size_t batch) {
  if (plan.window == 0 || plan.window >= capacity) return capacity;
  const size_t needed = plan.window + batch;
  const size_t ring = (needed + kernels::kKvTile - 1) / kernels::kKvTile * kernels::kKvTile;
  return std::min(ring, capacity);
}

// Bytes of a position's keys and of its values.
size_t KeyBytes(const LayerPlan& plan, kernels::KvType type) {
  return plan.n_kv_heads * kernels::KvBytes(type, plan.key_length);
}
size_t ValueBytes(const LayerPlan& plan, kernels::KvType type) {
  return plan.n_kv_heads * kernels::KvBytes(type, plan.value_length);
}

}  // namespace

double SequenceState::BytesFor(const Config& config, size_t capacity, size_t batch,
                               kernels::KvType type) {
  double bytes = 0;
  for (const LayerPlan& plan : config.layers) {
    bytes += static_cast<double>(Positions(plan, capacity, batch)) *
             static_cast<double>(KeyBytes(plan, type) + ValueBytes(plan, type));
  }
  return bytes;
}

SequenceState::SequenceState(const Config& config, size_t capacity, size_t batch,
                             kernels::KvType type)
    : capacity_(capacity),
      bytes_(static_cast<size_t>(BytesFor(config, capacity, batch, type))),
      // Untouched pages cost nothing.
      data_(std::make_unique_for_overwrite<std::byte[]>(bytes_)) {
  std::byte* next = data_.get();
  for (const LayerPlan& plan : config.layers) {
    kernels::KvLayer kv;
    kv.type = type;
    kv.n_kv_heads = plan.n_kv_heads;
    kv.capacity = Positions(plan, capacity, batch);
    kv.key_length = plan.key_length;
    kv.value_length = plan.value_length;
    kv.k = next;
    kv.v = kv.k + kv.capacity * KeyBytes(plan, type);
    next = kv.v + kv.capacity * ValueBytes(plan, type);
    layers_.push_back({kv, plan.window});
  }
}

void SequenceState::Extend(size_t end) { end_ = std::max(end_, end); }

size_t SequenceState::Rewind(size_t position) {
  for (const Layer& layer : layers_) {
    if (layer.kv.capacity == capacity_) continue;
    const size_t oldest = end_ - std::min(end_, layer.kv.capacity);
    const size_t first_seen = position + 1 - std::min(position + 1, layer.window);
    if (first_seen < oldest) {
      position = 0;
      break;
    }
  }
  if (position == 0) end_ = 0;
  return position;
}

}  // namespace engine
