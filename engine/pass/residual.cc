// Updates one residual stream, or predicts and corrects several.
#include "engine/pass/residual.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/ops.h"

namespace engine {
namespace {

// The Euclidean norm.
float L2Norm(const float* x, size_t n) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  return static_cast<float>(std::sqrt(squares));
}

// Scales x to this norm.
void SetL2Norm(float norm, size_t n, float* x) {
  const float own = L2Norm(x, n);
  kernels::Scale(x, own > 0 ? norm / own : 0, n);
}

// Matrix i of a stack with a matrix for each stream but the first.
WeightView MatrixOf(const ExpertsView& stack, size_t i) {
  WeightView view;
  static_cast<kernels::Matrix&>(view) = stack.expert(i);
  view.tensor = stack.tensor;
  return view;
}

}  // namespace

void ResidualStream::AddDelta(const NormView& norm) {
  pass_.Scale(x(), config_.stream_scale);
  pass_.Add(x(), s_.delta, config_.residual_scale);
  pass_.NormStream(norm, x());
}

void ResidualStream::Begin(const Weights& weights) {
  if (has_single_stream()) return;
  for (size_t i = 1; i < config_.n_residual_streams; ++i) {
    pass_.MatMul(x(), {{MatrixOf(weights.altup_proj, i - 1), Stream(i)}});
  }
  pass_.EachToken("streams", [&](size_t t) {
    const float* const first = x() + t * width();
    std::copy_n(first, width(), Stream(0) + t * width());
    const float norm = L2Norm(first, width());
    for (size_t i = 1; i < config_.n_residual_streams; ++i) {
      SetL2Norm(norm, width(), Stream(i) + t * width());
    }
  });
}

void ResidualStream::BeginLayer(const LayerWeights& w) {
  if (has_single_stream()) return;
  const size_t n = config_.n_residual_streams;
  const float* const coefs = Coefficients(w, w.altup_predict_coef, Stream(0));
  pass_.EachToken("streams", [&](size_t t) {
    const float* const from_to = coefs + t * n * n;  // [to][from]
    const auto rows = RowsOf(t);
    std::array<float, kMaxStreams> old;
    for (size_t i = 0; i < width(); ++i) {
      for (size_t k = 0; k < n; ++k) old[k] = rows[k][i];
      for (size_t to = 0; to < n; ++to) {
        float sum = old[to];
        for (size_t from = 0; from < n; ++from) sum += from_to[n * to + from] * old[from];
        rows[to][i] = sum;
      }
    }
    std::copy_n(rows[0], width(), x() + t * width());
  });
}

void ResidualStream::EndLayer(const LayerWeights& w) {
  if (has_single_stream()) return;
  const size_t n = config_.n_residual_streams;
  const float* const coefs = Coefficients(w, w.altup_correct_coef, x());
  pass_.EachToken("streams", [&](size_t t) {
    const auto rows = RowsOf(t);
    const float* const now = x() + t * width();
    for (size_t i = 0; i < width(); ++i) {
      const float change = now[i] - rows[0][i];
      for (size_t k = 0; k < n; ++k) rows[k][i] += (1 + coefs[t * n + k]) * change;
    }
  });
}

const float* ResidualStream::PerLayerGate(const LayerWeights& w) {
  if (has_single_stream()) return x();
  const float* const first = Stream(0);
  float* const out = s_.normed;
  pass_.EachToken("scale", [&](size_t t) {
    for (size_t i = 0; i < width(); ++i) {
      out[t * width() + i] = first[t * width() + i] * w.altup_correct_scale[i];
    }
  });
  return out;
}

void ResidualStream::AddPerLayer() {
  if (has_single_stream()) return pass_.Add(x(), s_.delta, 1);
  for (size_t i = 1; i < config_.n_residual_streams; ++i) pass_.Add(Stream(i), s_.delta, 1);
}

void ResidualStream::End(const Weights& weights) {
  if (has_single_stream()) return;
  std::copy_n(Stream(0), pass_.n_tokens() * width(), x());
  for (size_t i = 1; i < config_.n_residual_streams; ++i) {
    pass_.MatMul(Stream(i), {{MatrixOf(weights.altup_unembd_proj, i - 1), s_.delta}});
    pass_.EachToken("streams", [&](size_t t) {
      const float norm = L2Norm(Stream(0) + t * width(), width());
      SetL2Norm(norm, width(), s_.delta + t * width());
    });
    pass_.Add(x(), s_.delta, 1);
  }
  pass_.Scale(x(), 1 / static_cast<float>(config_.n_residual_streams));
}

// A token's rows in all streams.
std::array<float*, ResidualStream::kMaxStreams> ResidualStream::RowsOf(size_t token) const {
  std::array<float*, kMaxStreams> rows = {};
  for (size_t i = 0; i < config_.n_residual_streams; ++i) rows[i] = Stream(i) + token * width();
  return rows;
}

// The router's n_residual_streams numbers for each token of `in`, times `coefs`:
// [tokens][coefs.rows].
const float* ResidualStream::Coefficients(const LayerWeights& w, const WeightView& coefs,
                                          const float* in) {
  const size_t n = config_.n_residual_streams;
  float* const routed = s_.stream_coefs;
  float* const out = routed + pass_.n_tokens() * n;
  pass_.MatMul(pass_.Normed(in, w.altup_router_norm, width(), s_.normed),
               {{w.altup_router, routed}});
  pass_.EachToken("tanh", [&](size_t t) {
    for (size_t i = t * n; i < (t + 1) * n; ++i) routed[i] = std::tanh(routed[i]);
  });
  pass_.MatMul(routed, {{coefs, out}});
  return out;
}

}  // namespace engine
