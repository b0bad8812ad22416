// A batch's own layout: its tokens packed in tiles.
#include "kernels/gemm.h"

#include <algorithm>
#include <array>

#include "kernels/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

size_t TileTokens() { return kTileTokens; }

// Columns that are rounded at a time.
constexpr size_t kChunk = 512;

HWY_INLINE void SetSums(InputBlock& block, size_t t, size_t columns, int sum) {
  block.sums[columns][t] = block.scale[t] * static_cast<float>(sum);
#if PRONK_MADDUBS
  block.offsets[columns][t] = -128 * sum;
#endif
}

// Token t of a tile, `cols` numbers at x.
void PackToken(const float* HWY_RESTRICT x, size_t cols, size_t t, InputBlock* HWY_RESTRICT out) {
  int8_t q[kChunk];
  float scales[kChunk / 32];
  int16_t sums[kChunk / 16];
  for (size_t first = 0; first < cols; first += kChunk) {
    const size_t n = std::min(kChunk, cols - first);
    QuantizeActivations(x + first, n, q, scales, sums);
    for (size_t b = 0; b < n / 32; ++b, ++out) {
      for (size_t k = 0; k < 32; ++k) {
        out->q[t][k] = static_cast<uint8_t>(q[32 * b + k] + kInputBias);
      }
      out->scale[t] = scales[b];
      const int16_t* const halves = sums + 2 * b;
      SetSums(*out, t, kAll, halves[0] + halves[1]);
      SetSums(*out, t, kFirstHalf, halves[0]);
      SetSums(*out, t, kLastHalf, halves[1]);
    }
  }
}

// What stands where a tile has no token.
void PackNothing(size_t cols, size_t t, InputBlock* HWY_RESTRICT out) {
  for (size_t b = 0; b < cols / 32; ++b, ++out) {
    std::fill_n(out->q[t], 32, kInputBias);
    out->scale[t] = 0;
    for (const size_t columns : {kAll, kFirstHalf, kLastHalf}) SetSums(*out, t, columns, 0);
  }
}

void PackInt8Tile(const float* x, size_t n_tokens, size_t cols, size_t tile, std::byte* blocks) {
  InputBlock* const out = reinterpret_cast<InputBlock*>(blocks) + tile * (cols / 32);
  for (size_t t = 0; t < kTileTokens; ++t) {
    const size_t token = tile * kTileTokens + t;
    if (token < n_tokens) {
      PackToken(x + token * cols, cols, t, out);
    } else {
      PackNothing(cols, t, out);
    }
  }
}

void PackFloatTile(const float* x, size_t n_tokens, size_t cols, size_t tile, std::byte* blocks) {
  const size_t n_blocks = (cols + 31) / 32;
  FloatInputBlock* const out = reinterpret_cast<FloatInputBlock*>(blocks) + tile * n_blocks;
  for (size_t t = 0; t < kTileTokens; ++t) {
    const size_t token = tile * kTileTokens + t;
    for (size_t k = 0; k < 32 * n_blocks; ++k) {
      out[k / 32].x[k % 32][t] = token < n_tokens && k < cols ? x[token * cols + k] : 0.0f;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(TileTokens);
HWY_EXPORT(PackInt8Tile);
HWY_EXPORT(PackFloatTile);

namespace {

// On any instruction set.
size_t MaxTiles(size_t n_tokens) { return (n_tokens + kGemmMaxTokens - 1) / kGemmMaxTokens + 1; }

}  // namespace

size_t PanelScratchBytes(size_t cols) {
  return std::max(kPanelBytes, (cols + 31) / 32 * 32 * kGemmMaxRows * sizeof(float));
}

size_t GemmInt8Bytes(size_t n_tokens, size_t cols) {
  constexpr size_t kTokenBytes = 32 + 7 * sizeof(float);  // of a block, at most: InputBlock
  return MaxTiles(n_tokens) * kGemmMaxTokens * ((cols + 31) / 32) * kTokenBytes;
}

size_t GemmFloatBytes(size_t n_tokens, size_t cols) {
  return MaxTiles(n_tokens) * kGemmMaxTokens * ((cols + 31) / 32 * 32) * sizeof(float);
}

size_t GemmTileTokens() { return HWY_DYNAMIC_DISPATCH(TileTokens)(); }

void PackInt8(const float* x, size_t n_tokens, size_t cols, size_t tile, std::byte* blocks) {
  HWY_DYNAMIC_DISPATCH(PackInt8Tile)(x, n_tokens, cols, tile, blocks);
}

void PackFloats(const float* x, size_t n_tokens, size_t cols, size_t tile, std::byte* blocks) {
  HWY_DYNAMIC_DISPATCH(PackFloatTile)(x, n_tokens, cols, tile, blocks);
}

}  // namespace kernels
#endif  // HWY_ONCE
