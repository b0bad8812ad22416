// Scores, softmax and weighted means in plain loops.
#include "kernels/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gguf/dtype.h"
#include "kernels/matmul/reference.h"

namespace kernels {
namespace {

double Score(const float* q, const float* k, size_t length, const AttentionParams& params) {
  double dot = 0;
  for (size_t i = 0; i < length; ++i) dot += static_cast<double>(q[i]) * k[i];
  const double score = params.scale * dot;
  const double cap = params.softcap;
  return cap == 0 ? score : cap * std::tanh(score / cap);
}

}  // namespace

void AttentionWeights(const float* q, const float* keys, size_t n, size_t key_length,
                      size_t key_stride, const AttentionParams& params, const float* sink,
                      double* weights, double slope, size_t n_before) {
  double max = sink != nullptr ? *sink : std::numeric_limits<double>::lowest();
  for (size_t p = 0; p < n; ++p) {
    const double distance = static_cast<double>(n_before) - static_cast<double>(p);
    weights[p] = Score(q, keys + p * key_stride, key_length, params) - slope * distance;
    max = std::max(max, weights[p]);
  }
  double sum = sink != nullptr ? std::exp(*sink - max) : 0;
  for (size_t p = 0; p < n; ++p) sum += weights[p] = std::exp(weights[p] - max);
  for (size_t p = 0; p < n; ++p) weights[p] /= sum;
}

void ReadCachedKey(const KvLayer& cache, size_t head, size_t position, float* out) {
  const size_t length = cache.key_length;
  const KvType type = cache.type.k;
  const std::byte* const key =
      cache.head(head).k + position % cache.capacity * KvBytes(type, length);
  if (type == KvType::kF32) return DequantizeRow(gguf::DType::kF32, key, length, out);
  if (type == KvType::kF16) return DequantizeRow(gguf::DType::kF16, key, length, out);
  const gguf::DType blocks = type == KvType::kQ8_0 ? gguf::DType::kQ8_0 : gguf::DType::kQ4_0;
  constexpr size_t kBlock = 32;  // the last one may extend beyond the key
  float block[kBlock];
  for (size_t i = 0; i < length; i += kBlock) {
    DequantizeRow(blocks, key + KvBytes(type, i), kBlock, block);
    std::copy_n(block, std::min(kBlock, length - i), out + i);
  }
}

void AttentionReference(const AttentionShape& shape, const float* q, const float* k, const float* v,
                        size_t n_tokens, size_t first_position, const AttentionParams& params,
                        double* out) {
  const size_t group = shape.n_heads / shape.n_kv_heads;
  const size_t stride = shape.n_kv_heads * shape.key_length;
  std::vector<double> weights(first_position + n_tokens);
  for (size_t query = 0; query < n_tokens * shape.n_heads; ++query) {
    const size_t pos = first_position + query / shape.n_heads;
    const size_t head = query % shape.n_heads;
    const size_t first = FirstVisible(pos, params.window);
    const size_t last = LastVisible(pos, params.ahead, first_position + n_tokens);
    AttentionWeights(q + query * shape.key_length,
                     k + first * stride + head / group * shape.key_length, last + 1 - first,
                     shape.key_length, stride, params,
                     params.sinks != nullptr ? params.sinks + head : nullptr, weights.data(),
                     params.slopes != nullptr ? double{params.slopes[head]} : 0, pos - first);
    double* const mean = out + query * shape.value_length;
    std::fill_n(mean, shape.value_length, 0.0);
    for (size_t p = first; p <= last; ++p) {
      const size_t row = p * shape.n_kv_heads + head / group;
      const float* const value =
          v != nullptr ? v + row * shape.value_length : k + row * shape.key_length;
      for (size_t i = 0; i < shape.value_length; ++i) mean[i] += weights[p - first] * value[i];
    }
  }
}

}  // namespace kernels
