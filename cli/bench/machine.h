// The machine that runs a benchmark: its name, clock, caches, memory and counters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

// "AMD Ryzen 7 7840U", fit to print; if the name is unknown, the system's name of the architecture.
std::string CpuName();

// Other things that speed depends on, a line each: the CPU's cores, caches and clock policy, memory
// and power, the system and the compiler, as far as the system tells them. sysfs: "/sys".
std::vector<std::string> MachineLines(const std::string& sysfs);

// The hardware threads that this process may use.
int UsableHardwareThreads();

// "2026-11-22T10:01:02Z"
std::string DateNow();

// The commit that this program was built from, with "-dirty" if the tree had changes; "unknown" if
// it was not built in a git checkout. The build generates this function (commit.cmake).
std::string BuildCommit();

// The current clock of the caller's core in GHz, measured with a chain of one-cycle instructions:
// the best of several short tries, 10 ms in all, because other processes may use the core.
double MeasureClock();

// Where repeated reads of this many bytes find them: "the cache" if they fit into the first core's
// largest one, otherwise "memory". sysfs: "/sys".
std::string ReadsFrom(uint64_t bytes, const std::string& sysfs = "/sys");

// Peak resident memory in bytes since the last reset, where the system allows a reset.
double PeakMemory();
void ResetPeakMemory();

// This process's instructions per cycle, from the CPU's counters, where Linux (perf_event) and a
// virtual machine's host allow it. Counts the calling thread and threads started since.
class InstructionMeter {
 public:
  InstructionMeter();
  ~InstructionMeter();
  InstructionMeter(const InstructionMeter&) = delete;
  InstructionMeter& operator=(const InstructionMeter&) = delete;
  void Start() { Add(-1); }
  void Stop() { Add(1); }
  std::optional<double> PerCycle() const;  // between all starts and stops

 private:
  void Add(double sign);
  int files_[2];  // instructions, cycles; -1: not allowed
  double counts_[2] = {};
};

}  // namespace cli
