// Encoders choose the same bytes on every CPU and with every compiler: hashes of rows that were
// encoded on x86-64 by g++. So the slow tests of encoders need not run on emulated CPUs. Grids
// (IQ1, IQ2, IQ3) are excluded: SIMD computes their sums, and its width breaks ties.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/dtype.h"
#include "kernels/encode/encode.h"

namespace kernels {
namespace {

constexpr size_t kN = 4 * 256;  // weights: four of the largest blocks

// [kN] sums of four uniform numbers, nearly normal, exact in f32.
std::vector<float> SameWeights() {
  std::mt19937 random(11);  // the same numbers with every library, unlike its distributions
  std::vector<float> x(kN);
  for (float& v : x) {
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<int>(random() >> 20) - 2048;
    v = static_cast<float>(sum) / 4096;
  }
  return x;
}

// FNV-1a.
std::string Hash(const std::vector<std::byte>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

TEST(EncodedBytes, AreTheSameOnEveryCpu) {
  const std::map<std::string_view, std::string> expected = {
      {"F32", "e6d1d84d538f13b1"},    {"F16", "bd6e3b5a5fcc683d"},    {"Q4_0", "3b8e1ea79979183f"},
      {"Q4_1", "5de45e8ab07a6857"},   {"Q5_0", "054afb578b74d8d2"},   {"Q5_1", "e7ccc0c649bd23bf"},
      {"Q8_0", "e52e785e225e63dd"},   {"Q2_K", "73a0ea00bf8c02dc"},   {"Q3_K", "678c1dcce5394dd2"},
      {"Q4_K", "c79687ac0a62ccde"},   {"Q5_K", "088318a91051a06d"},   {"Q6_K", "66f77102ae10f845"},
      {"IQ4_NL", "26642ddf0841a0fc"}, {"IQ4_XS", "b453b68bb5170ff5"}, {"BF16", "cdf0af5993bba5f5"},
      {"TQ1_0", "32b6f073c35f608c"},  {"TQ2_0", "5f72d0ff0493459a"},  {"MXFP4", "269f13c15a50c3e1"},
      {"NVFP4", "3b407b67d0bc3c81"},  {"Q1_0", "f18206e01e6561f0"},   {"Q2_0", "79fc19f2c4966cec"},
  };
  const std::vector<float> x = SameWeights();
  std::vector<float> importance(kN);
  for (size_t i = 0; i < kN; ++i) importance[i] = static_cast<float>(1 + i * 7 % 16) / 8;
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    const gguf::DType dtype = info.type;
    const std::string_view name = info.name;
    if (!CanEncode(dtype) || (name.starts_with("IQ") && !name.starts_with("IQ4"))) continue;
    std::vector<std::byte> rows(2 * gguf::RowBytes(dtype, kN));
    ASSERT_TRUE(EncodeRow(dtype, x.data(), kN, rows.data()));
    ASSERT_TRUE(EncodeRow(dtype, x.data(), kN, &rows[rows.size() / 2], importance.data()));
    const auto found = expected.find(name);
    EXPECT_EQ(found == expected.end() ? "none" : found->second, Hash(rows)) << name;
  }
}

}  // namespace
}  // namespace kernels
