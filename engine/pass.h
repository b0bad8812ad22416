// Pass: the operations that the forward pass is made of, for a batch of tokens.
//
// Each takes [tokens][width] rows, splits them (or the weights' rows) among the team's threads, and
// notes its time where a trace is wanted. What they compute is in kernels/.
#ifndef PRONK_ENGINE_PASS_H_
#define PRONK_ENGINE_PASS_H_

#include <cstddef>
#include <initializer_list>
#include <span>

#include "engine/model.h"
#include "engine/rope.h"
#include "engine/scratch.h"
#include "engine/trace.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/team.h"
#include "tokenizer/tokenizer.h"

namespace engine {

class Pass {
 public:
  // trace may be null.
  Pass(const Config& config, size_t n_tokens, Scratch& scratch, kernels::Team& team, Trace* trace)
      : config_(config), n_tokens_(n_tokens), scratch_(scratch), team_(team), trace_(trace) {}

  // out[t] = the embedding's row of tokens[t].
  void Embed(const kernels::Matrix& token_embd, std::span<const tokenizer::TokenId> tokens,
             float* out);
  // The angles of positions first, first + 1, ... for RotateHeads().
  void SetPositions(const RopeAngles& rope, size_t first);
  // out = rmsnorm(in) * weight; rows [n_tokens][embedding_length].
  void Norm(const float* in, const float* weight, float* out);
  // The same for every head of rows [n_tokens][n_heads][head_dim], in place.
  void NormHeads(float* heads, const float* weight, size_t n_heads, size_t head_dim);
  // Turns every head of rows [n_tokens][n_heads][key_length] to its token's position, in place.
  void RotateHeads(float* heads, size_t n_heads);
  // out[t] = weights . in[t] + bias for each product; in is [n_tokens][in_width].
  struct Output {
    const kernels::Matrix& weights;
    float* out;  // [n_tokens][weights.rows]
    const float* bias = nullptr;
  };
  void MatMul(const float* in, size_t in_width, std::initializer_list<Output> outputs);
  // out = silu(gate . in) * (up . in)
  void GatedMatMul(const float* in, const kernels::Matrix& gate, const kernels::Matrix& up,
                   float* out);
  // Adds k and v at positions first, first + 1, ... to the cache, then lets each q attend to all up
  // to itself.
  void Attend(const kernels::KvLayer& cache, size_t first, const float* q, const float* k,
              const float* v, float* out);
  // x += y; rows [n_tokens][embedding_length].
  void Add(float* x, const float* y);

 private:
  template <class Work>
  void Step(std::string_view kind, uint64_t bytes,
            std::initializer_list<const kernels::Matrix*> weights, Work work);
  // Calls work(t) for each of n rows.
  template <class Work>
  void ForRows(size_t n, Work work);

  const Config& config_;
  size_t n_tokens_;
  Scratch& scratch_;
  kernels::Team& team_;
  Trace* trace_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_H_
