// Products with batches in BF16, for CPUs with instructions for them (Extension::kBf16) or for
// whole tiles of them (kAmx): both read the same layouts. Internal to kernels/.
//
// BF16 is the upper half of a float: 8 bits of precision. Rounding an input and a weight to it
// costs 2.4e-6 of a product's power each, a tenth of what rounding inputs to int8 costs. The
// instructions multiply pairs of neighbours and add both products to a float. For F16 and BF16
// weights.
#ifndef PRONK_KERNELS_BF16_H_
#define PRONK_KERNELS_BF16_H_

#include <cstddef>
#include <cstdint>

namespace kernels {

constexpr size_t kBf16Rows = 32;    // of weights
constexpr size_t kBf16Tokens = 32;  // of inputs
constexpr size_t kBf16Cols = 32;    // of both

// 32 columns of 32 rows of weights, in pairs of columns: as AMX wants its second factor.
struct alignas(64) Bf16PanelBlock {
  uint16_t weights[kBf16Cols / 2][kBf16Rows][2];
};
// 32 columns of 32 inputs.
struct alignas(64) Bf16InputBlock {
  uint16_t x[kBf16Tokens][kBf16Cols];
};

// out[i] = x[i], rounded to nearest even; n is a multiple of 32. Needs Extension::kBf16.
void RoundToBf16(const float* x, size_t n, uint16_t* out);
// The same for f16 numbers, in their place.
void HalfsToBf16(uint16_t* x, size_t n);

// Multiplies tiles with AMX where CpuUses it, otherwise with dot products of pairs. AMX has a state
// that a thread sets up before and clears after: make one for a range of tiles, on that thread.
class Bf16Multiplier {
 public:
  Bf16Multiplier();
  ~Bf16Multiplier();
  Bf16Multiplier(const Bf16Multiplier&) = delete;
  Bf16Multiplier& operator=(const Bf16Multiplier&) = delete;

  // sums[token * kBf16Rows + row] = row . token over the columns of n_blocks blocks, for n_tokens
  // (1 to 32) tokens of the tile and perhaps some more. sums: [32][32], 64-byte aligned.
  void Multiply(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks, size_t n_tokens,
                float* sums) const;

 private:
  bool amx_;
};

// The way of AMX (gemm_bf16_amx.cc).
void MultiplyAmx(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks, size_t n_tokens,
                 float* sums);
void SetUpAmx();
void ReleaseAmx();
// Between those: rounds of products of bytes that load nothing, for the ceiling; returns the
// operations of a round.
size_t AmxRounds(size_t rounds);

}  // namespace kernels

#endif  // PRONK_KERNELS_BF16_H_
