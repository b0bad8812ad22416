// How to hold a file's bytes in memory.
#ifndef PRONK_CLI_OPTIONS_RESIDENCY_H_
#define PRONK_CLI_OPTIONS_RESIDENCY_H_

#include <cstddef>
#include <span>

namespace cli {

// Whether all of these mapped bytes seem to be in memory (a sample of them is asked).
bool IsResident(std::span<const std::byte> mapped);
// Brings mapped bytes into memory.
void PageIn(std::span<const std::byte> mapped);
// Keeps them there. False where the system does not allow it.
bool Lock(std::span<const std::byte> mapped);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_RESIDENCY_H_
