// TracedPass: a Pass that fills a Trace with each operation, its weights and its time. Pass itself
// knows nothing of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/pass/pass.h"
#include "engine/pass/trace.h"
#include "engine/stopwatch.h"

namespace engine {

class TracedPass : public Pass {
 public:
  TracedPass(Trace& trace, const Config& config, size_t n_tokens, Scratch& scratch,
             kernels::ThreadPool& pool, std::span<const SequenceSlice> sequences)
      : Pass(config, n_tokens, scratch, pool, sequences), trace_(trace) {}

  void HeadProducts(const ExpertsView& weights, const Heads& in, const Heads& out) override;
  void Attend(const LayerView& layer, float* q, float* k, float* v, bool expands_latents) override;
  bool IsWorthExpanding(const LayerView& layer) const override;
  void Route(const LayerView& layer) override;
  void Experts(const LayerView& layer, const float* in, float* out) override;
  void EndLayer(size_t layer, const float* x) override;

 private:
  void BeginOperation(std::string_view kind, uint64_t bytes) override;
  void EndOperation() override;
  void RunMatMul(const float* in, std::span<const Output> outputs) override;
  void RunGatedMatMul(const float* in, const WeightView& gate, const WeightView& up, float limit,
                      float* out) override;
  // Shows `inputs` the vectors that these weights are multiplied with; returns the weights that are
  // not null.
  std::vector<TraceWeights> Multiplied(const float* in, std::span<const WeightView* const> weights);
  // The last operation was a product with these weights.
  void LastRead(std::vector<TraceWeights> weights, uint64_t bytes);
  // The weights of the experts that some token of the batch chose.
  uint64_t ChosenBytes(const LayerWeights& w) const;

  Trace& trace_;
  std::optional<Stopwatch> watch_;  // times the running operation
};

// A TracedPass if there is a trace, otherwise a Pass.
class PassWithOptionalTrace {
 public:
  PassWithOptionalTrace(Trace* trace, const Config& config, size_t n_tokens, Scratch& scratch,
                        kernels::ThreadPool& pool, std::span<const SequenceSlice> sequences = {})
      : plain_(config, n_tokens, scratch, pool, sequences) {
    if (trace != nullptr) traced_.emplace(*trace, config, n_tokens, scratch, pool, sequences);
  }
  Pass& get() { return traced_ ? *traced_ : plain_; }

 private:
  Pass plain_;
  std::optional<TracedPass> traced_;
};

}  // namespace engine
