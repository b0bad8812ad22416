// A thread that reads a file's pages ahead of the layers, and drops pages behind them.
#include "engine/pass/pager.h"

#include <algorithm>
#include <system_error>

#include "gguf/mapped_file.h"

namespace engine {
namespace {

constexpr size_t kAhead = 2;  // layers

}  // namespace

void Pager::AdviseSystem(std::span<const std::byte> bytes, Advice advice) {
  if (advice == Advice::kLetGo) return gguf::LetGo(bytes);
  gguf::ReadAhead(bytes);
}

void Pager::PagedWeights::Add(std::span<const std::byte> part) {
  parts.push_back(part);
  bytes += part.size();
}

Pager::Pager(const Model& model, uint64_t room, Advise advise)
    : model_(model),
      advise_(std::move(advise)),
      paged_layers_(model.config.file_layer(model.config.n_layers() - 1) + 2) {
  std::vector<const gguf::TensorView*> experts;
  for (const LayerWeights& w : model.weights.layers) {
    std::vector<PagedWeights>& of_layer = experts_.emplace_back();
    for (const ExpertsView* view : w.experts()) {
      if (view->tensor == nullptr) continue;
      experts.push_back(view->tensor);
      of_layer.resize(view->n_experts);
      for (size_t e = 0; e < view->n_experts; ++e) {
        const kernels::Matrix matrix = view->expert(e);
        of_layer[e].Add({matrix.data, matrix.rows * matrix.row_bytes()});
      }
    }
  }
  for (const gguf::TensorView& tensor : model.file.tensors()) {
    const bool is_output = &tensor == model.weights.output.tensor;
    const size_t at = is_output ? paged_layers_.size() - 1
                                : gguf::LayerOf(tensor.name).value_or(paged_layers_.size());
    if (at + 1 >= paged_layers_.size() && !is_output)
      continue;  // a tensor of no layer, or of the prediction block
    if (std::ranges::count(experts, &tensor) > 0) continue;
    paged_layers_[at].Add({tensor.data, tensor.bytes});
  }
  uint64_t left =
      room - std::min(room, (kAhead + 1) *
                                std::ranges::max(paged_layers_, {}, &PagedWeights::bytes).bytes);
  for (PagedWeights& layer : paged_layers_) {
    layer.stays = layer.bytes <= left;
    left = layer.stays ? left - layer.bytes : 0;
  }
  room_for_experts_ = left;
  thread_ = std::thread([this] { Work(); });
}

Pager::~Pager() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::unique_ptr<Pager> Pager::IfLarger(const Model& model, uint64_t room) {
  if (model.file.tensor_bytes() <= room) return nullptr;
  try {
    return std::make_unique<Pager>(model, room);
  } catch (const std::system_error&) {  // no thread can be started: it goes without
    return nullptr;
  }
}

void Pager::EndLayer(size_t layer) {
  const size_t at = model_.config.file_layer(layer);
  if (!paged_layers_[at].stays) Queue(paged_layers_[at], Advice::kLetGo);
  if (at == 0) {
    if (!paged_layers_.back().stays)
      Queue(paged_layers_.back(), Advice::kLetGo);  // the previous token read it
    Queue(paged_layers_[1], Advice::kAsk);
  }
  Queue(paged_layers_[(at + kAhead) % paged_layers_.size()], Advice::kAsk);
}

void Pager::Queue(const PagedWeights& weights, Advice advice) {
  const std::lock_guard lock(mutex_);
  queue_.emplace_back(&weights, advice);
  changed_.notify_one();
}

void Pager::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !queue_.empty(); });
    if (ended_) return;
    const auto [weights, advice] = queue_.front();
    queue_.pop_front();
    if (advice == Advice::kLetGo && weights->used > 0) continue;  // was chosen again
    lock.unlock();
    for (const auto& part : weights->parts) advise_(part, advice);
    lock.lock();
  }
}

void Pager::Expect(const LayerWeights& w, std::span<const uint32_t> chosen) {
  std::unique_lock lock(mutex_);
  ++n_expected_;
  std::vector<const PagedWeights*> asked;
  std::vector<PagedWeights>& experts =
      experts_[static_cast<size_t>(&w - model_.weights.layers.data())];
  for (const uint32_t e : chosen) {
    PagedWeights& expert = experts[e];
    if (expert.used == n_expected_) continue;  // chosen by another token, too
    if (expert.used == 0) {
      expert.place = in_memory_.insert(in_memory_.end(), &expert);
      expert_bytes_ += expert.bytes;
    } else {
      in_memory_.splice(in_memory_.end(), in_memory_, expert.place);
    }
    expert.used = n_expected_;
    asked.push_back(&expert);
  }
  while (expert_bytes_ > room_for_experts_) {
    PagedWeights* const oldest = in_memory_.front();
    if (oldest->used == n_expected_) break;  // is about to be used
    in_memory_.pop_front();
    oldest->used = 0;
    expert_bytes_ -= oldest->bytes;
    queue_.emplace_back(oldest, Advice::kLetGo);
    changed_.notify_one();
  }
  lock.unlock();
  for (const PagedWeights* expert : asked) {
    for (const auto& part : expert->parts) advise_(part, Advice::kAsk);
  }
}

}  // namespace engine
