// pronk quantize: the parts of a file that change and that do not, and refused arguments.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "kernels/half.h"
#include "kernels/matmul/reference.h"
#include "tests/cli/pronk.h"
#include "tests/support/data.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

using gguf::DType;

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
std::string WriteTensor(const TempDir& dir, const std::string& name,
                        const std::vector<float>& weights, const std::vector<uint64_t>& dims) {
  gguf::Writer writer;
  writer.AddTensor("t", DType::kF32, dims, std::as_bytes(std::span(weights)));
  writer.WriteFile(dir.Path(name));
  return dir.Path(name);
}

TEST(Quantize, ChangesMatricesAndNothingElse) {
  const TempDir dir;
  const std::string out = dir.Path("out.gguf");
  const gguf::File before = gguf::File::Open(kModel);
  for (const DType type : {DType::kF16, DType::kQ8_0, DType::kQ4_1}) {
    SCOPED_TRACE(gguf::Info(type).name);
    const std::string name(gguf::Info(type).name);
    const Finished run = Done(Pronk({"quantize", kModel, out, name, "--pure"}));
    ExpectWritten(run, out);
    EXPECT_TRUE(Has(run.err, " tensors change: "));
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

// The types with llama.cpp's numbers for files of them.
TEST(Quantize, EveryTypeIsToldInTheFile) {
  const TempDir dir;
  const std::string in = WriteTensor(dir, "in", std::vector<float>(1024, 1.0f), {256, 4});
  const std::map<std::string, uint32_t> file_types = {
      {"F32", 0},      {"F16", 1},     {"BF16", 32},   {"Q1_0", 40},      {"Q2_0", 41},
      {"Q4_0", 2},     {"Q4_1", 3},    {"Q8_0", 7},    {"Q5_0", 8},       {"Q5_1", 9},
      {"Q2_K", 10},    {"Q2_K_S", 21}, {"Q3_K", 11},   {"Q3_K_S", 11},    {"Q3_K_M", 12},
      {"Q3_K_L", 13},  {"Q4_K", 14},   {"Q4_K_S", 14}, {"Q4_K_M", 15},    {"Q5_K", 16},
      {"Q5_K_S", 16},  {"Q5_K_M", 17}, {"Q6_K", 18},   {"IQ1_S", 24},     {"IQ1_M", 31},
      {"IQ2_XXS", 19}, {"IQ2_XS", 20}, {"IQ2_S", 28},  {"IQ2_M", 29},     {"IQ3_XXS", 23},
      {"IQ3_XS", 22},  {"IQ3_S", 26},  {"IQ3_M", 27},  {"IQ4_NL", 25},    {"IQ4_XS", 30},
      {"TQ1_0", 36},   {"TQ2_0", 37},  {"MXFP4", 38},  {"MXFP4_MOE", 38}, {"NVFP4", 39}};
  for (const auto& [name, file_type] : file_types) {
    ASSERT_EQ(Pronk({"quantize", in, dir.Path("out"), name}).status, 0) << name;
    const gguf::File file = gguf::File::Open(dir.Path("out"));
    const gguf::DTypeInfo* const plain = gguf::FindDType(std::string_view(name));
    // NVFP4 is for the matrices of layers, and IQ2_S, a mix of llama.cpp's, mostly of IQ2_XS.
    if (plain != nullptr && name != "NVFP4" && name != "IQ2_S") {
      EXPECT_EQ(file.tensors().at(0).dtype, plain->type) << name;
    }
    EXPECT_EQ(file.metadata().GetUint("general.file_type"), file_type) << name;
    const bool quantized = name != "F32" && name != "F16" && name != "BF16";
    EXPECT_EQ(file.metadata().GetUintOr("general.quantization_version", 0), quantized ? 2u : 0u);
  }
}

// Weights are converted in pieces, and by several threads: each arrives where it belongs.
TEST(Quantize, PiecesAreJoined) {
  const TempDir dir;
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

TEST(Quantize, RowsThatAreNotWholeBlocksGetAnotherType) {
  const TempDir dir;
  gguf::Writer writer;
  const std::vector<float> weights(4 * 64, 1.0f);
  const auto bytes = std::as_bytes(std::span(weights));
  writer.AddTensor("even", DType::kF32, {32, 8}, bytes);
  writer.AddTensor("odd", DType::kF32, {16, 16}, bytes);
  writer.WriteFile(dir.Path("in"));
  const Finished run = Done(Pronk({"quantize", dir.Path("in"), dir.Path("out"), "Q8_0"}));
  ExpectWritten(run, dir.Path("out"),
                "pronk: note: 1 of 2 matrices get a type of smaller blocks, or F16: their rows are "
                "not a whole number of blocks\n");
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  EXPECT_EQ(file.FindTensor("even")->dtype, DType::kQ8_0);
  EXPECT_EQ(file.FindTensor("odd")->dtype, DType::kF16);
}

// A split model becomes one file; the alignment and the old file's statements about its types are
// dropped.
TEST(Quantize, PartsBecomeOneFile) {
  const TempDir dir;
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
  const TempDir dir;
  const std::string out = dir.Write("out", "as before");
  const auto refused = [&](const std::string& in, const std::string& says, int status = 1,
                           const std::string& type = "Q8_0") {
    ExpectError(Pronk({"quantize", in, out, type}), status, says);
  };
  refused(kModel, "TYPE Q8_K: expected one of F32|F16|BF16|Q8_0|", 2, "Q8_K");
  refused(kModel, "TYPE q9: expected one of", 2, "q9");
  refused(dir.Write("empty", GgufBytes(0, 0).Data(0).bytes()), "found none");
  refused(dir.Path("none"), "no such file");
  std::vector<float> weights(64 * 1024, 1.0f);
  weights[60000] = std::nanf("");
  refused(
      WriteTensor(dir, "nan", weights, {64, 1024}),
      "nan: tensor \"t\": expected weights that Q8_0 can hold, found some that are not numbers");
  weights[60000] = 70000.0f;
  refused(WriteTensor(dir, "large", weights, {64, 1024}), "or are too large", 1, "F16");
  EXPECT_EQ(ReadText(out), "as before");

  // The input file, by its name and by a link.
  const std::string copy = dir.Write("copy", ReadText(kModel)), link = dir.Path("link");
  std::filesystem::create_symlink("copy", link);
  for (const std::string& same : {copy, link}) {
    ExpectError(Pronk({"quantize", copy, same, "F16"}), 1, "is a file that is read");
  }
  EXPECT_EQ(ReadText(copy), ReadText(kModel));
}

std::map<std::string, DType> Types(const std::string& path) {
  std::map<std::string, DType> types;
  const gguf::File file = gguf::File::Open(path);
  for (const gguf::TensorView& tensor : file.tensors()) {
    types[std::string(tensor.name)] = tensor.dtype;
  }
  return types;
}

// The default model, whose rows are whole blocks of every type; its weights are Q8_0.
TEST(Quantize, WarnsWhereTheSourceHasLostSomething) {
  const TempDir dir;
  const Finished run = Done(Pronk({"quantize", kDefault, dir.Path("out"), "Q4_K_M"}));
  ExpectWritten(
      run, dir.Path("out"),
      "pronk: warning: 43 matrices are quantized already (Q8_0): their errors stay, and new "
      "ones are added; better start from the original\n");
  const auto types = Types(dir.Path("out"));
  EXPECT_EQ(types.at("token_embd.weight"), DType::kQ6_K);
  EXPECT_EQ(types.at("blk.0.attn_v.weight"), DType::kQ4_K);
  EXPECT_EQ(types.at("blk.2.attn_v.weight"), DType::kQ6_K);
  EXPECT_EQ(types.at("blk.5.ffn_down.weight"), DType::kQ6_K);
  EXPECT_EQ(types.at("blk.5.ffn_up.weight"), DType::kQ4_K);
  EXPECT_EQ(types.at("blk.5.ffn_norm.weight"), DType::kF32);
  // F32 adds no errors.
  ExpectWritten(Done(Pronk({"quantize", kDefault, dir.Path("wide"), "F32"})), dir.Path("wide"));
  // A tensor that already has the type stays, byte by byte, without a warning.
  const Finished same = Pronk({"quantize", kDefault, dir.Path("same"), "Q8_0"});
  ExpectWritten(same, dir.Path("same"));
  const gguf::File before = gguf::File::Open(kDefault), after = gguf::File::Open(dir.Path("same"));
  for (const gguf::TensorView& tensor : before.tensors()) {
    EXPECT_EQ(Bytes(*after.FindTensor(tensor.name)), Bytes(tensor)) << tensor.name;
  }
}

TEST(Quantize, TypesOfSingleTensors) {
  const TempDir dir;
  const std::string out = dir.Path("out");
  ASSERT_EQ(Pronk({"quantize", kDefault, out, "Q4_K_M", "--tensor-type",
                   R"(blk\.[0-2]\.ffn_(up|gate)=q3_k)", "--tensor-type", "ffn=Q5_1",
                   "--token-embedding-type", "IQ4_XS"})
                .status,
            0);
  auto types = Types(out);
  EXPECT_EQ(types.at("blk.2.ffn_up.weight"), DType::kQ3_K);  // the first pattern counts
  EXPECT_EQ(types.at("blk.3.ffn_up.weight"), DType::kQ5_1);
  EXPECT_EQ(types.at("blk.2.ffn_down.weight"), DType::kQ5_1);
  EXPECT_EQ(types.at("blk.2.ffn_norm.weight"), DType::kF32);  // patterns do not apply to vectors
  EXPECT_EQ(types.at("token_embd.weight"), DType::kIQ4_XS);
  EXPECT_EQ(types.at("blk.2.attn_v.weight"), DType::kQ6_K);
  // The embedding serves as output here.
  ASSERT_EQ(
      Pronk({"quantize", kDefault, out, "IQ4_NL", "--pure", "--output-tensor-type", "Q5_K"}).status,
      0);
  types = Types(out);
  for (const auto& [name, type] : types) {
    const bool is_vector = name.find("norm") != std::string::npos;
    EXPECT_EQ(type, name == "token_embd.weight" ? DType::kQ5_K
                    : is_vector                 ? DType::kF32
                                                : DType::kIQ4_NL)
        << name;
  }
  const auto wrong = [&](const std::string& flag, const std::string& value,
                         const std::string& says) {
    ExpectError(Pronk({"quantize", kDefault, dir.Path("none"), "Q4_K", flag, value}), 2, says);
  };
  wrong("--tensor-type", "ffn", "expected PATTERN=TYPE");
  wrong("--tensor-type", "=Q4_K", "expected PATTERN=TYPE");
  wrong("--tensor-type", "ffn=Q9", "expected a type of weights, such as Q6_K, found Q9");
  wrong("--tensor-type", "ffn=Q8_K", "expected a type of weights");
  wrong("--tensor-type", "(ffn=Q6_K", "expected a regular expression before =");
  wrong("--tensor-type", "ffn_donw=Q6_K",
        "--tensor-type ffn_donw=Q6_K: matches no matrix that is converted");
  wrong("--output-tensor-type", "I32", "--output-tensor-type: expected a type of weights");
  EXPECT_FALSE(std::filesystem::exists(dir.Path("none")));
}

TEST(Quantize, DryRunShowsThePlan) {
  const TempDir dir;
  const Finished run = Done(Pronk({"quantize", kDefault, dir.Path("none"), "Q4_K_M", "--dry-run"}));
  EXPECT_FALSE(std::filesystem::exists(dir.Path("none")));
  EXPECT_TRUE(
      Has(run.out, "blk.2.attn_v.weight                  128 x 256        Q8_0    -> Q6_K "));
  EXPECT_TRUE(Has(run.out, "blk.2.attn_norm.weight               256              F32     stays "));
  EXPECT_TRUE(Has(run.out, "43 of 56 tensors change: "));
  EXPECT_TRUE(Has(run.out, " bits a weight)\n"));
}

// Small weights keep their scales, thanks to a factor for each matrix.
TEST(Quantize, Nvfp4HasFactorsBesideIt) {
  const TempDir dir;
  std::vector<float> weights(2 * 64 * 64);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = (i < weights.size() / 2 ? 1e-4f : 10.0f) * std::sin(static_cast<float>(i));
  }
  gguf::Writer writer;
  writer.AddTensor("blk.0.ffn_up_exps.weight", DType::kF32, {64, 64, 2},
                   std::as_bytes(std::span(weights)));
  writer.WriteFile(dir.Path("in"));
  ASSERT_EQ(Pronk({"quantize", dir.Path("in"), dir.Path("out"), "NVFP4"}).status, 0);
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  const gguf::TensorView* const scale = file.FindTensor("blk.0.ffn_up_exps.scale");
  ASSERT_NE(scale, nullptr);
  ASSERT_EQ(scale->elements(), 2u);
  std::array<float, 2> factors;
  std::memcpy(factors.data(), scale->data, sizeof(factors));
  const gguf::TensorView* const tensor = file.FindTensor("blk.0.ffn_up_exps.weight");
  ASSERT_EQ(tensor->dtype, DType::kNVFP4);
  std::vector<float> found(weights.size());
  kernels::DequantizeRow(tensor->dtype, tensor->data, found.size(), found.data());
  for (size_t half = 0; half < 2; ++half) {
    double error = 0, all = 0;
    for (size_t i = half * 4096; i < (half + 1) * 4096; ++i) {
      error += std::pow(double{factors[half]} * found[i] - weights[i], 2);
      all += std::pow(double{weights[i]}, 2);
    }
    // Four-bit floats of 16 weights are off by a sixth of themselves at most; scales by a 16th.
    EXPECT_LT(error, 0.02 * all) << half;
  }
}

}  // namespace
}  // namespace test
