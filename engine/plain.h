// The plain pass: Llama (also Mistral and SmolLM2), Qwen2 and Qwen3 without experts, from token ids
// to the next token, in one file (plain.cc). It is slow and simple. The engine is tested against
// it, and READING.md begins with it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/model/model.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// A table of numbers, [rows][cols], mostly with a row for each token. rows[t] points to row t.
struct Rows {
  Rows(size_t n_rows, size_t n_cols) : rows(n_rows), cols(n_cols), values(n_rows * n_cols) {}
  double* operator[](size_t row) { return values.data() + row * cols; }
  const double* operator[](size_t row) const { return values.data() + row * cols; }

  size_t rows, cols;
  std::vector<double> values;
};

// Sees the output of every operation as soon as it is computed. `name` is the name of the tensor
// that made it ("attn_q"), or of the operation ("attn_q_rope"), as in plain.cc. `layer` is kNoLayer
// for the embedding and the output.
using PlainObserver = std::function<void(std::string_view name, size_t layer, const Rows& out)>;

class PlainModel {
 public:
  static constexpr size_t kNoLayer = SIZE_MAX;

  // Borrows the model. Throws engine::Error if the model needs an operation that plain.cc lacks.
  explicit PlainModel(const Model& model, PlainObserver observer = nullptr);

  // Runs tokens that follow the earlier ones. Returns the logits after each token:
  // [tokens][vocab_size].
  Rows Forward(std::span<const tokenizer::TokenId> ids);

  // Runs ids and appends the likeliest token, up to n times or until a token ends the text.
  std::vector<tokenizer::TokenId> Continue(std::vector<tokenizer::TokenId> ids, size_t n);

 private:
  // Operations. `name` is the name that the observer gets with the result.
  void Observe(std::string_view name, const Rows& out) const;
  Rows Embed(std::string_view name, const WeightView& w,
             std::span<const tokenizer::TokenId> ids) const;
  Rows MatMul(std::string_view name, const WeightView& w, const Rows& in) const;
  Rows RmsNorm(std::string_view name, const Rows& in, size_t length, const float* weight) const;
  Rows Rope(std::string_view name, const Rows& in, size_t head_dim, size_t first_position) const;
  Rows SwiGlu(std::string_view name, const Rows& gate, const Rows& up) const;
  // Parts of a layer.
  Rows Attention(const LayerPlan& plan, const LayerWeights& w, const Rows& in);
  Rows AttendHeads(const LayerPlan& plan, const Rows& q) const;
  Rows FeedForward(const LayerWeights& w, const Rows& in) const;

  const Model& model_;
  PlainObserver observer_;
  size_t layer_ = kNoLayer;  // the layer being computed
  // The KV cache of each layer, [positions][kv_heads][head_dim]: only attention looks back.
  std::vector<Rows> keys_, values_;
};

}  // namespace engine
