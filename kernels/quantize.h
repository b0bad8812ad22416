// Rounding activations to int8, the form in which products with quantized weights read them.
// Internal to kernels/.
#ifndef PRONK_KERNELS_QUANTIZE_H_
#define PRONK_KERNELS_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

namespace kernels {

// Weights, and so activations, come in units of this many for the int8 kernels.
constexpr size_t kActivationBlock = 32;  // share a scale
constexpr size_t kActivationPad = 512;   // rows are padded with zeros to a multiple of this

// For each 32 of the n numbers: scale = max|x| / 127, q = x / scale rounded to nearest (even). n is
// a multiple of 32. Also the sums of each 16 q. The same bits on every instruction set.
void QuantizeActivations(const float* x, size_t n, int8_t* q, float* scales, int16_t* sums);

}  // namespace kernels

#endif  // PRONK_KERNELS_QUANTIZE_H_
