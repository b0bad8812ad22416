// The small operations between the products. Vectorized with run-time dispatch; each is a function
// of its arguments alone and runs on the calling thread.
#ifndef PRONK_KERNELS_OPS_H_
#define PRONK_KERNELS_OPS_H_

#include <cstddef>

namespace kernels {

// out[i] = x[i] * weight[i] / sqrt(mean(x^2) + eps). RMSNorm, Zhang and Sennrich 2019. out may be
// x.
void RmsNorm(const float* x, const float* weight, float eps, size_t n, float* out);

// How rope pairs the dimensions of a head.
enum class RopePairs {
  kAdjacent,  // (2i, 2i+1): arch llama as GGUF stores it
  kHalves,    // (i, i + n_rot/2): qwen2, qwen3
};

// Rotates the first n_rot dimensions of each head in place; the others stay. heads is
// [n_heads][head_dim], cos and sin are [n_rot/2], already for this position. Su et al. 2021,
// RoFormer.
void Rope(float* heads, size_t n_heads, size_t head_dim, size_t n_rot, const float* cos,
          const float* sin, RopePairs pairs);

// gate[i] = silu(gate[i]) * up[i], silu(a) = a / (1 + exp(-a)). SwiGLU, Shazeer 2020.
void SiluMul(float* gate, const float* up, size_t n);

// x[i] += y[i]
void Add(float* x, const float* y, size_t n);

}  // namespace kernels

#endif  // PRONK_KERNELS_OPS_H_
