// Config: what kind of transformer a file holds, as plain numbers and flags. Read from the metadata
// and checked once; everything behind it may divide by, index with and allocate for these numbers.
#ifndef PRONK_ENGINE_CONFIG_H_
#define PRONK_ENGINE_CONFIG_H_

#include <cstddef>
#include <string>

#include "gguf/file.h"
#include "kernels/ops.h"

namespace engine {

// How positions beyond the trained context are squeezed into it.
enum class RopeScaling {
  kNone,
  kLinear,  // positions divided by the factor (Chen et al. 2023)
  kYarn,    // a mix of both ends by wavelength (Peng et al. 2023)
};

struct RopeConfig {
  kernels::RopePairs pairs = kernels::RopePairs::kAdjacent;
  size_t n_dims = 0;  // rotated dimensions of each head, even, <= key_length
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // how many times longer than trained
  size_t original_context = 0;    // yarn: the context it was trained with
  double attention_factor = 1.0;  // yarn: multiplies cos and sin on top of the paper's own factor
  double beta_fast = 32.0;        // yarn: dimensions turning more often than this are left alone,
  double beta_slow = 1.0;         // ... less often than this are interpolated
};

struct Config {
  std::string architecture;     // general.architecture
  size_t vocab_size = 0;        // rows of token_embd
  size_t context_length = 0;    // positions it was trained for
  size_t embedding_length = 0;  // width of the residual stream
  size_t n_layers = 0;
  size_t n_heads = 0;
  size_t n_kv_heads = 0;    // divides n_heads
  size_t key_length = 0;    // head_dim of queries and keys, even
  size_t value_length = 0;  // head_dim of values
  size_t ffn_length = 0;    // width of the hidden layer of the feed-forward network
  float norm_eps = 0;
  bool qk_norm = false;  // RMSNorm on each head of q and k before rope
  RopeConfig rope;

  // Throws gguf::Error (file, key, expected, found).
  static Config Read(const gguf::File& file);
};

}  // namespace engine

#endif  // PRONK_ENGINE_CONFIG_H_
