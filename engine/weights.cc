#include "engine/weights.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gguf/error.h"
#include "kernels/reference.h"

namespace engine {
namespace {

std::string ShapeText(uint64_t cols, uint64_t rows) {
  return "[" + std::to_string(cols) + (rows == 1 ? "" : ", " + std::to_string(rows)) + "]";
}

// Finds tensors and checks them, and knows which of the file's were asked for.
class Binder {
 public:
  explicit Binder(const gguf::File& file) : file_(file), bound_(file.tensors().size()) {}

  bool Has(const std::string& name) const { return file_.FindTensor(name) != nullptr; }

  kernels::Matrix Matrix(const std::string& name, uint64_t rows, uint64_t cols) {
    const gguf::TensorView& tensor = Checked(name, rows, cols);
    if (!kernels::IsWeightType(tensor.dtype)) {
      Fail(name, "type " + std::string(gguf::Info(tensor.dtype).name) + " cannot hold weights");
    }
    return {tensor.dtype, tensor.data, rows, cols};
  }

  const float* Vector(const std::string& name, uint64_t n) {
    const gguf::TensorView& tensor = Checked(name, 1, n);
    if (tensor.dtype != gguf::DType::kF32) {
      Fail(name, "expected type F32, found " + std::string(gguf::Info(tensor.dtype).name));
    }
    if (reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) != 0) {
      Fail(name, "is not aligned to 4 bytes (general.alignment is too small)");
    }
    return reinterpret_cast<const float*>(tensor.data);
  }
  const float* OptionalVector(const std::string& name, uint64_t n) {
    return Has(name) ? Vector(name, n) : nullptr;
  }
  // A tensor that nobody asked for is part of what the model was trained to compute: without it
  // the text would be wrong, and nobody would see why.
  void RequireAllBound() const {
    const auto unused = std::find(bound_.begin(), bound_.end(), false);
    if (unused == bound_.end()) return;
    const gguf::TensorView& tensor = file_.tensors()[static_cast<size_t>(unused - bound_.begin())];
    throw gguf::Error(gguf::PrintablePath(file_.path()) + ": tensor " + gguf::Quoted(tensor.name) +
                      " has no place in what this program computes: its text would be wrong");
  }

 private:
  [[noreturn]] void Fail(const std::string& name, const std::string& what) const {
    throw gguf::Error(gguf::PrintablePath(file_.path()) + ": tensor " + name + ": " + what);
  }

  const gguf::TensorView& Checked(const std::string& name, uint64_t rows, uint64_t cols) {
    const gguf::TensorView* tensor = file_.FindTensor(name);
    if (tensor == nullptr) {
      Fail(name, "is missing; expected a tensor of shape " + ShapeText(cols, rows));
    }
    if (tensor->dims != std::array<uint64_t, 4>{cols, rows, 1, 1}) {
      std::string found = "[";
      for (uint32_t i = 0; i < tensor->n_dims; ++i) {
        found += (i == 0 ? "" : ", ") + std::to_string(tensor->dims[i]);
      }
      Fail(name, "expected shape " + ShapeText(cols, rows) + ", found " + found + "]");
    }
    bound_[static_cast<size_t>(tensor - file_.tensors().data())] = true;
    return *tensor;
  }

  const gguf::File& file_;
  std::vector<bool> bound_;  // by place in file_.tensors()
};

LayerWeights BindLayer(Binder& bind, const Config& c, size_t layer) {
  const std::string blk = "blk." + std::to_string(layer) + ".";
  const size_t q_rows = c.n_heads * c.key_length;
  const size_t k_rows = c.n_kv_heads * c.key_length;
  const size_t v_rows = c.n_kv_heads * c.value_length;
  const size_t width = c.embedding_length;

  LayerWeights w;
  w.attn_norm = bind.Vector(blk + "attn_norm.weight", width);
  w.attn_q = bind.Matrix(blk + "attn_q.weight", q_rows, width);
  w.attn_k = bind.Matrix(blk + "attn_k.weight", k_rows, width);
  w.attn_v = bind.Matrix(blk + "attn_v.weight", v_rows, width);
  w.attn_q_bias = bind.OptionalVector(blk + "attn_q.bias", q_rows);
  w.attn_k_bias = bind.OptionalVector(blk + "attn_k.bias", k_rows);
  w.attn_v_bias = bind.OptionalVector(blk + "attn_v.bias", v_rows);
  if (c.qk_norm) {
    w.attn_q_norm = bind.Vector(blk + "attn_q_norm.weight", c.key_length);
    w.attn_k_norm = bind.Vector(blk + "attn_k_norm.weight", c.key_length);
  }
  w.attn_output = bind.Matrix(blk + "attn_output.weight", width, c.n_heads * c.value_length);
  w.attn_output_bias = bind.OptionalVector(blk + "attn_output.bias", width);

  w.ffn_norm = bind.Vector(blk + "ffn_norm.weight", width);
  w.ffn_gate = bind.Matrix(blk + "ffn_gate.weight", c.ffn_length, width);
  w.ffn_up = bind.Matrix(blk + "ffn_up.weight", c.ffn_length, width);
  w.ffn_down = bind.Matrix(blk + "ffn_down.weight", width, c.ffn_length);
  return w;
}

}  // namespace

Weights Weights::Bind(const gguf::File& file, const Config& config) {
  Binder bind(file);
  const size_t width = config.embedding_length;
  Weights w;
  w.token_embd = bind.Matrix("token_embd.weight", config.vocab_size, width);
  w.rope_freqs = bind.OptionalVector("rope_freqs.weight", config.rope.n_dims / 2);
  for (size_t layer = 0; layer < config.n_layers; ++layer) {
    w.layers.push_back(BindLayer(bind, config, layer));
  }
  w.output_norm = bind.Vector("output_norm.weight", width);
  w.output = bind.Has("output.weight") ? bind.Matrix("output.weight", config.vocab_size, width)
                                       : w.token_embd;
  bind.RequireAllBound();
  return w;
}

}  // namespace engine
