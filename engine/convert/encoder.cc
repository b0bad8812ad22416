#include "engine/convert/encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>

#include "gguf/load.h"
#include "kernels/encode.h"
#include "kernels/half.h"

namespace convert {
namespace {

using gguf::DType;

constexpr uint64_t kPiece = uint64_t{1} << 20;  // weights that are handed over at a time

double At(DType type, const std::byte* bytes, uint64_t i) {
  switch (type) {
    case DType::kF64:
      return gguf::Load<double>(bytes + 8 * i);
    case DType::kF32:
      return gguf::Load<float>(bytes + 4 * i);
    case DType::kF16:
      return kernels::F16ToF32(gguf::Load<uint16_t>(bytes + 2 * i));
    default:
      return kernels::Bf16ToF32(gguf::Load<uint16_t>(bytes + 2 * i));
  }
}

// n weights of one unit.
void Gather(const Unit& unit, uint64_t n, Change change, float* out) {
  const DType type = *unit.from->floats;
  const std::byte* const bytes = unit.from->data.data();
  for (uint64_t i = 0; i < n; ++i) {
    const double x = At(type, bytes, unit.first + i * unit.stride);
    out[i] = static_cast<float>(change == Change::kPlusOne    ? x + 1
                                : change == Change::kMinusExp ? -std::exp(x)
                                                              : x);
  }
}

// One row of MXFP4. A published block has neighbours in the two halves of a byte; GGUF's has the
// numbers i and i + 16 there (gguf/blocks.h), behind the scale, which is the same byte in both.
void CopyMxfp4(const Unit& unit, const SafeTensor& scales, uint64_t n, std::byte* out) {
  const uint64_t n_blocks = n / 32, first = unit.first * n_blocks;
  for (uint64_t block = 0; block < n_blocks; ++block, out += 17) {
    const std::byte* const old = unit.from->data.data() + (first + block) * 16;
    const auto nibble = [old](uint64_t i) {
      return i % 2 == 0 ? old[i / 2] & std::byte{15} : old[i / 2] >> 4;
    };
    out[0] = scales.data[first + block];
    for (uint64_t i = 0; i < 16; ++i) out[1 + i] = nibble(i) | nibble(i + 16) << 4;
  }
}

// False where a weight does not fit into the type.
bool EncodeOneRow(const OutTensor& tensor, DType type, uint64_t row, std::vector<float>& floats,
                  std::byte* out) {
  const uint64_t n = tensor.dims[0], units = n / tensor.unit;
  if (tensor.scales != nullptr) {
    CopyMxfp4(tensor.locate(row), *tensor.scales, n, out);
    return true;
  }
  floats.resize(n);
  if (!tensor.values.empty()) {
    std::copy_n(tensor.values.begin() + static_cast<std::ptrdiff_t>(row * n), n, floats.begin());
  }
  for (uint64_t i = 0; tensor.values.empty() && i < units; ++i) {
    Gather(tensor.locate(row * units + i), tensor.unit, tensor.change,
           floats.data() + i * tensor.unit);
  }
  if (type != DType::kF32) return kernels::EncodeRow(type, floats.data(), n, out);
  std::memcpy(out, floats.data(), n * sizeof(float));
  return true;
}

}  // namespace

std::span<const std::byte> Encoder::Next(const OutTensor& tensor, DType type, uint64_t& row) {
  const uint64_t cols = tensor.dims[0], row_bytes = gguf::RowBytes(type, cols);
  const uint64_t n = std::min(std::max<uint64_t>(kPiece / cols, 1), tensor.rows() - row);
  bytes_.resize(n * row_bytes);
  rows_.resize(static_cast<size_t>(team_.size()));
  std::atomic<bool> all_fit = true;
  team_.Run([&] {
    team_.ForDynamic(n, std::max<uint64_t>(4096 / cols, 1),
                     [&](size_t begin, size_t end, size_t thread) {
                       for (size_t i = begin; i < end; ++i) {
                         if (!EncodeOneRow(tensor, type, row + i, rows_[thread],
                                           bytes_.data() + i * row_bytes)) {
                           all_fit = false;
                         }
                       }
                     });
  });
  if (!all_fit) {
    tensor.source()->Fail("expected weights that " + std::string(gguf::Info(type).name) +
                          " can hold, found some that are no numbers or too large");
  }
  row += n;
  return bytes_;
}

}  // namespace convert
