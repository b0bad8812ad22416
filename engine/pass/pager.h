// Pager: reads the weights of a model larger than memory from the disk before their turn.
//
// By default the system evicts the pages that were used longest ago. Each token goes through the
// file from beginning to end, so it needs these pages next, and the whole file is read again, one
// page fault after the other. Instead, the first layers, as many as fit, stay in memory. Each other
// layer is prefetched while the two before it are computed, and released after its turn. Experts
// are prefetched as soon as the router has chosen them. The least recently used experts are
// released when memory is full: the system would choose the same, but page by page. Only the passes
// of a Session use a pager, not the passes of a Batch or an Embedder.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "engine/model/model.h"

namespace engine {

class Pager {
 public:
  enum class Advice { kAsk, kLetGo };
  // Advises the system about mapped bytes, in order on the pager's thread; but experts are
  // prefetched on the thread that calls Expect().
  using Advise = std::function<void(std::span<const std::byte>, Advice)>;
  static void AdviseSystem(std::span<const std::byte> bytes, Advice advice);

  // `room`: bytes of memory for weights. The model must outlive the pager.
  Pager(const Model& model, uint64_t room, Advise advise = AdviseSystem);
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  ~Pager();
  // Null if all weights fit, or no thread can be started.
  static std::unique_ptr<Pager> IfLarger(const Model& model, uint64_t room);

  // Called after a layer of a pass.
  void EndLayer(size_t layer);
  // Called before the products of the experts that the tokens of a batch chose in a layer.
  void Expect(const LayerWeights& w, std::span<const uint32_t> chosen);

 private:
  // A layer without its experts, the output matrix, or an expert.
  struct PagedWeights {
    std::vector<std::span<const std::byte>> parts;
    uint64_t bytes = 0;
    bool stays = false;
    uint64_t used = 0;  // an expert: its last call of Expect(); 0: released
    std::list<PagedWeights*>::iterator place = {};  // its position in in_memory_, unless released
    void Add(std::span<const std::byte> part);
  };
  void Queue(const PagedWeights& weights, Advice advice);
  void Work();

  const Model& model_;
  Advise advise_;
  std::vector<PagedWeights> paged_layers_;          // one for each layer, then the output matrix
  std::vector<std::vector<PagedWeights>> experts_;  // [layer][expert]
  uint64_t room_for_experts_ = 0;
  std::list<PagedWeights*> in_memory_;  // experts, longest unused first
  uint64_t expert_bytes_ = 0;           // the sizes of the experts in memory
  uint64_t n_expected_ = 0;             // calls of Expect()
  // Large prefetch requests block on the disk, so a thread makes them.
  std::mutex mutex_;  // also guards PagedWeights::used
  std::condition_variable changed_;
  std::deque<std::pair<const PagedWeights*, Advice>> queue_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace engine
