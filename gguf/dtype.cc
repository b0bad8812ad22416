// The table of types. To add one: its id in dtype.h, its struct in blocks.h, a row here.
#include "gguf/dtype.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "gguf/blocks.h"

namespace gguf {
namespace {

// A type without blocks.
template <uint32_t kBytes>
constexpr DTypeInfo Plain(DType type, std::string_view name) {
  return {type, name, 1, kBytes, 0};
}

template <typename Block, uint32_t kBytes>
constexpr DTypeInfo Packed(DType type, std::string_view name, uint32_t tail_bytes = 0) {
  static_assert(sizeof(Block) == kBytes);
  // The reader guarantees blocks at multiples of 8, so that they can be read in place.
  static_assert(8 % alignof(Block) == 0);
  return {type, name, Block::kWeights, kBytes, tail_bytes};
}

constexpr std::array kTypes = {
    Plain<4>(DType::kF32, "F32"),
    Plain<2>(DType::kF16, "F16"),
    Packed<BlockQ4_0, 18>(DType::kQ4_0, "Q4_0"),
    Packed<BlockQ4_1, 20>(DType::kQ4_1, "Q4_1"),
    Packed<BlockQ5_0, 22>(DType::kQ5_0, "Q5_0"),
    Packed<BlockQ5_1, 24>(DType::kQ5_1, "Q5_1"),
    Packed<BlockQ8_0, 34>(DType::kQ8_0, "Q8_0"),
    Packed<BlockQ8_1, 36>(DType::kQ8_1, "Q8_1"),
    Packed<BlockQ2_K, 84>(DType::kQ2_K, "Q2_K"),
    Packed<BlockQ3_K, 110>(DType::kQ3_K, "Q3_K"),
    Packed<BlockQ4_K, 144>(DType::kQ4_K, "Q4_K"),
    Packed<BlockQ5_K, 176>(DType::kQ5_K, "Q5_K"),
    Packed<BlockQ6_K, 210>(DType::kQ6_K, "Q6_K"),
    Packed<BlockQ8_K, 292>(DType::kQ8_K, "Q8_K"),
    Packed<BlockIQ2_XXS, 66>(DType::kIQ2_XXS, "IQ2_XXS"),
    Packed<BlockIQ2_XS, 74>(DType::kIQ2_XS, "IQ2_XS"),
    Packed<BlockIQ3_XXS, 98>(DType::kIQ3_XXS, "IQ3_XXS"),
    Packed<BlockIQ1_S, 50>(DType::kIQ1_S, "IQ1_S"),
    Packed<BlockIQ4_NL, 18>(DType::kIQ4_NL, "IQ4_NL"),
    Packed<BlockIQ3_S, 110>(DType::kIQ3_S, "IQ3_S"),
    Packed<BlockIQ2_S, 82>(DType::kIQ2_S, "IQ2_S"),
    Packed<BlockIQ4_XS, 136>(DType::kIQ4_XS, "IQ4_XS"),
    Plain<1>(DType::kI8, "I8"),
    Plain<2>(DType::kI16, "I16"),
    Plain<4>(DType::kI32, "I32"),
    Plain<8>(DType::kI64, "I64"),
    Plain<8>(DType::kF64, "F64"),
    Packed<BlockIQ1_M, 56>(DType::kIQ1_M, "IQ1_M"),
    Plain<2>(DType::kBF16, "BF16"),
    Packed<BlockTQ1_0, 54>(DType::kTQ1_0, "TQ1_0"),
    Packed<BlockTQ2_0, 66>(DType::kTQ2_0, "TQ2_0"),
    Packed<BlockI2_S, 32>(DType::kI2_S, "I2_S", kI2_STail),
    Packed<BlockMXFP4, 17>(DType::kMXFP4, "MXFP4"),
    Packed<BlockNVFP4, 36>(DType::kNVFP4, "NVFP4"),
    Packed<BlockQ1_0, 18>(DType::kQ1_0, "Q1_0"),
    Packed<BlockQ2_0, 18>(DType::kQ2_0, "Q2_0"),
    Packed<BlockPQ2_0, 34>(DType::kPQ2_0, "PQ2_0"),
    Packed<BlockPTQ1_0, 28>(DType::kPTQ1_0, "PTQ1_0"),
};

// kRowOf[id] is 1 + the row of the type in kTypes, 0 for an unknown id: RowBytes is called for
// every row of a matrix, so it does not search.
constexpr auto kRowOf = [] {
  std::array<uint8_t, static_cast<uint32_t>(kTypes.back().type) + 1> rows{};
  for (size_t i = 0; i < kTypes.size(); ++i) {
    rows[static_cast<uint32_t>(kTypes[i].type)] = static_cast<uint8_t>(i + 1);
  }
  return rows;
}();

constexpr char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::span<const DTypeInfo> AllDTypes() { return kTypes; }

const DTypeInfo* FindDType(uint32_t id) {
  if (id >= kRowOf.size() || kRowOf[id] == 0) return nullptr;
  return &kTypes[kRowOf[id] - 1u];
}

const DTypeInfo* FindDType(std::string_view name) {
  const auto same = [name](const DTypeInfo& info) {
    return std::ranges::equal(info.name, name, {}, Upper, Upper);
  };
  const auto it = std::ranges::find_if(kTypes, same);
  return it == kTypes.end() ? nullptr : &*it;
}

const DTypeInfo& Info(DType type) {
  const DTypeInfo* info = FindDType(static_cast<uint32_t>(type));
  assert(info != nullptr);
  return *info;
}

}  // namespace gguf
