// Binder: finds a file's tensors, checks their types and shapes, and records which were requested.
// Throws gguf::Error (file, tensor, expected, found).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/hadamard_transforms.h"
#include "engine/model/weights.h"
#include "gguf/error.h"
#include "gguf/file.h"

namespace engine {

// Names omit ".weight". A matrix has its tensors NAME.scale and NAME.bias if the file has them.
class Binder {
 public:
  // exact: applies to all matrices (kernels::Matrix).
  explicit Binder(const gguf::File& file, bool exact = false)
      : file_(file),
        exact_(exact),
        bound_(std::make_shared<std::vector<bool>>(file.tensors().size())) {
    if (HadamardTransforms::AreIn(file))
      hadamard_transforms_ = std::make_shared<HadamardTransforms>(file);
  }
  // A Binder for the tensors whose names begin with this prefix, which its callers omit.
  Binder Of(const std::string& prefix) const {
    Binder binder(*this);
    binder.prefix_ = prefix;
    binder.matrix_elements_ = 0;
    return binder;
  }

  bool Has(const std::string& name) const { return Find(name + ".weight") != nullptr; }

  WeightView Matrix(const std::string& name, uint64_t rows, uint64_t cols);
  // A matrix without scale and bias.
  WeightView Table(const std::string& name, uint64_t rows, uint64_t cols);
  // A table of tokens, which may also be an output matrix: its rows may have to be rotated back.
  WeightView Embedding(const std::string& name, uint64_t width, uint64_t vocab_size);
  // The number of rows of a matrix in the file; 0 if the file lacks it.
  uint64_t Rows(const std::string& name) const;
  // Rows [first, first + n) of a matrix, with their part of its bias.
  static WeightView Rows(const WeightView& matrix, uint64_t first, uint64_t n);
  // `n` matrices of this shape, one after the other.
  ExpertsView Experts(const std::string& name, uint64_t n, uint64_t rows, uint64_t cols);
  // Rows [first, first + n) of each matrix.
  static ExpertsView Rows(const ExpertsView& experts, uint64_t first, uint64_t n);
  // A matrix of one row, which is a vector in the file.
  WeightView OneRow(const std::string& name, uint64_t cols);

  // Throws if one of these matrices lacks its bias.
  void RequireBias(std::initializer_list<std::string> names) const;

  // n numbers of type F32.
  const float* Vector(const std::string& name, uint64_t n);
  const float* OptionalVector(const std::string& name, uint64_t n) {
    return Has(name) ? Vector(name, n) : nullptr;
  }

  // A norm's weights and bias; null if the name is empty.
  NormView Norm(const std::string& name, uint64_t n) {
    if (name.empty()) return {};
    return {Vector(name, n), OptionalFloats(name + ".bias", {n})};
  }

  // Ones, up to n of them, for norms without weights in the file.
  void MakeOnes(uint64_t n) { ones_ = std::make_shared<std::vector<float>>(n, 1.0f); }
  const float* Ones(uint64_t n) const { return n <= ones_->size() ? ones_->data() : nullptr; }
  std::shared_ptr<const std::vector<float>> ones() const { return ones_; }
  std::shared_ptr<const HadamardTransforms> hadamard_transforms() const {
    return hadamard_transforms_;
  }

  // Numbers of type F32 in a tensor of any shape. The name includes ".weight" or its other ending.
  const float* Floats(const std::string& name, const std::vector<uint64_t>& dims);
  const float* OptionalFloats(const std::string& name, const std::vector<uint64_t>& dims) {
    return Find(name) != nullptr ? Floats(name, dims) : nullptr;
  }

  // Marks tensors whose names begin with the prefix as known; returns their bytes.
  uint64_t Skip(std::string_view prefix);
  // Throws if a tensor was not requested: a model trained with it writes wrong text without it.
  void RequireAllBound() const;
  // The number of weights in all matrices of this Binder so far, except Experts().
  uint64_t matrix_elements() const { return matrix_elements_; }

  template <class... Parts>
  [[noreturn]] void Fail(const std::string& tensor, const Parts&... what) const {
    gguf::Fail(file_.path(), "tensor ", prefix_, tensor, ": ", what...);
  }

 private:
  const gguf::TensorView* Find(const std::string& name) const {
    return file_.FindTensor(prefix_ + name);
  }
  // The tensor with this name and these dimensions, recorded as requested.
  const gguf::TensorView& Checked(const std::string& name, const std::vector<uint64_t>& dims);
  const gguf::TensorView& CheckedWeights(const std::string& name,
                                         const std::vector<uint64_t>& dims);
  // Throws if weights of this type share a scale per tensor.
  const gguf::TensorView& CheckedOwnScales(const std::string& name,
                                           const std::vector<uint64_t>& dims);
  void Note(const gguf::TensorView& tensor);

  const gguf::File& file_;
  bool exact_;
  std::string prefix_;
  std::shared_ptr<std::vector<bool>> bound_;  // one for each of file_.tensors()
  std::shared_ptr<std::vector<float>> ones_;
  std::shared_ptr<HadamardTransforms> hadamard_transforms_;
  uint64_t matrix_elements_ = 0;
};

}  // namespace engine
