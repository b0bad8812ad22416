// pronk quantize: what is changed in a file and what is not, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "kernels/half.h"
#include "tests/cli/pronk.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_dir.h"

namespace {

using gguf::DType;
using test::ExpectError;
using test::Finished;
using test::Pronk;

const std::string& kModel = test::kTinyModel;  // its weights are F32

std::string Bytes(const gguf::TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), tensor.bytes};
}

// Every key and its value's bytes.
std::map<std::string, std::string> Keys(const gguf::File& file) {
  std::map<std::string, std::string> keys;
  for (const auto& [key, value] : file.metadata().entries()) {
    keys[std::string(key)] = std::to_string(static_cast<int>(value.type)) + " " +
                             std::to_string(static_cast<int>(value.element_type)) + " " +
                             std::to_string(value.count) + " " +
                             std::string(reinterpret_cast<const char*>(value.data), value.bytes);
  }
  return keys;
}

// A file of one tensor of F32.
std::string WriteTensor(const test::TempDir& dir, const std::string& name,
                        const std::vector<float>& weights, const std::vector<uint64_t>& dims) {
  gguf::Writer writer;
  writer.AddTensor("t", DType::kF32, dims, std::as_bytes(std::span(weights)));
  writer.WriteFile(dir.Path(name));
  return dir.Path(name);
}

TEST(Quantize, ChangesMatricesAndNothingElse) {
  const test::TempDir dir;
  const std::string out = dir.Path("out.gguf");
  const gguf::File before = gguf::File::Open(kModel);
  for (const DType type : {DType::kF16, DType::kQ8_0, DType::kQ4_1}) {
    SCOPED_TRACE(gguf::Info(type).name);
    const Finished run = Pronk({"quantize", kModel, out, std::string(gguf::Info(type).name)});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out + run.err, "");
    const gguf::File after = gguf::File::Open(out);
    auto expected = Keys(before), found = Keys(after);
    for (const char* told : {"general.file_type", "general.quantization_version"}) {
      expected.erase(told);
      found.erase(told);
    }
    EXPECT_EQ(found, expected);
    ASSERT_EQ(after.tensors().size(), before.tensors().size());
    for (size_t i = 0; i < before.tensors().size(); ++i) {
      const gguf::TensorView &old = before.tensors()[i], &now = after.tensors()[i];
      EXPECT_EQ(now.name, old.name);
      EXPECT_EQ(now.dims, old.dims);
      EXPECT_EQ(now.dtype, old.n_dims == 1 ? DType::kF32 : type) << old.name;
      if (old.n_dims == 1) {
        EXPECT_EQ(Bytes(now), Bytes(old)) << old.name;
      }
    }
    EXPECT_EQ(Pronk({"run", "-m", out, "-p", "Hello", "-n", "2"}).status, 0);
  }
}

// The types with the numbers that llama.cpp has for files of them.
TEST(Quantize, EveryTypeIsToldInTheFile) {
  const test::TempDir dir;
  const std::string in = WriteTensor(dir, "in", std::vector<float>(1024, 1.0f), {256, 4});
  const std::map<DType, uint32_t> file_types = {
      {DType::kF16, 1},   {DType::kBF16, 32}, {DType::kQ4_0, 2}, {DType::kQ4_1, 3},
      {DType::kQ8_0, 7},  {DType::kQ5_0, 8},  {DType::kQ5_1, 9}, {DType::kQ4_K, 14},
      {DType::kQ5_K, 16}, {DType::kQ6_K, 18}};
  for (const auto& [type, file_type] : file_types) {
    const std::string name(gguf::Info(type).name);
    ASSERT_EQ(Pronk({"quantize", in, dir.Path("out"), name}).status, 0) << name;
    const gguf::File file = gguf::File::Open(dir.Path("out"));
    EXPECT_EQ(file.tensors().at(0).dtype, type);
    EXPECT_EQ(file.metadata().GetUint("general.file_type"), file_type) << name;
    const bool quantized = type != DType::kF16 && type != DType::kBF16;
    EXPECT_EQ(file.metadata().GetUintOr("general.quantization_version", 0), quantized ? 2u : 0u);
  }
}

// Weights are converted in pieces, and by several threads: each arrives where it belongs.
TEST(Quantize, PiecesAreJoined) {
  const test::TempDir dir;
  constexpr uint64_t kCols = 33, kRows = 40001;  // more than a piece, and no multiple of a part
  std::vector<float> weights(kCols * kRows);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<float>(i));
  const std::string in = WriteTensor(dir, "in", weights, {kCols, kRows}), out = dir.Path("out");
  for (const char* threads : {"1", "3"}) {
    ASSERT_EQ(Pronk({"quantize", in, out, "f16", "-t", threads}).status, 0);
    const gguf::File file = gguf::File::Open(out);
    const gguf::TensorView& tensor = file.tensors().at(0);
    ASSERT_EQ(tensor.bytes, 2 * weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      uint16_t half = 0;
      std::memcpy(&half, tensor.data + 2 * i, 2);
      ASSERT_EQ(half, kernels::F32ToF16(weights[i])) << i;
    }
  }
}

TEST(Quantize, RowsThatAreNotWholeBlocksStay) {
  const test::TempDir dir;
  gguf::Writer writer;
  const std::vector<float> weights(4 * 64, 1.0f);
  const auto bytes = std::as_bytes(std::span(weights));
  writer.AddTensor("even", DType::kF32, {32, 8}, bytes);
  writer.AddTensor("odd", DType::kF32, {16, 16}, bytes);
  writer.WriteFile(dir.Path("in"));
  const Finished run = Pronk({"quantize", dir.Path("in"), dir.Path("out"), "Q8_0"});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err,
            "pronk: note: 1 matrices stay as they are: their rows are not whole blocks of 32 "
            "weights\n");
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  EXPECT_EQ(file.FindTensor("even")->dtype, DType::kQ8_0);
  EXPECT_EQ(file.FindTensor("odd")->dtype, DType::kF32);
}

// Of a split model one whole file is made; alignment and what the old file said of its types go.
TEST(Quantize, PartsBecomeOneFile) {
  const test::TempDir dir;
  const std::vector<float> weights(32, 0.5f);
  for (const uint16_t no : {uint16_t{0}, uint16_t{1}}) {
    gguf::Writer writer(64);
    if (no == 0) writer.Add("general.file_type", uint32_t{0});
    writer.Add("split.no", no);
    writer.Add("split.count", uint16_t{2});
    writer.Add("split.tensors.count", int32_t{2});
    writer.AddTensor(no == 0 ? "a" : "b", DType::kF32, {32, 1}, std::as_bytes(std::span(weights)));
    writer.WriteFile(dir.Path(no == 0 ? "m-00001-of-00002.gguf" : "m-00002-of-00002.gguf"));
  }
  const std::string out = dir.Path("out");
  ASSERT_EQ(Pronk({"quantize", dir.Path("m-00001-of-00002.gguf"), out, "BF16"}).status, 0);
  const gguf::File file = gguf::File::Open(out);
  EXPECT_EQ(file.n_parts(), 1u);
  EXPECT_EQ(file.alignment(), 64u);
  EXPECT_EQ(file.metadata().GetUint("general.file_type"), 32u);
  EXPECT_EQ(file.metadata().entries().size(), 2u);  // these two
  EXPECT_EQ(file.tensors().size(), 2u);
}

TEST(Quantize, RefusesWhatItCannotDo) {
  const test::TempDir dir;
  const std::string out = dir.Write("out", "as before");
  const auto refused = [&](const std::string& in, const std::string& says, int status = 1,
                           const std::string& type = "Q8_0") {
    ExpectError(Pronk({"quantize", in, out, type}), status, says);
  };
  refused(kModel, "TYPE Q3_K: expected one of F16|BF16|Q8_0|", 2, "Q3_K");
  refused(kModel, "TYPE q9: expected one of", 2, "q9");
  refused(kModel, "expected matrices whose rows are whole blocks of 256 weights, found none", 1,
          "Q4_K");
  const std::string quantized = dir.Path("quantized");
  ASSERT_EQ(Pronk({"quantize", kModel, quantized, "Q4_0"}).status, 0);
  refused(quantized, "tensor \"token_embd.weight\": expected F32, F16 or BF16, found Q4_0");
  refused(dir.Write("empty", test::GgufBytes(0, 0).Data(0).bytes()), "found none");
  refused(dir.Write("old", test::GgufBytes(0, 0, 1).Data(0).bytes()), "found version 1");
  refused(dir.Path("none"), "no such file");
  std::vector<float> weights(64 * 1024, 1.0f);
  weights[60000] = std::nanf("");
  refused(WriteTensor(dir, "nan", weights, {64, 1024}),
          "nan: tensor \"t\": expected weights that Q8_0 can hold, found some that are no numbers");
  weights[60000] = 70000.0f;
  refused(WriteTensor(dir, "large", weights, {64, 1024}), "or too large", 1, "F16");
  EXPECT_EQ(test::ReadText(out), "as before");

  // The file that is read, by its name and by a link.
  const std::string copy = dir.Write("copy", test::ReadText(kModel)), link = dir.Path("link");
  std::filesystem::create_symlink("copy", link);
  for (const std::string& same : {copy, link}) {
    ExpectError(Pronk({"quantize", copy, same, "F16"}), 1, "is a file that is read");
  }
  EXPECT_EQ(test::ReadText(copy), test::ReadText(kModel));
}

}  // namespace
