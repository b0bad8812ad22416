// Batches: packs tokens in tiles, and runs the loops around all products with them.
#include "kernels/matmul/gemm.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernels/matmul/bf16.h"
#include "kernels/ops/rounding.h"
#include "kernels/threads/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/gemm.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "kernels/matmul/gemm-inl.h"
#include "kernels/matmul/panel-inl.h"
#include "kernels/ops/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

size_t TileTokens() { return kTileTokens; }

// Columns that are rounded at a time.
constexpr size_t kChunk = 512;

// A block is dominant if the square of its scale is more than this part of the mean square of the
// token's blocks.
constexpr float kDominant = 0.5f;

HWY_INLINE void SetSums(InputBlock& block, size_t t, size_t columns, int sum) {
  SetOfToken(block.sums[columns], t, block.scale[t * kSumTokens] * static_cast<float>(sum));
#if PRONK_MADDUBS
  block.starts[columns][t] = -128 * sum;
#endif
}

// Packs n rounded numbers of token t of a tile.
HWY_INLINE void PackRounded(const int8_t* HWY_RESTRICT q, const float* HWY_RESTRICT scales,
                            const int16_t* HWY_RESTRICT sums, size_t n, size_t t,
                            InputBlock* HWY_RESTRICT out) {
  for (size_t b = 0; b < n / 32; ++b, ++out) {
    // The token's k-groups are kSumTokens groups apart. With four indices GCC would copy byte by
    // byte.
    uint8_t* const to = &out->q[t / kSumTokens][0][t % kSumTokens][0];
    for (size_t k = 0; k < 32; ++k) {
      to[k / kGroupCols * kGroupCols * kSumTokens + k % kGroupCols] =
          static_cast<uint8_t>(q[32 * b + k] + kInputBias);
    }
    SetOfToken(out->scale, t, scales[b]);
    const int16_t* const halves = sums + 2 * b;
    SetSums(*out, t, kAll, halves[0] + halves[1]);
    SetSums(*out, t, kFirstHalf, halves[0]);
    SetSums(*out, t, kLastHalf, halves[1]);
  }
}

void PackToken(const ActivationRow& x, size_t cols, size_t t, InputBlock* HWY_RESTRICT out) {
  if (x.q != nullptr) return PackRounded(x.q, x.scales, x.sums, cols, t, out);
  int8_t q[kChunk];
  float scales[kChunk / 32];
  int16_t sums[kChunk / 16];
  for (size_t first = 0; first < cols; first += kChunk) {
    const size_t n = std::min(kChunk, cols - first);
    RoundActivations(x.x + first, n, q, scales, sums);
    PackRounded(q, scales, sums, n, t, out + first / 32);
  }
}

// Packs zeros for token t, where a tile has no token.
void PackNothing(size_t cols, size_t t, InputBlock* HWY_RESTRICT out) {
  for (size_t b = 0; b < cols / 32; ++b, ++out) {
    for (auto& group : out->q[t / kSumTokens]) {
      std::fill_n(group[t % kSumTokens], kGroupCols, kInputBias);
    }
    SetOfToken(out->scale, t, 0);
    for (const size_t columns : {kAll, kFirstHalf, kLastHalf}) SetSums(*out, t, columns, 0);
  }
}

void PackInt8Tile(std::span<const ActivationRow> rows, size_t cols, size_t tile,
                  std::byte* blocks) {
  InputBlock* const out = reinterpret_cast<InputBlock*>(blocks) + tile * (cols / 32);
  for (size_t t = 0; t < kTileTokens; ++t) {
    if (t < rows.size()) {
      PackToken(rows[t], cols, t, out);
    } else {
      PackNothing(cols, t, out);
    }
  }
}

float Squared(float scale) { return scale * scale; }

void PackInt8Residuals(const float* x, size_t n_tokens, size_t cols, size_t tile,
                       const std::byte* blocks, std::byte* residuals, uint32_t* numbers) {
  const size_t n_blocks = cols / 32, first = tile * kTileTokens;
  const size_t n = std::min(kTileTokens, n_tokens - first);
  const auto* in = reinterpret_cast<const InputBlock*>(blocks) + tile * n_blocks;
  auto* out = reinterpret_cast<InputBlock*>(residuals) + tile * n_blocks;
  numbers += tile * (1 + n_blocks);
  uint32_t& n_residuals = numbers[0] = 0;
  float limits[kTileTokens] = {};
  for (size_t b = 0; b < n_blocks; ++b) {
    for (size_t t = 0; t < n; ++t) limits[t] += Squared(in[b].scale[t * kSumTokens]);
  }
  for (float& limit : limits) limit *= kDominant / static_cast<float>(n_blocks);
  for (size_t b = 0; b < n_blocks; ++b) {
    const auto is_dominant = [&](size_t t) {
      return t < n && Squared(in[b].scale[t * kSumTokens]) > limits[t];
    };
    size_t t = 0;
    while (t < n && !is_dominant(t)) ++t;
    if (t == n) continue;
    numbers[++n_residuals] = static_cast<uint32_t>(b);
    for (t = 0; t < kTileTokens; ++t) {
      if (is_dominant(t)) {
        int8_t q[2][32];
        float scale[2];
        int16_t sums[2][2];
        RoundWithResidual(x + (first + t) * cols + 32 * b, 32, {q[0], &scale[0], sums[0]},
                          {q[1], &scale[1], sums[1]});
        PackRounded(q[1], &scale[1], sums[1], 32, t, out);
      } else {
        PackNothing(32, t, out);
      }
    }
    ++out;
  }
}

// Stores n_rows results of a micro-panel for token number `token`.
HWY_INLINE void StoreRow(const float* HWY_RESTRICT sums, float scale, size_t token, size_t row,
                         size_t n_rows, const GemmOutput& output) {
  const DF d;
  const size_t out_token = output.tokens == nullptr ? token : output.tokens[token];
  float* const out = output.out + out_token * output.stride + row;
  for (size_t i = 0; i < n_rows; i += kFloatLanes) {
    const size_t n = std::min(kFloatLanes, n_rows - i);
    VF v = hn::Mul(hn::Load(d, sums + i), hn::Set(d, scale));
    if (output.bias != nullptr) v = hn::Add(v, hn::LoadN(d, output.bias + row + i, n));
    if (output.gated) v = Gated(d, *output.gated, hn::LoadN(d, out + i, n), v, output.limit);
    if (output.factors != nullptr) {
      v = hn::MulAdd(v, hn::Set(d, output.factors[token]), hn::LoadN(d, out + i, n));
    }
    hn::StoreN(v, d, out + i, n);
  }
}

// sums += the products of a tile's residuals, block by block, so that a token's sums do not depend
// on which blocks dominate for other tokens.
HWY_NOINLINE void AddResiduals(const PanelLoops& loops, const void* multiplier,
                               const std::byte* micro_panel, const GemmInput& x, size_t tile,
                               size_t n_tokens, float* HWY_RESTRICT sums) {
  const DF d;
  const size_t n_blocks = x.cols / 32;
  const uint32_t* const numbers = x.residual_numbers + tile * (1 + n_blocks);
  const std::byte* residual = x.residuals + tile * n_blocks * loops.input_bytes;
  for (size_t i = 1; i <= numbers[0]; ++i, residual += loops.input_bytes) {
    alignas(64) float part[kMaxTileTokens * kGemmMaxRows];
    loops.multiply(multiplier, micro_panel + numbers[i] * loops.panel_bytes, residual, 1, n_tokens,
                   part);
    for (size_t k = 0; k < n_tokens * loops.n_rows; k += kFloatLanes) {
      hn::Store(hn::Add(hn::Load(d, sums + k), hn::Load(d, part + k)), d, sums + k);
    }
  }
}

// A panel is the micro-panels that fit into the scratch; each tile of tokens is multiplied with all
// micro-panels of a panel.
void RunPanelLoops(const PanelLoops& loops, const void* multiplier, const Matrix& w, size_t begin,
                   size_t end, const GemmInput& x, const GemmOutput& output,
                   std::span<std::byte> scratch) {
  const size_t n_blocks = (x.cols + 31) / 32, n_rows = loops.n_rows;
  const size_t micro_panel_bytes = n_blocks * loops.panel_bytes,
               tile_bytes = n_blocks * loops.input_bytes;
  const size_t panel_rows = std::max<size_t>(scratch.size() / micro_panel_bytes, 1) * n_rows;
  for (size_t first = begin; first < end; first += panel_rows) {
    const size_t last = std::min(first + panel_rows, end);
    const auto micro_panel = [&](size_t row) {
      return scratch.data() + (row - first) / n_rows * micro_panel_bytes;
    };
    for (size_t row = first; row < last; row += n_rows) loops.pack(w, row, micro_panel(row));
    for (size_t token = 0; token < x.n_tokens; token += loops.n_tokens) {
      const std::byte* const tile = x.blocks + token / loops.n_tokens * tile_bytes;
      const size_t n_tokens = std::min(loops.n_tokens, x.n_tokens - token);
      for (size_t row = first; row < last; row += n_rows) {
        alignas(64) float sums[kMaxTileTokens * kGemmMaxRows];
        loops.multiply(multiplier, micro_panel(row), tile, n_blocks, n_tokens, sums);
        if (x.residuals != nullptr) {
          AddResiduals(loops, multiplier, micro_panel(row), x, token / loops.n_tokens, n_tokens,
                       sums);
        }
        for (size_t t = 0; t < n_tokens; ++t) {
          StoreRow(sums + t * n_rows, w.scale, token + t, row, std::min(n_rows, last - row),
                   output);
        }
      }
    }
  }
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(TileTokens);
PRONK_EXPORT(PackInt8Tile);
PRONK_EXPORT(PackInt8Residuals);

namespace {

// The largest number of bytes that 32 columns of a token take.
constexpr size_t BlockBytes(BatchForm form) {
  switch (form) {
    case BatchForm::kFloats:
      return 32 * sizeof(float);
    case BatchForm::kInt8:
      return 32 + 8 * sizeof(float);  // InputBlock
    case BatchForm::kBf16:
      return 32 * sizeof(uint16_t);
  }
  return 0;
}

// PackTile for floats: column by column, the tokens of a tile side by side.
void PackFloats(std::span<const ActivationRow> rows, size_t cols, size_t tile, std::byte* blocks) {
  const size_t tile_tokens = BatchTileTokens(BatchForm::kFloats);
  const size_t n_cols = (cols + 31) / 32 * 32;
  float* const out = reinterpret_cast<float*>(blocks) + tile * tile_tokens * n_cols;
  for (size_t t = 0; t < tile_tokens; ++t) {
    for (size_t k = 0; k < n_cols; ++k) {
      out[k * tile_tokens + t] = t < rows.size() && k < cols ? rows[t].x[k] : 0.0f;
    }
  }
}

#if HWY_ARCH_X86
void PackBf16(std::span<const ActivationRow> rows, size_t cols, size_t tile, std::byte* blocks) {
  const size_t n_blocks = (cols + 31) / 32;
  Bf16InputBlock* const out = reinterpret_cast<Bf16InputBlock*>(blocks) + tile * n_blocks;
  float x[kBf16Tokens][kBf16Cols] = {};
  for (size_t b = 0; b < n_blocks; ++b) {
    const size_t n = std::min(kBf16Cols, cols - kBf16Cols * b);
    for (size_t t = 0; t < rows.size(); ++t) {
      std::copy_n(rows[t].x + kBf16Cols * b, n, x[t]);
      std::fill(x[t] + n, x[t] + kBf16Cols, 0.0f);
    }
    PackBf16Inputs(x, &out[b]);
  }
}
#endif

// A quarter of the second-level cache is enough to use each tile of activations for several
// micro-panels. AMX must use a tile for at least three, or it would wait for the third-level cache;
// CPUs that have AMX have 2 MB.
size_t PanelBytes() { return size_t{CpuUses(Extension::kAmx) ? 1152u : 256u} << 10; }

}  // namespace

size_t PanelScratchBytes(size_t cols) {
  return std::max(PanelBytes(), (cols + 31) / 32 * 32 * kGemmMaxRows * sizeof(float));
}

size_t BatchTileTokens(BatchForm form) {
  switch (form) {
    case BatchForm::kFloats:
      return HWY_DYNAMIC_DISPATCH(TileTokens)();
    case BatchForm::kInt8:
      return PRONK_DISPATCH(TileTokens)();
    case BatchForm::kBf16:
      return kBf16Tokens;
  }
  return 0;
}

size_t BatchBytes(BatchForm form, size_t n_tokens, size_t cols) {
  const size_t tile_tokens = BatchTileTokens(form);
  const size_t n_tiles = (n_tokens + tile_tokens - 1) / tile_tokens;
  return n_tiles * tile_tokens * ((cols + 31) / 32) * BlockBytes(form);
}

void PackBatch(BatchForm form, const float* x, size_t n_tokens, size_t cols, size_t tile,
               std::byte* blocks) {
  std::array<ActivationRow, kMaxTileTokens> rows;
  const size_t first = tile * BatchTileTokens(form);
  const size_t n = std::min(BatchTileTokens(form), n_tokens - first);
  for (size_t t = 0; t < n; ++t) rows[t] = {x + (first + t) * cols, nullptr, nullptr, nullptr};
  PackTile(form, {rows.data(), n}, cols, tile, blocks);
}

void PackResiduals(const float* x, size_t n_tokens, size_t cols, size_t tile,
                   const std::byte* blocks, std::byte* residuals, uint32_t* numbers) {
  PRONK_DISPATCH(PackInt8Residuals)(x, n_tokens, cols, tile, blocks, residuals, numbers);
}

void PackTile(BatchForm form, std::span<const ActivationRow> rows, size_t cols, size_t tile,
              std::byte* blocks) {
  switch (form) {
    case BatchForm::kFloats:
      return PackFloats(rows, cols, tile, blocks);
    case BatchForm::kInt8:
      return PRONK_DISPATCH(PackInt8Tile)(rows, cols, tile, blocks);
    case BatchForm::kBf16:
#if HWY_ARCH_X86
      return PackBf16(rows, cols, tile, blocks);
#else
      std::abort();  // BatchFormFor asks for it on x86 only
#endif
  }
}

}  // namespace kernels
#endif  // HWY_ONCE
