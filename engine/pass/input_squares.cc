// Adds up squares of inputs by column, of experts for each expert.
#include "engine/pass/input_squares.h"

#include <algorithm>

namespace engine {

void InputSquares::Add(const gguf::TensorView* tensor, const Inputs& inputs, size_t index,
                       size_t n_matrices) {
  if (tensor == nullptr || !tensor->name.starts_with("blk.")) return;
  auto found = squares_.find(tensor->name);
  if (found == squares_.end()) {
    ColumnSquares none{inputs.cols, std::vector<double>(n_matrices * inputs.cols),
                       std::vector<uint64_t>(n_matrices)};
    found = squares_.emplace(tensor->name, std::move(none)).first;
  }
  ColumnSquares& squares = found->second;
  squares.counts[index] += inputs.n;
  double* const sums = &squares.sums[index * inputs.cols];
  for (size_t i = 0; i < inputs.n; ++i) {
    const float* const row = inputs.data + i * inputs.stride;
    for (size_t j = 0; j < inputs.cols; ++j) sums[j] += double{row[j]} * double{row[j]};
  }
}

void InputSquares::AddExperts(const LayerWeights& w, const kernels::ExpertLayer& experts,
                              const float* in, size_t n_tokens, const uint32_t* chosen,
                              size_t n_used, kernels::ThreadPool& pool) {
  const ExpertsView &gate = w.ffn_gate_exps, &up = w.ffn_up_exps, &down = w.ffn_down_exps;
  const size_t cols = up.first.cols, n_hidden = up.first.rows;
  kernels::Activations input(n_tokens, cols, pool.size());
  std::vector<float> gathered(n_tokens * cols), hidden(n_tokens * n_hidden);
  for (size_t e = 0; e < up.n_experts; ++e) {
    size_t n = 0;
    for (size_t t = 0; t < n_tokens; ++t) {
      const uint32_t* const of_token = chosen + t * n_used;
      if (std::find(of_token, of_token + n_used, e) == of_token + n_used) continue;
      std::copy_n(in + t * cols, cols, &gathered[n++ * cols]);
    }
    const Inputs rows = {gathered.data(), cols, n, cols};
    Add(up.tensor, rows, e, up.n_experts);
    if (gate.tensor != up.tensor) Add(gate.tensor, rows, e, up.n_experts);
    if (n > 0) {
      input.Set(gathered.data(), n, cols);
      kernels::GatedLayer layer{
          {}, up.expert(e), nullptr, up.expert_bias(e), experts.activation, experts.limit};
      if (gate.n_experts != 0) {
        layer.gate = gate.expert(e);
        layer.gate_bias = gate.expert_bias(e);
      }
      kernels::GatedMatMul(pool, layer, input, hidden.data());
    }
    Add(down.tensor, {hidden.data(), n_hidden, n, n_hidden}, e, up.n_experts);
  }
}

}  // namespace engine
