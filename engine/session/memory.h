// Memory: what a session will need, and what the machine has. Checked before anything is allocated,
// because Linux overcommits and kills the process that then uses the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/model/config.h"
#include "engine/pass/sequence_state.h"
#include "kernels/attention/attention.h"

namespace engine {

// The memory of the machine in bytes; 2^62 if unknown.
struct Memory {
  uint64_t total;          // limit for this process
  uint64_t available;      // usable now without others being swapped out or killed
  uint64_t for_files = 0;  // the same for mapped files, which ulimit -v counts already
};
// The minimum over the machine, each control group (version 1 or 2) of the process and ulimit -v.
// File caches, which can be dropped, count as available. `root` is "/" except in tests.
Memory MachineMemory(const std::string& root = "/");

// The parameters that determine the size of a session's buffers.
struct MemoryPlan {
  size_t context = 0;      // positions of the state,
  size_t max_context = 0;  // which may grow to so many
  size_t batch = 0;        // tokens of the scratch buffers
  size_t n_threads = 1;
  size_t pass_tokens = 0;  // tokens of a pass with drafts (draft/speculation.h); 0: no drafts
  kernels::KvTypes kv_type = {};
};

SequenceState::Size StateSize(const MemoryPlan& plan);

// The longest context, up to `most`, with which this plan fits into `available` bytes.
size_t LongestContext(const Config& config, const MemoryPlan& plan, size_t most,
                      uint64_t available);

// `requested`, with a smaller batch if its scratch would exceed the model's own size plus 64 MB, so
// that no file can demand much more memory than its size. Throws engine::Error, which says what
// would fit, if state and scratch exceed `available` bytes.
MemoryPlan PlanMemory(const Config& config, uint64_t file_bytes, const MemoryPlan& requested,
                      uint64_t available);

}  // namespace engine
