// Records the operations of a pass: what they read, how long they took, what observers see.
#include "engine/pass/traced_pass.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "engine/pass/input_squares.h"

namespace engine {
namespace {

uint64_t BytesOf(const kernels::Matrix& m) { return m.rows * m.row_bytes(); }

}  // namespace

void TracedPass::BeginOperation(std::string_view kind, uint64_t bytes) {
  trace_.operations.push_back({.kind = kind, .weights = {}, .bytes = bytes});
  watch_.emplace();
}

void TracedPass::EndOperation() { trace_.operations.back().seconds = watch_->Seconds(); }

void TracedPass::LastRead(std::vector<TraceWeights> weights, uint64_t bytes) {
  TraceOperation& operation = trace_.operations.back();
  operation.bytes = bytes;
  for (const TraceWeights& w : weights) {
    operation.flops += 2.0 * static_cast<double>(w.rows * w.cols * n_tokens());
  }
  operation.weights = std::move(weights);
}

std::vector<TraceWeights> TracedPass::Multiplied(const float* in,
                                                 std::span<const WeightView* const> weights) {
  std::vector<TraceWeights> read;
  for (const WeightView* w : weights) {
    if (w->tensor == nullptr) continue;
    const bool is_same = !read.empty() && read.back().tensor == w->tensor;  // parts of one matrix
    if (trace_.inputs != nullptr && !is_same)
      trace_.inputs->Add(w->tensor, {in, w->cols, n_tokens(), w->cols});
    read.push_back({w->tensor, w->rows, w->cols});
  }
  return read;
}

void TracedPass::RunMatMul(const float* in, std::span<const Output> outputs) {
  std::vector<const WeightView*> weights;
  uint64_t bytes = 0;
  for (const Output& output : outputs) {
    weights.push_back(&output.weights);
    if (output.weights.tensor != nullptr) bytes += BytesOf(output.weights);
  }
  std::vector<TraceWeights> read = Multiplied(in, weights);
  Pass::RunMatMul(in, outputs);
  if (!read.empty()) LastRead(std::move(read), bytes);
}

void TracedPass::RunGatedMatMul(const float* in, const WeightView& gate, const WeightView& up,
                                float limit, float* out) {
  const WeightView* const weights[] = {&up, &gate};
  std::vector<TraceWeights> read = Multiplied(in, weights);
  Pass::RunGatedMatMul(in, gate, up, limit, out);
  LastRead(std::move(read), BytesOf(gate) + BytesOf(up));
}

void TracedPass::HeadProducts(const ExpertsView& weights, const Heads& in, const Heads& out) {
  const size_t cols = weights.first.cols, rows = weights.n_experts * weights.first.rows;
  for (size_t h = 0; trace_.inputs != nullptr && h < weights.n_experts; ++h) {
    trace_.inputs->Add(weights.tensor,
                       {in.data + h * in.head_stride, in.token_stride, n_tokens(), cols}, h,
                       weights.n_experts);
  }
  Pass::HeadProducts(weights, in, out);
  LastRead({{weights.tensor, rows, cols}}, rows * weights.first.row_bytes());
}

void TracedPass::Attend(const LayerView& layer, float* q, float* k, float* v,
                        bool expands_latents) {
  const LayerPlan& plan = layer.plan;
  const size_t first_operation = trace_.operations.size();
  Pass::Attend(layer, q, k, v, expands_latents);
  const SequenceSlice& sequence = sequences()[0];
  const kernels::KvLayer& cache = sequence.state.layer(CacheOf(layer));
  const size_t end = sequence.first_position + n_tokens();
  const auto begin_of = [&](size_t position) {
    return kernels::FirstVisible(position, plan.window);
  };
  size_t n_scores = 0;  // scores of a head
  for (size_t p = sequence.first_position; p < end; ++p) {
    n_scores += kernels::LastVisible(p, plan.n_keys_ahead, end) + 1 - begin_of(p);
  }
  const auto operation = std::find_if(
      trace_.operations.begin() + static_cast<std::ptrdiff_t>(first_operation),
      trace_.operations.end(), [](const TraceOperation& s) { return s.kind == "attention"; });
  operation->bytes = std::min(end, cache.capacity) * cache.n_kv_heads *
                     (kernels::KvBytes(cache.type.k, cache.key_length) +
                      kernels::KvBytes(cache.type.v, cache.value_length));
  operation->flops =
      2.0 * static_cast<double>(n_scores * plan.n_heads * (plan.key_length + plan.value_length));
  operation->shape = {plan.n_heads, end - begin_of(end - 1), cache.key_length};
  if (trace_.observer == nullptr) return;
  const float* const row = q + (n_tokens() - 1) * plan.n_heads * cache.key_length;
  trace_.observer->Attended({cache, ParamsOf(layer), plan.n_heads, end - 1, row});
}

bool TracedPass::IsWorthExpanding(const LayerView& layer) const {
  // Observers want to see the inputs of attn_k_b and attn_v_b, and queries that fit the cache.
  if (trace_.inputs != nullptr || trace_.observer != nullptr) return false;
  return Pass::IsWorthExpanding(layer);
}

void TracedPass::Route(const LayerView& layer) {
  Pass::Route(layer);
  if (trace_.observer == nullptr) return;
  const size_t n_used = config().n_experts_used, last = (n_tokens() - 1) * n_used;
  trace_.observer->Routed({scratch().chosen + last, n_used},
                          {scratch().expert_weights + last, n_used});
}

uint64_t TracedPass::ChosenBytes(const LayerWeights& w) const {
  const uint32_t* const chosen = scratch().chosen;
  const std::set<uint32_t> experts(chosen, chosen + n_tokens() * config().n_experts_used);
  return experts.size() * (BytesOf(w.ffn_gate_exps.first) + BytesOf(w.ffn_up_exps.first) +
                           BytesOf(w.ffn_down_exps.first));
}

void TracedPass::Experts(const LayerView& layer, const float* in, float* out) {
  const LayerWeights& w = layer.w;
  const size_t n_used = config().n_experts_used;
  std::vector<TraceWeights> read;
  for (const ExpertsView* view : w.experts()) {
    if (view->tensor == nullptr) continue;
    read.push_back({view->tensor, view->first.rows * n_used, view->first.cols});
  }
  if (trace_.inputs != nullptr) {
    trace_.inputs->AddExperts(w, ExpertsOf(layer), in, n_tokens(), scratch().chosen, n_used,
                              pool());
  }
  Pass::Experts(layer, in, out);
  LastRead(std::move(read), ChosenBytes(w));
}

void TracedPass::EndLayer(size_t layer, const float* x) {
  Pass::EndLayer(layer, x);
  trace_.layer_ends.push_back(trace_.operations.size());
  if (trace_.observer == nullptr) return;
  const size_t width = config().embedding_length;
  trace_.observer->EndLayer({x + (n_tokens() - 1) * width, width});
}

}  // namespace engine
