// The types of a tensor's weights in a GGUF file, and their sizes.
//
// A quantized type packs `block_size` weights of one row into `block_bytes` bytes; blocks.h shows
// the bytes of each. A row of n weights is n / block_size blocks, in sequence.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gguf {

// The numbers are the file format's own ids.
enum class DType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kI2_S = 36,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
  kPQ2_0 = 142,
  kPTQ1_0 = 143,
};

struct DTypeInfo {
  DType type;
  std::string_view name;  // the usual spelling: "Q4_K", "BF16"
  uint32_t block_size;    // weights per block
  uint32_t block_bytes;   // bytes per block
  uint32_t tail_bytes;    // bytes of a tensor after its last row
};

// Every known type, in the order of the ids.
std::span<const DTypeInfo> AllDTypes();

// The type with this id or name (any case), or nullptr.
const DTypeInfo* FindDType(uint32_t id);
const DTypeInfo* FindDType(std::string_view name);

// The row of the table for a type known to exist.
const DTypeInfo& Info(DType type);

// Bytes of a row of n weights; n must be a multiple of the type's block_size.
inline uint64_t RowBytes(DType type, uint64_t n) {
  const DTypeInfo& info = Info(type);
  return n / info.block_size * info.block_bytes;
}

}  // namespace gguf
