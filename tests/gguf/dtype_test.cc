// The types table against the format's facts, written down here a second time.
#include "gguf/dtype.h"

#include <gtest/gtest.h>

#include "gguf/blocks.h"
#include "gguf/tensor.h"

namespace gguf {
namespace {

struct Fact {
  uint32_t id;
  const char* name;
  uint32_t block_size;
  uint32_t block_bytes;
};

constexpr Fact kFacts[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},     {36, "I2_S", 128, 32},
    {142, "PQ2_0", 128, 34},  {143, "PTQ1_0", 128, 28},
};

TEST(DTypeTest, TableHoldsTheFacts) {
  for (const Fact& fact : kFacts) {
    const DTypeInfo* const row = FindDType(fact.id);
    ASSERT_NE(row, nullptr) << fact.name;
    EXPECT_EQ(row->name, fact.name);
    EXPECT_EQ(row->block_size, fact.block_size) << fact.name;
    EXPECT_EQ(row->block_bytes, fact.block_bytes) << fact.name;
    EXPECT_EQ(row->tail_bytes, fact.id == 36 ? 32u : 0u) << fact.name;
  }
}

TEST(DTypeTest, EveryRowIsFound) {
  for (const DTypeInfo& row : AllDTypes()) {
    EXPECT_TRUE(&row == AllDTypes().data() || row.type > (&row)[-1].type) << row.name;
    EXPECT_EQ(FindDType(static_cast<uint32_t>(row.type)), &row) << row.name;
    EXPECT_EQ(FindDType(row.name), &row);
    EXPECT_EQ(&Info(row.type), &row);
  }
}

TEST(DTypeTest, UnknownIdsAndNamesAreNotFound) {
  const auto last = static_cast<uint32_t>(AllDTypes().back().type);
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 37u, 38u, last + 1, 255u, 0xffffffffu}) {
    EXPECT_EQ(FindDType(id), nullptr) << id;
  }
  for (const char* name : {"", "Q4", "Q4_K_M", "Q4_KK", "F3"}) {
    EXPECT_EQ(FindDType(std::string_view(name)), nullptr) << name;
  }
}

TEST(DTypeTest, NamesAreFoundInAnyCase) {
  EXPECT_EQ(FindDType("q4_k"), &Info(DType::kQ4_K));
  EXPECT_EQ(FindDType("iq2_Xxs"), &Info(DType::kIQ2_XXS));
}

TEST(DTypeTest, RowBytesCountsWholeBlocks) {
  EXPECT_EQ(RowBytes(DType::kF32, 7), 28u);
  EXPECT_EQ(RowBytes(DType::kQ4_0, 64), 36u);
  EXPECT_EQ(RowBytes(DType::kQ6_K, 2048), 8u * 210);
  EXPECT_EQ(RowBytes(DType::kF64, uint64_t{1} << 40), uint64_t{1} << 43);
}

TEST(DTypeTest, FieldsLieWhereTheFormatSays) {
  EXPECT_EQ(offsetof(BlockQ5_1, qs), 8u);
  EXPECT_EQ(offsetof(BlockQ2_K, dmin), 82u);
  EXPECT_EQ(offsetof(BlockQ3_K, scales), 96u);
  EXPECT_EQ(offsetof(BlockQ4_K, qs), 16u);
  EXPECT_EQ(offsetof(BlockQ5_K, qh), 16u);
  EXPECT_EQ(offsetof(BlockQ6_K, scales), 192u);
  EXPECT_EQ(offsetof(BlockQ8_K, bsums), 260u);
  EXPECT_EQ(offsetof(BlockIQ2_S, signs), 34u);
  EXPECT_EQ(offsetof(BlockIQ3_XXS, signs_scales), 66u);
  EXPECT_EQ(offsetof(BlockIQ3_S, signs), 74u);
  EXPECT_EQ(offsetof(BlockIQ4_XS, qs), 8u);
  EXPECT_EQ(offsetof(BlockTQ1_0, d), 52u);
  EXPECT_EQ(offsetof(BlockNVFP4, qs), 4u);
}

TEST(TensorViewTest, RowsAreOneAfterTheOther) {
  TensorView view = {.dtype = DType::kQ8_0, .n_dims = 3, .dims = {64, 5, 2, 1}};
  EXPECT_EQ(view.cols(), 64u);
  EXPECT_EQ(view.rows(), 10u);
  EXPECT_EQ(view.elements(), 640u);
  EXPECT_EQ(view.row_bytes(), 68u);
  const std::byte bytes[680] = {};
  view.data = bytes;
  EXPECT_EQ(view.row(9), bytes + 9 * 68);
}

}  // namespace
}  // namespace gguf
