// Batches: products of tiles of BF16 by AMX, in which one instruction multiplies 16 rows of weights
// with 16 tokens over 32 columns. Tiles are registers of 16 rows of 64 bytes:
//
//   0 1   sums of the first and last 16 rows with the first 16 tokens
//   2 3   with the last 16 tokens
//   4 5   weights: 16 rows of 32 columns each
//   6 7   inputs: 16 pairs of columns of 16 tokens each
//
// There are four products for four loads. A product takes 16 cycles and a load 8, so products hide
// loads from the caches.
#include <immintrin.h>

#include <cstdint>

#include "kernels/matmul/bf16.h"

#define PRONK_USES_TILES __attribute__((target("amx-tile,amx-bf16")))

namespace kernels {
namespace {

// The input of LDTILECFG: the rows of the eight registers, 16 at most, and the bytes of each row,
// 64 at most.
struct alignas(64) Config {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Config) == 64);

constexpr int kStride = 64;  // bytes from row to row of every register in memory
static_assert(sizeof(Bf16PanelBlock::weights[0]) == kStride &&
              sizeof(Bf16InputBlock::x[0][0]) == kStride && kBf16Half * sizeof(float) == kStride);

}  // namespace

PRONK_USES_TILES void SetUpAmx() {
  static constexpr Config kConfig;
  _tile_loadconfig(&kConfig);
}

PRONK_USES_TILES void ReleaseAmx() { _tile_release(); }

PRONK_USES_TILES void MultiplyAmx(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks,
                                  size_t n_tokens, Bf16Sums& sums) {
  _tile_zero(0);
  _tile_zero(1);
  if (n_tokens <= kBf16Half) {
    for (size_t b = 0; b < n_blocks; ++b) {
      _tile_loadd(6, x[b].x[0], kStride);
      _tile_loadd(4, w[b].weights[0], kStride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, w[b].weights[kBf16Half], kStride);
      _tile_dpbf16ps(1, 5, 6);
    }
  } else {
    _tile_zero(2);
    _tile_zero(3);
    for (size_t b = 0; b < n_blocks; ++b) {
      _tile_loadd(6, x[b].x[0], kStride);
      _tile_loadd(4, w[b].weights[0], kStride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, w[b].weights[kBf16Half], kStride);
      _tile_dpbf16ps(1, 5, 6);
      _tile_loadd(7, x[b].x[1], kStride);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(2, sums[1][0], kStride);
    _tile_stored(3, sums[1][1], kStride);
  }
  _tile_stored(0, sums[0][0], kStride);
  _tile_stored(1, sums[0][1], kStride);
}

PRONK_USES_TILES size_t AmxRounds(size_t rounds) {
  _tile_zero(4);
  _tile_zero(6);
  for (size_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(2, 4, 6);
    _tile_dpbf16ps(3, 4, 6);
  }
  return 4 * kBf16Half * kBf16Half * kBf16Cols * 2;
}

}  // namespace kernels
