// Scratch: the buffers of a batch of tokens as it passes through the layers. Sized at construction
// for the widest layer and reused by every pass, so generation allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/model/config.h"
#include "engine/pass/pager.h"
#include "kernels/attention/head_products.h"
#include "kernels/attention/latent.h"
#include "kernels/buffer.h"
#include "kernels/experts/experts.h"
#include "kernels/matmul/matmul.h"

namespace engine {

struct Scratch {
  Scratch(const Config& c, size_t max_tokens, size_t max_threads);

  // The bytes that such a Scratch allocates.
  static size_t BytesFor(const Config& c, size_t max_tokens, size_t max_threads);

  size_t max_tokens;
  float* x;            // [tokens][embedding_length] the residual stream
  float* normed;       // [tokens][embedding_length] x after a norm
  float* temp;         // temporary rows of a mixer or network: fused outputs, gates, latent vectors
  float* q;            // [tokens][n_heads][key_length]
  float* k;            // [tokens][n_kv_heads][key_length]
  float* v;            // [tokens][n_kv_heads][value_length]
  float* attended;     // [tokens][n_heads][value_length]
  float* hidden;       // [tokens][ffn_length], or as wide as another inner layer
  float* delta;        // [tokens][embedding_length] what a mixer or a network adds to x
  float* transformed;  // [tokens][the widest input of a product], if Config::uses_hadamard
  float* gate;         // [tokens][n_heads * value_length or a recurrent layer's width]
  // Recurrent layers:
  float* conv_in;   // [tokens][channels]
  float* conv_out;  // [tokens][channels]
  float* alpha;     // [tokens][n_alpha]
  float* beta;      // [tokens][n_beta]
  // Per-layer embeddings and several residual streams (residual.h):
  float* per_layer;       // [tokens][n_layers][per_layer_length]
  float* per_layer_rows;  // [tokens][n_layers][per_layer_length] rows of per_layer_token_embd
  float* streams;         // [n_residual_streams][tokens][embedding_length]
  float* stream_coefs;    // [tokens][n_residual_streams], then [tokens][n_residual_streams^2]
  // RoPE:
  float* rope_cos;  // [ropes][tokens][n_dims / 2]
  float* rope_sin;
  // Experts:
  float* router;          // [tokens][n_experts]
  uint32_t* chosen;       // [tokens][n_experts_used]
  float* expert_weights;  // [tokens][n_experts_used] factors of the chosen experts' outputs
  float* shared;          // [tokens][embedding_length] the output of the shared expert
  float* shared_gate;     // [tokens]
  float* expert_in;       // [tokens][expert_width]
  float* expert_out;      // [tokens][expert_width]
  kernels::ExpertScratch experts;
  kernels::HeadScratch heads;  // latent attention
  kernels::LatentScratch latents;
  kernels::Activations input;    // the input of the next products, rounded to int8
  size_t n_layers_done = 0;      // layers that the current pass has done, for progress reports
  std::unique_ptr<Pager> pager;  // null unless the model is larger than memory

 private:
  struct Layout;
  Scratch(const Config& c, const Layout& layout, size_t max_tokens, size_t max_threads);

  std::vector<kernels::Buffer<float>> rows_;
  kernels::Buffer<uint32_t> chosen_;
};

}  // namespace engine
