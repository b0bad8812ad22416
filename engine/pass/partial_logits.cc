// The logits of the tokens that a grammar allows: products with some rows of the output matrix
// (forward.h).
#include <algorithm>
#include <bit>
#include <vector>

#include "engine/pass/forward.h"
#include "engine/pass/pass.h"

namespace engine {

bool ShouldComputeOnlyAllowed(const Model& model, std::span<const uint64_t> ids) {
  // Rows far apart are read at half the speed, and each has its own call.
  constexpr size_t kMaxRows = 1024, kVocabularyDivisor = 16;
  const WeightView& output = model.weights.output;
  if (output.hadamard != nullptr) return false;
  size_t n = 0;
  for (const uint64_t word : ids) n += static_cast<size_t>(std::popcount(word));
  return n > 0 && n <= std::min(kMaxRows, model.config.vocab_size / kVocabularyDivisor) &&
         model.config.logit_softcap == 0;
}

void LogitsOfAllowed(const Model& model, size_t token, std::span<const uint64_t> ids, Scratch& s,
                     kernels::ThreadPool& pool, float* logits) {
  const size_t width = model.config.embedding_length;
  const WeightView& output = model.weights.output;
  std::vector<kernels::Product> rows;
  for (size_t word = 0; word < ids.size(); ++word) {
    for (uint64_t left = ids[word]; left != 0; left &= left - 1) {
      const size_t id = 64 * word + static_cast<size_t>(std::countr_zero(left));
      if (id >= output.rows) break;
      kernels::Matrix row = output;
      row.data = output.row(id);
      row.rows = 1;
      row.uses_residual =
          true;  // Logits() refines the largest logits; here it is not known which they are
      rows.push_back({row, logits + id, 1, output.bias != nullptr ? output.bias + id : nullptr});
    }
  }
  Pass pass(model.config, 1, s, pool, {});
  const float* const in = pass.Normed(s.x + token * width, model.weights.output_norm, width,
                                      s.normed, model.weights.output_norm_bias);
  s.input.Set(in, 1, output.cols);
  kernels::MatMul(pool, rows, s.input);
  for (const kernels::Product& row : rows) {
    if (model.config.logit_scale != 1) kernels::Scale(row.out, model.config.logit_scale, 1);
  }
}

}  // namespace engine
