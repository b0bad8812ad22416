// The operations: each splits its rows among threads and calls kernels/. pass_attention.cc has
// attention, pass_recurrent.cc the operations of recurrent layers.
#include "engine/pass/pass.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "engine/model/hadamard_transforms.h"
#include "kernels/attention/head_products.h"
#include "kernels/matmul/reference.h"
#include "kernels/ops/ops.h"

namespace engine {
namespace {

constexpr size_t kMaxOutputs = 6;

}  // namespace

void Pass::Embed(const WeightView& token_embd, std::span<const tokenizer::TokenId> tokens,
                 float* out) {
  const size_t width = token_embd.cols;
  EachRow("embed", n_tokens_, n_tokens_ * token_embd.row_bytes(), [&](size_t t) {
    float* const row = out + t * width;
    kernels::DequantizeRow(token_embd.dtype, token_embd.row(static_cast<size_t>(tokens[t])), width,
                           row);
    if (token_embd.row_hadamard != nullptr) token_embd.row_hadamard->Undo(row);
    if (config_.embedding_scale != 1) kernels::Scale(row, config_.embedding_scale, width);
  });
}

void Pass::EmbedPositions(const Weights& w, float* x) {
  const size_t width = config_.embedding_length;
  for (const WeightView* const table : {&w.position_embd, &w.token_types}) {
    if (table->tensor == nullptr) continue;
    EachRow("embed", n_tokens_, n_tokens_ * table->row_bytes(), [&](size_t t) {
      float* const row = scratch_.normed + t * width;
      const size_t i = table == &w.position_embd ? PositionOf(t) : 0;
      kernels::DequantizeRow(table->dtype, table->row(i), width, row);
      kernels::Add(x + t * width, row, width);
    });
  }
  NormStream(w.token_embd_norm, x);
}

void Pass::PerLayerEmbeddings(const Weights& w, std::span<const tokenizer::TokenId> tokens,
                              const float* x) {
  const size_t length = config_.per_layer_length;
  if (length == 0) return;
  const WeightView& table = w.per_layer_token_embd;
  const size_t width = table.cols;
  MatMul(x, {{w.per_layer_model_proj, scratch_.per_layer}});
  EachRow("embed", n_tokens_, n_tokens_ * table.row_bytes(), [&](size_t t) {
    float* const row = scratch_.per_layer_rows + t * width;
    float* const made = scratch_.per_layer + t * width;
    kernels::DequantizeRow(table.dtype, table.row(static_cast<size_t>(tokens[t])), width, row);
    kernels::Scale(made, 1 / std::sqrt(static_cast<float>(config_.embedding_length)), width);
    for (size_t i = 0; i < width; i += length) {
      kernels::RmsNorm(made + i, w.per_layer_proj_norm, config_.norm_eps, length, made + i);
    }
    kernels::AddScaled(made, std::sqrt(static_cast<float>(length)), row, width);
    kernels::Scale(made, std::sqrt(0.5f), width);
  });
}

void Pass::GateByLayer(size_t layer, float* gate) {
  const size_t length = config_.per_layer_length, width = config_.n_layers() * length;
  EachToken("gate", [&](size_t t) {
    kernels::GatedActivation(config_.activation, gate + t * length,
                             scratch_.per_layer + t * width + layer * length, length);
  });
}

size_t Pass::SequenceIndexOf(size_t t) const {
  return static_cast<size_t>(
      std::ranges::upper_bound(sequences_, t, {}, &SequenceSlice::batch_end) - sequences_.begin());
}

size_t Pass::PositionOf(size_t t) const {
  const size_t i = SequenceIndexOf(t);
  return sequences_[i].first_position + t - (i == 0 ? 0 : sequences_[i - 1].batch_end);
}

void Pass::FillRopeAngles() {
  ForRows(n_tokens_, [&](size_t t) {
    size_t offset = 0;
    for (const RopeAngles& rope : sequences_[SequenceIndexOf(t)].ropes) {
      rope.Fill(PositionOf(t), scratch_.rope_cos + offset + t * rope.n_pairs(),
                scratch_.rope_sin + offset + t * rope.n_pairs());
      offset += n_tokens_ * rope.n_pairs();
    }
  });
}

const float* Pass::Normed(const float* in, const float* weight, size_t width, float* out,
                          const float* bias) {
  if (weight == nullptr) return in;
  const auto norm = config_.layer_norm ? kernels::LayerNorm : kernels::RmsNorm;
  EachToken("norm", [&](size_t t) {
    norm(in + t * width, weight, config_.norm_eps, width, out + t * width);
    if (bias != nullptr) kernels::Add(out + t * width, bias, width);
  });
  return out;
}

void Pass::NormStream(const NormView& norm, float* x) {
  if (norm.weight == nullptr) return;
  const size_t width = config_.embedding_length;
  EachToken("norm", [&](size_t t) {
    float* const row = x + t * width;
    const auto norm_row = config_.layer_norm ? kernels::LayerNorm : kernels::RmsNorm;
    norm_row(row, norm.weight, config_.norm_eps, width, row);
    if (norm.bias != nullptr) kernels::Add(row, norm.bias, width);
  });
}

void Pass::NormRows(const float* weight, size_t n, size_t length, size_t stride, float* rows,
                    size_t n_groups, float eps) {
  if (eps == 0) eps = config_.norm_eps;
  EachRow("norm", n, 0, [&](size_t i) {
    float* const row = rows + i * stride;
    kernels::RmsNorm(row, weight + i % n_groups * length, eps, length, row);
  });
}

void Pass::NormHeads(const HeadNorm& norm, size_t n_heads, size_t length, float* heads) {
  if (config_.qk_norm == QkNorm::kAllBeforeRope) {
    return NormRows(norm.weight, n_tokens_, n_heads * length, n_heads * length, heads);
  }
  if (!config_.qk_layer_norm) {
    return NormRows(norm.weight, n_tokens_ * n_heads, length, length, heads);
  }
  EachRow("norm", n_tokens_ * n_heads, 0, [&](size_t i) {
    float* const row = heads + i * length;
    const float* const weight = norm.weight + (norm.weights_by_head ? i % n_heads * length : 0);
    kernels::LayerNorm(row, weight, config_.norm_eps, length, row);
    if (norm.bias != nullptr) kernels::Add(row, norm.bias, length);
  });
}

void Pass::Clamp(float limit, size_t width, float* x) {
  if (limit == 0) return;
  EachToken("clamp", [&](size_t t) {
    for (size_t i = t * width; i < (t + 1) * width; ++i) x[i] = std::clamp(x[i], -limit, limit);
  });
}

void Pass::CopyHeads(const Heads& from, const Heads& to, size_t n_heads, size_t length) {
  EachToken("copy", [&](size_t t) {
    for (size_t h = 0; h < n_heads; ++h) {
      std::copy_n(from.data + t * from.token_stride + h * from.head_stride, length,
                  to.data + t * to.token_stride + h * to.head_stride);
    }
  });
}

void Pass::Repeat(const float* in, size_t n_heads, size_t length, float* out) {
  EachRow("copy", n_tokens_ * n_heads, 0,
          [&](size_t i) { std::fill_n(out + i * length, length, in[i]); });
}

void Pass::HeadProducts(const ExpertsView& weights, const Heads& in, const Heads& out) {
  RunOperation("matmul", 0, [&] {
    kernels::HeadProducts(pool_, weights, {in.data, in.head_stride, in.token_stride}, n_tokens_,
                          {out.data, out.head_stride, out.token_stride}, scratch_.heads);
  });
}

void Pass::Rope(const LayerPlan& plan, float* heads, size_t n_heads) {
  if (plan.rope == LayerPlan::kNoRope) return;
  const RopeConfig& rope = config_.ropes[plan.rope];
  const size_t n_pairs = rope.n_dims / 2;
  size_t offset = 0;  // where this RoPE's angles begin, after earlier RoPEs' angles
  for (size_t i = 0; i < plan.rope; ++i) offset += n_tokens_ * (config_.ropes[i].n_dims / 2);
  EachToken("rope", [&](size_t t) {
    const size_t at = offset + t * n_pairs;
    float* const rope_part = heads + t * n_heads * plan.key_length + plan.rope_offset;
    kernels::Rope(rope_part, n_heads, plan.key_length, rope.n_dims, scratch_.rope_cos + at,
                  scratch_.rope_sin + at, rope.pairs);
  });
}

void Pass::NormAndRope(const LayerPlan& plan, const HeadNorm& norm, float* heads, size_t n_heads) {
  const bool after = config_.qk_norm == QkNorm::kHeadAfterRope;
  if (norm.weight != nullptr && !after) NormHeads(norm, n_heads, plan.key_length, heads);
  Rope(plan, heads, n_heads);
  if (norm.weight != nullptr && after) NormHeads(norm, n_heads, plan.key_length, heads);
}

void Pass::ScaleQueries(const LayerPlan& plan, float* q) {
  if (config_.attention_temperature_scale == 0) return;
  const size_t width = plan.n_heads * plan.key_length;
  EachToken("scale", [&](size_t t) {
    const size_t spans = PositionOf(t) / config_.attention_temperature_span;
    const float growth = std::log(1 + static_cast<float>(spans));
    kernels::Scale(q + t * width, 1 + config_.attention_temperature_scale * growth, width);
  });
}

const float* Pass::Transformed(const float* in, const WeightView& weights) {
  if (weights.hadamard == nullptr) return in;
  EachToken("hadamard", [&](size_t t) {
    weights.hadamard->Apply(in + t * weights.cols, scratch_.transformed + t * weights.cols);
  });
  return scratch_.transformed;
}

void Pass::MatMul(const float* in, std::initializer_list<Output> outputs) {
  const std::span<const Output> all(outputs.begin(), outputs.size());
  if (!config_.uses_hadamard) return RunMatMul(in, all);
  for (size_t i = 0, end; i < all.size(); i = end) {  // neighbours with the same transform
    const WeightView& weights = all[i].weights;
    for (end = i + 1; end < all.size() && all[end].weights.hadamard == weights.hadamard;) ++end;
    RunMatMul(Transformed(in, weights), all.subspan(i, end - i));
  }
}

void Pass::RunMatMul(const float* in, std::span<const Output> outputs) {
  assert(outputs.size() <= kMaxOutputs);
  std::array<kernels::Product, kMaxOutputs> products;
  size_t n = 0;
  for (const auto& [weights, out, stride] : outputs) {
    if (weights.tensor == nullptr) continue;
    products[n++] = {weights, out, stride != 0 ? stride : weights.rows, weights.bias};
  }
  if (n == 0) return;
  RunOperation("matmul", 0, [&] {
    scratch_.input.Set(in, n_tokens_, products[0].weights.cols);
    kernels::MatMul(pool_, std::span(products).first(n), scratch_.input);
  });
}

void Pass::GatedMatMul(const float* in, const WeightView& gate, const WeightView& up, float limit,
                       float* out) {
  RunGatedMatMul(Transformed(in, up), gate, up, limit, out);
}

void Pass::RunGatedMatMul(const float* in, const WeightView& gate, const WeightView& up,
                          float limit, float* out) {
  RunOperation("matmul", 0, [&] {
    scratch_.input.Set(in, n_tokens_, up.cols);
    kernels::GatedMatMul(pool_, {gate, up, gate.bias, up.bias, config_.activation, limit},
                         scratch_.input, out);
  });
}

void Pass::EndLayer(size_t layer, const float* /*x*/) {
  ++scratch_.n_layers_done;
  if (scratch_.pager) scratch_.pager->EndLayer(layer);
}

void Pass::Route(const LayerView& layer) {
  const size_t n = layer.plan.n_experts, n_used = config_.n_experts_used;
  uint32_t* const chosen = scratch_.chosen;
  float* const weights = scratch_.expert_weights;
  EachToken("route", [&](size_t t) {
    kernels::Route(config_.router, scratch_.router + t * n, n, layer.w.exp_probs_b, n_used,
                   chosen + t * n_used, weights + t * n_used);
  });
}

kernels::ExpertLayer Pass::ExpertsOf(const LayerView& layer) const {
  const LayerWeights& w = layer.w;
  return {w.ffn_gate_exps, w.ffn_up_exps, w.ffn_down_exps, config_.activation,
          layer.plan.expert_limit};
}

void Pass::Experts(const LayerView& layer, const float* in, float* out) {
  const uint32_t* const chosen = scratch_.chosen;
  if (scratch_.pager) scratch_.pager->Expect(layer.w, {chosen, n_tokens_ * config_.n_experts_used});
  RunOperation("experts", 0, [&] {
    kernels::Experts(pool_, ExpertsOf(layer), in, n_tokens_, chosen, scratch_.expert_weights,
                     config_.n_experts_used, scratch_.experts, out);
  });
}

void Pass::Gate(kernels::Activation activation, float* gate, const float* x, size_t width) {
  EachToken("gate", [&](size_t t) {
    kernels::GatedActivation(activation, gate + t * width, x + t * width, width);
  });
}

void Pass::Multiply(float* x, const float* y, size_t width) {
  EachToken("multiply", [&](size_t t) {
    for (size_t i = t * width; i < (t + 1) * width; ++i) x[i] *= y[i];
  });
}

void Pass::Xielu(const kernels::Xielu& xielu, size_t width, float* x) {
  EachToken("gate", [&](size_t t) { kernels::ApplyXielu(xielu, x + t * width, width); });
}

void Pass::Scale(float* x, float factor) {
  if (factor == 1) return;
  const size_t width = config_.embedding_length;
  EachToken("scale", [&](size_t t) { kernels::Scale(x + t * width, factor, width); });
}

void Pass::ScaleBySigmoid(const float* gate, float* x) {
  const size_t width = config_.embedding_length;
  EachToken("scale",
            [&](size_t t) { kernels::Scale(x + t * width, 1 / (1 + std::exp(-gate[t])), width); });
}

void Pass::Add(float* x, const float* y, float factor) {
  const size_t width = config_.embedding_length;
  EachToken("add",
            [&](size_t t) { kernels::AddScaled(x + t * width, factor, y + t * width, width); });
}

void Pass::StatisticalTopK(float deviations, size_t width, float* gate) {
  EachToken("gate", [&](size_t t) {
    float* const row = gate + t * width;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < width; ++i) sum += double{row[i]};
    const double mean = sum / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) squares += (double{row[i]} - mean) * (double{row[i]} - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(width - 1));
    const auto threshold = static_cast<float>(mean + double{deviations} * deviation);
    for (size_t i = 0; i < width; ++i) row[i] = std::max(row[i] - threshold, 0.0f);
  });
}

void Pass::RefineLogits(const WeightView& output, float* logits) {
  // Logits more than 6 below the largest are not refined: such a token is less than exp(-6), 1/400,
  // times as likely.
  constexpr float kMargin = 6;
  const float scale = std::max(std::abs(config_.logit_scale), 1e-6f);
  kernels::RefineLargest(pool_, {output, logits, output.rows, output.bias}, kMargin / scale,
                         scratch_.input);
}

void Pass::FinishLogits(float* logits) {
  if (config_.logit_scale == 1 && config_.logit_softcap == 0) return;
  // A row of logits can be as long as a whole batch of other rows, so threads share it.
  constexpr size_t kGrain = 1024;
  pool_.For(n_tokens_ * config_.vocab_size, kGrain, [&](size_t begin, size_t end, size_t) {
    float* const part = logits + begin;
    if (config_.logit_scale != 1) kernels::Scale(part, config_.logit_scale, end - begin);
    if (config_.logit_softcap != 0) kernels::SoftCap(part, config_.logit_softcap, end - begin);
  });
}

}  // namespace engine
