// Valid files: every version, every value type, and the properties that File reports.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <vector>

#include "gguf/file.h"
#include "tests/support/data.h"
#include "tests/support/gguf_bytes.h"

namespace gguf {
namespace {

using test::GgufBytes;

class VersionTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(AllVersions, VersionTest, testing::Values(2, 3));

TEST_P(VersionTest, ReadsKeysAndTensors) {
  GgufBytes bytes(2, 3, GetParam());
  bytes.Key("a.name", ValueType::kString).String("model");
  bytes.Key("a.tokens", ValueType::kArray).Array(ValueType::kString, 2).String("one").String("");
  bytes.Key("a.count", ValueType::kU16).Number(uint16_t{7});
  bytes.Tensor("second", {32, 2}, DType::kQ8_0, 96);
  bytes.Tensor("first", {4, 3, 2, 1}, DType::kF32, 0);
  bytes.Data(96 + 68);

  const File file = File::Parse("test.gguf", bytes.bytes());
  EXPECT_EQ(file.path(), "test.gguf");
  EXPECT_EQ(file.version(), GetParam());
  EXPECT_EQ(file.alignment(), 32u);
  EXPECT_EQ(file.n_parts(), 1u);
  EXPECT_EQ(file.file_bytes(), bytes.bytes().size());
  EXPECT_EQ(file.tensor_bytes(), 96u + 68);

  const Metadata& metadata = file.metadata();
  ASSERT_EQ(metadata.entries().size(), 3u);
  EXPECT_EQ(metadata.entries()[1].key, "a.tokens");
  EXPECT_EQ(metadata.GetString("a.name"), "model");
  EXPECT_EQ(metadata.GetStrings("a.tokens"), (std::vector<std::string_view>{"one", ""}));
  EXPECT_EQ(metadata.GetUint("a.count"), 7u);

  ASSERT_EQ(file.tensors().size(), 2u);
  const TensorView& second = file.tensors()[0];
  EXPECT_EQ(file.FindTensor("second"), &second);
  EXPECT_EQ(second.name, "second");
  EXPECT_EQ(second.dtype, DType::kQ8_0);
  EXPECT_EQ(second.n_dims, 2u);
  EXPECT_EQ(second.dims, (std::array<uint64_t, 4>{32, 2, 1, 1}));
  EXPECT_EQ(second.bytes, 68u);
  EXPECT_EQ(second.data[0], std::byte{96});
  const TensorView* const first = file.FindTensor("first");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->n_dims, 4u);
  EXPECT_EQ(first->rows(), 6u);
  EXPECT_EQ(first->data[95], std::byte{95});
  EXPECT_EQ(file.FindTensor("third"), nullptr);
  EXPECT_EQ(file.FindTensor(""), nullptr);
}

TEST_P(VersionTest, ReadsNestedArrays) {
  GgufBytes bytes(0, 2, GetParam());
  bytes.Key("nested", ValueType::kArray).Array(ValueType::kArray, 2);
  bytes.Array(ValueType::kU8, 3).Number(uint8_t{1}).Number(uint8_t{2}).Number(uint8_t{3});
  bytes.Array(ValueType::kString, 1).String("deep");
  bytes.Key("after", ValueType::kU8).Number(uint8_t{9});
  const File file = File::Parse("test.gguf", bytes.bytes());
  const Value* const nested = file.metadata().Find("nested");
  ASSERT_NE(nested, nullptr);
  EXPECT_EQ(nested->element_type, ValueType::kArray);
  EXPECT_EQ(nested->count, 2u);
  EXPECT_EQ(file.metadata().GetUint("after"), 9u);
}

TEST(ReaderTest, StringsMayHoldNulsAndAnyBytes) {
  using namespace std::string_view_literals;
  GgufBytes bytes(0, 1);
  bytes.Key("k", ValueType::kString).String("x\0y\xff"sv);
  EXPECT_EQ(File::Parse("f", bytes.bytes()).metadata().GetString("k"), "x\0y\xff"sv);
}

TEST(ReaderTest, AFileMayHoldNothing) {
  const GgufBytes bytes(0, 0);
  const File file = File::Parse("f", bytes.bytes());
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_TRUE(file.metadata().entries().empty());
}

TEST(ReaderTest, HonoursTheAlignment) {
  GgufBytes bytes(2, 1);
  bytes.Key("general.alignment", ValueType::kU32).Number(uint32_t{256});
  bytes.Tensor("a", {3}, DType::kI8, 0).Tensor("b", {2}, DType::kI8, 256).Data(258, 256);
  const File file = File::Parse("f", bytes.bytes());
  EXPECT_EQ(file.alignment(), 256u);
  EXPECT_EQ(file.tensors()[1].data - bytes.bytes().data(), 512);
}

// Views stay valid when the File that owns the mapping moves.
TEST(ReaderTest, FilesCanBeMoved) {
  GgufBytes bytes(1, 1);
  bytes.Key("k", ValueType::kString).String("v").Tensor("t", {4}, DType::kI8, 0).Data(4);
  File from = File::Parse("f", bytes.bytes());
  const TensorView view = *from.FindTensor("t");
  const File file = std::move(from);
  EXPECT_EQ(file.metadata().GetString("k"), "v");
  EXPECT_EQ(file.FindTensor("t")->data, view.data);
  EXPECT_EQ(view.data[3], std::byte{3});
}

// Other programs wrote these files.
TEST(ReaderTest, OpensRealModels) {
  std::vector<std::filesystem::path> folders = {test::DataPath("tiny")};
  for (const char* name : {"models", "golden/tiny"}) {
    if (!test::SharedPath(name).empty()) folders.push_back(test::SharedPath(name));
  }
  int opened = 0;
  for (const auto& folder : folders) {
    if (!exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".gguf") continue;
      SCOPED_TRACE(entry.path());
      const File file = File::Open(entry.path().string());
      EXPECT_FALSE(file.metadata().GetString("general.architecture").empty());
      EXPECT_GT(file.metadata().GetStrings("tokenizer.ggml.tokens").size(), 0u);
      EXPECT_LT(file.tensor_bytes(), file.file_bytes());
      ++opened;
    }
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace gguf
