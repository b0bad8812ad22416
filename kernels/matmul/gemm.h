// Products of a range of weight rows with a batch of more than MaxRowTokens() input vectors. A
// thread packs a panel of rows of any weight type once, in its own cache, and multiplies it with
// all tokens; panel-inl.h has the picture. Internal to kernels/.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kernels/matmul/matmul.h"

namespace kernels {

// The largest number of tokens that are multiplied row by row (rows-inl.h): kMaxRowTokens for int8
// types with vectors of 64 bytes, else kDefaultMaxRowTokens (MaxRowTokens() in registry.h). Up to
// this number, results are batch-invariant. Larger batches use panels.
constexpr size_t kDefaultMaxRowTokens = 16, kMaxRowTokens = 48;
static_assert(kMaxInvariantTokens <= kDefaultMaxRowTokens);

// The largest number of rows of a micro-panel on any instruction set.
constexpr size_t kGemmMaxRows = 32;

// Bytes a thread needs for panels of matrices with up to `cols` columns: as many as fit in the
// second-level cache beside the activations, or one micro-panel in the largest form, floats.
size_t PanelScratchBytes(size_t cols);

// A batch of vectors in the order in which the products read it (panel-inl.h, bf16.h).
struct GemmInput {
  BatchForm form;
  const std::byte* blocks;
  size_t n_tokens;
  size_t cols;
  // The output of PackResiduals for each tile, for a matrix that uses the residual.
  const std::byte* residuals = nullptr;
  const uint32_t* residual_numbers = nullptr;
};

// The largest number of bytes that n_tokens vectors of `cols` numbers take.
size_t BatchBytes(BatchForm form, size_t n_tokens, size_t cols);

// Tokens that are packed together: n_tokens tokens make ceil(n_tokens / BatchTileTokens) tiles.
constexpr size_t kMaxTileTokens = 32;
size_t BatchTileTokens(BatchForm form);
// Packs tile number `tile` of x ([n_tokens][cols]); kInt8 rounds as RoundActivations does.
// `blocks` is 64-byte aligned.
void PackBatch(BatchForm form, const float* x, size_t n_tokens, size_t cols, size_t tile,
               std::byte* blocks);
// PackBatch for up to BatchTileTokens rows that need not be adjacent. With kInt8, rows that are
// already rounded are used unchanged.
void PackTile(BatchForm form, std::span<const ActivationRow> rows, size_t cols, size_t tile,
              std::byte* blocks);
// Packs the rounding residuals of each token's dominant blocks, for tile number `tile`, whose kInt8
// form is in `blocks`. `residuals` has room for the residuals of every block, `numbers` for 1 +
// cols / 32 numbers: how many blocks were packed, then the numbers of these blocks. A block's error
// grows with the square of its scale; a token's dominant blocks are the blocks with a squared scale
// above half of the token's mean. They are few: some channels of a model are much larger than the
// other channels, and their blocks have most of the error.
void PackResiduals(const float* x, size_t n_tokens, size_t cols, size_t tile,
                   const std::byte* blocks, std::byte* residuals, uint32_t* numbers);

// The operations on a result, in this order, and its place.
struct GemmOutput {
  float* out;  // [n_tokens][stride], the column of the product's first row first
  size_t stride;
  const float* bias = nullptr;                     // [weights.rows], is added
  std::optional<Activation> gated = std::nullopt;  // combines it with the gate in out
  float limit = 0;                                 // Activation::kLimitedSilu's limit
  // If not null: out[tokens[t]] += factors[t] * (result of token t).
  const uint32_t* tokens = nullptr;
  const float* factors = nullptr;
};

// out[token][row] = w.scale * (w.row(row) . x[token]) for rows [begin, end); begin is a multiple of
// kGemmMaxRows. A result does not depend on the range or the batch it is computed in. scratch:
// PanelScratchBytes(w.cols), 64-byte aligned.
using PanelsFunction = void(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                            const GemmOutput& out, std::span<std::byte> scratch);

}  // namespace kernels
