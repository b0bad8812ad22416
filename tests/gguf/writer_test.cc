// Written files must be read back unchanged, and failed writes must leave no file.
#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gguf/file.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_dir.h"

namespace gguf {
namespace {

using test::ErrorOf;

std::vector<std::byte> Ramp(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = std::byte{static_cast<uint8_t>(i)};
  return bytes;
}

TEST(WriterTest, EveryTypeOfTensorComesBack) {
  Writer writer;
  writer.Add("general.name", "all types");
  std::vector<std::vector<std::byte>> data;
  for (const DTypeInfo& info : AllDTypes())
    data.push_back(Ramp(3 * RowBytes(info.type, 256) + info.tail_bytes));
  for (size_t i = 0; i < data.size(); ++i) {
    const DTypeInfo& info = AllDTypes()[i];
    writer.AddTensor(info.name, info.type, {256, 3}, data[i]);
  }
  const test::TempDir dir;
  writer.WriteFile(dir.Path("all.gguf"));
  EXPECT_EQ(dir.CountFiles(), 1u);
  const File file = File::Open(dir.Path("all.gguf"));
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.metadata().GetString("general.name"), "all types");
  ASSERT_EQ(file.tensors().size(), data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    const TensorView& tensor = file.tensors()[i];
    EXPECT_EQ(tensor.dtype, AllDTypes()[i].type);
    EXPECT_EQ(tensor.rows(), 3u);
    EXPECT_EQ(std::vector(tensor.data, tensor.data + tensor.bytes), data[i]) << tensor.name;
  }
}

// Compares every byte of a file: version 3, no keys, one tensor of two bytes.
TEST(WriterTest, BytesAreThoseOfTheFormat) {
  Writer writer;
  const std::vector<std::byte> data = {std::byte{'!'}, std::byte{'?'}};
  writer.AddTensor("t", DType::kI8, {2}, data);
  const std::vector<std::byte> bytes = writer.ToBytes();
  const std::string_view found(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  using namespace std::string_view_literals;
  std::string expected(
      "GGUF\3\0\0\0"
      "\1\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\1\0\0\0\0\0\0\0t"
      "\1\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\x18\0\0\0"
      "\0\0\0\0\0\0\0\0"sv);
  expected.resize(64);
  expected += "!?";
  expected.resize(96);
  EXPECT_EQ(found, expected);
}

TEST(WriterTest, AlignmentIsRecordedAndKept) {
  Writer writer(64);
  const std::vector<std::byte> data = Ramp(3);
  writer.AddTensor("a", DType::kI8, {3}, data);
  writer.AddTensor("b", DType::kI8, {3}, data);
  const std::vector<std::byte> bytes = writer.ToBytes();
  const File file = File::Parse("f", bytes);
  EXPECT_EQ(file.alignment(), 64u);
  EXPECT_EQ((file.tensors()[0].data - bytes.data()) % 64, 0);
  EXPECT_EQ(file.tensors()[1].data - file.tensors()[0].data, 64);
  for (const uint32_t wrong : {0u, 1u, 3u, 48u, 0x80000000u}) {
    EXPECT_NE(ErrorOf([&] { Writer w(wrong); }), "") << wrong;
  }
}

TEST(WriterTest, RefusesWhatTheReaderWould) {
  Writer writer;
  writer.Add("k", 1);
  EXPECT_EQ(ErrorOf([&] { writer.Add("k", 2); }),
            "writing key \"k\": expected each name once, found it again");
  EXPECT_EQ(ErrorOf([&] { writer.Add("", 2); }),
            "writing key \"\": expected a name, found an empty one");
  const auto add = [&](std::string_view name, DType type, const std::vector<uint64_t>& dims) {
    return ErrorOf([&] { writer.AddTensor(name, type, dims, std::span<const std::byte>()); });
  };
  EXPECT_EQ(add("t", DType::kF32, {1}), "");
  EXPECT_EQ(add("t", DType::kF32, {1}),
            "writing tensor \"t\": expected each name once, found it again");
  EXPECT_EQ(add("u", DType::kF32, {}), "writing tensor \"u\": expected 1 to 4 dimensions, found 0");
  EXPECT_EQ(add("u", DType::kF32, {1, 1, 1, 1, 1}),
            "writing tensor \"u\": expected 1 to 4 dimensions, found 5");
  EXPECT_EQ(add("u", DType::kQ4_0, {33}),
            "writing tensor \"u\": expected rows of a multiple of 32 weights for type Q4_0, found "
            "33");
  EXPECT_EQ(add("u", DType::kF32, {2, 0}),
            "writing tensor \"u\": expected 1 to 2^63 - 1 elements, found a dimension of 0");
  const uint64_t large = uint64_t{1} << 32;
  EXPECT_NE(add("u", DType::kI8, {large, large}), "");
  EXPECT_NE(add("u", DType::kF32, {large, large / 4}), "");
}

TEST(WriterTest, AnErrorLeavesNothingAndKeepsTheOldFile) {
  const test::TempDir dir;
  const std::string path = dir.Write("f.gguf", Ramp(10));
  Writer writer;
  const std::vector<std::byte> data = Ramp(3);
  writer.AddTensor("t", DType::kI8, {4}, data);
  EXPECT_EQ(ErrorOf([&] { writer.WriteFile(path); }),
            "writing tensor \"t\": expected 1 bytes more, found 3");
  EXPECT_EQ(dir.CountFiles(), 1u);
  EXPECT_EQ(std::filesystem::file_size(path), 10u);

  const std::string nowhere = dir.Path("none/f.gguf");
  EXPECT_EQ(ErrorOf([&] { Writer().WriteFile(nowhere); }),
            nowhere + ": cannot be written: No such file or directory");
  std::filesystem::create_directory(dir.Path("folder"));
  EXPECT_NE(ErrorOf([&] { Writer().WriteFile(dir.Path("folder")); }), "");
  EXPECT_EQ(dir.CountFiles(), 2u);
}

TEST(WriterTest, ReplacesAnExistingFile) {
  const test::TempDir dir;
  const std::string path = dir.Write("f.gguf", Ramp(1000));
  Writer().WriteFile(path);
  EXPECT_TRUE(File::Open(path).tensors().empty());
}

// The writer calls each source once, in order, so one buffer serves every tensor.
TEST(WriterTest, SourcesStreamTensorAfterTensor) {
  std::vector<std::byte> buffer(32);
  std::string calls;
  Writer writer;
  for (const char name : {'a', 'b', 'c'}) {
    writer.AddTensor(std::string(1, name), DType::kI8, {32}, [&buffer, &calls, name] {
      calls += name;
      std::fill(buffer.begin(), buffer.end(), std::byte{static_cast<uint8_t>(name)});
      return std::span<const std::byte>(buffer);
    });
  }
  EXPECT_EQ(calls, "");
  const std::vector<std::byte> bytes = writer.ToBytes();
  EXPECT_EQ(calls, "abc");
  const File file = File::Parse("f", bytes);
  EXPECT_EQ(file.FindTensor("a")->data[0], std::byte{'a'});
  EXPECT_EQ(file.FindTensor("c")->data[31], std::byte{'c'});
}

// The writer calls a source that gives pieces until the tensor is complete.
TEST(WriterTest, SourcesMayHandOverPieces) {
  const std::vector<std::byte> data = Ramp(100);
  for (const size_t piece : {1u, 40u, 50u, 100u}) {
    Writer writer;
    writer.AddTensor("t", DType::kI8, {100}, [&data, piece, done = size_t{0}]() mutable {
      const size_t n = std::min(piece, data.size() - done);
      return std::span(data).subspan(std::exchange(done, done + n), n);
    });
    const std::vector<std::byte> bytes = writer.ToBytes();
    const File file = File::Parse("f", bytes);
    EXPECT_EQ(std::vector(file.tensors()[0].data, file.tensors()[0].data + 100), data) << piece;
  }
  Writer writer;
  writer.AddTensor("t", DType::kI8, {100}, [] { return std::span<const std::byte>(); });
  EXPECT_EQ(ErrorOf([&] { writer.ToBytes(); }),
            "writing tensor \"t\": expected 100 bytes more, found 0");
}

// Entries of another file are copied byte for byte, also nested arrays.
TEST(WriterTest, EntriesAreCopied) {
  test::GgufBytes bytes(0, 3);
  bytes.Key("a", ValueType::kU16).Number(uint16_t{513});
  bytes.Key("b", ValueType::kString).String("text");
  bytes.Key("c", ValueType::kArray).Array(ValueType::kArray, 2);
  bytes.Array(ValueType::kString, 2).String("x").String("");
  bytes.Array(ValueType::kBool, 3).Raw(std::string_view("\1\0\1", 3));
  bytes.Data(0);
  const File file = File::Parse("f", bytes.bytes());
  Writer writer;
  for (const Metadata::Entry& entry : file.metadata().entries()) writer.Add(entry);
  EXPECT_EQ(writer.ToBytes(), bytes.bytes());
}

}  // namespace
}  // namespace gguf
