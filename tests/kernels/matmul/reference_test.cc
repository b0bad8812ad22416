#include "kernels/matmul/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gguf/blocks.h"
#include "kernels/half.h"
#include "tests/kernels/matmul/product_reference.h"
#include "tests/kernels/random_weights.h"
#include "tests/support/data.h"

namespace kernels {
namespace {

using gguf::DType;

std::vector<std::byte> ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::vector<char> chars((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

std::string LowerName(const gguf::DTypeInfo& info) {
  std::string name(info.name);
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  return name;
}

// Blocks in the file format and their weights, neither made with code of this project:
// FOLDER/TYPE.blocks and FOLDER/TYPE.f32.
void ExpectGolden(const std::filesystem::path& folder, const gguf::DTypeInfo& info) {
  const std::string name = LowerName(info);
  const auto blocks = ReadFile(folder / (name + ".blocks"));
  const auto expected = ReadFile(folder / (name + ".f32"));
  const size_t n = expected.size() / sizeof(float);
  ASSERT_GE(n, 1024u);
  ASSERT_EQ(blocks.size(), gguf::RowBytes(info.type, n));

  std::vector<float> weights(n);
  DequantizeRow(info.type, blocks.data(), n, weights.data());
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &expected[i * sizeof(float)], sizeof(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(weights[i]), bits)
        << name << " weight " << i << ": " << weights[i] << ", expected "
        << std::bit_cast<float>(bits);
  }
}

// The registry's types; F32 is itself, and Q8_1 is below.
std::vector<DType> TypesWithGolden() {
  std::vector<DType> types;
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    const bool has_none = info.type == DType::kF32 || info.type == DType::kQ8_1;
    if (IsWeightType(info.type) && !has_none) types.push_back(info.type);
  }
  return types;
}

class GoldenBlocks : public testing::TestWithParam<DType> {};

TEST_P(GoldenBlocks, AreDequantizedToTheLastBit) {
  const gguf::DTypeInfo& info = gguf::Info(GetParam());
  ExpectGolden(test::DataPath("blocks"), info);
  const auto shared = test::SharedPath("golden/blocks");
  if (std::filesystem::exists(shared / (LowerName(info) + ".blocks"))) ExpectGolden(shared, info);
}

INSTANTIATE_TEST_SUITE_P(Reference, GoldenBlocks, testing::ValuesIn(TypesWithGolden()),
                         [](const auto& type) { return std::string(gguf::Info(type.param).name); });

TEST(Reference, Q8_1) {  // no golden file: elsewhere only an intermediate form
  gguf::BlockQ8_1 block = {{}, F32ToF16(-0.375f), F32ToF16(1000.0f), {}};
  for (int j = 0; j < 32; ++j) block.qs[j] = static_cast<int8_t>(j * 8 - 128);
  std::vector<float> weights(32);
  DequantizeRow(DType::kQ8_1, reinterpret_cast<const std::byte*>(&block), 32, weights.data());
  for (int j = 0; j < 32; ++j) {
    EXPECT_EQ(weights[j], -0.375f * static_cast<float>(j * 8 - 128));
  }
}

TEST(Reference, F32IsItself) {
  const std::vector<float> row = {1.5f, -0.0f, 1e-40f, 3e38f, -7.0f};
  std::vector<float> weights(row.size());
  DequantizeRow(DType::kF32, reinterpret_cast<const std::byte*>(row.data()), row.size(),
                weights.data());
  EXPECT_EQ(std::memcmp(row.data(), weights.data(), row.size() * sizeof(float)), 0);
}

TEST(Reference, WeightTypesAreAllButIntegersAndDoubles) {
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    const bool is_plain_number =
        info.name == "F64" ||
        (info.name[0] == 'I' && !info.name.ends_with("_S") && info.name[1] != 'Q');
    EXPECT_EQ(IsWeightType(info.type), !is_plain_number) << info.name;
  }
}

TEST(Reference, ReadsRowsAtAnyAddress) {
  const auto blocks = ReadFile(test::DataPath("blocks/q6_k.blocks"));
  std::vector<std::byte> shifted(blocks.size() + 1);
  std::copy(blocks.begin(), blocks.end(), shifted.begin() + 1);
  std::vector<float> there(1024), here(1024);
  DequantizeRow(DType::kQ6_K, blocks.data(), 1024, there.data());
  DequantizeRow(DType::kQ6_K, shifted.data() + 1, 1024, here.data());
  EXPECT_EQ(there, here);
}

class DotReferenceOf : public testing::TestWithParam<DType> {};

// Integers and scales give the same sum as the weights one by one. A weight is rounded once to
// float.
TEST_P(DotReferenceOf, IsTheSumOfWeightsTimesActivations) {
  constexpr size_t kRows = 8, kCols = 1024;
  const RandomMatrix weights(GetParam(), kRows, kCols, 1);
  const std::vector<float> input = NormalFloats(kCols, 2);
  ThreadPool pool(1);
  Activations x(1, kCols);
  x.Set(input.data(), 1, kCols);
  x.RoundOnce(pool, GetParam());
  for (size_t r = 0; r < kRows; ++r) {
    std::vector<float> row(kCols);
    DequantizeRow(GetParam(), weights.view().row(r), kCols, row.data());
    double sum = 0;
    for (size_t i = 0; i < kCols; ++i) {
      sum += double{row[i]} * ActivationOf(GetParam(), x.input(0), i);
    }
    const Expected e = ExpectProduct(weights.view(), r, x.input(0), 1);
    EXPECT_NEAR(e.value, sum, e.tolerance) << "row " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, DotReferenceOf, testing::ValuesIn(WeightTypes()),
                         [](const auto& type) { return std::string(gguf::Info(type.param).name); });

// The sum is kept in double: in float, 2^24 + 1 = 2^24.
TEST(Reference, DotAccumulatesInDouble) {
  const std::vector<float> row = {0x1p24f, 1.0f, -0x1p24f};
  const std::vector<float> x = {1.0f, 1.0f, 1.0f};
  const ActivationRow floats{x.data(), nullptr, nullptr, nullptr};
  EXPECT_EQ(DotReference(DType::kF32, reinterpret_cast<const std::byte*>(row.data()), floats, 3),
            1.0);
}

// A block and the activations that are not zero.
template <class Block>
double DotOf(DType dtype, const Block& block, std::vector<std::pair<size_t, float>> activations) {
  std::vector<float> input(Block::kWeights);
  for (const auto& [i, x] : activations) input[i] = x;
  ThreadPool pool(1);
  Activations x(1, input.size());
  x.Set(input.data(), 1, input.size());
  x.RoundOnce(pool, dtype);
  return DotReference(dtype, reinterpret_cast<const std::byte*>(&block), x.input(0), input.size());
}

// The blocks that kernels/README.md works out by hand.
TEST(Reference, BlocksByHand) {
  gguf::BlockQ4_0 q4_0 = {{}, F32ToF16(0.5f), {}};
  std::fill(std::begin(q4_0.qs), std::end(q4_0.qs), uint8_t{0x88});
  q4_0.qs[0] = 0xFB;
  q4_0.qs[1] = 0x86;
  EXPECT_NEAR(DotOf(DType::kQ4_0, q4_0, {{0, 1.27f}, {1, -0.64f}, {16, 0.25f}}), 3.42, 1e-6);

  gguf::BlockQ4_K q4_k = {};
  q4_k.d = F32ToF16(0.0625f);
  q4_k.dmin = F32ToF16(0.125f);
  q4_k.scales[0] = 0x0A;
  q4_k.scales[1] = 0x80;
  q4_k.scales[4] = 0x05;
  q4_k.scales[5] = 0x40;
  q4_k.scales[9] = 0x25;
  q4_k.qs[0] = 0x0B;
  q4_k.qs[1] = 0x03;
  q4_k.qs[64] = 0x90;
  EXPECT_NEAR(DotOf(DType::kQ4_K, q4_k, {{0, 1.27f}, {1, -0.5f}}), 7.3125, 1e-5);
  EXPECT_NEAR(DotOf(DType::kQ4_K, q4_k, {{0, 1.27f}, {1, -0.5f}, {160, 2.54f}}), 54.46125, 1e-5);
}

}  // namespace
}  // namespace kernels
