// Where keys, values and states of a position are, and what truncating undoes.
#include "engine/pass/sequence_state.h"

#include <utility>

#include "kernels/attention/attention.h"

namespace engine {
namespace {

// A layer's capacity in positions; none if it caches nothing. A ring buffer has room for the window
// of a batch's first token and for the batch, which is also how far a text can be rewound; and,
// even without drafting, for rejected drafts, so that drafting does not change that distance.
size_t Positions(const LayerPlan& plan, const SequenceState::Size& size) {
  const size_t capacity = size.capacity;
  if (plan.n_kv_heads == 0 || plan.kv_layer != LayerPlan::kOwnCache) return 0;
  if (plan.window == 0 || plan.window >= capacity) return capacity;
  const size_t needed = plan.window + size.batch + kMaxDrafts;
  const size_t ring = (needed + kernels::kTileKeys - 1) / kernels::kTileKeys * kernels::kTileKeys;
  return std::min(ring, capacity);
}

// Bytes of a position's keys and of its values. Latent vectors are keys and values in one.
size_t KeyBytes(const LayerPlan& plan, kernels::KvTypes type) {
  return plan.n_kv_heads * kernels::KvBytes(type.k, plan.key_length);
}
size_t ValueBytes(const LayerPlan& plan, kernels::KvTypes type) {
  return plan.values_in_keys ? 0 : plan.n_kv_heads * kernels::KvBytes(type.v, plan.value_length);
}

// A layer's cache, in memory that `data` gets.
kernels::KvLayer MakeKv(const LayerPlan& plan, const SequenceState::Size& size,
                        std::unique_ptr<std::byte[]>& data) {
  const size_t capacity = Positions(plan, size);
  const size_t key_bytes = capacity * KeyBytes(plan, size.kv_type);
  data = std::make_unique_for_overwrite<std::byte[]>(  // untouched pages cost nothing
      key_bytes + capacity * ValueBytes(plan, size.kv_type));
  return {.type = size.kv_type,
          .k = data.get(),
          .v = plan.values_in_keys ? nullptr : data.get() + key_bytes,
          .n_kv_heads = plan.n_kv_heads,
          .capacity = capacity,
          .key_length = plan.key_length,
          .value_length = plan.value_length};
}

size_t RecurrentFloats(const Config& config) {
  size_t n = 0;
  for (const LayerPlan& plan : config.layers) {
    n += plan.recurrent.history_floats() + plan.recurrent.state_floats();
  }
  return n;
}

// A recurrence's input of a token.
size_t InputFloats(const RecurrentPlan& plan) { return plan.channels + plan.n_alpha + plan.n_beta; }

// The current state, the snapshots, and the state before a batch that may be undone or abandoned.
constexpr size_t kCopies = 1 + SequenceState::kSnapshots + 1;

size_t AllFloats(const Config& config, const SequenceState::Size& size) {
  size_t n = kCopies * RecurrentFloats(config);
  for (const LayerPlan& plan : config.layers) n += size.max_undo * InputFloats(plan.recurrent);
  return n;
}

}  // namespace

double SequenceState::BytesFor(const Config& config, const Size& size) {
  double bytes = 0;
  for (const LayerPlan& plan : config.layers) {
    bytes += static_cast<double>(Positions(plan, size)) *
             static_cast<double>(KeyBytes(plan, size.kv_type) + ValueBytes(plan, size.kv_type));
  }
  return bytes + static_cast<double>(AllFloats(config, size) * sizeof(float));
}

SequenceState::SequenceState(const Config& config, const Size& size)
    : size_(size),
      bytes_(static_cast<size_t>(BytesFor(config, size))),
      n_floats_(RecurrentFloats(config)),
      before_(kCopies - 1),
      // Untouched pages cost nothing.
      recurrent_(std::make_unique_for_overwrite<float[]>(AllFloats(config, size))) {
  size_t next_float = 0, next_input = kCopies * n_floats_;
  for (size_t i = 0; i < config.n_layers(); ++i) {
    const LayerPlan& plan = config.layers[i];
    Layer layer;
    layer.window = plan.window;
    layer.kv = MakeKv(plan, size, layer.data);
    layer.history = next_float;
    layer.matrices = layer.history + plan.recurrent.history_floats();
    next_float = layer.matrices + plan.recurrent.state_floats();
    layer.conv_in = next_input;
    layer.alpha = layer.conv_in + size.max_undo * plan.recurrent.channels;
    layer.beta = layer.alpha + size.max_undo * plan.recurrent.n_alpha;
    next_input = layer.beta + size.max_undo * plan.recurrent.n_beta;
    layers_.push_back(std::move(layer));
  }
  std::fill_n(now(), n_floats_, 0.0f);
  kept_.reserve(kSnapshots);
}

// A layer changes only if it has all positions, each in the slot of its number: a ring that has
// wrapped around does not become longer with the context.
void SequenceState::Grow(const Config& config, size_t capacity) {
  Size size = size_;
  size.capacity = capacity;
  for (size_t i = 0; i < layers_.size(); ++i) {
    kernels::KvLayer& old = layers_[i].kv;
    if (Positions(config.layers[i], size) <= old.capacity) continue;
    std::unique_ptr<std::byte[]> data;
    const kernels::KvLayer kv = MakeKv(config.layers[i], size, data);
    const size_t n = std::min(std::max(end_, position_), old.capacity);
    const auto copy_heads = [&](const std::byte* from, std::byte* to, size_t bytes) {
      for (size_t head = 0; head < kv.n_kv_heads; ++head) {
        std::copy_n(from + head * old.capacity * bytes, n * bytes, to + head * kv.capacity * bytes);
      }
    };
    copy_heads(old.k, kv.k, kernels::KvBytes(kv.type.k, kv.key_length));
    if (kv.v != nullptr) copy_heads(old.v, kv.v, kernels::KvBytes(kv.type.v, kv.value_length));
    old = kv;
    layers_[i].data = std::move(data);
  }
  size_ = size;
  bytes_ = static_cast<size_t>(BytesFor(config, size));
}

SequenceState::Recurrent SequenceState::recurrent(size_t i) const {
  const Layer& layer = layers_[i];
  float* const all = recurrent_.get();
  return {.history = now() + layer.history,
          .matrices = now() + layer.matrices,
          .before = may_undo_ ? copy(before_) + layer.history : nullptr,
          .conv_in = all + layer.conv_in,
          .alpha = all + layer.alpha,
          .beta = all + layer.beta};
}

void SequenceState::Extend(size_t end) {
  position_ = end;
  may_undo_ = false;
}

void SequenceState::Undo(size_t position) {
  position_ = position;
  std::swap(now_, before_);
}

void SequenceState::Abandon(size_t end) {
  end_ = std::max(end_, end);
  std::swap(now_, before_);
}

void SequenceState::Snapshot() {
  if (n_floats_ == 0 || position_ == 0) return;
  if (!kept_.empty() && kept_.back().position == position_) return;
  size_t free = 0;
  if (kept_.size() == kSnapshots) {
    free = kept_.front().copy;
    kept_.erase(kept_.begin());
  } else {
    const auto in_use = [&](size_t i) {
      return std::any_of(kept_.begin(), kept_.end(), [i](const Kept& k) { return k.copy == i; });
    };
    for (free = 0; free == now_ || free == before_ || in_use(free);) ++free;
  }
  std::copy_n(now(), n_floats_, copy(free));
  kept_.push_back({position_, free});
}

void SequenceState::ForEachChunk(size_t position, const Chunk& chunk) {
  // A ring, whose length differs between sessions, begins anew at some tile. So each tile of one is
  // a chunk, and sessions have the same chunks.
  const auto each_head = [&](const kernels::KvLayer& kv, std::byte* data, size_t bytes,
                             size_t first, bool is_ring) {
    for (size_t head = 0; head < kv.n_kv_heads; ++head, data += kv.capacity * bytes) {
      for (size_t begin = first, end = position; begin < position; begin = end) {
        if (is_ring)
          end = std::min((begin / kernels::kTileKeys + 1) * kernels::kTileKeys, position);
        chunk({data + begin % kv.capacity * bytes, (end - begin) * bytes});
      }
    }
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    const kernels::KvLayer& kv = layers_[i].kv;
    if (kv.capacity == 0 || position == 0) continue;
    const size_t window = layers_[i].window, first = kernels::FirstVisible(position, window);
    each_head(kv, kv.k, kernels::KvBytes(kv.type.k, kv.key_length), first, window > 0);
    if (kv.v != nullptr)
      each_head(kv, kv.v, kernels::KvBytes(kv.type.v, kv.value_length), first, window > 0);
  }
  if (n_floats_ > 0) chunk(std::as_writable_bytes(std::span(now(), n_floats_)));
}

size_t SequenceState::ChunkBytes(size_t position) {
  size_t bytes = 0;
  ForEachChunk(position, [&](std::span<std::byte> chunk) { bytes += chunk.size(); });
  return bytes;
}

void SequenceState::Restore(size_t position) {
  kept_.clear();
  position_ = end_ = restored_ = position;
}

// Drops later snapshots, whose text is gone.
size_t SequenceState::RewindRecurrent(size_t position) {
  while (!kept_.empty() && kept_.back().position > position) kept_.pop_back();
  if (position == position_) return position;
  if (kept_.empty()) {
    std::fill_n(now(), n_floats_, 0.0f);
    return 0;
  }
  std::copy_n(copy(kept_.back().copy), n_floats_, now());
  return kept_.back().position;
}

bool SequenceState::IsInRings(size_t position) const {
  return std::all_of(layers_.begin(), layers_.end(), [&](const Layer& layer) {
    // A restored text has only what its next token sees.
    if (layer.window > 0 && layer.window <= restored_ && position < restored_) return false;
    if (layer.kv.capacity == size_.capacity || layer.kv.capacity == 0) return true;
    const size_t end = end_ + kMaxDrafts;
    const size_t oldest = end - std::min(end, layer.kv.capacity);
    const size_t first_seen = position + 1 - std::min(position + 1, layer.window);
    return first_seen >= oldest;
  });
}

size_t SequenceState::Rewind(size_t position) {
  position = std::min(position, position_);
  end_ = std::max(end_, position_);
  if (n_floats_ > 0) position = RewindRecurrent(position);
  if (!IsInRings(position)) position = n_floats_ > 0 ? RewindRecurrent(0) : 0;
  if (position == 0) end_ = restored_ = 0;
  position_ = position;
  return position;
}

}  // namespace engine
