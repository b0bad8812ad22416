// Layers with a state of fixed size instead of all keys and values: the mixers of hybrid models.
// README.md explains them.
//
// The functions run inside ThreadPool::Run() or on one thread. The bits of a result depend neither
// on the number of threads nor on how tokens are split into batches. A state starts as zeros.
#pragma once

#include <cstddef>

#include "kernels/threads/thread_pool.h"

namespace kernels {

constexpr size_t kMaxTaps = 8;

// out_t[c] = bias[c] + sum_i taps[c][i] * in_{t - n_taps + 1 + i}[c], then x / (1 + exp(-x)) if
// `silu`.
struct CausalConv {
  const float* taps = nullptr;  // [n_channels][n_taps], a channel's last is for the current token
  const float* bias = nullptr;  // [n_channels], or null
  size_t n_taps = 0;            // 1 to kMaxTaps
  size_t n_channels = 0;
  bool silu = false;
  size_t stride = 0;  // floats from token to token of input, output and history; 0: n_channels
};

// Each channel is independent. in and out are [n_tokens][n_channels], out is not in. history,
// [n_taps - 1][n_channels], has the inputs before the batch, oldest first; the call makes it the
// inputs before the next batch.
void Convolve(ThreadPool& pool, const CausalConv& conv, float* history, const float* in,
              size_t n_tokens, float* out);

// The value in the authors' own code, for all models.
inline constexpr float kUnitEps = 1e-6f;

// Gated DeltaNet, Yang et al. 2024. Value head j has a state S [length keys][length values] and
// with every token's q, k, v, alpha and beta of this head
//   S = exp(softplus(alpha + dt_bias[j]) * a[j]) * S, or each row of S by its own alpha and dt_bias
//   S = S + k' d^T  where  d = sigmoid(beta) * (v - S^T k')
//   out = S^T q'
// where k' = k / sqrt(|k|^2 + kUnitEps), q' = q / sqrt(|q|^2 + kUnitEps) / sqrt(length).
struct DeltaNet {
  size_t n_key_heads = 0;
  size_t n_value_heads = 0;  // a multiple of n_key_heads
  size_t length = 0;         // the length of a key, and of a value
  // Key heads repeat as a whole; otherwise neighbouring value heads share a key head.
  bool tiled_key_heads = false;
  const float* dt_bias = nullptr;  // [n_value_heads], or [n_value_heads][length]
  const float* a = nullptr;        // [n_value_heads], negative: the rate of decay
  // Kimi delta attention, Zhang et al. 2025: every channel of a key has its own decay.
  bool decay_by_channel = false;
  // With decay_by_channel, where not 0: the state decays by exp(lowest * sigmoid(a[j] * (alpha +
  // dt_bias))), and a is positive.
  float lowest = 0;

  size_t KeyHead(size_t j) const {
    return tiled_key_heads ? j % n_key_heads : j / (n_value_heads / n_key_heads);
  }
};

// state is [n_value_heads][length][length]. qkv is [n_tokens][n_key_heads + n_key_heads +
// n_value_heads][length], alpha and beta [n_tokens][n_value_heads], alpha with decay_by_channel
// [n_tokens][n_value_heads][length]; the call changes them: q and k become q' and k', alpha the
// softplus or the decay, and beta the sigmoid. out is [n_tokens][n_value_heads][length].
void GatedDeltaNet(ThreadPool& pool, const DeltaNet& net, float* state, float* qkv, float* alpha,
                   float* beta, size_t n_tokens, float* out);

// Mamba-2, Dao and Gu 2024. Head j, of group j / (n_heads / n_groups), has a state S
// [state_length][head_length] and with every token's u and dt of the head, B and C of the group
//   dt' = softplus(dt + dt_bias[j])
//   S = exp(dt' * a[j]) * S + B (dt' * u)^T
//   out = S^T C + d[j] * u
// Without dt_bias every dt' is 1, without d the term of u is 0: lightning attention, Qin et al.
// 2024.
struct Mamba2 {
  size_t n_groups = 0;
  size_t n_heads = 0;  // a multiple of n_groups
  size_t state_length = 0;
  size_t head_length = 0;
  const float* dt_bias = nullptr;  // [n_heads], or null
  const float* a = nullptr;        // [n_heads], negative
  const float* d = nullptr;        // [n_heads], or null
};

// state is [n_heads][state_length][head_length], the transpose of the paper's. ubc is [n_tokens]
// rows of u [n_heads][head_length], B [n_groups][state_length], C [n_groups][state_length]. dt is
// [n_tokens][n_heads]; the call changes it to dt'. out is [n_tokens][n_heads][head_length].
void SelectiveScan(ThreadPool& pool, const Mamba2& net, float* state, const float* ubc, float* dt,
                   size_t n_tokens, float* out);

// Mamba, Gu and Dao 2023. Channel c has a state s [state_length] and with every token's u and dt of
// the channel, and its B and C
//   dt' = softplus(dt)
//   s = exp(dt' * a[c]) * s + dt' * u * B
//   out = s . C + d[c] * u
struct Mamba {
  size_t n_channels = 0;
  size_t state_length = 0;
  const float* a = nullptr;  // [n_channels][state_length], negative
  const float* d = nullptr;  // [n_channels]
};

// state is [n_channels][state_length]. u, dt and out are [n_tokens][n_channels], bc [n_tokens] rows
// of B, then C.
void SelectiveScan(ThreadPool& pool, const Mamba& net, float* state, const float* u,
                   const float* dt, const float* bc, size_t n_tokens, float* out);

}  // namespace kernels
