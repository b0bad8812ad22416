// Products of a range of weight rows with a batch of input vectors, one function per weight type:
// what matmul.cc calls for batches, as gemv.h is for single vectors. Internal to kernels/.
//
// A thread converts a panel of rows, whatever their type, to plain bytes in its own cache, once,
// and multiplies them with all tokens of the batch. gemm-inl.h has the picture.
#ifndef PRONK_KERNELS_GEMM_H_
#define PRONK_KERNELS_GEMM_H_

#include <cstddef>
#include <optional>
#include <span>

#include "kernels/matmul.h"

namespace kernels {

// Batches from so many tokens on are multiplied by panels. Measured (Q4_0, Q6_K; AVX-512 VNNI,
// AVX2): at 8 tokens panels and single products take as long, since unpacking a panel costs as much
// as multiplying it with five tokens and tiles are multiples of six; at 12 panels are 1.4 times
// faster.
constexpr size_t kGemmTokens = 8;

// Rows of weights that are packed together, on any instruction set at most.
constexpr size_t kGemmMaxRows = 32;

// What a thread needs for panels of matrices with up to `cols` columns: what stays in the
// second-level cache beside the activations, or one group of rows in the largest form, floats.
size_t PanelScratchBytes(size_t cols);

// A batch of vectors in the order in which the products read it (panel-inl.h, bf16.h).
struct GemmInput {
  BatchForm form;
  const std::byte* blocks;
  size_t n_tokens;
  size_t cols;
};

// Bytes of n_tokens vectors of `cols` numbers, at most.
size_t BatchBytes(BatchForm form, size_t n_tokens, size_t cols);

// Tokens that are packed together, of any form at most.
constexpr size_t kMostTileTokens = 32;
// Tokens that are packed together: n_tokens tokens make ceil(n_tokens / BatchTileTokens) tiles.
size_t BatchTileTokens(BatchForm form);
// Packs tile number `tile` of x ([n_tokens][cols]); kInt8 rounds as QuantizeActivations does.
// `blocks` is 64-byte aligned.
void PackBatch(BatchForm form, const float* x, size_t n_tokens, size_t cols, size_t tile,
               std::byte* blocks);
// The same from rows that need not be neighbours, at most BatchTileTokens. kInt8 takes them as they
// were rounded before, if they were.
void PackTile(BatchForm form, std::span<const ActivationRow> rows, size_t cols, size_t tile,
              std::byte* blocks);

// What becomes of a result, in this order.
struct GemmOutput {
  float* out;  // [n_tokens][stride], the column of the product's first row first
  size_t stride;
  const float* bias = nullptr;                     // [weights.rows], is added
  std::optional<Activation> gated = std::nullopt;  // is joined with what is there: the gate
  // Where they are not null: out[tokens[t]] += factors[t] * (result of token t).
  const uint32_t* tokens = nullptr;
  const float* factors = nullptr;
};

// out[token][row] = w.scale * (w.row(row) . x[token]) for rows [begin, end); begin is a multiple of
// kGemmMaxRows. A result does not depend on the range or the batch it is computed in. scratch:
// PanelScratchBytes(w.cols), 64-byte aligned.
using Gemm = void(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                  const GemmOutput& out, std::span<std::byte> scratch);

Gemm GemmFloat;   // gemm_float.cc: F32, F16, BF16
Gemm GemmLegacy;  // gemm_legacy.cc: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4, NVFP4, Q1_0, Q2_0
Gemm GemmK;       // gemm_k.cc: Q2_K to Q6_K
Gemm GemmIq;      // gemm_iq.cc: IQ1_S to IQ4_XS, TQ1_0, TQ2_0

}  // namespace kernels

#endif  // PRONK_KERNELS_GEMM_H_
