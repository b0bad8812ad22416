// The memory that a session will need, and the memory that the machine has. Checked before any
// allocation, because Linux overcommits and kills the process that later uses the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/model/config.h"
#include "engine/pass/sequence_state.h"
#include "kernels/attention/kv_cache.h"

namespace engine {

// The memory of the machine in bytes; 2^62 if unknown.
struct Memory {
  uint64_t total;          // limit for this process
  uint64_t available;      // usable without swapping out or killing other processes
  uint64_t for_files = 0;  // usable for mapped files, which ulimit -v counts already
};
// The minimum over the machine, each control group (version 1 or 2) of the process and ulimit -v.
// File caches, which can be dropped, count as available. `root` is "/" except in tests.
Memory MachineMemory(const std::string& root = "/");

// The parameters that determine the size of a session's buffers.
struct MemoryPlan {
  size_t context = 0;      // positions of the state at first
  size_t max_context = 0;  // positions that it may grow to
  size_t batch = 0;        // tokens of the scratch buffers
  size_t n_threads = 1;
  size_t pass_tokens = 0;  // tokens of a pass with drafts (draft/speculation.h); 0: no drafts
  kernels::KvTypes kv_type = {};
};

SequenceState::Size StateSize(const MemoryPlan& plan);

// The longest context, up to `limit`, with which this plan fits into `available` bytes.
size_t LongestContext(const Config& config, const MemoryPlan& plan, size_t limit,
                      uint64_t available);

// Returns `requested`, with a smaller batch if its scratch would exceed the model's size plus 64
// MB: no file can demand much more memory than its size. Throws engine::Error, which says what
// would fit, if state and scratch exceed `available` bytes.
MemoryPlan PlanMemory(const Config& config, uint64_t file_bytes, const MemoryPlan& requested,
                      uint64_t available);

}  // namespace engine
