#include "engine/pass/pager.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>

#include "gguf/mapped_file.h"
#include "gguf/number.h"

namespace engine {
namespace {

constexpr size_t kAhead = 2;  // blocks

// The N of "blk.N.NAME".
std::optional<size_t> LayerOf(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  return gguf::NumberIn<size_t>(name.substr(0, name.find('.')));
}

std::array<const ExpertsView*, 3> ExpertsOf(const LayerWeights& w) {
  return {&w.ffn_gate_exps, &w.ffn_up_exps, &w.ffn_down_exps};
}

}  // namespace

void Pager::AdviseSystem(std::span<const std::byte> bytes, Advice advice) {
  if (advice == Advice::kLetGo) return gguf::LetGo(bytes);
  // Asking takes 20 ns a page also where nothing is to be read.
  if (gguf::IsResident(bytes.data()) && gguf::IsResident(&bytes.back())) return;
  gguf::ReadAhead(bytes);
}

Pager::Pager(const Model& model, uint64_t room, Advise advise)
    : config_(model.config),
      advise_(std::move(advise)),
      blocks_(model.config.block(model.config.n_layers() - 1) + 2) {
  std::vector<const gguf::TensorView*> experts;
  for (const LayerWeights& w : model.weights.layers) {
    for (const ExpertsView* view : ExpertsOf(w)) {
      experts.push_back(view->tensor);
      was_expected_.resize(std::max(was_expected_.size(), view->n_experts));
    }
  }
  std::vector<uint64_t> bytes(blocks_.size());
  for (const gguf::TensorView& tensor : model.file.tensors()) {
    const bool is_output = &tensor == model.weights.output.tensor;
    const size_t at =
        is_output ? blocks_.size() - 1 : LayerOf(tensor.name).value_or(blocks_.size());
    if (at + 1 >= blocks_.size() && !is_output) continue;  // of no layer, or of the nextn block
    if (std::ranges::count(experts, &tensor) > 0) continue;
    blocks_[at].parts.emplace_back(tensor.data, tensor.bytes);
    bytes[at] += tensor.bytes;
  }
  uint64_t left = room - std::min(room, (kAhead + 1) * *std::ranges::max_element(bytes));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].stays = bytes[i] <= left;
    left = blocks_[i].stays ? left - bytes[i] : 0;
  }
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
  const size_t at = config_.block(layer);
  if (!blocks_[at].stays) Queue(at, Advice::kLetGo);
  if (at == 0) {
    if (!blocks_.back().stays) Queue(blocks_.size() - 1, Advice::kLetGo);  // of the token before
    Queue(1, Advice::kAsk);
  }
  Queue((at + kAhead) % blocks_.size(), Advice::kAsk);
}

void Pager::Queue(size_t block, Advice advice) {
  const std::lock_guard lock(mutex_);
  queue_.emplace_back(&blocks_[block], advice);
  changed_.notify_one();
}

void Pager::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !queue_.empty(); });
    if (ended_) return;
    const auto [block, advice] = queue_.front();
    queue_.pop_front();
    lock.unlock();
    for (const auto& part : block->parts) advise_(part, advice);
    lock.lock();
  }
}

void Pager::Expect(const LayerWeights& w, std::span<const uint32_t> chosen) {
  for (const uint32_t e : chosen) {
    if (was_expected_[e]) continue;
    was_expected_[e] = true;
    for (const ExpertsView* view : ExpertsOf(w)) {
      if (view->tensor == nullptr) continue;
      const kernels::Matrix matrix = view->expert(e);
      advise_({matrix.data, matrix.rows * matrix.row_bytes()}, Advice::kAsk);
    }
  }
  for (const uint32_t e : chosen) was_expected_[e] = false;
}

}  // namespace engine
