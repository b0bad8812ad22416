// Computes the sizes of cache and scratch, and asks Linux or macOS for the free memory.
#include "engine/session/memory.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "engine/error.h"
#include "engine/pass/scratch.h"
#include "kernels/threads/sysfs.h"
#include "tokenizer/vocabulary.h"

#if defined(__APPLE__)
#include <unistd.h>
#endif

namespace engine {
namespace {

constexpr uint64_t kUnlimited = uint64_t{1} << 62;  // sums of such sizes still fit in 64 bits
constexpr uint64_t kSmallScratch = 64'000'000;      // even the smallest model may use this

#if !defined(__APPLE__)

// The number of bytes at `key` in a file of lines "key number" or "key: number kB".
uint64_t BytesIn(const std::string& path, std::string_view key, uint64_t fallback) {
  const std::string value = kernels::ValueOf(path, key);
  char* end = nullptr;
  const uint64_t number = std::strtoull(value.c_str(), &end, 10);
  if (end == value.c_str()) return fallback;
  return value.ends_with(" kB") ? 1024 * number : number;
}

// The names of one version of control groups.
struct GroupFiles {
  std::string_view limit, usage, active_cache, inactive_cache;
};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_active_file", "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "active_file", "inactive_file"};

// Lowers `memory` to the group's limits.
void LimitToGroup(const kernels::ControlGroup& group, Memory& memory) {
  const GroupFiles& files = group.version == 1 ? kVersion1 : kVersion2;
  const uint64_t limit =
      kernels::FirstNumber(group.folder + std::string(files.limit)).value_or(kUnlimited);
  const uint64_t usage = kernels::FirstNumber(group.folder + std::string(files.usage)).value_or(0);
  const std::string statistics = group.folder + "memory.stat";
  const uint64_t cache =
      BytesIn(statistics, files.active_cache, 0) + BytesIn(statistics, files.inactive_cache, 0);
  const uint64_t used = usage - std::min(usage, cache);
  memory.total = std::min(memory.total, limit);
  memory.available = std::min(memory.available, limit - std::min(limit, used));
}

#endif

std::string Megabytes(double bytes) {
  return std::to_string(static_cast<uint64_t>(std::min(std::ceil(bytes / 1e6), 1e18))) + " MB";
}

// Bytes for the keys and values that batches expand from latent vectors, for as many heads as fit
// in the buffer. If not even one head fits, the buffer has room for one and a quarter.
double MadeBytes(const Config& config, size_t context, size_t n_threads) {
  const auto bytes = [&](size_t numbers) {
    return 2.0 * static_cast<double>(numbers) * static_cast<double>(context);
  };
  const double all = bytes(config.Widest([](const LayerPlan& l) {
    return l.values_in_keys ? l.n_heads * (l.head_key_length + l.head_value_length) : 0;
  }));
  const double one = bytes(config.Widest([](const LayerPlan& l) {
    return l.values_in_keys ? l.head_key_length + l.head_value_length : 0;
  }));
  const size_t buffer = n_threads * kernels::LatentScratch::kBytesPerThread;
  return std::min(all, std::max(1.25 * one, static_cast<double>(buffer)));
}

// The bytes that grow with the context. A double, since any context may be requested.
double StateBytes(const Config& config, const MemoryPlan& plan) {
  const bool has_block = plan.pass_tokens > 0 && config.nextn;
  const auto context = static_cast<double>(plan.context);
  return SequenceState::BytesFor(config, StateSize(plan)) +
         (has_block ? SequenceState::BytesFor(config.OfNextn(), StateSize(plan)) : 0) +
         MadeBytes(config, plan.context, plan.n_threads) +
         static_cast<double>(sizeof(tokenizer::TokenId)) * context +
         static_cast<double>(sizeof(float) * config.vocab_size) *
             static_cast<double>(plan.pass_tokens);
}

// A session's other bytes.
double ScratchBytes(const Config& config, const MemoryPlan& plan) {
  return static_cast<double>(Scratch::BytesFor(config, plan.batch, plan.n_threads));
}

bool Fits(const Config& config, MemoryPlan plan, size_t context, uint64_t available) {
  plan.context = context;
  return StateBytes(config, plan) + ScratchBytes(config, plan) <=
         static_cast<double>(std::min(available, kUnlimited));
}

}  // namespace

#if defined(__APPLE__)

// The system compresses or swaps out memory of other processes.
Memory MachineMemory(const std::string&) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return {kUnlimited, kUnlimited, kUnlimited};
  const uint64_t bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  return {bytes, bytes, bytes};
}

#else

Memory MachineMemory(const std::string& root) {
  const std::string meminfo = root + "proc/meminfo";
  Memory memory = {BytesIn(meminfo, "MemTotal", kUnlimited),
                   BytesIn(meminfo, "MemAvailable", kUnlimited)};
  for (const kernels::ControlGroup& group : kernels::ControlGroups(root, "memory")) {
    LimitToGroup(group, memory);
  }
  memory.for_files = memory.available;
  // ulimit -v counts what is mapped, too.
  const uint64_t limit = BytesIn(root + "proc/self/limits", "Max address space", kUnlimited);
  const uint64_t used = BytesIn(root + "proc/self/status", "VmSize", 0);
  memory.total = std::min(memory.total, limit);
  memory.available = std::min(memory.available, limit - std::min(limit, used));
  return memory;
}

#endif

SequenceState::Size StateSize(const MemoryPlan& plan) {
  return {.capacity = plan.context,
          .batch = plan.batch,
          .max_undo = std::min(plan.pass_tokens, plan.batch),
          .kv_type = plan.kv_type};
}

size_t LongestContext(const Config& config, const MemoryPlan& plan, size_t limit,
                      uint64_t available) {
  size_t fits = 0;
  for (size_t step = size_t{1} << 62; step > 0; step /= 2) {
    if (fits + step <= limit && Fits(config, plan, fits + step, available)) fits += step;
  }
  return fits;
}

MemoryPlan PlanMemory(const Config& config, uint64_t file_bytes, const MemoryPlan& requested,
                      uint64_t available) {
  MemoryPlan plan = requested;
  plan.batch =
      std::clamp<size_t>(requested.batch, 1, std::max(requested.context, requested.max_context));
  const auto max_scratch = static_cast<double>(kSmallScratch + file_bytes);
  while (plan.batch > 1 && ScratchBytes(config, plan) > max_scratch) plan.batch /= 2;
  if (Fits(config, plan, plan.context, available)) return plan;
  const size_t fits = LongestContext(config, plan, plan.context, available);
  throw NoMemory("a context of ", plan.context, " tokens needs ",
                 Megabytes(StateBytes(config, plan) + ScratchBytes(config, plan)),
                 " of memory for keys, values and scratch, and ",
                 Megabytes(static_cast<double>(available)), " are free here: ",
                 (fits >= 1 ? "one of at most " + std::to_string(fits) + " fits"
                            : "not even a context of one token fits"),
                 "; the model was trained for ", config.context_length);
}

}  // namespace engine
