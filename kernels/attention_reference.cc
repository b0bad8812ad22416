#include "kernels/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

void AttentionReference(const AttentionShape& shape, const float* q, const float* k, const float* v,
                        size_t n_tokens, size_t first_pos, const AttentionParams& params,
                        double* out) {
  const size_t group = shape.n_heads / shape.n_kv_heads;
  for (size_t query = 0; query < n_tokens * shape.n_heads; ++query) {
    const size_t pos = first_pos + query / shape.n_heads;
    const size_t head = query % shape.n_heads;
    const auto score = [&](size_t p) {
      const float* const key = k + (p * shape.n_kv_heads + head / group) * shape.key_length;
      return Score(q + query * shape.key_length, key, shape.key_length, params);
    };
    const bool sink = params.sinks != nullptr;
    double max = sink ? params.sinks[head] : std::numeric_limits<double>::lowest();
    const size_t first = FirstVisible(pos, params.window);
    for (size_t p = first; p <= pos; ++p) max = std::max(max, score(p));
    double sum = sink ? std::exp(params.sinks[head] - max) : 0;
    double* const mean = out + query * shape.value_length;
    std::fill_n(mean, shape.value_length, 0.0);
    for (size_t p = first; p <= pos; ++p) {
      const double weight = std::exp(score(p) - max);
      const size_t row = p * shape.n_kv_heads + head / group;
      const float* const value =
          v != nullptr ? v + row * shape.value_length : k + row * shape.key_length;
      sum += weight;
      for (size_t i = 0; i < shape.value_length; ++i) mean[i] += weight * value[i];
    }
    for (size_t i = 0; i < shape.value_length; ++i) mean[i] /= sum;
  }
}

}  // namespace kernels
