// Numbers in human-readable form.
#include "cli/output/text.h"

#include <gtest/gtest.h>

namespace test {
namespace {

// Three figures, also for numbers that round up to the next power of ten.
TEST(Text, SizesHaveThreeFigures) {
  EXPECT_EQ(cli::HumanBytes(999), "999 bytes");
  EXPECT_EQ(cli::HumanBytes(1'000), "1.00 KB");
  EXPECT_EQ(cli::HumanBytes(9'994), "9.99 KB");
  EXPECT_EQ(cli::HumanBytes(9'996), "10.0 KB");
  EXPECT_EQ(cli::HumanBytes(99'960), "100 KB");
  EXPECT_EQ(cli::HumanBytes(999'499), "999 KB");
  EXPECT_EQ(cli::HumanBytes(999'700), "1.00 MB");
  EXPECT_EQ(cli::HumanBytes(999'999'999), "1.00 GB");
}

}  // namespace
}  // namespace test
