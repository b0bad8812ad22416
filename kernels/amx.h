// The registers of AMX. Internal to kernels/.
#ifndef PRONK_KERNELS_AMX_H_
#define PRONK_KERNELS_AMX_H_

#include <cstdint>

namespace kernels {

// What LDTILECFG reads: how many rows the eight registers have, 16 at most, and the bytes of each
// row, 64 at most.
struct alignas(64) AmxConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(AmxConfig) == 64);

}  // namespace kernels

#endif  // PRONK_KERNELS_AMX_H_
