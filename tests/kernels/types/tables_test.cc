#include "kernels/types/shared/tables.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/data.h"
#include "tests/support/json.h"

namespace kernels {
namespace {

// FNV-1a over the bytes of each entry, lowest first.
template <class Table>
uint64_t Checksum(const Table& table) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const auto entry : table) {
    for (size_t i = 0; i < sizeof(entry); ++i) {
      hash = (hash ^ (static_cast<uint64_t>(entry) >> (8 * i) & 255)) * 0x100000001B3;
    }
  }
  return hash;
}

// Computed from tables that agreed with the golden ones.
TEST(Tables, HaveTheirChecksums) {
  EXPECT_EQ(Checksum(kIq1Grid), 0x03F1880817EEFFA4);
  EXPECT_EQ(Checksum(kIq2xxsGrid), 0x6FCA17F5C451905D);
  EXPECT_EQ(Checksum(kIq2xsGrid), 0x29D6AC8E0E6B14E3);
  EXPECT_EQ(Checksum(kIq2sGrid), 0x641F9AA3FBD98694);
  EXPECT_EQ(Checksum(kIq3xxsGrid), 0xA6CAE71C0D6C86E7);
  EXPECT_EQ(Checksum(kIq3sGrid), 0x71DADE6C7C966A13);
  EXPECT_EQ(Checksum(kIq4nlValues), 0x055D06D2D8FA0F75);
  EXPECT_EQ(Checksum(kFp4Values), 0x3F0E3C08AF1E5EB5);
}

// A grid in the golden file: the values of the levels, and each entry's level numbers as a string.
template <class Grid, class Levels, class LevelOf>
void ExpectGrid(const test::Json& golden, const Grid& grid, const Levels& levels,
                LevelOf level_of) {
  EXPECT_EQ(golden["levels"].get<std::vector<int>>(),
            std::vector<int>(levels.begin(), levels.end()));
  const auto rows = golden["rows"].get<std::vector<std::string>>();
  ASSERT_EQ(rows.size(), grid.size());
  for (size_t k = 0; k < rows.size(); ++k) {
    for (size_t i = 0; i < rows[k].size(); ++i) {
      EXPECT_EQ(level_of(grid[k], static_cast<int>(i)), rows[k][i] - '0')
          << "entry " << k << ", weight " << i;
    }
  }
}

TEST(Tables, EqualTheGoldenOnes) {
  const auto path = test::SharedPath("golden/tables/iq_grids.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << "; see HaveTheirChecksums";
  const auto golden = test::Json::parse(test::ReadText(path));
  ExpectGrid(golden["iq1s_grid"], kIq1Grid, kIq1Levels, LevelOf8);
  ExpectGrid(golden["iq2xxs_grid"], kIq2xxsGrid, kIq2Levels, LevelOf8);
  ExpectGrid(golden["iq2xs_grid"], kIq2xsGrid, kIq2Levels, LevelOf8);
  ExpectGrid(golden["iq2s_grid"], kIq2sGrid, kIq2Levels, LevelOf8);
  ExpectGrid(golden["iq3xxs_grid"], kIq3xxsGrid, kIq3xxsLevels, LevelOf4);
  ExpectGrid(golden["iq3s_grid"], kIq3sGrid, kIq3sLevels, LevelOf4);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(kIq4nlValues[i], golden["kvalues_iq4nl"][i]);
    EXPECT_EQ(kFp4Values[i], golden["kvalues_fp4"][i]);
  }
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(EvenSigns(i), golden["ksigns_iq2xs"][i]);
}

TEST(Tables, EvenSignsAreEven) {
  for (uint32_t i = 0; i < 128; ++i) {
    EXPECT_EQ(EvenSigns(i) & 127, i);
    EXPECT_EQ(std::popcount(EvenSigns(i)) % 2, 0) << i;
    EXPECT_EQ(EvenSigns(i | 0xFFFFFF80), EvenSigns(i));  // bits above the index do not matter
  }
}

}  // namespace
}  // namespace kernels
