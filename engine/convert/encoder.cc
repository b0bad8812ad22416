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

// n weights of one unit, each read by `load` from the bytes of its own.
template <class Number, class Load>
void GatherBy(const Unit& unit, uint64_t n, Change change, Load load, float* out) {
  const std::byte* const bytes = unit.from->data.data() + unit.first * sizeof(Number);
  const auto at = [&](uint64_t i) {
    return load(gguf::Load<Number>(bytes + i * unit.stride * sizeof(Number)));
  };
  if (change == Change::kNone) {
    for (uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(at(i));
    return;
  }
  for (uint64_t i = 0; i < n; ++i) {  // a few vectors: in double, to round once
    const auto x = static_cast<double>(at(i));
    out[i] = static_cast<float>(change == Change::kPlusOne ? x + 1 : -std::exp(x));
  }
}

void Gather(const Unit& unit, uint64_t n, Change change, float* out) {
  const auto as_it_is = [](auto x) { return x; };
  switch (*unit.from->floats) {
    case DType::kF64:
      return GatherBy<double>(unit, n, change, as_it_is, out);
    case DType::kF32:
      return GatherBy<float>(unit, n, change, as_it_is, out);
    case DType::kF16:
      return GatherBy<uint16_t>(unit, n, change, kernels::F16ToF32, out);
    default:
      return GatherBy<uint16_t>(unit, n, change, kernels::Bf16ToF32, out);
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

// Whether a unit's bytes are those of the new type already.
bool IsCopy(const OutTensor& tensor, DType type, const Unit& unit) {
  return tensor.change == Change::kNone && unit.from->floats == type && unit.stride == 1;
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
    const Unit unit = tensor.locate(row * units + i);
    if (units == 1 && IsCopy(tensor, type, unit)) {
      const uint64_t bytes = gguf::RowBytes(type, n);
      std::memcpy(out, unit.from->data.data() + unit.first * (bytes / n), bytes);
      return true;
    }
    Gather(unit, tensor.unit, tensor.change, floats.data() + i * tensor.unit);
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
  const auto encode = [&](size_t begin, size_t end, size_t thread) {
    for (size_t i = begin; i < end; ++i) {
      std::byte* const out = bytes_.data() + i * row_bytes;
      if (!EncodeOneRow(tensor, type, row + i, rows_[thread], out)) all_fit = false;
    }
  };
  if (tensor.source() != nullptr && IsCopy(tensor, type, tensor.locate(0))) {
    encode(0, n,
           0);  // a thread copies as fast as the disk writes; several would wait for each other
  } else {
    team_.Run([&] { team_.ForDynamic(n, std::max<uint64_t>(4096 / cols, 1), encode); });
  }
  if (!all_fit) {
    tensor.source()->Fail("expected weights that " + std::string(gguf::Info(type).name) +
                          " can hold, found some that are no numbers or too large");
  }
  row += n;
  return bytes_;
}

}  // namespace convert
