// The bytes of every quantized type in the file: one packed struct per type.
//
// This is only the layout. Each comment shows the bytes in order and the value of a weight;
// kernels/formats/ has the same as scalar code. All numbers are little-endian. Half floats (f16)
// are bit patterns in uint16_t, which the kernels convert.
//
// Notation: x[j] is the j-th weight of the block, d and m ("scale" and "min") are per block, sc and
// min are the small scales of a part of the block, q is the packed integer of the weight. "Low
// nibble" is byte & 15, "high nibble" is byte >> 4. The b/w of a heading are bits per weight,
// scales included.
//
// No struct needs more than 4-byte alignment, and tensors start at multiples of 8 at least
// (reader.cc refuses others), so blocks are read in place. 32-bit fields at odd offsets are byte
// arrays.
#ifndef PRONK_GGUF_BLOCKS_H_
#define PRONK_GGUF_BLOCKS_H_

#include <cstdint>

namespace gguf {

// ---------------------------------------------------------------------------------------------------
// Simple types: 32 weights, one scale. Byte j of qs holds x[j] in its low nibble and x[j+16] in its
// high.

// 4.5 b/w. x = d * (q - 8)
struct BlockQ4_0 {
  static constexpr int kWeights = 32;
  uint16_t d;      // f16
  uint8_t qs[16];  // nibbles
};
static_assert(sizeof(BlockQ4_0) == 18);

// 5 b/w. x = d * q + m
struct BlockQ4_1 {
  static constexpr int kWeights = 32;
  uint16_t d;      // f16
  uint16_t m;      // f16
  uint8_t qs[16];  // nibbles
};
static_assert(sizeof(BlockQ4_1) == 20);

// 5.5 b/w. x = d * (q - 16); the fifth bit of x[j] is bit j of qh, read as one little-endian u32
struct BlockQ5_0 {
  static constexpr int kWeights = 32;
  uint16_t d;      // f16
  uint8_t qh[4];   // fifth bits, a u32
  uint8_t qs[16];  // nibbles: the low four bits
};
static_assert(sizeof(BlockQ5_0) == 22);

// 6 b/w. x = d * q + m; fifth bits as Q5_0
struct BlockQ5_1 {
  static constexpr int kWeights = 32;
  uint16_t d;      // f16
  uint16_t m;      // f16
  uint8_t qh[4];   // fifth bits, a u32
  uint8_t qs[16];  // nibbles: the low four bits
};
static_assert(sizeof(BlockQ5_1) == 24);

// 8.5 b/w. x = d * q
struct BlockQ8_0 {
  static constexpr int kWeights = 32;
  uint16_t d;     // f16
  int8_t qs[32];  // in order
};
static_assert(sizeof(BlockQ8_0) == 34);

// 9 b/w. x = d * q. For activations: s saves a sum in the dot product with Q4_1 and Q5_1.
struct BlockQ8_1 {
  static constexpr int kWeights = 32;
  uint16_t d;     // f16
  uint16_t s;     // f16: d * (sum of qs)
  int8_t qs[32];  // in order
};
static_assert(sizeof(BlockQ8_1) == 36);

// 4.5 b/w. x = d * kvalues_iq4nl[q]: a non-uniform codebook of sixteen values
struct BlockIQ4_NL {
  static constexpr int kWeights = 32;
  uint16_t d;      // f16
  uint8_t qs[16];  // nibbles, order as Q4_0
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// 4.25 b/w. x = 2^(e - 128) * kvalues_fp4[q]: the sixteen 4-bit floats, doubled to be integers
struct BlockMXFP4 {
  static constexpr int kWeights = 32;
  uint8_t e;       // exponent
  uint8_t qs[16];  // nibbles, order as Q4_0
};
static_assert(sizeof(BlockMXFP4) == 17);

// 4.5 b/w. x = d[j/16] * kvalues_fp4[q] / 2, the d 8-bit floats without a sign (UE4M3: four bits of
// exponent, three of mantissa; half.h). Group g of 16 weights uses qs[8g .. 8g+7]: eight low
// nibbles, then eight high nibbles. A separate tensor has one more factor for the whole matrix.
struct BlockNVFP4 {
  static constexpr int kWeights = 64;
  uint8_t d[4];    // UE4M3
  uint8_t qs[32];  // nibbles
};
static_assert(sizeof(BlockNVFP4) == 36);

// ---------------------------------------------------------------------------------------------------
// Simple types of few bits: one scale, and weights in order, from the lowest bits of a byte up.

// 1.125 b/w. x[j] = d where bit j % 8 of qs[j/8] is set, else -d
struct BlockQ1_0 {
  static constexpr int kWeights = 128;
  uint16_t d;      // f16
  uint8_t qs[16];  // bits
};
static_assert(sizeof(BlockQ1_0) == 18);

// 2.25 b/w. x[j] = d * (q - 1) with q = (qs[j/4] >> 2*(j%4)) & 3: -1, 0, 1 or 2 times d
struct BlockQ2_0 {
  static constexpr int kWeights = 64;
  uint16_t d;      // f16
  uint8_t qs[16];  // two bits
};
static_assert(sizeof(BlockQ2_0) == 18);

// ---------------------------------------------------------------------------------------------------
// K-quants: 256 weights, a scale (and a min) for every 16 or 32 of them, themselves quantized.

// 2.625 b/w. x = d * sc * q - dmin * min, sc and min per 16 weights.
// Weights come in two halves of 128: half h uses qs[32h .. 32h+31]; shift 0, 2, 4, 6 gives 32
// weights each, (qs >> shift) & 3. scales[k] belongs to x[16k .. 16k+15].
struct BlockQ2_K {
  static constexpr int kWeights = 256;
  uint8_t scales[16];  // low nibble sc, high nibble min
  uint8_t qs[64];      // two bits
  uint16_t d;          // f16
  uint16_t dmin;       // f16
};
static_assert(sizeof(BlockQ2_K) == 84);

// 3.4375 b/w. x = d * sc * (low - (hmask bit set ? 0 : 4)), sc per 16 weights.
// low two bits as Q2_K; for x[32i + l] the third is bit i of hmask[l].
// sc is six bits minus 32: of scale j the low four are in scales[j & 7] (low nibble for j < 8, else
// high), the top two are bits 2*(j/4) and 2*(j/4)+1 of scales[8 + j % 4].
struct BlockQ3_K {
  static constexpr int kWeights = 256;
  uint8_t hmask[32];   // third bits
  uint8_t qs[64];      // low two bits
  uint8_t scales[12];  // sixteen six-bit scales
  uint16_t d;          // f16
};
static_assert(sizeof(BlockQ3_K) == 110);

// 4.5 b/w. x = d * sc * q - dmin * min, sc and min per 32 weights.
// The i-th 64 weights use qs[32i .. 32i+31]: 32 low nibbles, then 32 high nibbles.
// With s = scales: for j < 4, sc = s[j] & 63 and min = s[j+4] & 63; for j >= 4,
// sc = (s[j+4] & 15) | (s[j-4] >> 6) << 4 and min = (s[j+4] >> 4) | (s[j] >> 6) << 4.
struct BlockQ4_K {
  static constexpr int kWeights = 256;
  uint16_t d;          // f16
  uint16_t dmin;       // f16
  uint8_t scales[12];  // eight six-bit sc, eight six-bit min
  uint8_t qs[128];     // nibbles
};
static_assert(sizeof(BlockQ4_K) == 144);

// 5.5 b/w. As Q4_K, with a fifth bit: of the i-th 64 weights, bit 2i of qh[l] for the l-th of the
// first 32, bit 2i+1 for the l-th of the second.
struct BlockQ5_K {
  static constexpr int kWeights = 256;
  uint16_t d;          // f16
  uint16_t dmin;       // f16
  uint8_t scales[12];  // as Q4_K
  uint8_t qh[32];      // fifth bits
  uint8_t qs[128];     // nibbles: the low four bits
};
static_assert(sizeof(BlockQ5_K) == 176);

// 6.5625 b/w. x = d * sc * (q - 32), sc per 16 weights.
// Half h of 128 weights uses ql[64h ..], qh[32h ..], scales[8h ..]. For l in 0..31 and k in 0..3,
// x[32k + l] has low bits: ql[l] low, ql[l+32] low, ql[l] high, ql[l+32] high nibble (k = 0, 1, 2,
// 3); top bits: (qh[l] >> 2k) & 3; scale: scales[l/16 + 2k].
struct BlockQ6_K {
  static constexpr int kWeights = 256;
  uint8_t ql[128];    // low four bits
  uint8_t qh[64];     // top two bits
  int8_t scales[16];  // sc
  uint16_t d;         // f16
};
static_assert(sizeof(BlockQ6_K) == 210);

// 9.125 b/w. x = d * q. For activations: the sums save a pass in dot products with mins.
struct BlockQ8_K {
  static constexpr int kWeights = 256;
  float d;            // f32, unlike the others
  int8_t qs[256];     // in order
  int16_t bsums[16];  // sums of 16 qs each
};
static_assert(sizeof(BlockQ8_K) == 292);

// ---------------------------------------------------------------------------------------------------
// IQ types: 256 weights. A small group of weights is an index into a grid of points, with separate
// signs. A 7-bit sign index encodes 8 signs: bit i negates weight i, and the eighth makes the
// number of minus signs even.

// 2.0625 b/w. x = d * (0.5 + s) / 4 * grid * sign, per group g of 32 weights: qs[4g], qs[4g+1] are
// four u8 grid indices (8 weights each); qs[4g+2], qs[4g+3] a u32 of four 7-bit sign indices and,
// on top, s.
struct BlockIQ2_XXS {
  static constexpr int kWeights = 256;
  uint16_t d;       // f16
  uint16_t qs[32];  // indices, signs, scales
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

// 2.3125 b/w. x = d * (0.5 + s) / 4 * grid * sign; s is a nibble of scales per 16 weights, low one
// first.
struct BlockIQ2_XS {
  static constexpr int kWeights = 256;
  uint16_t d;         // f16
  uint16_t qs[32];    // per 8 weights: 9-bit grid index, 7-bit sign index above it
  uint8_t scales[8];  // s
};
static_assert(sizeof(BlockIQ2_XS) == 74);

// 2.5625 b/w. x = d * (0.5 + s) / 4 * grid * sign, s as IQ2_XS; of the grid index of the l-th 8
// weights of group g (32 weights) the low eight bits are qs[4g + l], the top two (qh[g] >> 2l) & 3.
struct BlockIQ2_S {
  static constexpr int kWeights = 256;
  uint16_t d;         // f16
  uint8_t qs[32];     // low bits of the grid indices
  uint8_t signs[32];  // bit i of byte k negates x[8k + i]
  uint8_t qh[8];      // top bits of the grid indices
  uint8_t scales[8];  // s
};
static_assert(sizeof(BlockIQ2_S) == 82);

// 3.0625 b/w. x = d * (0.5 + s) / 2 * grid * sign. A grid index codes 4 weights; signs_scales are
// eight u32, one per 32 weights: four 7-bit sign indices and, on top, s.
struct BlockIQ3_XXS {
  static constexpr int kWeights = 256;
  uint16_t d;                // f16
  uint8_t qs[64];            // grid indices
  uint8_t signs_scales[32];  // eight u32
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

// 3.4375 b/w. x = d * (1 + 2s) * grid * sign; s is a nibble of scales per 32 weights, low one
// first. A grid index codes 4 weights: index k of group g (32 weights, k in 0..7) is qs[8g + k] and
// bit k of qh[g].
struct BlockIQ3_S {
  static constexpr int kWeights = 256;
  uint16_t d;         // f16
  uint8_t qs[64];     // low bits of the grid indices
  uint8_t qh[8];      // ninth bits of the grid indices
  uint8_t signs[32];  // bit i of byte k negates x[8k + i]
  uint8_t scales[4];  // s
};
static_assert(sizeof(BlockIQ3_S) == 110);

// 1.5625 b/w. x = d * (2s + 1) * (grid + delta). Group g of 32 weights: the l-th 8 have grid index
// qs[4g + l] | ((qh[g] >> 3l) & 7) << 8; s is bits 12-14 of qh[g]; delta is -0.125 if bit 15 is
// set, else 0.125.
struct BlockIQ1_S {
  static constexpr int kWeights = 256;
  uint16_t d;      // f16
  uint8_t qs[32];  // low bits of the grid indices
  uint16_t qh[8];  // top bits, s, sign of delta
};
static_assert(sizeof(BlockIQ1_S) == 50);

// 1.75 b/w. x = d * (2s + 1) * (grid + delta). Group g of 32 weights: the l-th 8 have nibble l % 2
// of qh[2g + l/2]: three top bits of the grid index, and the sign of delta (0.125) as in IQ1_S; s =
// (scales[g/2] >> (6*(g%2) + 3*(l/2))) & 7. d is an f16 whose nibbles, lowest first, are the top
// nibbles of scales[0..3].
struct BlockIQ1_M {
  static constexpr int kWeights = 256;
  uint8_t qs[32];      // low bits of the grid indices
  uint8_t qh[16];      // top bits, sign of delta
  uint16_t scales[4];  // s; d in the top nibbles
};
static_assert(sizeof(BlockIQ1_M) == 56);

// 4.25 b/w. x = d * (sc - 32) * kvalues_iq4nl[q]. Group g of 32 weights uses qs[16g .. 16g+15],
// order as Q4_0; sc = nibble g % 2 of scales_l[g/2] | ((scales_h >> 2g) & 3) << 4.
struct BlockIQ4_XS {
  static constexpr int kWeights = 256;
  uint16_t d;           // f16
  uint16_t scales_h;    // top two bits of each sc
  uint8_t scales_l[4];  // low four bits of each sc
  uint8_t qs[128];      // nibbles
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// ---------------------------------------------------------------------------------------------------
// Ternary types: 256 weights of -1, 0 or 1 times d.

// 1.6875 b/w. x = d * (digit - 1), base-3 digits, five to a byte: digit n of byte q is
// (((q * 3^n) & 255) * 3) >> 8. Order: for n in 0..4 over qs[0..31], for n in 0..4 over qs[32..47],
// for n in 0..3 over qh.
struct BlockTQ1_0 {
  static constexpr int kWeights = 256;
  uint8_t qs[48];  // five digits each
  uint8_t qh[4];   // four digits each
  uint16_t d;      // f16
};
static_assert(sizeof(BlockTQ1_0) == 54);

// 2.0625 b/w. x = d * (q - 1). Order: for shift in 0, 2, 4, 6 over qs[0..31], then the same over
// qs[32..63].
struct BlockTQ2_0 {
  static constexpr int kWeights = 256;
  uint8_t qs[64];  // two bits
  uint16_t d;      // f16
};
static_assert(sizeof(BlockTQ2_0) == 66);

}  // namespace gguf

#endif  // PRONK_GGUF_BLOCKS_H_
