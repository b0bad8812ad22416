// The machine that a benchmark runs on: its name, clock, temperature and energy.
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

// GHz of the caller's core, measured by a chain of instructions of one cycle each: the present
// clock and not the advertised one. The best of short tries, 10 ms in all, so that other processes
// on the core do not matter.
double MeasureClock();

// Simple integer operations that fill every unit of the core. Where another process has the core's
// second thread, which a virtual machine does not show, these and most code are slower, while the
// clock and the memory's speed are the same.
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
