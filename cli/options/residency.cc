#include "cli/options/residency.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace cli {
namespace {

constexpr size_t kSamples = 64;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// mincore's vector is of unsigned char here and of char elsewhere.
template <class Byte>
bool AskResident(int (*ask)(void*, size_t, Byte*), const std::byte* page) {
  Byte resident = 0;
  void* const address = const_cast<std::byte*>(page);
  return ask(address, PageBytes(), &resident) != 0 || (resident & 1) != 0;
}

// The pages that these bytes touch.
std::span<const std::byte> WholePages(std::span<const std::byte> bytes) {
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const size_t before = address % PageBytes();
  return {bytes.data() - before, bytes.size() + before};
}

}  // namespace

bool IsResident(std::span<const std::byte> mapped) {
  if (mapped.empty()) return true;
  const std::span<const std::byte> pages = WholePages(mapped);
  const size_t n_pages = (pages.size() + PageBytes() - 1) / PageBytes();
  const size_t step = std::max<size_t>(n_pages / kSamples, 1);
  for (size_t page = 0; page < n_pages; page += step) {
    if (!AskResident(mincore, pages.data() + page * PageBytes())) return false;
  }
  return true;
}

void PageIn(std::span<const std::byte> mapped) {
  if (mapped.empty()) return;
  const std::span<const std::byte> pages = WholePages(mapped);
  // Asks the system to read ahead, then waits for each page by touching it.
  madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_WILLNEED);
  [[maybe_unused]] volatile std::byte sink{};
  for (size_t at = 0; at < mapped.size(); at += PageBytes()) sink = mapped[at];
}

bool Lock(std::span<const std::byte> mapped) {
  return mapped.empty() || mlock(WholePages(mapped).data(), WholePages(mapped).size()) == 0;
}

}  // namespace cli
