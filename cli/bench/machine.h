// The machine that a benchmark runs on: what it is called, how fast it turns, how warm it is, and
// what it draws.
#ifndef PRONK_CLI_BENCH_MACHINE_H_
#define PRONK_CLI_BENCH_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

// "AMD Ryzen 7 7840U", in one line, fit to print; what the system calls the architecture where it
// does not tell.
std::string CpuName();

// "2026-11-22T10:01:02Z"
std::string DateNow();

// The commit that this program was built from, with "-dirty" where the tree had changes; "unknown"
// where it was not built in a git checkout. The build writes this function (commit.cmake).
std::string BuildCommit();

// GHz of the core that the caller runs on, measured with instructions that take one cycle each, one
// behind the other: the clock that there is and not the one that is promised. The best of some
// short tries, 10 ms in all, so that others who share the core do not matter.
double MeasureClock();

// Simple integer operations, as many at a time as the core takes. Where others have the second
// thread of the core, as in a virtual machine one cannot know, it is these that are slower, and
// with them most code, while neither the clock nor what memory gives is any different.
inline constexpr double kIntegerOperations = 1.6e6;
void DoIntegerOperations();

// Degrees Celsius of the CPU's hottest sensor, where the system tells. sysfs: "/sys".
std::optional<double> Temperature(const std::string& sysfs);

// Energy that the processors and their memory took, by the counters that Linux has under
// class/powercap (RAPL, of Intel and AMD): of the whole machine, whoever made it work. They are
// mostly for root to read.
class EnergyMeter {
 public:
  explicit EnergyMeter(const std::string& sysfs);
  bool Works() const { return !counters_.empty(); }
  // Joules since the last call, or since the beginning. The counters start again from 0 every few
  // minutes to hours; this has to be called that often.
  double Joules();

 private:
  struct Counter {
    std::string path;
    uint64_t range;  // microjoules after which it starts again
    uint64_t last;
  };
  std::vector<Counter> counters_;
};

}  // namespace cli

#endif  // PRONK_CLI_BENCH_MACHINE_H_
