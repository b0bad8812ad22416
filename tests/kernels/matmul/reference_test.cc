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
#include <vector>

#include "gguf/blocks.h"
#include "kernels/half.h"
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

// The sum is kept in double: in float, 2^24 + 1 = 2^24.
TEST(Reference, DotAccumulatesInDouble) {
  const std::vector<float> row = {0x1p24f, 1.0f, -0x1p24f};
  const std::vector<float> x = {1.0f, 1.0f, 1.0f};
  EXPECT_EQ(DotReference(DType::kF32, reinterpret_cast<const std::byte*>(row.data()), x.data(), 3),
            1.0);
}

TEST(Reference, DotOfUnitVectorsPicksEachWeight) {
  const auto blocks = ReadFile(test::DataPath("blocks/q4_k.blocks"));
  std::vector<float> weights(512), x(512);
  DequantizeRow(DType::kQ4_K, blocks.data(), 512, weights.data());
  for (size_t i = 0; i < 512; ++i) {
    x[i] = 2.0f;
    EXPECT_EQ(DotReference(DType::kQ4_K, blocks.data(), x.data(), 512), 2.0 * weights[i]) << i;
    x[i] = 0.0f;
  }
}

}  // namespace
}  // namespace kernels
