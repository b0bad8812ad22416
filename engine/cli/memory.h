// How much memory this machine has, and how to hold a file's bytes in it.
#ifndef PRONK_ENGINE_CLI_MEMORY_H_
#define PRONK_ENGINE_CLI_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace cli {

struct Memory {
  uint64_t total = 0;      // bytes that this process may ever have; 0: unknown
  uint64_t available = 0;  // ... without pushing others out
};
// What the system says, and the control group where it allows less.
Memory MemoryOfMachine();

// Whether all of these mapped bytes seem to be in memory (a sample of them is asked).
bool IsResident(std::span<const std::byte> mapped);
// Brings mapped bytes into memory.
void PageIn(std::span<const std::byte> mapped);
// Keeps them there. False where the system does not allow it.
bool Lock(std::span<const std::byte> mapped);

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_MEMORY_H_
