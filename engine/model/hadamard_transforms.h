// Hadamard transforms of matrices' inputs. PrismML's files have matrices whose rows were multiplied
// by signs and Hadamard matrices, so that their weights are easier to round; their inputs must be
// multiplied in the same way. The keys prism.hadamard.* name these matrices. Chee et al. 2023
// (QuIP), Ashkboos et al. 2024 (QuaRot).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/file.h"

namespace engine {

struct HadamardTransform {
  size_t block = 0;          // numbers that a Hadamard matrix covers
  std::vector<float> signs;  // [width]; 1 or -1
  // A delta net's number of key heads, and of value heads for each. In the net's output a key
  // head's value heads are n_groups apart; in the rows of ssm_out they are side by side.
  size_t n_groups = 1, n_in_group = 1;

  // `in` and `out` must not be the same buffer.
  void Apply(const float* in, float* out) const;
  // Undoes the transform of a row of the matrix.
  void Undo(float* row) const;
};

class HadamardTransforms {
 public:
  static bool AreIn(const gguf::File& file);
  // Throws gguf::Error if a key is missing or unknown, or its value is not the one computed here.
  explicit HadamardTransforms(const gguf::File& file);

  // The transform of the inputs of a matrix with `width` columns, or of its rows as a table; null:
  // it has none. Throws gguf::Error if there are no signs for this width.
  const HadamardTransform* OfInput(std::string_view tensor, size_t width);
  const HadamardTransform* OfRows(std::string_view tensor, size_t width);
  // Throws gguf::Error if a tensor that the keys name was never requested.
  void RequireAllUsed() const;

 private:
  const HadamardTransform* Find(std::string_view tensor, size_t width, bool grouped);

  std::string path_;
  size_t block_ = 0, n_groups_ = 1, n_in_group_ = 1;
  bool groups_values_ = false;
  std::set<std::string, std::less<>> inputs_, rows_;  // names of tensors
  std::set<std::string, std::less<>> used_;
  std::map<size_t, std::vector<float>> signs_;  // [width]: the signs
  std::map<std::pair<size_t, bool>, HadamardTransform> made_;
};

}  // namespace engine
