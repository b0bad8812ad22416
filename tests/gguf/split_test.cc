// Tests models that are split into several files.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace gguf {
namespace {

using test::ErrorOf;

class SplitTest : public testing::Test {
 protected:
  // Writes part `no` (from 0) of `count`, with one tensor.
  void WritePart(uint16_t no, uint16_t count, const std::string& file, const std::string& tensor,
                 int32_t n_tensors) {
    Writer writer;
    writer.Add("split.no", no);
    writer.Add("split.count", count);
    writer.Add("split.tensors.count", n_tensors);
    if (no == 0) writer.Add("general.name", "whole");
    const std::vector<std::byte> bytes(32, std::byte{static_cast<uint8_t>(no + 1)});
    writer.AddTensor(tensor, DType::kI8, {32}, bytes);
    writer.WriteFile(dir_.Path(file));
  }
  void WriteThree() {
    WritePart(0, 3, "m-00001-of-00003.gguf", "a", 3);
    WritePart(1, 3, "m-00002-of-00003.gguf", "b", 3);
    WritePart(2, 3, "m-00003-of-00003.gguf", "c", 3);
  }
  std::string OpenError(const std::string& file) {
    return ErrorOf([&] { File::Open(dir_.Path(file)); });
  }
  test::TempDir dir_;
  const std::string first_ = dir_.Path("m-00001-of-00003.gguf");
};

TEST_F(SplitTest, TheFirstPartOpensAll) {
  WriteThree();
  const File file = File::Open(first_);
  EXPECT_EQ(file.path(), first_);
  EXPECT_EQ(file.n_parts(), 3u);
  EXPECT_EQ(file.metadata().GetString("general.name"), "whole");
  EXPECT_EQ(file.tensor_bytes(), 96u);
  uint64_t bytes = 0;
  for (const char* name :
       {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}) {
    bytes += std::filesystem::file_size(dir_.Path(name));
  }
  EXPECT_EQ(file.file_bytes(), bytes);
  ASSERT_EQ(file.tensors().size(), 3u);
  for (uint8_t i = 0; i < 3; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    EXPECT_EQ(file.tensors()[i].name, name);
    EXPECT_EQ(file.FindTensor(name)->data[31], std::byte{static_cast<uint8_t>(i + 1)});
  }
}

TEST_F(SplitTest, ALaterPartSaysWhatToOpen) {
  WriteThree();
  EXPECT_EQ(OpenError("m-00002-of-00003.gguf"),
            dir_.Path("m-00002-of-00003.gguf") +
                ": key \"split.no\": expected the first part of a split model, found part 2 of 3: "
                "open " +
                first_);
  std::filesystem::rename(dir_.Path("m-00002-of-00003.gguf"), dir_.Path("b.gguf"));
  EXPECT_EQ(OpenError("b.gguf"), dir_.Path("b.gguf") +
                                     ": key \"split.no\": expected the first part of a split "
                                     "model, found part 2 of 3: open the first part");
}

TEST_F(SplitTest, AMissingPartIsNamed) {
  WriteThree();
  std::filesystem::remove(dir_.Path("m-00003-of-00003.gguf"));
  EXPECT_EQ(OpenError("m-00001-of-00003.gguf"),
            first_ + ": key \"split.count\": expected part 3 of 3 beside it, found " +
                dir_.Path("m-00003-of-00003.gguf") + ": no such file");
}

TEST_F(SplitTest, ARenamedFirstPartSaysSo) {
  WriteThree();
  std::filesystem::rename(first_, dir_.Path("m.gguf"));
  EXPECT_EQ(OpenError("m.gguf"),
            dir_.Path("m.gguf") +
                ": key \"split.count\": expected a file named NAME-00001-of-00003.gguf for part 1 "
                "of 3, found another name: rename it back");
}

TEST_F(SplitTest, MixedUpPartsAreRefused) {
  WriteThree();
  WritePart(2, 3, "m-00002-of-00003.gguf", "b", 3);
  const std::string second = dir_.Path("m-00002-of-00003.gguf");
  EXPECT_EQ(OpenError("m-00001-of-00003.gguf"),
            second +
                ": key \"split.no\": expected part 2 of 3 as the name says, found part 3 of 3: the "
                "file was renamed or mixed up");
  WritePart(1, 4, "m-00002-of-00003.gguf", "b", 3);
  EXPECT_TRUE(test::Has(OpenError("m-00001-of-00003.gguf"), "found part 2 of 4"));
}

TEST_F(SplitTest, TheTensorsOfAllPartsAreCounted) {
  WriteThree();
  WritePart(0, 3, "m-00001-of-00003.gguf", "a", 4);
  EXPECT_EQ(OpenError("m-00001-of-00003.gguf"),
            first_ + ": key \"split.tensors.count\": expected 4 tensors, found 3 in the 3 parts");
}

TEST_F(SplitTest, NamesMayNotRepeatAcrossParts) {
  WriteThree();
  WritePart(1, 3, "m-00002-of-00003.gguf", "a", 3);
  EXPECT_EQ(OpenError("m-00001-of-00003.gguf"),
            first_ + ": tensor \"a\": expected each name once, found it again");
}

TEST_F(SplitTest, ADamagedPartIsNamed) {
  WriteThree();
  const std::string third = dir_.Path("m-00003-of-00003.gguf");
  std::filesystem::resize_file(third, std::filesystem::file_size(third) - 1);
  const std::string error = OpenError("m-00001-of-00003.gguf");
  EXPECT_EQ(error.find(third + ": byte "), 0u) << error;
}

TEST_F(SplitTest, PartNumbersMustMakeSense) {
  WritePart(3, 3, "m-00001-of-00003.gguf", "a", 1);
  EXPECT_EQ(OpenError("m-00001-of-00003.gguf"),
            first_ + ": key \"split.no\": expected an integer from 0 to 2, found 3");
}

// Tools that merge parts leave split.count at 0. A single part is a whole model, too.
TEST_F(SplitTest, OnePartIsWholeWhateverItsName) {
  WritePart(0, 0, "merged.gguf", "a", 1);
  EXPECT_EQ(File::Open(dir_.Path("merged.gguf")).n_parts(), 1u);
  WritePart(0, 1, "single.gguf", "a", 1);
  EXPECT_EQ(File::Open(dir_.Path("single.gguf")).n_parts(), 1u);
}

TEST_F(SplitTest, BytesInMemoryMustBeAWholeModel) {
  Writer writer;
  writer.Add("split.count", uint16_t{2});
  const std::vector<std::byte> bytes = writer.ToBytes();
  EXPECT_EQ(ErrorOf([&] { File::Parse("m", bytes); }),
            "m: key \"split.count\": expected a whole model, found part 1 of 2");
}

}  // namespace
}  // namespace gguf
