#include "engine/pass.h"

#include <array>
#include <cmath>

#include "engine/stopwatch.h"
#include "kernels/ops.h"
#include "kernels/reference.h"

namespace engine {
namespace {

constexpr size_t kMaxOutputs = 3;  // q, k and v

}  // namespace

template <class Work>
void Pass::Step(std::string_view kind, uint64_t bytes,
                std::initializer_list<const kernels::Matrix*> weights, Work work) {
  if (trace_ == nullptr) return work();
  const Stopwatch watch;
  work();
  TraceStep step;
  step.kind = kind;
  step.bytes = bytes;
  step.seconds = watch.Seconds();
  for (const kernels::Matrix* matrix : weights) {
    if (matrix == nullptr) continue;
    step.weights.push_back(*matrix);
    step.bytes += matrix->rows * matrix->row_bytes();
  }
  trace_->steps.push_back(std::move(step));
}

template <class Work>
void Pass::ForRows(size_t n, Work work) {
  team_.For(n, 1, [&](size_t begin, size_t end, size_t) {
    for (size_t t = begin; t < end; ++t) work(t);
  });
}

void Pass::Embed(const kernels::Matrix& token_embd, std::span<const tokenizer::TokenId> tokens,
                 float* out) {
  Step("embed", n_tokens_ * token_embd.row_bytes(), {}, [&] {
    ForRows(n_tokens_, [&](size_t t) {
      kernels::DequantizeRow(token_embd.dtype, token_embd.row(static_cast<size_t>(tokens[t])),
                             token_embd.cols, out + t * token_embd.cols);
    });
  });
}

void Pass::SetPositions(const RopeAngles& rope, size_t first) {
  const size_t n_pairs = rope.n_pairs();
  ForRows(n_tokens_, [&](size_t t) {
    rope.Fill(first + t, scratch_.rope_cos.row(t, n_pairs), scratch_.rope_sin.row(t, n_pairs));
  });
}

void Pass::Norm(const float* in, const float* weight, float* out) {
  const size_t width = config_.embedding_length;
  Step("norm", 0, {}, [&] {
    ForRows(n_tokens_, [&](size_t t) {
      kernels::RmsNorm(in + t * width, weight, config_.norm_eps, width, out + t * width);
    });
  });
}

void Pass::NormHeads(float* heads, const float* weight, size_t n_heads, size_t head_dim) {
  Step("norm", 0, {}, [&] {
    ForRows(n_tokens_ * n_heads, [&](size_t h) {
      kernels::RmsNorm(heads + h * head_dim, weight, config_.norm_eps, head_dim,
                       heads + h * head_dim);
    });
  });
}

void Pass::RotateHeads(float* heads, size_t n_heads) {
  const RopeConfig& rope = config_.rope;
  const size_t n_pairs = rope.n_dims / 2;
  Step("rope", 0, {}, [&] {
    ForRows(n_tokens_, [&](size_t t) {
      kernels::Rope(heads + t * n_heads * config_.key_length, n_heads, config_.key_length,
                    rope.n_dims, scratch_.rope_cos.row(t, n_pairs),
                    scratch_.rope_sin.row(t, n_pairs), rope.pairs);
    });
  });
}

void Pass::MatMul(const float* in, size_t in_width, std::initializer_list<Output> outputs) {
  std::array<kernels::Product, kMaxOutputs> products;
  std::array<const kernels::Matrix*, kMaxOutputs> weights = {};
  size_t n = 0;
  for (const Output& output : outputs) {
    weights[n] = &output.weights;
    products[n++] = {output.weights, output.out, output.weights.rows, output.bias};
  }
  Step("matmul", 0, {weights[0], weights[1], weights[2]}, [&] {
    scratch_.input.Set(in, n_tokens_, in_width);
    kernels::MatMul(team_, std::span(products).first(n), scratch_.input);
  });
}

void Pass::GatedMatMul(const float* in, const kernels::Matrix& gate, const kernels::Matrix& up,
                       float* out) {
  Step("matmul", 0, {&gate, &up}, [&] {
    scratch_.input.Set(in, n_tokens_, gate.cols);
    kernels::GatedMatMul(team_, gate, up, scratch_.input, out);
  });
}

void Pass::Attend(const kernels::KvLayer& cache, size_t first, const float* q, const float* k,
                  const float* v, float* out) {
  const uint64_t head = kernels::KvBytes(cache.type, cache.key_length) +
                        kernels::KvBytes(cache.type, cache.value_length);
  const uint64_t cached = (first + n_tokens_) * cache.n_kv_heads * head;
  kernels::AttentionParams params;
  params.scale = 1.0f / std::sqrt(static_cast<float>(config_.key_length));
  Step("attention", cached, {}, [&] {
    kernels::StoreKv(cache, first, n_tokens_, k, v);
    kernels::Attention(team_, cache, q, config_.n_heads, n_tokens_, first, params, out);
  });
}

void Pass::Add(float* x, const float* y) {
  const size_t width = config_.embedding_length;
  Step("add", 0, {}, [&] {
    ForRows(n_tokens_, [&](size_t t) { kernels::Add(x + t * width, y + t * width, width); });
  });
}

}  // namespace engine
