// The small operations between products. They are vectorized, depend only on their arguments, and
// run on the calling thread.
#pragma once

#include <cstddef>
#include <limits>

namespace kernels {

// out[i] = x[i] * weight[i] / sqrt(mean(x^2) + eps). RMSNorm, Zhang and Sennrich 2019. out may be
// x. Without weight (null) the result has the same bits as with weights of 1.
void RmsNorm(const float* x, const float* weight, float eps, size_t n, float* out);

// RmsNorm of x - mean(x): LayerNorm without bias, Ba et al. 2016.
void LayerNorm(const float* x, const float* weight, float eps, size_t n, float* out);

// How rope pairs the dimensions of a head.
enum class RopePairs {
  kAdjacent,  // (2i, 2i+1): arch llama as GGUF stores it
  kHalves,    // (i, i + n_rot/2): qwen2, qwen3
};

// Rotates the first n_rot dimensions of each head in place, and leaves the other dimensions
// unchanged. heads is [n_heads][head_dim]; cos and sin, [n_rot/2], belong to the token's position.
// Su et al. 2021, RoFormer.
void Rope(float* heads, size_t n_heads, size_t head_dim, size_t n_rot, const float* cos,
          const float* sin, RopePairs pairs);

// How a layer combines a gate g and the number u that it gates. Gated linear units, Shazeer 2020.
enum class Activation {
  kSilu,          // g / (1 + exp(-g)) * u
  kGelu,          // 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))) * u, Hendrycks and Gimpel 2016
  kGeluAlone,     // kGelu of g, without a gate
  kGeluErf,       // 0.5 g (1 + erf(g / sqrt(2))), without a gate: GELU itself
  kGatedGeluErf,  // kGeluErf of g, times u
  kRelu,          // max(0, g), without a gate
  kSwigluOai,     // with g = min(g, 7), u = clamp(u, -7, 7): g / (1 + exp(-1.702 g)) * (u + 1)
  kSigmoid,       // u / (1 + exp(-g)): gated attention
  kReluSquared,   // max(0, g)^2, without a gate. So et al. 2021, Primer
  kGatedReluSquared,  // max(0, g)^2 * u (BitNet b1.58 2B4T)
  kSoftplus,          // ln(1 + exp(g)) * u
  kLimitedSilu,       // min(g / (1 + exp(-g)), limit) * clamp(u, -limit, limit)
};

constexpr bool IsGated(Activation activation) {
  return activation != Activation::kReluSquared && activation != Activation::kGeluAlone &&
         activation != Activation::kGeluErf && activation != Activation::kRelu;
}

// gate[i] = activation(gate[i], up[i]). up may be null if the activation reads no u. limit, above
// 0, is kLimitedSilu's.
void GatedActivation(Activation activation, float* gate, const float* up, size_t n,
                     float limit = std::numeric_limits<float>::infinity());

// xIELU (Huang and Schlag 2024): an activation without a gate, whose parameters are learned.
struct Xielu {
  float positive, negative, beta, eps;
};
// x[i] = positive x^2 + beta x where x > 0, else negative (exp(min(x, eps)) - 1 - x) + beta x
void ApplyXielu(const Xielu& xielu, float* x, size_t n);

// x[i] += y[i]
void Add(float* x, const float* y, size_t n);

// x[i] += factor * y[i], rounded once
void AddScaled(float* x, float factor, const float* y, size_t n);

// x[i] *= factor
void Scale(float* x, float factor, size_t n);

// x[i] = cap * tanh(x[i] / cap), within [-cap, cap]. Gemma 2 (2024).
void SoftCap(float* x, float cap, size_t n);

}  // namespace kernels
