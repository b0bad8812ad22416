// Finds tensors by name; checks type and shape, so that later code is safe.
#include "engine/model/binder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernels/matmul/reference.h"

namespace engine {

void Binder::Note(const gguf::TensorView& tensor) {
  (*bound_)[static_cast<size_t>(&tensor - file_.tensors().data())] = true;
}

const gguf::TensorView& Binder::Checked(const std::string& name,
                                        const std::vector<uint64_t>& dims) {
  const gguf::TensorView* const tensor = Find(name);
  const std::string expected = gguf::ShapeText(dims);
  if (tensor == nullptr) Fail(name, "is missing; expected a tensor of shape ", expected);
  std::array<uint64_t, 4> all = {1, 1, 1, 1};
  std::copy(dims.begin(), dims.end(), all.begin());
  if (tensor->dims != all) {
    Fail(name, "expected shape ", expected, ", found ",
         gguf::ShapeText(std::span(tensor->dims).first(tensor->n_dims)));
  }
  Note(*tensor);
  return *tensor;
}

const gguf::TensorView& Binder::CheckedWeights(const std::string& name,
                                               const std::vector<uint64_t>& dims) {
  const gguf::TensorView& tensor = Checked(name, dims);
  if (!kernels::IsWeightType(tensor.dtype)) {
    Fail(name, "type ", gguf::Info(tensor.dtype).name, " cannot hold weights");
  }
  return tensor;
}

const float* Binder::Floats(const std::string& name, const std::vector<uint64_t>& dims) {
  const gguf::TensorView& tensor = Checked(name, dims);
  if (tensor.dtype != gguf::DType::kF32) {
    Fail(name, "expected type F32, found ", gguf::Info(tensor.dtype).name);
  }
  if (reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) != 0) {
    Fail(name, "is not aligned to 4 bytes (general.alignment is too small)");
  }
  return reinterpret_cast<const float*>(tensor.data);
}

const gguf::TensorView& Binder::CheckedOwnScales(const std::string& name,
                                                 const std::vector<uint64_t>& dims) {
  const gguf::TensorView& tensor = CheckedWeights(name, dims);
  if (gguf::Info(tensor.dtype).tail_bytes != 0) {
    Fail(name, "expected a type whose blocks have scales, found ", gguf::Info(tensor.dtype).name);
  }
  return tensor;
}

WeightView Binder::Table(const std::string& name, uint64_t rows, uint64_t cols) {
  const gguf::TensorView& tensor = CheckedOwnScales(name + ".weight", {cols, rows});
  matrix_elements_ += rows * cols;
  return {{tensor.dtype, tensor.data, rows, cols, 1, exact_}, &tensor};
}

WeightView Binder::Embedding(const std::string& name, uint64_t width, uint64_t vocab_size) {
  WeightView view = Table(name, vocab_size, width);
  if (hadamard_transforms_ == nullptr) return view;
  view.hadamard = hadamard_transforms_->OfInput(view.tensor->name, width);
  view.row_hadamard = hadamard_transforms_->OfRows(view.tensor->name, width);
  return view;
}

WeightView Binder::Matrix(const std::string& name, uint64_t rows, uint64_t cols) {
  const gguf::TensorView& tensor = CheckedWeights(name + ".weight", {cols, rows});
  matrix_elements_ += rows * cols;
  WeightView view = {{tensor.dtype, tensor.data, rows, cols, tensor.scale(), exact_}, &tensor};
  if (hadamard_transforms_ != nullptr)
    view.hadamard = hadamard_transforms_->OfInput(tensor.name, cols);
  if (!std::isfinite(view.scale)) Fail(name + ".weight", "expected a scale that is a number");
  const float* const scale = OptionalFloats(name + ".scale", {1});
  if (scale != nullptr) view.scale *= *scale;
  OptionalFloats(name + ".input_scale", {1});  // the scale of NVFP4 activations: not used
  view.bias = OptionalFloats(name + ".bias", {rows});
  return view;
}

uint64_t Binder::Rows(const std::string& name) const {
  const gguf::TensorView* const tensor = Find(name + ".weight");
  return tensor != nullptr ? tensor->dims[1] : 0;
}

WeightView Binder::Rows(const WeightView& matrix, uint64_t first, uint64_t n) {
  WeightView view = matrix;
  view.data = matrix.row(first);
  view.rows = n;
  if (matrix.bias != nullptr) view.bias = matrix.bias + first;
  return view;
}

ExpertsView Binder::Experts(const std::string& name, uint64_t n, uint64_t rows, uint64_t cols) {
  const gguf::TensorView& tensor = CheckedOwnScales(name + ".weight", {cols, rows, n});
  ExpertsView view;
  view.first = {tensor.dtype, tensor.data, rows, cols, 1, exact_};
  view.n_experts = n;
  view.scales = OptionalFloats(name + ".scale", {n});
  OptionalFloats(name + ".input_scale", {n});
  view.bias = OptionalFloats(name + ".bias", {rows, n});
  view.tensor = &tensor;
  return view;
}

ExpertsView Binder::Rows(const ExpertsView& experts, uint64_t first, uint64_t n) {
  ExpertsView view = experts;
  view.first.data = experts.first.row(first);
  view.first.rows = n;
  view.stride = experts.first.rows;
  return view;
}

WeightView Binder::OneRow(const std::string& name, uint64_t cols) {
  const gguf::TensorView& tensor = CheckedOwnScales(name + ".weight", {cols});
  matrix_elements_ += cols;
  return {{tensor.dtype, tensor.data, 1, cols, 1, exact_}, &tensor};
}

void Binder::RequireBias(std::initializer_list<std::string> names) const {
  for (const std::string& name : names) {
    if (Find(name + ".bias") != nullptr) continue;
    Fail(name + ".bias", "is missing; models of this architecture have biases");
  }
}

const float* Binder::Vector(const std::string& name, uint64_t n) {
  const bool bare = !Has(name) && Find(name) != nullptr;  // Falcon-H1's ffn_norm
  return Floats(bare ? name : name + ".weight", {n});
}

uint64_t Binder::Skip(std::string_view prefix) {
  const std::string begin = prefix_ + std::string(prefix);
  uint64_t bytes = 0;
  for (const gguf::TensorView& tensor : file_.tensors()) {
    if (!tensor.name.starts_with(begin)) continue;
    Note(tensor);
    bytes += tensor.bytes;
  }
  return bytes;
}

void Binder::RequireAllBound() const {
  if (hadamard_transforms_ != nullptr) hadamard_transforms_->RequireAllUsed();
  const auto unused = std::find(bound_->begin(), bound_->end(), false);
  if (unused == bound_->end()) return;
  const gguf::TensorView& tensor = file_.tensors()[static_cast<size_t>(unused - bound_->begin())];
  gguf::Fail(file_.path(), "tensor ", gguf::Quoted(tensor.name),
             " has no place in what this program computes: its text would be wrong");
}

}  // namespace engine
