#include "engine/pass/altup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernels/ops.h"

namespace engine {
namespace {

constexpr size_t kMaxStreams = 8;

float Length(const float* x, size_t n) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  return static_cast<float>(std::sqrt(squares));
}

// Makes x as long as `length`.
void Stretch(float length, size_t n, float* x) {
  const float own = Length(x, n);
  kernels::Scale(x, own > 0 ? length / own : 0, n);
}

float* Stream(const Config& c, Scratch& s, const Pass& pass, size_t i) {
  return s.streams.get() + i * pass.n_tokens() * c.embedding_length;
}

// The rows of a token in all streams.
std::array<float*, kMaxStreams> RowsOf(const Config& c, Scratch& s, const Pass& pass,
                                       size_t token) {
  std::array<float*, kMaxStreams> rows = {};
  for (size_t i = 0; i < c.n_streams; ++i) {
    rows[i] = Stream(c, s, pass, i) + token * c.embedding_length;
  }
  return rows;
}

WeightView Of(const ExpertsView& stack, size_t i) {
  WeightView view;
  static_cast<kernels::Matrix&>(view) = stack.expert(i);
  view.tensor = stack.tensor;
  return view;
}

// From n_streams numbers that the router makes of rows x, `coefs` makes of each token [its rows]:
// returns them.
const float* Coefficients(const Config& c, const LayerWeights& w, const WeightView& coefs,
                          const float* x, Scratch& s, Pass& pass) {
  const size_t n = c.n_streams, width = c.embedding_length;
  float* const routed = s.stream_coefs.get();
  float* const out = routed + pass.n_tokens() * n;
  pass.MatMul(pass.Normed(x, w.altup_router_norm, width, s.normed.get()),
              {{w.altup_router, routed}});
  pass.EachToken("tanh", [&](size_t t) {
    for (size_t i = t * n; i < (t + 1) * n; ++i) routed[i] = std::tanh(routed[i]);
  });
  pass.MatMul(routed, {{coefs, out}});
  return out;
}

}  // namespace

void BeginStreams(const Config& c, const Weights& weights, Scratch& s, Pass& pass) {
  const size_t width = c.embedding_length;
  const float* const x = s.x.get();
  for (size_t i = 1; i < c.n_streams; ++i) {
    pass.MatMul(x, {{Of(weights.altup_proj, i - 1), Stream(c, s, pass, i)}});
  }
  pass.EachToken("streams", [&](size_t t) {
    const float* const first = x + t * width;
    std::copy_n(first, width, Stream(c, s, pass, 0) + t * width);
    const float length = Length(first, width);
    for (size_t i = 1; i < c.n_streams; ++i) {
      Stretch(length, width, Stream(c, s, pass, i) + t * width);
    }
  });
}

void PredictStreams(const Config& c, const LayerWeights& w, Scratch& s, Pass& pass) {
  const size_t n = c.n_streams, width = c.embedding_length;
  const float* const coefs =
      Coefficients(c, w, w.altup_predict_coef, Stream(c, s, pass, 0), s, pass);
  pass.EachToken("streams", [&](size_t t) {
    const float* const from_to = coefs + t * n * n;  // [to][from]
    const std::array<float*, kMaxStreams> rows = RowsOf(c, s, pass, t);
    std::array<float, kMaxStreams> old;
    for (size_t i = 0; i < width; ++i) {
      for (size_t k = 0; k < n; ++k) old[k] = rows[k][i];
      for (size_t to = 0; to < n; ++to) {
        float sum = old[to];
        for (size_t from = 0; from < n; ++from) sum += from_to[n * to + from] * old[from];
        rows[to][i] = sum;
      }
    }
    std::copy_n(rows[0], width, s.x.get() + t * width);
  });
}

void Laurel(const Config& c, const LayerWeights& w, const float* in, Scratch& s, Pass& pass) {
  const size_t width = c.embedding_length;
  float* const low = s.hidden.get();
  pass.MatMul(in, {{w.laurel_l, low}});
  pass.MatMul(low, {{w.laurel_r, s.delta.get()}});
  pass.Normed(s.delta.get(), w.laurel_post_norm, width, s.delta.get());
  pass.Add(s.x.get(), s.delta.get(), 1);
  pass.Add(s.x.get(), in, 1);
  pass.Scale(s.x.get(), std::sqrt(0.5f));
}

void CorrectStreams(const Config& c, const LayerWeights& w, Scratch& s, Pass& pass) {
  const size_t n = c.n_streams, width = c.embedding_length;
  const float* const coefs = Coefficients(c, w, w.altup_correct_coef, s.x.get(), s, pass);
  pass.EachToken("streams", [&](size_t t) {
    const std::array<float*, kMaxStreams> rows = RowsOf(c, s, pass, t);
    const float* const x = s.x.get() + t * width;
    for (size_t i = 0; i < width; ++i) {
      const float change = x[i] - rows[0][i];
      for (size_t k = 0; k < n; ++k) rows[k][i] += (1 + coefs[t * n + k]) * change;
    }
  });
}

const float* ScaledFirstStream(const Config& c, const LayerWeights& w, Scratch& s, Pass& pass) {
  const size_t width = c.embedding_length;
  const float* const first = Stream(c, s, pass, 0);
  float* const out = s.normed.get();
  pass.EachToken("scale", [&](size_t t) {
    for (size_t i = 0; i < width; ++i) {
      out[t * width + i] = first[t * width + i] * w.altup_correct_scale[i];
    }
  });
  return out;
}

void AddToOtherStreams(const Config& c, Scratch& s, Pass& pass) {
  for (size_t i = 1; i < c.n_streams; ++i) pass.Add(Stream(c, s, pass, i), s.delta.get(), 1);
}

void EndStreams(const Config& c, const Weights& weights, Scratch& s, Pass& pass) {
  const size_t width = c.embedding_length;
  float* const x = s.x.get();
  std::copy_n(Stream(c, s, pass, 0), pass.n_tokens() * width, x);
  for (size_t i = 1; i < c.n_streams; ++i) {
    const float* const stream = Stream(c, s, pass, i);
    pass.MatMul(stream, {{Of(weights.altup_unembd_proj, i - 1), s.delta.get()}});
    pass.EachToken("streams", [&](size_t t) {
      const float length = Length(Stream(c, s, pass, 0) + t * width, width);
      Stretch(length, width, s.delta.get() + t * width);
    });
    pass.Add(x, s.delta.get(), 1);
  }
  pass.Scale(x, 1 / static_cast<float>(c.n_streams));
}

}  // namespace engine
