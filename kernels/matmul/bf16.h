// Products with batches in BF16, for CPUs with instructions for pairs (Extension::kBf16) or whole
// tiles (kAmx): both read the same layouts. Internal to kernels/.
//
// BF16 is the upper half of a float: 8 bits of precision. Rounding an input and a weight to it
// costs a relative squared error of 2.4e-6 each, a tenth of the error of inputs rounded to int8.
// The instructions multiply pairs of neighbours and add both products to a float. Products of pairs
// serve F16 and BF16 weights; tiles also serve quantized weights: a tile of bytes takes half the
// time, but its sums must be scaled after every 32 columns, which costs more than it saves.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernels {

constexpr size_t kBf16Rows = 32;    // rows of weights
constexpr size_t kBf16Tokens = 32;  // tokens of inputs
constexpr size_t kBf16Cols = 32;    // columns of both
constexpr size_t kBf16Half = 16;    // rows or tokens of an AMX register, or of a vector of floats

// 32 columns of 32 rows of weights.
struct alignas(64) Bf16PanelBlock {
  uint16_t weights[kBf16Rows][kBf16Cols];
};
// 32 columns of 32 inputs, in pairs of columns: the layout of AMX's second factor.
struct alignas(64) Bf16InputBlock {
  uint16_t x[kBf16Tokens / kBf16Half][kBf16Cols / 2][kBf16Half][2];
};

// Part of a row of a quantized type: integers times scales[i], plus mins[i]. 32 weights have
// n_scales scales (1 or 2) and n_mins minimums (0 to 2).
struct ScaledIntegers {
  const int8_t* weights;
  const float* scales;
  size_t n_scales;
  const float* mins;
  size_t n_mins;
};

// The following functions need Extension::kBf16 and round to nearest even.

// Packs row `row` of n_blocks blocks.
void PackBf16Integers(const ScaledIntegers& w, size_t n_blocks, size_t row, Bf16PanelBlock* blocks);
// Packs a block of 32 inputs; x[t] are 32 floats of input t.
void PackBf16Inputs(const float (&x)[kBf16Tokens][kBf16Cols], Bf16InputBlock* block);
// Turns n numbers in f16 into BF16, in place; n is a multiple of 32.
void HalfsToBf16(uint16_t* x, size_t n);

// Multiplies tiles with AMX if CpuUses it, otherwise with dot products of pairs. The constructor
// sets up this thread's AMX state, the destructor clears it: make one for a range of tiles.
class Bf16Multiplier {
 public:
  Bf16Multiplier();
  ~Bf16Multiplier();
  Bf16Multiplier(const Bf16Multiplier&) = delete;
  Bf16Multiplier& operator=(const Bf16Multiplier&) = delete;

  // sums[token * kBf16Rows + row] = row . token over the columns of n_blocks blocks, for the first
  // n_tokens tokens of the tile (1 to 32); later tokens may be written, too. sums is [32][32],
  // 64-byte aligned.
  void Multiply(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks, size_t n_tokens,
                float* sums) const;

 private:
  bool amx_;
};

// [half of the tokens][half of the rows][row][token]: the sums of 16 rows with 16 tokens each.
using Bf16Sums = float[kBf16Tokens / kBf16Half][kBf16Rows / kBf16Half][kBf16Half][kBf16Half];

// Bf16Multiplier with AMX (gemm_bf16_amx.cc).
void MultiplyAmx(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks, size_t n_tokens,
                 Bf16Sums& sums);
void SetUpAmx();
void ReleaseAmx();
// Runs rounds of products that load nothing, for the ceiling (ceiling.h), between SetUpAmx() and
// ReleaseAmx(). Returns the operations of a round.
size_t AmxRounds(size_t rounds);

}  // namespace kernels
