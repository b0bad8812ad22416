// Memory: what a session will take, and what the machine has. Checked before anything is allocated,
// because Linux hands out more than there is and kills the process that then uses it.
#ifndef PRONK_ENGINE_SESSION_MEMORY_H_
#define PRONK_ENGINE_SESSION_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/model/config.h"
#include "engine/pass/sequence_state.h"
#include "kernels/attention/attention.h"

namespace engine {

// Bytes, 2^62 if the system does not tell.
struct Memory {
  uint64_t total;      // that this process may ever have
  uint64_t available;  // that it may use now without others being swapped out or killed
};
// The least of what the machine, each control group (version 1 or 2) around the process and
// ulimit -v grant. File caches, which can be dropped, count as available. `root` is "/" but in
// tests.
Memory MachineMemory(const std::string& root = "/");

// What decides the size of a session's buffers.
struct MemoryPlan {
  size_t context = 0;  // positions of the state
  size_t batch = 0;    // tokens of the scratch buffers
  size_t n_threads = 1;
  size_t pass_tokens = 0;  // of passes with drafts (draft/speculation.h); 0: no drafts
  kernels::KvType kv_type = kernels::KvType::kF16;
};

SequenceState::Size StateSize(const MemoryPlan& plan);

// `wish`, with a smaller batch if its scratch would exceed the model's own size and 64 MB: no file
// can ask for much more memory than it is large. Throws engine::Error, which says what would fit,
// if state and scratch are more than `available` bytes.
MemoryPlan PlanMemory(const Config& config, uint64_t file_bytes, const MemoryPlan& wish,
                      uint64_t available);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_MEMORY_H_
