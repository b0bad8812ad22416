// The number tables that IQ and MXFP4 blocks point into: grids (codebooks), signs and uneven 4-bit
// values. They belong to the formats, like the bytes in gguf/blocks.h; the scalar reference and the
// kernels look weights up here.
#ifndef PRONK_KERNELS_TABLES_H_
#define PRONK_KERNELS_TABLES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kernels {

// A grid entry is a point of 8 or 4 small integers, component i in byte i of the number (the lowest
// byte is the first weight's), so that one load fetches the weights of one index.
extern const std::array<uint64_t, 256> kIq2xxsGrid;  // 8, 25 or 43; the sign is stored apart
extern const std::array<uint64_t, 512> kIq2xsGrid;   // the same levels
extern const std::array<uint64_t, 1024> kIq2sGrid;   // the same levels
extern const std::array<uint32_t, 256> kIq3xxsGrid;  // 4, 12 ... 52, 62; the sign is stored apart
extern const std::array<uint32_t, 512> kIq3sGrid;    // 1, 3 ... 15; the sign is stored apart
extern const std::array<uint64_t, 2048> kIq1sGrid;   // int8: -1, 0 or 1. IQ1_M's too

// Component i of a grid entry.
constexpr int GridAt(uint64_t entry, size_t i) { return static_cast<int8_t>(entry >> (8 * i)); }

// Eight signs from a 7-bit index (IQ2_XXS, IQ2_XS, IQ3_XXS): bit i set negates weight i; the eighth
// makes the number of minus signs even.
constexpr uint8_t EvenSigns(uint32_t index) {
  const auto odd = static_cast<uint32_t>(std::popcount(index & 127u)) & 1u;
  return static_cast<uint8_t>((index & 127u) | odd << 7);
}

// Of IQ4_NL and IQ4_XS, by nibble.
inline constexpr std::array<int8_t, 16> kIq4nlValues = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};

// Of MXFP4, by nibble: the values of a 4-bit float (sign, two bits of exponent, one of mantissa),
// doubled to be integers.
inline constexpr std::array<int8_t, 16> kFp4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace kernels

#endif  // PRONK_KERNELS_TABLES_H_
