// Batches: products of tiles of BF16 by AMX, in which one instruction multiplies 16 tokens with 16
// rows of weights over 32 columns. Tiles are registers of 16 rows of 64 bytes:
//
//   0 1   sums of the first 16 tokens with the first and last 16 rows
//   2 3   of the last 16 tokens
//   4 5   inputs: 16 tokens of 32 columns each
//   6 7   weights: 16 pairs of columns of 16 rows each
//
// Four products for four loads: an instruction takes 16 cycles and a load 8, so loads hide behind
// products as long as they come from the caches.
#include <immintrin.h>

#include <cstdint>

#include "kernels/amx.h"
#include "kernels/bf16.h"

#define PRONK_USES_TILES __attribute__((target("amx-tile,amx-bf16,amx-int8")))

namespace kernels {
namespace {

constexpr int kInputStride = sizeof(Bf16InputBlock::x[0]);
constexpr int kWeightStride = sizeof(Bf16PanelBlock::weights[0]);
constexpr int kSumStride = kBf16Rows * sizeof(float);

}  // namespace

PRONK_USES_TILES void SetUpAmx() {
  static constexpr AmxConfig kConfig{.row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                     .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&kConfig);
}

PRONK_USES_TILES void ReleaseAmx() { _tile_release(); }

PRONK_USES_TILES void MultiplyAmx(const Bf16PanelBlock* w, const Bf16InputBlock* x, size_t n_blocks,
                                  size_t n_tokens, float* sums) {
  _tile_zero(0);
  _tile_zero(1);
  if (n_tokens <= 16) {
    for (size_t b = 0; b < n_blocks; ++b) {
      _tile_loadd(4, x[b].x[0], kInputStride);
      _tile_loadd(6, w[b].weights[0][0], kWeightStride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, w[b].weights[0][16], kWeightStride);
      _tile_dpbf16ps(1, 4, 7);
    }
  } else {
    _tile_zero(2);
    _tile_zero(3);
    for (size_t b = 0; b < n_blocks; ++b) {
      _tile_loadd(4, x[b].x[0], kInputStride);
      _tile_loadd(6, w[b].weights[0][0], kWeightStride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, x[b].x[16], kInputStride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_loadd(7, w[b].weights[0][16], kWeightStride);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(2, sums + 16 * kBf16Rows, kSumStride);
    _tile_stored(3, sums + 16 * kBf16Rows + 16, kSumStride);
  }
  _tile_stored(0, sums, kSumStride);
  _tile_stored(1, sums + 16, kSumStride);
}

PRONK_USES_TILES size_t AmxRounds(size_t rounds) {
  _tile_zero(4);
  _tile_zero(6);
  for (size_t i = 0; i < rounds; ++i) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 6);
    _tile_dpbssd(2, 4, 6);
    _tile_dpbssd(3, 4, 6);
  }
  return 4 * 16 * 16 * 64 * 2;
}

}  // namespace kernels
