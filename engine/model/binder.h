// Binder: finds a file's tensors, checks type and shape of each, and records which were asked for.
// What is refused throws gguf::Error (file, tensor, expected, found).
#ifndef PRONK_ENGINE_MODEL_BINDER_H_
#define PRONK_ENGINE_MODEL_BINDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/weights.h"
#include "gguf/file.h"

namespace engine {

// Names are without ".weight". Matrices come with the tensors NAME.scale and NAME.bias where the
// file has them.
class Binder {
 public:
  explicit Binder(const gguf::File& file) : file_(file), bound_(file.tensors().size()) {}

  bool Has(const std::string& name) const { return file_.FindTensor(name + ".weight") != nullptr; }

  WeightView Matrix(const std::string& name, uint64_t rows, uint64_t cols);
  // A matrix without scale and bias.
  WeightView Table(const std::string& name, uint64_t rows, uint64_t cols);
  // Rows [first, first + n) of a matrix, with their part of its bias.
  static WeightView Rows(const WeightView& matrix, uint64_t first, uint64_t n);
  // `n` matrices of this shape, one after the other.
  ExpertsView Experts(const std::string& name, uint64_t n, uint64_t rows, uint64_t cols);
  // Rows [first, first + n) of each.
  static ExpertsView Rows(const ExpertsView& experts, uint64_t first, uint64_t n);
  // A matrix of one row: in the file a vector.
  WeightView OneRow(const std::string& name, uint64_t cols);

  // Throws where a matrix lacks its bias.
  void RequireBias(const std::string& name) const;

  // n numbers of type F32.
  const float* Vector(const std::string& name, uint64_t n);
  const float* OptionalVector(const std::string& name, uint64_t n) {
    return Has(name) ? Vector(name, n) : nullptr;
  }

  // Numbers of type F32 in a tensor of any shape, by its full name.
  const float* Floats(const std::string& name, const std::vector<uint64_t>& dims);
  const float* OptionalFloats(const std::string& name, const std::vector<uint64_t>& dims) {
    return file_.FindTensor(name) != nullptr ? Floats(name, dims) : nullptr;
  }

  // Marks tensors as known whose names begin with the prefix; returns their bytes.
  uint64_t Skip(std::string_view prefix);
  // Throws where a tensor was not asked for: it is part of what the model was trained to compute,
  // and the text would be wrong without a sign of why.
  void RequireAllBound() const;
  // Weights of all matrices until now, those of Experts() not counted.
  uint64_t matrix_elements() const { return matrix_elements_; }

 private:
  [[noreturn]] void Fail(const std::string& tensor, const std::string& what) const;
  // The tensor of this full name, which has these dimensions, recorded as asked for.
  const gguf::TensorView& Checked(const std::string& name, const std::vector<uint64_t>& dims);
  const gguf::TensorView& CheckedWeights(const std::string& name,
                                         const std::vector<uint64_t>& dims);
  void Note(const gguf::TensorView& tensor);

  const gguf::File& file_;
  std::vector<bool> bound_;  // by place in file_.tensors()
  uint64_t matrix_elements_ = 0;
};

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_BINDER_H_
