// pronk bench: what it measures, and that every format can be read by others. Nothing here depends
// on how fast the machine is; whether the figures can be trusted is measured by hand (README of
// cli/bench).
#include "cli/bench/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/machine.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace {

namespace fs = std::filesystem;

using json = test::Json;
using test::ExpectError;
using test::Finished;
using test::kTinyModel;
using test::Pronk;
using test::Shell;

// One test that takes no time, and more flags.
Finished Bench(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"bench", "-m", kTinyModel, "-p", "4", "-n", "0", "-r", "2"};
  args.insert(args.end(), more.begin(), more.end());
  return Pronk(args);
}

json Schema() {
  return json::parse(
      test::ReadText(fs::path(test::SourceDir()) / "tests/cli/bench/bench.schema.json"));
}

// Lines of cells, by RFC 4180.
std::vector<std::vector<std::string>> ReadCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string cell;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool doubled = quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"';
    if (doubled) {
      cell += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == ',' || text[i] == '\n')) {
      rows.back().push_back(std::exchange(cell, ""));
      if (text[i] == '\n') rows.emplace_back();
    } else {
      cell += text[i];
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_TRUE(rows.back().empty());  // a line feed ends the last row
  rows.pop_back();
  return rows;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// --- What is measured ----------------------------------------------------------------------------

TEST(Bench, MeasuresEveryCombination) {
  const Finished run =
      Pronk({"bench", "-m",  kTinyModel, "-p", "4,8",  "-n",       "4",  "-pg", "4,2", "-d",  "0,3",
             "-t",    "1-2", "-ub",      "4",  "-ctk", "f16,q8_0", "-r", "1",   "-o",  "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json tests = json::parse(run.out);
  std::map<std::string, int> seen;
  for (const json& test : tests) {
    ++seen[test["n_prompt"].dump() + " " + test["n_gen"].dump() + " " + test["n_depth"].dump() +
           " " + test["n_threads"].dump() + " " + test["type_k"].dump()];
    EXPECT_EQ(test["n_ubatch"], 4);
  }
  EXPECT_EQ(tests.size(), 4u * 2 * 2 * 2);
  EXPECT_EQ(seen.size(), tests.size());
  EXPECT_EQ(seen[R"(4 2 3 2 "q8_0")"], 1);
}

// Texts generated together are beside one; a prompt is read as ever.
TEST(Bench, TextsTogether) {
  const Finished run = Pronk({"bench", "-m", kTinyModel, "-p", "4", "-n", "6", "-d", "0,2", "-np",
                              "1,3", "-t", "2", "-r", "1", "-oe", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json tests = json::parse(run.err);
  EXPECT_EQ(test::SchemaFaults(tests, Schema()), std::vector<std::string>());
  ASSERT_EQ(tests.size(), 6u);
  EXPECT_NE(run.out.find("| 3 x tg6 @ d2 |"), std::string::npos) << run.out;
  const json& together = tests[5];
  EXPECT_EQ(together["n_parallel"], 3);
  EXPECT_GT(together["dot_limit"], 0);
  // Three tokens take a pass: its cost is theirs.
  EXPECT_NEAR(together["pass_cost"],
              3 * tests[4]["median_ts"].get<double>() / together["median_ts"].get<double>(), 1e-9);
  ExpectError(Bench({"--parallel", "17"}), 2, "--parallel: expected a number from 1 to 16");
  ExpectError(Bench({"--parallel", "2", "--draft", "2"}), 2, "give one of them");
}

TEST(Bench, ReadsRanges) {
  const auto threads = [](const std::string& list) {
    std::vector<int> numbers;
    const Finished run = Pronk(
        {"bench", "-m", kTinyModel, "-p", "1", "-n", "0", "-r", "1", "-o", "json", "-t", list});
    for (const json& test : json::parse(run.out)) numbers.push_back(test["n_threads"]);
    return numbers;
  };
  EXPECT_EQ(threads("1-3"), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(threads("1-4+2"), (std::vector<int>{1, 3}));
  EXPECT_EQ(threads("1-4*2"), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(threads("2,1-2"), (std::vector<int>{2, 1, 2}));
  for (const char* list : {"", "1,", "1-", "1-2+", "x", "1-8*1", "1-8+0", "1 2"}) {
    ExpectError(Bench({"-t", list}), 2, "-t: expected numbers such as");
  }
  ExpectError(Bench({"-t", "1-2000"}), 2, "-t: expected a number from 1 to 1024");
  ExpectError(Bench({"-p", "0-1073741824"}), 2, "-p: expected at most 1000 numbers");
}

// A minute of tests, of which nobody reads more than the first row.
TEST(Bench, StopsWhereNobodyReads) {
  const Finished run = Shell(
      R"({ "$PRONK" bench -m "$MODEL" -o csv -p 4-900 -n 0; echo "status $?" >&2; } | head -n 2 | wc -l)");
  EXPECT_EQ(run.err, "status 0\n");
  EXPECT_NE(run.out.find('2'), std::string::npos) << run.out;
}

TEST(Bench, GoesOnWhileStderrIsRead) {
  const Finished run =
      Shell(R"("$PRONK" bench -m "$MODEL" -o csv -oe json -p 4-9 -n 0 -r 1 | true)");
  EXPECT_EQ(json::parse(run.err).size(), 6u);
}

TEST(Bench, RefusesWhatItCannotDo) {
  ExpectError(Bench({"-ctk", "f16", "-ctv", "q8_0"}), 2, "keys and values have one type");
  ExpectError(Bench({"-ctk", "f17"}), 2, "expected f16, f32 or q8_0");
  ExpectError(Bench({"-pg", "4"}), 2, "-pg: expected two numbers");
  ExpectError(Pronk({"bench", "-m", kTinyModel, "-p", "0", "-n", "0"}), 2, "nothing to measure");
  ExpectError(Bench({"-ub", "0"}), 2, "-ub: expected a number from 1 to 4096");
  ExpectError(Bench({"--minutes", "2", "--baseline", "x"}), 2, "--minutes: not with");
  // A model that cannot be read is reported before the first one is measured.
  ExpectError(Bench({"-m", "no/such.gguf"}), 1, "no/such.gguf");
}

TEST(Bench, TakesSeveralModels) {
  const std::string other = test::DataPath("tiny/qwen2.gguf");
  const Finished run = Bench({"-m", other, "-o", "json", "--delay", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json tests = json::parse(run.out);
  ASSERT_EQ(tests.size(), 2u);
  EXPECT_EQ(tests[0]["model_filename"], kTinyModel);
  EXPECT_EQ(tests[1]["model_filename"], other);
}

// Ctrl-C ends the measuring, here while it waits for the second test; finished rows stay, and the
// output is whole.
TEST(Bench, KeepsRowsOnCtrlC) {
  const Finished run = Shell(
      "timeout --foreground --preserve-status -s INT 3 \"$PRONK\" bench -m \"$MODEL\" -p 4,8 -n 0 "
      "-r 1 --delay 100 --minutes 2 -o json -oe csv");
  EXPECT_EQ(run.status, 130);
  const json tests = json::parse(run.out);
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(tests[0]["n_prompt"], 4);
  const size_t message = run.err.find("pronk: interrupted: 1 of 3 tests are done");
  ASSERT_NE(message, std::string::npos) << run.err;
  EXPECT_EQ(ReadCsv(run.err.substr(0, message)).size(), 2u);
}

// --- How it is written ---------------------------------------------------------------------------

TEST(BenchFormats, JsonFollowsItsSchema) {
  const json schema = Schema();
  const json array = json::parse(Bench({"-n", "4", "-pg", "2,2", "-o", "json"}).out);
  ASSERT_EQ(array.size(), 3u);
  EXPECT_EQ(test::SchemaFaults(array, schema), std::vector<std::string>());
  const std::vector<std::string> lines = Lines(Bench({"-n", "4", "-o", "jsonl"}).out);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) {
    EXPECT_EQ(test::SchemaFaults(json::parse(line), schema["items"]), std::vector<std::string>());
  }
  // The checker finds what is wrong.
  json wrong = array;
  wrong[0].erase("median_ts");
  wrong[1]["more"] = 1;
  wrong[2]["build_commit"] = "x";
  wrong[2]["n_gen"] = -1;
  wrong[2]["samples_ts"] = {"1"};
  EXPECT_EQ(test::SchemaFaults(wrong, schema).size(), 5u);
}

TEST(BenchFormats, CsvHasTheSameFields) {
  const test::TempDir dir;
  // A name that CSV has to quote.
  const std::string model = dir.Path("a \"model\", mine.gguf");
  fs::copy_file(kTinyModel, model);
  const Finished run =
      Pronk({"bench", "-m", model, "-p", "4", "-n", "4", "-r", "2", "-o", "csv", "-oe", "jsonl"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto rows = ReadCsv(run.out);
  const std::vector<std::string> lines = Lines(run.err);
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(lines.size(), 2u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const json fields = json::parse(lines[i]);
    ASSERT_EQ(rows[0].size(), fields.size());
    ASSERT_EQ(rows[i + 1].size(), fields.size());
    for (size_t column = 0; column < rows[0].size(); ++column) {
      ASSERT_TRUE(fields.contains(rows[0][column]));
      const json& field = fields[rows[0][column]];
      const std::string& cell = rows[i + 1][column];
      SCOPED_TRACE(rows[0][column]);
      if (field.is_array()) continue;
      const std::string expected = field.is_string() ? field.get<std::string>()
                                   : field.is_null() ? ""
                                                     : field.dump();
      EXPECT_EQ(cell, expected);
    }
  }
}

// Who, when, what and on which machine: in each format.
TEST(BenchFormats, NameTheirOrigin) {
  const test::TempDir dir;
  const std::string plot = dir.Path("plot.svg");
  const json fields = json::parse(Bench({"-o", "jsonl", "--plot", plot}).out);
  const std::string day = cli::DateNow().substr(0, 8);  // the month: a day may end meanwhile
  for (const std::string& text : {Bench({}).out, Bench({"-o", "csv"}).out, test::ReadText(plot)}) {
    for (const std::string& part :
         {fields["cpu_info"].get<std::string>(), fields["cpu_target"].get<std::string>(),
          fields["build_commit"].get<std::string>(), fields["version"].get<std::string>(), day,
          std::string("llama.gguf")}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    }
  }
}

TEST(BenchFormats, TablesHaveOneUnitAColumn) {
  const std::string out = Bench({"-n", "4", "-t", "1,2", "-ub", "2,4"}).out;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : Lines(out)) {
    if (!line.starts_with("|")) continue;
    rows.emplace_back();
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(cell);
  }
  ASSERT_EQ(rows.size(), 2u + 8) << out;
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  for (const char* title :
       {"size, MB", "t/s, median ± sd", "limit, t/s", "GB/s", "TOPS", "ubatch"}) {
    EXPECT_NE(out.find(title), std::string::npos) << title;
  }
}

// The picture shows the same figure as the table, beside the bar.
TEST(BenchFormats, PlotsSayWhatTablesSay) {
  const test::TempDir dir;
  const std::string plot = dir.Path("plot.svg");
  const json fields = json::parse(Bench({"-o", "jsonl", "--plot", plot}).out);
  const std::string svg = test::ReadText(plot);
  char speed[64];
  std::snprintf(speed, sizeof(speed), "%.1f ± %.1f t/s", fields["median_ts"].get<double>(),
                fields["stddev_ts"].get<double>());
  EXPECT_NE(svg.find(speed), std::string::npos) << svg;
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

// --- The machine ---------------------------------------------------------------------------------

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
  test::TempDir dir_;
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

TEST_F(SysTest, TemperatureOfTheHottest) {
  EXPECT_FALSE(cli::Temperature(dir_.Path("")));
  const auto write = [&](const std::string& folder, const std::string& name, const char* text) {
    fs::create_directories(dir_.Path(folder));
    dir_.Write(folder + "/" + name, text);
  };
  write("class/hwmon/hwmon0", "name", "nvme\n");
  write("class/hwmon/hwmon0", "temp1_input", "90000\n");
  write("class/hwmon/hwmon1", "name", "k10temp\n");
  write("class/hwmon/hwmon1", "temp1_input", "51250\n");
  write("class/thermal/thermal_zone0", "type", "x86_pkg_temp\n");
  write("class/thermal/thermal_zone0", "temp", "49000\n");
  EXPECT_EQ(cli::Temperature(dir_.Path("")), 51.25);
}

// From end to end: a thread advances the counter while tokens are generated.
TEST_F(SysTest, JoulesPerToken) {
  Zone("intel-rapl:0", "package-0", 1000);
  const Finished run = Shell(
      "zone=$SYS/class/powercap/intel-rapl:0\n"
      "(i=2; while [ ! -e \"$SYS/stop\" ] && [ $i -lt 20000 ]; do\n"
      "   echo ${i}000 >\"$zone/new\" && mv \"$zone/new\" \"$zone/energy_uj\"; i=$((i + 1))\n"
      " done) &\n"
      "\"$PRONK\" bench -m \"$MODEL\" -p 0 -n 2000 -r 2 --sysfs \"$SYS\" -oe jsonl; status=$?\n"
      ": >\"$SYS/stop\"; wait; exit $status",
      {"SYS=" + dir_.Path("")});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("J/token |     W |"), std::string::npos);
  EXPECT_GT(json::parse(run.err)["joules_per_token"], 0);
}

// A memory device of SMBIOS' table, with the texts "A1" and "BANK 0".
std::string MemoryDevice(uint16_t size, uint32_t extended, uint8_t kind, uint16_t speed) {
  std::string bytes(34, '\0');
  const auto put = [&](size_t at, uint32_t value, size_t n) {
    for (size_t i = 0; i < n; ++i) bytes[at + i] = static_cast<char>(value >> 8 * i);
  };
  put(0, 17, 1);
  put(1, 34, 1);
  put(12, size, 2);
  put(16, 1, 1);
  put(17, 2, 1);
  put(18, kind, 1);
  put(21, 4800, 2);
  put(28, extended, 4);
  put(32, speed, 2);
  return bytes + std::string("A1\0BANK 0\0", 10) + '\0';
}

TEST_F(SysTest, MemoryModules) {
  const std::string folder = dir_.Path("firmware/dmi/tables/");
  fs::create_directories(folder);
  const auto modules = [&](const std::string& table) {
    dir_.Write("firmware/dmi/tables/DMI", table);
    for (const std::string& line : cli::MachineLines(dir_.Path(""))) {
      if (line.starts_with("memory modules: ")) return line.substr(16);
    }
    return std::string();
  };
  const std::string other("\x01\x06\x00\x00\x01\x02\x00\x00", 8);  // without texts
  const std::string table = other + MemoryDevice(0x7FFF, 65536, 34, 5600) +
                            MemoryDevice(0x7FFF, 65536, 34, 5600) + MemoryDevice(0, 0, 2, 0) +
                            MemoryDevice(512, 0, 1, 0);
  EXPECT_EQ(modules(table),
            "1 x 0.5 GB at 4800 MT/s in BANK 0 A1; "
            "2 x 64 GB DDR5 at 5600 MT/s in BANK 0 A1, BANK 0 A1");
  // Cut anywhere, or with a byte changed, it is read within its bounds.
  for (size_t i = 0; i < table.size(); ++i) {
    std::string damaged = table.substr(0, i + 40);
    damaged[i] = '\xFF';
    modules(damaged);
  }
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
  const Finished run = Pronk({"bench", "-m", kTinyModel, "--card", "-p", "4", "-n", "3", "-pg",
                              "4,3", "-r", "1", "--sysfs", dir_.Path("")});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("- pronk ")) << run.out;
  for (const char* expected :
       {"\n- hardware threads: 0-15 (P cores: 0-7, E cores: 8-15)\n",
        "\n- caches of the first core: L1 48K for 0-1\n", "\n- power: battery\n",
        "\n- memory: ", "\n- compiler: ", "\n- system: ", " tg3 @ d4096 ",
        "\npp4+tg3: ", " s, the first token after "}) {
    EXPECT_NE(run.out.find(expected), std::string::npos) << expected << run.out;
  }
  EXPECT_EQ(run.out.find("clock policy"), std::string::npos);
}

TEST(Machine, TellsItsClock) {
  const double clock = cli::MeasureClock();
  EXPECT_GT(clock, 0.01);  // emulated, perhaps
  EXPECT_LT(clock, 10);
}

// --- Notes ---------------------------------------------------------------------------------------

cli::BenchTest Measured() {
  cli::BenchTest test;
  test.n_gen = 10;
  test.bytes_per_token = 1e9;
  test.samples_ts = {9, 10, 8};
  test.limits = {{11.5e9, 0, 1e9}, {11e9, 0, 1e9}, {10e9, 0, 1e9}};
  test.clock_before = test.clock_after = 3;
  return test;
}

TEST(BenchNotes, NothingWhereAllIsWell) {
  const cli::BenchTest test = Measured();
  EXPECT_EQ(test.Notes(), std::vector<std::string>());
  EXPECT_DOUBLE_EQ(test.Median(), 9);
  EXPECT_DOUBLE_EQ(test.Limit(), 11);
  EXPECT_DOUBLE_EQ(test.Share(), 0.8);  // of 9/11.5, 10/11, 8/10
}

TEST(BenchNotes, SayWhatSpoilsAResult) {
  const auto note = [](auto change) {
    cli::BenchTest test = Measured();
    change(test);
    const std::vector<std::string> notes = test.Notes();
    return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
  };
  EXPECT_NE(note([](auto& test) {
              test.samples_ts = {13, 10, 11};
            }).find("above the limit"),
            std::string::npos);
  EXPECT_EQ(note([](auto& test) { test.clock_after = 2.5; }), "slowed down: 3.00 to 2.50 GHz");
  EXPECT_EQ(note([](auto& test) { test.limits[0].read = 14e9; }), "limit moved: 10 to 14");
  EXPECT_EQ(note([](auto& test) {
              test.n_threads = 8;
              test.n_cores = 2;
              test.share_alone = 0.5;
            }),
            "8 threads on 2 cores");
  EXPECT_EQ(note([](auto& test) {
              test.n_threads = 2;
              test.n_cores = 1;
            }),
            "2 threads on 1 core");
  EXPECT_EQ(note([](auto& test) {
              test.minutes = 5;
              test.first_end = 1;
              test.last_begin = 2;
            }),
            "minute 1: 9 t/s, minute 5: 8 t/s");
  EXPECT_EQ(note([](auto& test) { test.share_alone = 0.5; }),
            "cores taken: one thread did 50% of the passes alone");
  EXPECT_EQ(note([](auto& test) { test.share_of_cores = 0.6; }),
            "cores taken: had 60% of its time");
  const auto verdict = [&](double low, double high) {
    return note([=](auto& test) {
      test.comparison = {10, 0.97, low, high};
      test.comparison->verdict = test.comparison->For(0.05);
    });
  };
  EXPECT_EQ(verdict(0.96, 0.98), "not slower");  // but by less than 5%
  EXPECT_EQ(verdict(0.94, 0.98), "slower");
  EXPECT_EQ(verdict(0.94, 1.02), "could not tell");
  EXPECT_EQ(verdict(1.01, 1.02), "faster");
}

TEST(BenchNotes, TellWhereLimitsOfRowsDiffer) {
  const auto moved = [](auto change) {
    cli::BenchTest test = Measured();
    change(test);
    test.CompareLimits({Measured()});
    return test.moved;
  };
  EXPECT_EQ(moved([](auto&) {}), "");
  EXPECT_EQ(moved([](auto& test) { test.limits[0].read = 20e9; }), "");  // the median is the same
  const auto fall = [](auto& test) { test.limits = {{9e9, 0, 1e9}}; };
  EXPECT_EQ(moved(fall), "limit moved since tg10: 11 to 9 GB/s");
  EXPECT_EQ(moved([&](auto& test) {
              fall(test);
              test.n_threads = 2;
            }),
            "");
}

// 50 joules in 1 + 1 + 0.5 seconds.
TEST(BenchNotes, Watts) {
  cli::BenchTest test = Measured();
  test.samples_ts = {10, 10, 20};
  test.joules = 50;
  EXPECT_DOUBLE_EQ(test.Watts(), 20);
}

// Threads and depth are curves, with the numbers below them; nothing else is drawn of these tests.
TEST(BenchPlot, CurvesAndBars) {
  const cli::BenchModel model = {.opened = engine::Model::Load(kTinyModel)};
  std::vector<cli::BenchTest> tests;
  for (const size_t n_threads : {1, 2}) {
    for (const size_t n_depth : {0, 4096}) {
      cli::BenchTest& test = tests.emplace_back(Measured());
      test.model = &model;
      test.n_threads = n_threads;
      test.n_depth = n_depth;
      test.samples_ts = {static_cast<double>(10 * n_threads - n_depth / 4096)};
      test.limits = {{11e9 * static_cast<double>(n_threads), 0, 1e9}};
    }
  }
  const auto count = [](const std::string& svg, const std::string& part) {
    size_t n = 0;
    for (size_t at = 0; (at = svg.find(part, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const std::string curves = cli::BenchSvg({}, tests);
  EXPECT_EQ(count(curves, "<polyline class=\"cost\""), 4u) << curves;
  EXPECT_EQ(count(curves, "<polyline class=\"roof\""), 4u);
  EXPECT_EQ(count(curves, "class=\"tg\"/>"), 0u);  // bars
  for (const char* text : {">tg10: t/s by threads<", ">tg10: t/s by tokens already in the cache<",
                           ">@ d4096<", ">-t 2<", ">19<"}) {
    EXPECT_EQ(count(curves, text), 1u + (text == std::string(">19<"))) << text;
  }
  std::vector<cli::BenchTest> together = {tests[0], tests[2], tests[0], tests[2]};
  together[2].n_parallel = together[3].n_parallel = 8;
  const std::string texts = cli::BenchSvg({}, together);
  EXPECT_EQ(count(texts, ">tg10: t/s of all texts, by texts generated together<"), 1u) << texts;
  EXPECT_EQ(count(texts, "<polyline class=\"roof\""), 3u);  // and one by threads
  EXPECT_EQ(count(texts, ">-t 2 @ d0<"), 1u);
  // Bars of one kind have one scale, a single repetition has no deviation, and the picture ends.
  tests.resize(2);
  tests[1].n_gen = 20;
  tests[1].samples_ts = {5.5};
  for (int i = 0; i < 20; ++i) tests.emplace_back(tests.back()).n_gen += 1;
  const std::string bars = cli::BenchSvg({}, tests);
  EXPECT_NE(bars.find("width=\"224.0\" height=\"12\" rx=\"2\" class=\"tg\""), std::string::npos);
  EXPECT_EQ(bars.find(" ± 0.0"), std::string::npos);
  EXPECT_NE(bars.find("more had no room"), std::string::npos);
  EXPECT_LE(std::stoi(bars.substr(bars.find("height=") + 8)), 1000);
}

// A prompt is computed, tokens are read: the limit of both is the sum of their times.
TEST(BenchNotes, LimitOfBoth) {
  cli::BenchTest test = Measured();
  test.n_prompt = 30;
  test.operations_per_token = 1e9;
  test.limits = {{10e9, 30e9, 1e9}};
  // 30 tokens in a second, 10 tokens in another.
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 20);
  test.n_gen = 0;
  test.n_prompt = 2;
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 20);  // few tokens: reading the weights once takes longer
}

// Eight texts of ten tokens take ten passes, in each of which 8e9 operations or 1e9 bytes.
TEST(BenchNotes, LimitOfTextsTogether) {
  cli::BenchTest test = Measured();
  test.n_parallel = 8;
  test.operations_per_token = 1e9;
  test.limits = {{10e9, 32e9, 1e9}};
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 32);
  EXPECT_DOUBLE_EQ(test.LimitOf(0), test.Tokens() / 2.5);
  test.limits[0].dot = 160e9;
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 80);
  EXPECT_DOUBLE_EQ(test.ReadsPerSecond(), 9e9 / 8);
}

// SQLite is not among the dependencies: the statements have one value for each column.
TEST(BenchFormats, Sql) {
  const Finished run = Bench({"-o", "sql", "--progress"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.err.starts_with("1 of 1: pp4, ")) << run.err;
  EXPECT_NE(run.out.find(" n_prompt INTEGER, "), std::string::npos);
  const std::vector<std::string> lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(
      lines[0].find("CREATE TABLE IF NOT EXISTS pronk_bench (version TEXT, build_commit TEXT"), 0u);
  EXPECT_EQ(lines[1].find("INSERT INTO pronk_bench VALUES ('"), 0u);
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), ','),
            std::count(lines[1].begin(), lines[1].end(), ','));
}

TEST(BenchFormats, NamesOfMixesAreLlamaBenchs) {
  const test::TempDir dir;
  const std::string small = dir.Path("small.gguf");
  ASSERT_EQ(Pronk({"quantize", "default", small, "Q4_K_M"}).status, 0);
  const Finished run =
      Pronk({"bench", "-m", small, "-p", "1", "-n", "0", "-r", "1", "-oe", "json"});
  EXPECT_EQ(test::SchemaFaults(json::parse(run.err), Schema()), std::vector<std::string>());
  EXPECT_NE(run.out.find("llama 5.0M Q4_K - Medium"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find(" ± "), run.out.find(" ± sd"));  // one repetition has no deviation
}

// --- Against earlier runs ------------------------------------------------------------------------

TEST(BenchBaseline, IntervalOfRatios) {
  EXPECT_EQ(cli::CompareSamples({{1}}, {{1}}, 0.05).high, HUGE_VAL);
  // Without any spread, only drift is uncertain.
  const auto same = cli::CompareSamples({{10, 10, 10}, 100, 1e9}, {{9, 9, 9}, 100, 1e9}, 0.05);
  EXPECT_DOUBLE_EQ(same.ratio, 0.9);
  EXPECT_DOUBLE_EQ(same.low, 0.9);
  EXPECT_DOUBLE_EQ(same.high, 0.9);
  for (const cli::BenchSamples& now :
       {cli::BenchSamples{{9, 9, 9}, 85, 1e9, 1}, cli::BenchSamples{{9, 9, 9}, 0, 0.85e9, 1},
        cli::BenchSamples{{9, 9, 9}, 100, 0, 0.85}}) {
    const auto drifted = cli::CompareSamples({{10, 10, 10}, 100, 1e9, 1}, now, 0.05);
    EXPECT_NEAR(drifted.high, 0.9 / 0.85, 1e-12);
    EXPECT_NEAR(drifted.low, 0.9 * 0.85, 1e-12);
  }
  // Two pairs apart by a factor of e^0.02: their pooled variance is 0.02^2 / 2. Student's t of two
  // degrees of freedom, and of 1, 3, 5 and 20, as printed tables have it.
  const double e = std::exp(0.01);
  const std::vector<double> pair = {10 / e, 10 * e};
  EXPECT_NEAR(cli::CompareSamples({pair}, {pair}, 0.05).high, std::exp(4.30265 * 0.02), 1e-7);
  const auto t = [&](size_t freedom, double error) {
    std::vector<double> more = pair;
    while (more.size() < freedom + 1) more.push_back(10);
    const double deviation = 0.01 * std::sqrt(4.0 / static_cast<double>(freedom));
    const cli::Comparison found = cli::CompareSamples({more}, {{10}}, error);
    return std::log(found.high / found.ratio) / deviation;
  };
  EXPECT_NEAR(t(1, 0.05), 12.7062, 1e-3);
  EXPECT_NEAR(t(3, 0.01), 5.84091, 1e-4);
  EXPECT_NEAR(t(5, 0.01), 4.03214, 1e-4);
  EXPECT_NEAR(t(20, 0.001), 3.84952, 1e-4);
}

// --- Gates
// -----------------------------------------------------------------------------------------

// Wilcoxon's tables: with 8 pairs and an error of 5% the 4th smallest and largest means count.
TEST(BenchGate, IntervalOfPairs) {
  const std::vector<double> ones(8, 1);
  std::vector<double> now, means;
  for (int i = 0; i < 8; ++i) now.push_back(std::exp(std::pow(2, i) / 1000));
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k <= i; ++k) means.push_back((std::pow(2, i) + std::pow(2, k)) / 2000);
  }
  std::sort(means.begin(), means.end());
  const cli::Comparison found = cli::ComparePairs(ones, now, 0.05);
  EXPECT_NEAR(std::log(found.low), means[3], 1e-12);
  EXPECT_NEAR(std::log(found.high), means[means.size() - 4], 1e-12);
  EXPECT_NEAR(std::log(found.ratio), cli::MedianOf(means), 1e-12);
  EXPECT_EQ(cli::ComparePairs(ones, now, 0.005).high, HUGE_VAL);  // 2 of 256 signs are more
}

// Logarithms of the ratios of 64 pairs of turns of one binary (tg64, two threads), in thousandths,
// measured on two cores of a server with a load of 11.
constexpr std::array kNoise = {-16, -9,  -104, -23, 1,   4,   -5, -221, -30, 1,   -219, 26,   74,
                               19,  -39, 104,  -10, 27,  11,  4,  25,   -43, 0,   25,   -15,  -27,
                               -14, 30,  -16,  20,  -12, 0,   -7, 166,  4,   -16, 7,    -19,  -529,
                               153, 15,  -2,   -17, 3,   0,   4,  16,   238, 15,  -41,  -116, -83,
                               0,   -89, -356, -23, 32,  336, 5,  -3,   -60, -9,  -8,   19};

// How many of n gates, with noise drawn from the measured one and a true ratio, end with a verdict.
size_t Gates(size_t n, double true_ratio, cli::Verdict verdict, size_t max_pairs) {
  std::mt19937 random(1);
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    std::vector<double> other, now;
    cli::Comparison result;
    cli::Gate gate(0.05, 2, 12, 1e9);
    const auto compare = [&](double error) { return cli::ComparePairs(other, now, error); };
    do {
      const double noise = kNoise[random() % kNoise.size()] * (random() % 2 == 0 ? 1e-3 : -1e-3);
      other.push_back(100);
      now.push_back(100 * true_ratio * std::exp(noise));
    } while (gate.WantsMore(now.size(), compare, result) && now.size() < max_pairs);
    count += result.verdict == verdict;
  }
  return count;
}

TEST(BenchGate, EndsRightlyWithNoiseOfRealRuns) {
  EXPECT_LE(Gates(400, 1, cli::Verdict::kSlower, 96), 2u);
  EXPECT_GE(Gates(200, 0.95, cli::Verdict::kSlower, 96), 190u);
}

// A program that tells a thousand times our speed, after more than a pipe's 64 KB.
TEST(BenchGate, TakesTurnsWithAnotherProgram) {
  const test::TempDir dir;
  const std::string other =
      dir.Write("other's", "#!/bin/sh\nprintf '%70000s'\n" + test::Program() + R"( "$@" |
    sed 's/"samples_ts": *.[0-9]*/&000/')");
  fs::permissions(other, fs::perms::owner_all);
  const Finished run = Bench({"-r", "1", "--against", other, "-o", "json"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(run.err.find("other's: slower: pp4 (0.0"), std::string::npos) << run.err;
  const json row = json::parse(run.out)[0];
  EXPECT_EQ(test::SchemaFaults(json::array({row}), Schema()), std::vector<std::string>());
  EXPECT_EQ(row["samples_ts"].size(), 12u);
  EXPECT_LT(row["baseline_high"], 1);
}

TEST(BenchGate, RefusesWhatCannotTakeTurns) {
  ExpectError(Bench({"--against", "/no/such"}), 1, "/no/such: no program is there");
  ExpectError(Bench({"--against", "a", "--baseline", "b"}), 2, "one of them");
  ExpectError(Bench({"--against", "a", "--override-kv", "llama.x="}), 2, "--override-kv: not with");
  ExpectError(Bench({"--detect", "0"}), 2, "--detect: expected from 0.1% to 50%, found 0");
}

class BaselineTest : public testing::Test {
 protected:
  // A run of the present, to be compared with faster and slower ones.
  json Now() { return json::parse(Bench({"-o", "json"}).out); }
  Finished Against(const std::string& text) {
    return Bench({"-o", "json", "--baseline", dir_.Write("old.json", text)});
  }
  test::TempDir dir_;
};

TEST_F(BaselineTest, ExitsWith3WhereSomethingIsSlower) {
  json old = Now();
  // The difference is so large that no pause of a busy machine matters.
  for (const auto& [speed, status] : std::vector<std::pair<double, int>>{{1e250, 3}, {1e-100, 0}}) {
    old[0]["samples_ts"] = {speed, speed};
    old[0]["limit_ts"] = old[0]["int_rate"] = nullptr;
    old[0]["share_of_cores"] = nullptr;
    const Finished run = Against(old.dump());
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_NE(run.err.find("1 of 1 tests compared with "), std::string::npos) << run.err;
    EXPECT_NE(run.err.find(status == 3 ? ": slower: pp" : ": not slower by 5%"), std::string::npos);
    const json now = json::parse(run.out);
    EXPECT_EQ(test::SchemaFaults(now, Schema()), std::vector<std::string>());
    EXPECT_EQ(now[0]["baseline_ts"], speed);
    EXPECT_NEAR(now[0]["baseline_ratio"].get<double>(), now[0]["median_ts"].get<double>() / speed,
                1e-9 * now[0]["baseline_ratio"].get<double>());
  }
}

// Lines of objects, and the output of other or older programs, which has fewer fields.
TEST_F(BaselineTest, TakesLinesAndFewerFields) {
  json old = Now()[0];
  old["samples_ts"] = {1e250, 1e250};
  for (const char* key :
       {"limit_ts", "int_rate", "share_of_cores", "n_batch", "n_ubatch", "type_k", "version"})
    old.erase(key);
  json other = old;
  other["n_prompt"] = 77;
  EXPECT_EQ(Against(other.dump() + "\n" + old.dump() + "\n").status, 3);
}

TEST_F(BaselineTest, RefusesOtherFiles) {
  json old = Now();
  ExpectError(Against(""), 1, "found nothing");
  ExpectError(Against("[{"), 1, "old.json: is not JSON from byte");
  ExpectError(Against("[1]"), 1, "old.json: result 1: expected a JSON object, found 1");
  old[0]["n_gen"] = "4";
  ExpectError(Against(old.dump()), 1, "result 1: n_gen: expected a number, found a text");
  old[0]["n_gen"] = 0;
  old[0]["samples_ts"] = json::array({1, -1});
  ExpectError(Against(old.dump()), 1, "samples_ts: expected a list of numbers above 0");
  old[0]["samples_ts"] = {1, 1};
  old[0]["n_threads"] = 1000;
  ExpectError(Against(old.dump()), 1, "has none of the tests that were asked for");
}

}  // namespace
