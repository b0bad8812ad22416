// The second half of reading: from tensor infos in the head to the tensors' data.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/cursor.h"
#include "gguf/tensor.h"

namespace gguf {

// A tensor as the file describes it. The reader has checked n_dims (1..4), that no dim is 0 and
// that there are fewer than 2^63 elements; type and offset are not checked yet.
struct TensorInfo {
  std::string_view name;
  uint32_t n_dims = 0;
  std::array<uint64_t, 4> dims = {1, 1, 1, 1};
  uint32_t type_id = 0;
  uint64_t offset = 0;   // where the data begin, from the start of the data section
  uint64_t info_at = 0;  // where this description is in the file, for messages
};

// Finds the data of each tensor, in the given order. `cursor` is at the end of the head; the data
// section starts at the next multiple of `alignment`. Throws gguf::Error if a type is unknown, a
// row is not whole blocks, data is unaligned or outside the file, or two tensors overlap.
std::vector<TensorView> PlaceTensors(const std::vector<TensorInfo>& infos, uint64_t alignment,
                                     Cursor& cursor);

}  // namespace gguf
