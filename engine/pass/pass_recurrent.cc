// Operations of mixers other than attention, and of what tokens have for each layer, see pass.h.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/pass/input_squares.h"
#include "engine/pass/pass.h"
#include "kernels/attention/head_products.h"
#include "kernels/matmul/reference.h"
#include "kernels/ops/ops.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {

void Pass::Multiply(float* x, const float* y, size_t width) {
  Step("multiply", 0, {}, [&] {
    ForRows(n_tokens_, [&](size_t t) {
      for (size_t i = t * width; i < (t + 1) * width; ++i) x[i] *= y[i];
    });
  });
}

void Pass::Convolve(const LayerPlan& plan, const LayerWeights& w, float* history, const float* in,
                    float* out) {
  const RecurrentPlan& r = plan.recurrent;
  const kernels::CausalConv conv = {
      .taps = w.conv,
      .bias = w.conv_bias,
      .n_taps = r.n_taps,
      .n_channels = r.channels,
      .silu = plan.mixer != Mixer::kShortConv,
  };
  const size_t bytes = (r.n_taps * r.channels + r.history_floats()) * sizeof(float);
  Step("convolution", bytes, {},
       [&] { kernels::Convolve(team_, conv, history, in, n_tokens_, out); });
}

void Pass::DeltaNet(const LayerPlan& plan, const LayerWeights& w, float* matrices, float* qkv,
                    float* alpha, float* beta, float* out) {
  const RecurrentPlan& r = plan.recurrent;
  const kernels::DeltaNet net = {
      .n_key_heads = r.n_key_heads,
      .n_value_heads = r.n_value_heads,
      .length = r.key_length,
      .tiled_key_heads = config_.tiled_key_heads,
      .norm_eps = config_.norm_eps,
      .dt_bias = w.ssm_dt_bias,
      .a = w.ssm_a,
  };
  Step("delta net", r.state_floats() * sizeof(float), {},
       [&] { kernels::GatedDeltaNet(team_, net, matrices, qkv, alpha, beta, n_tokens_, out); });
}

void Pass::Mamba2(const LayerPlan& plan, const LayerWeights& w, float* matrices, const float* ubc,
                  float* dt, float* out) {
  const RecurrentPlan& r = plan.recurrent;
  const kernels::Mamba2 net = {
      .n_groups = r.n_key_heads,
      .n_heads = r.n_value_heads,
      .state_length = r.key_length,
      .head_length = r.value_length,
      .dt_bias = w.ssm_dt_bias,
      .a = w.ssm_a,
      .d = w.ssm_d,
  };
  Step("mamba", r.state_floats() * sizeof(float), {},
       [&] { kernels::SelectiveScan(team_, net, matrices, ubc, dt, n_tokens_, out); });
}

void Pass::KeepForUndo(const LayerPlan& plan, const SequenceState::Recurrent& state) {
  const RecurrentPlan& r = plan.recurrent;
  const size_t n_state = r.history_floats() + r.state_floats();
  Step("keep", n_state * sizeof(float), {}, [&] {
    team_.For(n_state, /*grain=*/1024, [&](size_t begin, size_t end, size_t) {
      std::copy(state.history + begin, state.history + end, state.before + begin);
    });
    std::copy_n(scratch_.conv_in.get(), n_tokens_ * r.channels, state.conv_in);
    if (plan.mixer == Mixer::kShortConv) return;
    std::copy_n(scratch_.alpha.get(), n_tokens_ * r.n_value_heads, state.alpha);
    if (plan.mixer == Mixer::kDeltaNet)
      std::copy_n(scratch_.beta.get(), n_tokens_ * r.n_value_heads, state.beta);
  });
}

void Pass::TakeKept(const LayerPlan& plan, const SequenceState::Recurrent& state) {
  const RecurrentPlan& r = plan.recurrent;
  std::copy_n(state.conv_in, n_tokens_ * r.channels, scratch_.conv_in.get());
  if (plan.mixer == Mixer::kShortConv) return;
  std::copy_n(state.alpha, n_tokens_ * r.n_value_heads, scratch_.alpha.get());
  if (plan.mixer == Mixer::kDeltaNet)
    std::copy_n(state.beta, n_tokens_ * r.n_value_heads, scratch_.beta.get());
}

void Pass::HeadProducts(const ExpertsView& weights, const Heads& in, const Heads& out) {
  const size_t rows = weights.n_experts * weights.first.rows;
  const std::array traced = {TraceWeights{weights.tensor, rows, weights.first.cols}};
  for (size_t h = 0; inputs() != nullptr && h < weights.n_experts; ++h) {
    inputs()->Add(weights.tensor,
                  {in.data + h * in.head_stride, in.token_stride, n_tokens_, weights.first.cols}, h,
                  weights.n_experts);
  }
  Step("matmul", rows * weights.first.row_bytes(), traced, [&] {
    kernels::HeadProducts(team_, weights, {in.data, in.head_stride, in.token_stride}, n_tokens_,
                          {out.data, out.head_stride, out.token_stride}, scratch_.heads);
  });
}

// Half from the stream at its beginning, half from a row of a table of their own.
void Pass::PerLayerInputs(const Weights& w, std::span<const tokenizer::TokenId> tokens,
                          const float* x, float* out) {
  const size_t length = config_.per_layer_length;
  if (length == 0) return;
  const WeightView& table = w.per_layer_token_embd;
  const size_t width = table.cols;
  MatMul(x, {{w.per_layer_model_proj, out}});
  Step("embed", n_tokens_ * table.row_bytes(), {}, [&] {
    ForRows(n_tokens_, [&](size_t t) {
      float* const row = scratch_.per_layer_rows.row(t, width);
      float* const made = out + t * width;
      kernels::DequantizeRow(table.dtype, table.row(static_cast<size_t>(tokens[t])), width, row);
      kernels::Scale(made, 1 / std::sqrt(static_cast<float>(config_.embedding_length)), width);
      for (size_t i = 0; i < width; i += length) {
        kernels::RmsNorm(made + i, w.per_layer_proj_norm, config_.norm_eps, length, made + i);
      }
      kernels::AddScaled(made, std::sqrt(static_cast<float>(length)), row, width);
      kernels::Scale(made, std::sqrt(0.5f), width);
    });
  });
}

void Pass::Sparsify(float deviations, size_t width, float* gate) {
  EachToken("gate", [&](size_t t) {
    float* const row = gate + t * width;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < width; ++i) sum += double{row[i]};
    const double mean = sum / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) squares += (double{row[i]} - mean) * (double{row[i]} - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(width - 1));
    const auto least = static_cast<float>(mean + double{deviations} * deviation);
    for (size_t i = 0; i < width; ++i) row[i] = std::max(row[i] - least, 0.0f);
  });
}

void Pass::GateByLayer(size_t layer, const float* per_layer, float* gate) {
  const size_t length = config_.per_layer_length, width = config_.n_layers() * length;
  Step("gate", 0, {}, [&] {
    ForRows(n_tokens_, [&](size_t t) {
      kernels::GatedActivation(config_.activation, gate + t * length,
                               per_layer + t * width + layer * length, length);
    });
  });
}

}  // namespace engine
