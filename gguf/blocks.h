// The bytes of every quantized type in the file: one packed struct per type.
//
// This is only the layout: the fields in order, and how they make a weight. kernels/types/ has a
// file for each type with the place of every bit, in words and as scalar code. All numbers are
// little-endian. Half floats (f16) are bit patterns in uint16_t, which the kernels convert.
//
// Notation: x is a weight, the j-th of the block. d and m ("scale" and "min") are per block, sc, s
// and min are the small scales of a part of the block, q is the packed integer of the weight. The
// b/w of a heading are bits per weight, scales included.
//
// No struct needs more than 4-byte alignment, and tensors start at multiples of 8 at least
// (reader.cc refuses others), so blocks are read in place. Unaligned 32-bit fields are byte arrays.
#pragma once

#include <cstdint>

namespace gguf {

// The number of weights in a block.
template <int n>
struct Weights {
  static constexpr int kWeights = n;
};

// Simple types: 32 weights, one scale. Byte j of qs holds x[j] (low nibble) and x[j+16] (high).

// 4.5 b/w. x = d * (q - 8)
struct BlockQ4_0 : Weights<32> {
  uint16_t d;      // f16
  uint8_t qs[16];  // nibbles
};

// 5 b/w. x = d * q + m
struct BlockQ4_1 : Weights<32> {
  uint16_t d;      // f16
  uint16_t m;      // f16
  uint8_t qs[16];  // nibbles
};

// 5.5 b/w. x = d * (q - 16)
struct BlockQ5_0 : Weights<32> {
  uint16_t d;      // f16
  uint8_t qh[4];   // fifth bits, a u32
  uint8_t qs[16];  // nibbles: the low four bits
};

// 6 b/w. x = d * q + m
struct BlockQ5_1 : Weights<32> {
  uint16_t d;      // f16
  uint16_t m;      // f16
  uint8_t qh[4];   // fifth bits, a u32
  uint8_t qs[16];  // nibbles: the low four bits
};

// 8.5 b/w. x = d * q
struct BlockQ8_0 : Weights<32> {
  uint16_t d;     // f16
  int8_t qs[32];  // in order
};

// 9 b/w. x = d * q. For activations: s saves a sum in the dot product with Q4_1 and Q5_1.
struct BlockQ8_1 : Weights<32> {
  uint16_t d;     // f16
  uint16_t s;     // f16: d * (sum of qs)
  int8_t qs[32];  // in order
};

// 4.5 b/w. x = d * kvalues_iq4nl[q]: a non-uniform codebook of sixteen values
struct BlockIQ4_NL : Weights<32> {
  uint16_t d;      // f16
  uint8_t qs[16];  // nibbles, order as Q4_0
};

// 4.25 b/w. x = 2^(e - 128) * kvalues_fp4[q]: the sixteen 4-bit floats, doubled to be integers
struct BlockMXFP4 : Weights<32> {
  uint8_t e;       // exponent
  uint8_t qs[16];  // nibbles, order as Q4_0
};

// 4.5 b/w. x = d[j/16] * kvalues_fp4[q] / 2. A separate tensor has the matrix's factor.
struct BlockNVFP4 : Weights<64> {
  uint8_t d[4];    // UE4M3
  uint8_t qs[32];  // nibbles
};

// Simple types of few bits: one scale, and weights in order, from the lowest bits of a byte up.

// 1.125 b/w. x = d where the bit is set, else -d
struct BlockQ1_0 : Weights<128> {
  uint16_t d;      // f16
  uint8_t qs[16];  // bits
};

// 2.25 b/w. x = d * (q - 1): -1, 0, 1 or 2 times d
struct BlockQ2_0 : Weights<64> {
  uint16_t d;      // f16
  uint8_t qs[16];  // two bits
};

// K-quants: 256 weights, a scale (and a min) for every 16 or 32 of them, themselves quantized.

// 2.625 b/w. x = d * sc * q - dmin * min, sc and min per 16 weights
struct BlockQ2_K : Weights<256> {
  uint8_t scales[16];  // low nibble sc, high nibble min
  uint8_t qs[64];      // two bits
  uint16_t d;          // f16
  uint16_t dmin;       // f16
};

// 3.4375 b/w. x = d * (sc - 32) * (q - 4), sc per 16 weights
struct BlockQ3_K : Weights<256> {
  uint8_t hmask[32];   // third bits
  uint8_t qs[64];      // low two bits
  uint8_t scales[12];  // sixteen six-bit scales
  uint16_t d;          // f16
};

// 4.5 b/w. x = d * sc * q - dmin * min, sc and min per 32 weights
struct BlockQ4_K : Weights<256> {
  uint16_t d;          // f16
  uint16_t dmin;       // f16
  uint8_t scales[12];  // eight six-bit sc, eight six-bit min
  uint8_t qs[128];     // nibbles
};

// 5.5 b/w. x as in Q4_K
struct BlockQ5_K : Weights<256> {
  uint16_t d;          // f16
  uint16_t dmin;       // f16
  uint8_t scales[12];  // as Q4_K
  uint8_t qh[32];      // fifth bits
  uint8_t qs[128];     // nibbles: the low four bits
};

// 6.5625 b/w. x = d * sc * (q - 32), sc per 16 weights
struct BlockQ6_K : Weights<256> {
  uint8_t ql[128];    // low four bits
  uint8_t qh[64];     // top two bits
  int8_t scales[16];  // sc
  uint16_t d;         // f16
};

// 9.125 b/w. x = d * q. For activations: the sums save a pass in dot products with mins.
struct BlockQ8_K : Weights<256> {
  float d;            // f32, unlike other types
  int8_t qs[256];     // in order
  int16_t bsums[16];  // sums of 16 qs each
};

// IQ types: 256 weights. A small group of weights is an index into a grid of points, with separate
// signs. A 7-bit sign index encodes 8 signs: bit i negates weight i, and the eighth makes the
// number of minus signs even.

// 2.0625 b/w. x = d * (0.5 + s) / 4 * grid * sign, s per 32 weights
struct BlockIQ2_XXS : Weights<256> {
  uint16_t d;       // f16
  uint16_t qs[32];  // indices, signs, scales
};

// 2.3125 b/w. The same, s per 16 weights
struct BlockIQ2_XS : Weights<256> {
  uint16_t d;         // f16
  uint16_t qs[32];    // per 8 weights: 9-bit grid index, 7-bit sign index above it
  uint8_t scales[8];  // s
};

// 2.5625 b/w. x as in IQ2_XS
struct BlockIQ2_S : Weights<256> {
  uint16_t d;         // f16
  uint8_t qs[32];     // low bits of the grid indices
  uint8_t signs[32];  // bit i of byte k negates x[8k + i]
  uint8_t qh[8];      // top bits of the grid indices
  uint8_t scales[8];  // s
};

// 3.0625 b/w. x = d * (0.5 + s) / 2 * grid * sign, s per 32 weights
struct BlockIQ3_XXS : Weights<256> {
  uint16_t d;                // f16
  uint8_t qs[64];            // grid indices
  uint8_t signs_scales[32];  // eight u32
};

// 3.4375 b/w. x = d * (2s + 1) * grid * sign, s per 32 weights
struct BlockIQ3_S : Weights<256> {
  uint16_t d;         // f16
  uint8_t qs[64];     // low bits of the grid indices
  uint8_t qh[8];      // ninth bits of the grid indices
  uint8_t signs[32];  // bit i of byte k negates x[8k + i]
  uint8_t scales[4];  // s
};

// 1.5625 b/w. x = d * (2s + 1) * (grid + delta), s and delta, 0.125 or -0.125, per 32 weights
struct BlockIQ1_S : Weights<256> {
  uint16_t d;      // f16
  uint8_t qs[32];  // low bits of the grid indices
  uint16_t qh[8];  // top bits, s, sign of delta
};

// 1.75 b/w. The same, s per 16 weights, delta per 8
struct BlockIQ1_M : Weights<256> {
  uint8_t qs[32];      // low bits of the grid indices
  uint8_t qh[16];      // top bits, sign of delta
  uint16_t scales[4];  // s; d in the top nibbles
};

// 4.25 b/w. x = d * (sc - 32) * kvalues_iq4nl[q], sc per 32 weights
struct BlockIQ4_XS : Weights<256> {
  uint16_t d;           // f16
  uint16_t scales_h;    // top two bits of each sc
  uint8_t scales_l[4];  // low four bits of each sc
  uint8_t qs[128];      // nibbles
};

// Ternary types: 256 weights of -1, 0 or 1 times d.

// 1.6875 b/w. x = d * (digit - 1), base-3 digits, five to a byte
struct BlockTQ1_0 : Weights<256> {
  uint8_t qs[48];  // five digits each
  uint8_t qh[4];   // four digits each
  uint16_t d;      // f16
};

// 2.0625 b/w. x = d * (q - 1)
struct BlockTQ2_0 : Weights<256> {
  uint8_t qs[64];  // two bits
  uint16_t d;      // f16
};

// Types of other programs: 128 weights.

// 2 b/w. x = q - 1, times the tensor's scale: an f32 after the last row, the first of 32 bytes
// (bitnet.cpp, as its x86 build and Microsoft's files have it)
struct BlockI2_S : Weights<128> {
  uint8_t qs[32];  // two bits
};
inline constexpr uint32_t kI2_STail = 32;

// 2.125 b/w. x = d * (q - 1) (PrismML's llama.cpp)
struct BlockPQ2_0 : Weights<128> {
  uint16_t d;      // f16
  uint8_t qs[32];  // two bits
};

// 1.75 b/w. x = d * (digit - 1), base-3 digits, five to a byte (PrismML's llama.cpp)
struct BlockPTQ1_0 : Weights<128> {
  uint8_t qs[24];  // five digits each
  uint8_t qh[2];   // four digits each
  uint16_t d;      // f16
};

}  // namespace gguf
