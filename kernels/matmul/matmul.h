// Products of weight matrices with activations: they take nearly all of an engine's time.
//
// Weights are used in the file's layout. For a few vectors they are unpacked in registers
// (rows-inl.h), for a batch panel by panel in a thread's cache (gemm-inl.h). Quantized types
// multiply with activations rounded to int8, where 32 share a scale; an input is rounded once for
// all products that read it. Float types multiply with the floats themselves, and so do exact
// matrices of any type (exact.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gguf/dtype.h"
#include "kernels/buffer.h"
#include "kernels/ops/ops.h"
#include "kernels/ops/rounding.h"
#include "kernels/threads/thread_pool.h"

namespace kernels {

// In passes of up to this many tokens, results are batch-invariant: a token's results are bit for
// bit the same as in a pass of its own. That holds for products, experts and attention.
constexpr size_t kMaxInvariantTokens = 16;

// A weight matrix in the file: `rows` rows of `cols` weights, times `scale`. Owns nothing.
struct Matrix {
  gguf::DType dtype = gguf::DType::kF32;
  const std::byte* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  float scale = 1.0f;
  bool exact = false;  // products round no activations
  // Products with int8 activations also multiply the residual of their rounding (as int8 with a
  // finer scale): twice the arithmetic, for a matrix whose errors count more than its share of the
  // work.
  bool uses_residual = false;

  size_t row_bytes() const { return gguf::RowBytes(dtype, cols); }
  const std::byte* row(size_t r) const { return data + r * row_bytes(); }
};

// The properties of weights that decide how they are multiplied.
struct WeightKind {
  WeightKind(gguf::DType type) : dtype(type) {}  // NOLINT(google-explicit-constructor)
  WeightKind(const Matrix& w)                    // NOLINT
      : dtype(w.dtype), exact(w.exact), uses_residual(w.uses_residual) {}

  gguf::DType dtype;
  bool exact = false;
  bool uses_residual = false;
};

// True if a product with weights of this kind reads int8 activations.
bool UsesInt8(WeightKind kind);
// True if it also reads their rounding residuals (Matrix::uses_residual).
bool UsesResiduals(WeightKind kind);

// The input form of a batch's products: kInt8 for quantized weights, kFloats for float or exact
// ones, or kBf16 if the CPU multiplies that faster (BatchFormFor in registry.h).
enum class BatchForm { kFloats, kInt8, kBf16 };

struct GemmInput;  // gemm.h

// The input vectors that a thread multiplies rows of weights with, and its scratch (rows.h).
struct RowsInput {
  std::span<const ActivationRow> x;
  std::span<std::byte> scratch;
  std::optional<gguf::DType> prepared = std::nullopt;  // the type in whose order scratch has x
  std::span<const ActivationRow> residuals = {};       // one for each x, if a matrix uses them
};

// The input of one or more products, n_tokens vectors of `cols` floats, in the forms that products
// read; each form is made once, on first use. Also the threads' scratch. Buffers are sized at
// construction, for pools of up to max_threads.
class Activations {
 public:
  // residual_cols: the most columns of a matrix that uses the residual, or of RefineLargest.
  // Matrices with more columns are multiplied without it.
  Activations(size_t max_tokens, size_t max_cols, size_t max_threads = 1, size_t residual_cols = 0);
  // The total size of the buffers for these arguments.
  static size_t BytesFor(size_t max_tokens, size_t max_cols, size_t max_threads,
                         size_t residual_cols);

  // Takes x ([n_tokens][cols], contiguous) as the new input; keeps the pointer, copies nothing.
  void Set(const float* x, size_t n_tokens, size_t cols);
  // Makes the int8 form for row-by-row products with weights of this kind; or for several products:
  // `int8` if a product reads it, `residuals` if a product also reads the rounding residuals.
  void RoundOnce(ThreadPool& pool, WeightKind kind);
  void RoundOnce(ThreadPool& pool, bool int8, bool residuals);
  // Makes and returns the form for products of a batch with weights of this kind.
  GemmInput PackOnce(ThreadPool& pool, WeightKind kind);

  size_t n_tokens() const { return n_tokens_; }
  size_t cols() const { return cols_; }
  // A token's vector in the form that row-by-row products read.
  ActivationRow input(size_t token) const;
  std::span<std::byte> scratch(size_t thread);
  // True if products with weights of this kind also read the input's rounding residuals.
  bool KeepsResiduals(WeightKind kind) const;
  // Sets inputs(thread) of every thread to all tokens, at most kMaxRowTokens (gemm.h).
  void SetInputs();
  RowsInput& inputs(size_t thread) { return inputs_[thread]; }
  const float* x(size_t token) const { return x_ + token * cols_; }

 private:
  size_t n_tokens_ = 0, cols_ = 0, residual_cols_;
  const float* x_ = nullptr;
  bool is_rounded_ = false, has_residuals_ = false, packed_residuals_ = false;
  std::array<bool, 3> packed_ = {};  // [BatchForm]
  RoundedRows rounded_, residuals_;
  std::array<Buffer<std::byte>, 3> packs_;  // [BatchForm]
  Buffer<std::byte> residual_pack_;
  Buffer<uint32_t> residual_numbers_;
  size_t scratch_bytes_;
  Buffer<std::byte> scratch_;  // [max_threads][scratch_bytes_]
  std::vector<ActivationRow> tokens_, token_residuals_;
  std::vector<RowsInput> inputs_;  // [max_threads]
};

// out[token * out_stride + row] = weights.scale * (weights.row(row) . x[token]) (+ bias[row])
struct Product {
  Matrix weights;
  float* out;
  size_t out_stride;
  const float* bias = nullptr;  // [weights.rows] or null
};

// Computes the products of one input as a single range of rows, so that q, k and v cost one
// barrier. Every weights.cols must equal x.cols(). The results do not depend on the number of
// threads; results of up to kMaxInvariantTokens tokens are batch-invariant.
void MatMul(ThreadPool& pool, std::span<const Product> products, Activations& x);

// Refines a product whose results are logits: for each token, multiplies again, as if the matrix
// used the residual, the rows whose results are at most `margin` below the largest. The other
// logits contribute next to nothing to the token's softmax. At most kMaxRefined rows of a token are
// refined, so the work is small beside the product's. x is the product's input.
constexpr size_t kMaxRefined = 128;
void RefineLargest(ThreadPool& pool, const Product& product, float margin, Activations& x);

// The first half of a feed-forward layer. gate and up have the same shape; without a gate
// (gate.rows == 0) the activation applies to up alone. Only up may use the residual.
struct GatedLayer {
  bool has_gate() const { return gate.rows != 0; }

  Matrix gate, up;
  const float* gate_bias = nullptr;  // [gate.rows]
  const float* up_bias = nullptr;    // [up.rows]
  Activation activation = Activation::kSilu;
  float limit = std::numeric_limits<float>::infinity();  // kLimitedSilu's limit
};

// out[token][row] = activation(g, u), where g = gate.scale * (gate.row(row) . x[token]) +
// gate_bias[row], and u is the same for up. out is [n_tokens][up.rows].
void GatedMatMul(ThreadPool& pool, const GatedLayer& layer, Activations& x, float* out);

}  // namespace kernels
