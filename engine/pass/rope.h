// Rotary position embedding (Su et al. 2021): the angles by which position p rotates each pair of
// dimensions. Pair i rotates by p * f_i, with f_i = base^(-2i / n_dims). Long-context models change
// the frequencies: by a divisor for each (tensor rope_freqs), by one factor (linear scaling), or by
// YaRN (Peng et al. 2023). YaRN divides only frequencies whose wavelength exceeds the context, and
// scales cos and sin up slightly to keep attention sharp.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/model/model.h"

namespace engine {

class RopeAngles {
 public:
  // freq_divisors: [n_dims / 2] or null.
  RopeAngles(const RopeConfig& config, const float* freq_divisors);

  size_t n_pairs() const { return frequencies_.size(); }
  // Writes cos and sin ([n_pairs] each) for one position.
  void Fill(size_t position, float* cos, float* sin) const;
  // Writes their means over the positions up to kMeanPositions: 0 for fast pairs, nearly 1 and 0
  // for slow pairs.
  static constexpr size_t kMeanPositions = 4096;
  const float* mean_cos() const { return mean_cos_.data(); }
  const float* mean_sin() const { return mean_sin_.data(); }

 private:
  std::vector<double> frequencies_;  // radians per position
  double magnitude_ = 1.0;           // multiplies cos and sin
  std::vector<float> mean_cos_, mean_sin_;
};

// RopeAngles for each of Config::ropes, all with the same divisors ([n_dims / 2] or null).
std::vector<RopeAngles> MakeRopes(const Config& config, const float* freq_divisors);
// Whether a context of this length uses the second set of divisors, if the model has two.
bool HasLongFactors(const Model& model, size_t context);
// Uses the model's divisors for a context of this length, however much of it a text fills.
std::vector<RopeAngles> MakeRopes(const Model& model, size_t context);

}  // namespace engine
