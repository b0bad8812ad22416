// Logits of whole texts, and the error of one set against another.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "engine/session/embedder.h"
#include "engine/session/session.h"

namespace test {

// The energy of the difference divided by the energy of the expected numbers.
inline double Nmse(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  if (actual.size() != expected.size()) return 1;
  double error = 0, energy = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double diff = static_cast<double>(actual[i]) - expected[i];
    error += diff * diff;
    energy += static_cast<double>(expected[i]) * expected[i];
  }
  return error / energy;
}

// [ids.size()][vocab_size], computed by a new session.
inline std::vector<float> AllLogits(const engine::Model& model,
                                    const std::vector<tokenizer::TokenId>& ids,
                                    const engine::SessionOptions& options) {
  engine::Session session(model, options);
  std::vector<float> logits;
  session.PrefillAllLogits(ids, [&](size_t, size_t, std::span<const float> rows) {
    logits.insert(logits.end(), rows.begin(), rows.end());
  });
  return logits;
}

// AllLogits, or the vectors of a model that does not write text.
inline std::vector<float> Results(const engine::Model& model,
                                  const std::vector<tokenizer::TokenId>& ids,
                                  const engine::SessionOptions& options) {
  if (model.config.WritesText()) return AllLogits(model, ids, options);
  std::vector<float> result;
  engine::Embedder(model, options).Embed({{ids}}, [&](size_t, size_t, std::span<const float> row) {
    result.assign(row.begin(), row.end());
    return true;
  });
  return result;
}

}  // namespace test
