// What pronk bench reads of the machine: energy, temperature, memory, clock.
#include "cli/bench/machine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"

namespace test {
namespace {

namespace fs = std::filesystem;

// A folder such as /sys: two packages, one with memory beside it; cores are a part of their
// package; and what a second driver says of the same package does not count.
class SysTest : public testing::Test {
 protected:
  void Zone(const std::string& zone, const std::string& name, uint64_t microjoules) {
    const std::string folder = "class/powercap/" + zone + "/";
    fs::create_directories(dir_.Path(folder));
    dir_.Write(folder + "name", name + "\n");
    dir_.Write(folder + "max_energy_range_uj", "1000000000\n");
    dir_.Write(folder + "energy_uj", std::to_string(microjoules) + "\n");
  }
  void Packages(uint64_t microjoules) {
    Zone("intel-rapl:0", "package-0", microjoules);
    Zone("intel-rapl:0:0", "core", 7 * microjoules);
    Zone("intel-rapl:0:1", "dram", 2 * microjoules);
    Zone("intel-rapl:1", "package-1", 3 * microjoules);
    Zone("intel-rapl-mmio:0", "package-0", microjoules);
    Zone("intel-rapl:2", "psys", 11 * microjoules);
  }
  TempDir dir_;
};

TEST_F(SysTest, EnergyOfPackagesAndMemory) {
  EXPECT_FALSE(cli::EnergyMeter(dir_.Path("")).Works());
  Packages(1'000'000);
  cli::EnergyMeter meter(dir_.Path(""));
  ASSERT_TRUE(meter.Works());
  EXPECT_EQ(meter.Joules(), 0);
  Packages(3'000'000);
  EXPECT_EQ(meter.Joules(), 2 + 4 + 6);
  EXPECT_EQ(meter.Joules(), 0);
}

TEST_F(SysTest, CountersStartAgain) {
  Zone("intel-rapl:0", "package-0", 999'000'000);
  cli::EnergyMeter meter(dir_.Path(""));
  Zone("intel-rapl:0", "package-0", 500'000);
  EXPECT_EQ(meter.Joules(), 1.5);
}

// A cache holds what is read again and again.
TEST_F(SysTest, ReadsFromCacheOrMemory) {
  EXPECT_EQ(cli::ReadsFrom(1, dir_.Path("")), "memory");
  for (const char* file : {"index0/size", "index3/size"}) {
    const std::string path = dir_.Path(std::string("devices/system/cpu/cpu0/cache/") + file);
    fs::create_directories(fs::path(path).parent_path());
    dir_.Write(fs::path(path).lexically_relative(dir_.Path("")).string(),
               file[5] == '0' ? "48K\n" : "512K\n");
  }
  EXPECT_EQ(cli::ReadsFrom(512 << 10, dir_.Path("")), "the cache");
  EXPECT_EQ(cli::ReadsFrom((512 << 10) + 1, dir_.Path("")), "memory");
}

// Four million steps of few instructions each, on a core that begins at most eight in a cycle.
TEST(Machine, CountsInstructions) {
  cli::InstructionMeter meter;
  EXPECT_FALSE(meter.PerCycle());
  meter.Start();
  cli::DoIntegerOperations();
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

// From end to end: a thread advances the counter while tokens are generated.
TEST_F(SysTest, JoulesPerToken) {
  Zone("intel-rapl:0", "package-0", 1000);
  const Finished run = Done(Shell(
      "zone=$SYS/class/powercap/intel-rapl:0\n"
      "(i=2; while [ ! -e \"$SYS/stop\" ] && [ $i -lt 20000 ]; do\n"
      "   echo ${i}000 >\"$zone/new\" && mv \"$zone/new\" \"$zone/energy_uj\"; i=$((i + 1))\n"
      " done) &\n"
      "\"$PRONK\" bench -m \"$MODEL\" -p 0 -n 2000 -r 2 --sysfs \"$SYS\" -oe jsonl; status=$?\n"
      ": >\"$SYS/stop\"; wait; exit $status",
      {"SYS=" + dir_.Path("")}));
  EXPECT_TRUE(Has(run.out, "J/token |"));
  EXPECT_GT(Json::parse(run.err)["joules_per_token"], 0);
}

// What the system does not tell is left out.
TEST_F(SysTest, ACard) {
  const auto write = [&](const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(dir_.Path(file)).parent_path());
    dir_.Write(file, text + "\n");
  };
  const std::string cpu = "devices/system/cpu/";
  write(cpu + "online", "0-15");
  write("devices/cpu_core/cpus", "0-7");
  write("devices/cpu_atom/cpus", "8-15");
  write(cpu + "cpu0/cache/index0/level", "1");
  write(cpu + "cpu0/cache/index0/type", "Data");
  write(cpu + "cpu0/cache/index0/size", "48K");
  write(cpu + "cpu0/cache/index0/shared_cpu_list", "0-1");
  write(cpu + "cpu0/cache/index1/type", "Instruction");
  write(cpu + "cpu0/cache/index1/size", "32K");
  write("class/power_supply/AC/type", "Mains");
  write("class/power_supply/AC/online", "0");
  const Finished run = Done(Pronk({"bench", "-m", kModel, "--card", "-p", "4", "-n", "3", "-pg",
                                   "4,3", "-r", "1", "--sysfs", dir_.Path("")}));
  EXPECT_TRUE(run.out.starts_with("- pronk ")) << run.out;
  for (const char* expected :
       {"\n- hardware threads: 0-15 (P cores: 0-7, E cores: 8-15)\n",
        "\n- caches of the first core: L1 48K for 0-1\n", "\n- power: battery\n",
        "\n- memory: ", "\n- compiler: ", "\n- system: ", " tg3 @ d4096 ", " first token, ms "}) {
    EXPECT_TRUE(Has(run.out, expected));
  }
  EXPECT_FALSE(Has(run.out, "clock policy"));
}

TEST(Machine, TellsItsClock) {
  const double clock = cli::MeasureClock();
  EXPECT_GT(clock, 0.01);  // emulated, perhaps
  EXPECT_LT(clock, 10);
}

}  // namespace
}  // namespace test
