// The machine data that pronk bench reads: energy, temperature, memory, clock.
#include "cli/bench/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/output/text.h"
#include "tests/cli/pronk.h"

namespace test {
namespace {

namespace fs = std::filesystem;

// A folder such as /sys.
class SysTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(dir_.Path(file)).parent_path());
    dir_.Write(file, text + "\n");
  }
  TempDir dir_;
};

// Data that is read repeatedly stays in a cache.
TEST_F(SysTest, ReadsFromCacheOrMemory) {
  EXPECT_EQ(cli::ReadsFrom(1, dir_.Path("")), "memory");
  Write("devices/system/cpu/cpu0/cache/index0/size", "48K");
  Write("devices/system/cpu/cpu0/cache/index3/size", "512K");
  EXPECT_EQ(cli::ReadsFrom(512 << 10, dir_.Path("")), "the cache");
  EXPECT_EQ(cli::ReadsFrom((512 << 10) + 1, dir_.Path("")), "memory");
}

// Chains of instructions that take a cycle each, and a loop's other instructions.
TEST(Machine, CountsInstructions) {
  cli::InstructionMeter meter;
  EXPECT_FALSE(meter.PerCycle());
  meter.Start();
  cli::MeasureClock();
  meter.Stop();
  if (!meter.PerCycle()) GTEST_SKIP() << "perf_event is not allowed here";
  EXPECT_GT(*meter.PerCycle(), 0.5);
  EXPECT_LT(*meter.PerCycle(), 16);
}

TEST(Machine, PeakOfMemory) {
  cli::ResetPeakMemory();
  const double before = cli::PeakMemory();
  const std::vector<char> more(size_t{64} << 20, 1);
  EXPECT_GE(cli::PeakMemory(), before + static_cast<double>(more.size()) / 2);
}

// Data that the system does not report is omitted.
TEST_F(SysTest, Machine) {
  const std::string cpu = "devices/system/cpu/";
  Write(cpu + "online", "0-15");
  Write("devices/cpu_core/cpus", "0-7");
  Write("devices/cpu_atom/cpus", "8-15");
  Write(cpu + "cpu0/cache/index0/level", "1");
  Write(cpu + "cpu0/cache/index0/type", "Data");
  Write(cpu + "cpu0/cache/index0/size", "48K");
  Write(cpu + "cpu0/cache/index0/shared_cpu_list", "0-1");
  Write(cpu + "cpu0/cache/index1/type", "Instruction");
  Write(cpu + "cpu0/cache/index1/size", "32K");
  Write("class/power_supply/AC/type", "Mains");
  Write("class/power_supply/AC/online", "0");
  const std::vector<std::string> lines = cli::MachineLines(dir_.Path(""));
  for (const std::string line : {"hardware threads: 0-15 (P cores: 0-7, E cores: 8-15)",
                                 "caches of the first core: L1 48K for 0-1", "power: battery"}) {
    EXPECT_EQ(std::ranges::count(lines, line), 1) << line;
  }
  const std::string all = cli::Joined(lines, "; ");
  for (const char* what : {"; memory: ", "; compiler: ", "; system: "}) EXPECT_TRUE(Has(all, what));
  EXPECT_FALSE(Has(all, "clock policy"));
}

TEST(Machine, TellsItsClock) {
  const double clock = cli::MeasureClock();
  EXPECT_GT(clock, 0.01);  // the machine may be emulated
  EXPECT_LT(clock, 10);
}

}  // namespace
}  // namespace test
