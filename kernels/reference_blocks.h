// One DequantizeBlock per quantized type, the scalar definitions behind reference.h. Each writes
// the Block::kWeights weights of one block to out.
//
// In all of them the products are exact in float (an f16 scale has 11 bits, a small scale at most
// 8, an integer weight at most 6), so a weight is rounded at most once, where a minimum is
// subtracted from it or where the scale is an f32. Hence the result does not depend on the
// compiler's contracting of a * b + c.
#ifndef PRONK_KERNELS_REFERENCE_BLOCKS_H_
#define PRONK_KERNELS_REFERENCE_BLOCKS_H_

#include "gguf/blocks.h"

namespace kernels {

// reference_legacy.cc: simple blocks
void DequantizeBlock(const gguf::BlockQ4_0& block, float* out);
void DequantizeBlock(const gguf::BlockQ4_1& block, float* out);
void DequantizeBlock(const gguf::BlockQ5_0& block, float* out);
void DequantizeBlock(const gguf::BlockQ5_1& block, float* out);
void DequantizeBlock(const gguf::BlockQ8_0& block, float* out);
void DequantizeBlock(const gguf::BlockQ8_1& block, float* out);
void DequantizeBlock(const gguf::BlockIQ4_NL& block, float* out);
void DequantizeBlock(const gguf::BlockMXFP4& block, float* out);
void DequantizeBlock(const gguf::BlockNVFP4& block, float* out);
void DequantizeBlock(const gguf::BlockQ1_0& block, float* out);
void DequantizeBlock(const gguf::BlockQ2_0& block, float* out);

// reference_k.cc: 256 weights with scales of scales
void DequantizeBlock(const gguf::BlockQ2_K& block, float* out);
void DequantizeBlock(const gguf::BlockQ3_K& block, float* out);
void DequantizeBlock(const gguf::BlockQ4_K& block, float* out);
void DequantizeBlock(const gguf::BlockQ5_K& block, float* out);
void DequantizeBlock(const gguf::BlockQ6_K& block, float* out);
void DequantizeBlock(const gguf::BlockQ8_K& block, float* out);

// reference_iq.cc: grids and signs, and the ternary types
void DequantizeBlock(const gguf::BlockIQ1_S& block, float* out);
void DequantizeBlock(const gguf::BlockIQ1_M& block, float* out);
void DequantizeBlock(const gguf::BlockIQ2_XXS& block, float* out);
void DequantizeBlock(const gguf::BlockIQ2_XS& block, float* out);
void DequantizeBlock(const gguf::BlockIQ2_S& block, float* out);
void DequantizeBlock(const gguf::BlockIQ3_XXS& block, float* out);
void DequantizeBlock(const gguf::BlockIQ3_S& block, float* out);
void DequantizeBlock(const gguf::BlockIQ4_XS& block, float* out);
void DequantizeBlock(const gguf::BlockTQ1_0& block, float* out);
void DequantizeBlock(const gguf::BlockTQ2_0& block, float* out);

}  // namespace kernels

#endif  // PRONK_KERNELS_REFERENCE_BLOCKS_H_
