// Takes the mean, the first or the last vector of a text; then dense layers and scores.
#include "engine/pass/pooling.h"

#include <algorithm>
#include <cmath>

#include "engine/pass/pass.h"
#include "kernels/ops/ops.h"

namespace engine {
namespace {

using kernels::Activation;

void Softmax(float* x, size_t n) {
  const float max_x = *std::max_element(x, x + n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += std::exp(double{x[i]} - max_x);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(std::exp(double{x[i]} - max_x) / sum);
}

void Normalize(float* x, size_t n) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  if (squares != 0) kernels::Scale(x, static_cast<float>(1 / std::sqrt(squares)), n);
}

void Score(const Model& model, Pass& pass, float* pooled, float* out) {
  const Config& c = model.config;
  const PoolingWeights& w = model.weights.pooling;
  const size_t width = c.embedding_length;
  const float* in = pooled;
  if (w.cls.tensor != nullptr) {
    float* const rows = pass.scratch().delta;
    pass.MatMul(in, {{w.cls, rows}});
    pass.EachToken("activation", [&](size_t t) {
      float* const row = rows + t * width;
      if (c.rank.uses_gelu) {
        const auto gelu = c.rank.exact_gelu ? Activation::kGeluErf : Activation::kGeluAlone;
        kernels::GatedActivation(gelu, row, nullptr, width);
      } else {
        for (size_t i = 0; i < width; ++i) row[i] = std::tanh(row[i]);
      }
      if (w.cls_norm != nullptr) kernels::LayerNorm(row, w.cls_norm, c.norm_eps, width, row);
    });
    in = rows;
  }
  pass.MatMul(in, {{w.cls_output, out}});
  if (!c.rank.uses_softmax) return;
  pass.EachToken("softmax", [&](size_t t) { Softmax(out + t * c.n_labels, c.n_labels); });
}

}  // namespace

void Pool(const Model& model, Pooling pooling, std::span<const size_t> ends, size_t done,
          Scratch& s, kernels::ThreadPool& pool, float* pooled) {
  const size_t width = model.config.embedding_length;
  if (pooling == Pooling::kRank) pooling = model.config.rank.from;
  Pass all(model.config, ends.back(), s, pool);
  const float* const rows =
      all.Normed(s.x, model.weights.output_norm, width, s.normed, model.weights.output_norm_bias);
  Pass(model.config, ends.size(), s, pool).EachToken("pool", [&](size_t i) {
    const size_t first = i == 0 ? 0 : ends[i - 1], last = ends[i] - 1;
    float* const out = pooled + i * width;
    if (pooling == Pooling::kFirst && done == 0) std::copy_n(rows + first * width, width, out);
    if (pooling == Pooling::kLast) std::copy_n(rows + last * width, width, out);
    if (pooling != Pooling::kMean) return;
    const auto before = static_cast<float>(done), n = static_cast<float>(last + 1 - first);
    kernels::Scale(out, before / (before + n), width);
    for (size_t t = first; t <= last; ++t) {
      kernels::AddScaled(out, 1 / (before + n), rows + t * width, width);
    }
  });
}

void FinishPooled(const Model& model, Pooling pooling, size_t n, Scratch& s,
                  kernels::ThreadPool& pool, float* pooled, float* out) {
  const size_t width = model.config.embedding_length;
  const PoolingWeights& w = model.weights.pooling;
  Pass pass(model.config, n, s, pool);
  if (pooling == Pooling::kRank) return Score(model, pass, pooled, out);
  if (w.dense_2.tensor != nullptr) {
    pass.MatMul(pooled, {{w.dense_2, s.hidden}});
    pass.MatMul(s.hidden, {{w.dense_3, out}});
  } else {
    std::copy_n(pooled, n * width, out);
  }
  if (!model.config.normalizes_vectors) return;
  pass.EachToken("length", [&](size_t t) { Normalize(out + t * width, width); });
}

}  // namespace engine
