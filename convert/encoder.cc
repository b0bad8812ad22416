// Reads, permutes and encodes pieces of a tensor on all threads.
#include "convert/encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/encode/encode.h"

namespace convert {
namespace {

using gguf::DType;

constexpr uint64_t kPiece = uint64_t{1} << 20;  // weights per piece

// One row of MXFP4. A byte of a published block contains neighbours; a byte of GGUF's contains the
// numbers i and i + 16 (gguf/blocks.h), after the scale, which is the same byte in both.
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

// The numbers of a row, changed as ReadNumbers() does, to out[cols].
void ReadRow(const OutTensor& tensor, uint64_t row, float* out) {
  const uint64_t units = tensor.dims[0] / tensor.unit;
  for (uint64_t i = 0; i < units; ++i, out += tensor.unit)
    ReadNumbers(tensor.locate(row * units + i), tensor.unit, tensor.change, out);
}

// Whether a unit already has the bytes of the new type.
bool IsCopy(const OutTensor& tensor, DType type, const Unit& unit) {
  return tensor.change == Change::kNone && tensor.factors.empty() && unit.from->floats == type &&
         unit.stride == 1;
}

// False if a weight does not fit into the type. mean: see AbsMean().
bool EncodeOneRow(const OutTensor& tensor, DType type, uint64_t row, float mean,
                  std::vector<float>& floats, std::byte* out) {
  const uint64_t n = tensor.dims[0];
  if (tensor.scales != nullptr) {
    CopyMxfp4(tensor.locate(row), *tensor.scales, n, out);
    return true;
  }
  floats.resize(n);
  if (!tensor.values.empty()) {
    std::copy_n(tensor.values.data() + row * n, n, floats.data());
  } else if (const Unit unit = tensor.locate(row * (n / tensor.unit));
             tensor.unit == n && IsCopy(tensor, type, unit)) {
    const uint64_t bytes = gguf::RowBytes(type, n);
    std::memcpy(out, unit.from->data.data() + unit.first * (bytes / n), bytes);
    return true;
  } else {
    ReadRow(tensor, row, floats.data());
  }
  const auto factor =
      std::ranges::upper_bound(tensor.factors, row, {}, &RowFactors::value_type::first);
  if (factor != tensor.factors.end()) {
    for (float& x : floats) x *= factor->second;
  }
  if (tensor.change == Change::kTernary) {
    const float inverse = 1 / mean;
    for (float& x : floats) {  // + 0: no negative zero
      x = (std::clamp(std::nearbyint(x * inverse), -1.0f, 1.0f) + 0.0f) / inverse;
    }
  }
  if (type != DType::kF32) return kernels::EncodeRow(type, floats.data(), n, out);
  std::memcpy(out, floats.data(), n * sizeof(float));
  return true;
}

}  // namespace

// The scale of BitNet's -1, 0 and 1 ("absmean"), at least 1e-5.
float TensorEncoder::AbsMean(const OutTensor& tensor) {
  const uint64_t cols = tensor.dims[0];
  std::vector<double> sums(tensor.rows());
  pool_.Run([&] {
    pool_.ForDynamic(sums.size(), std::max<uint64_t>(4096 / cols, 1),
                     [&](size_t begin, size_t end, size_t thread) {
                       std::vector<float>& row = rows_[thread];
                       row.resize(cols);
                       for (size_t i = begin; i < end; ++i) {
                         ReadRow(tensor, i, row.data());
                         for (const float x : row) sums[i] += std::abs(static_cast<double>(x));
                       }
                     });
  });
  const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  return std::max(static_cast<float>(sum / static_cast<double>(sums.size() * cols)), 1e-5f);
}

std::span<const std::byte> TensorEncoder::Next(const OutTensor& tensor, DType type, uint64_t& row) {
  const uint64_t cols = tensor.dims[0], row_bytes = gguf::RowBytes(type, cols);
  const uint64_t n = std::min(std::max<uint64_t>(kPiece / cols, 1), tensor.rows() - row);
  bytes_.resize(n * row_bytes);
  rows_.resize(static_cast<size_t>(pool_.size()));
  if (tensor.change == Change::kTernary && row == 0) mean_ = AbsMean(tensor);
  std::atomic<bool> all_fit = true;
  const auto encode = [&](size_t begin, size_t end, size_t thread) {
    for (size_t i = begin; i < end; ++i) {
      std::byte* const out = bytes_.data() + i * row_bytes;
      if (!EncodeOneRow(tensor, type, row + i, mean_, rows_[thread], out)) all_fit = false;
    }
  };
  if (tensor.source() != nullptr && IsCopy(tensor, type, tensor.locate(0))) {
    // One thread copies as fast as the disk writes; several would wait for each other.
    encode(0, n, 0);
  } else {
    pool_.Run([&] { pool_.ForDynamic(n, std::max<uint64_t>(4096 / cols, 1), encode); });
  }
  if (!all_fit) {
    tensor.source()->Fail("expected weights that ", gguf::Info(type).name,
                          " can hold, found some that are not numbers or are too large");
  }
  row += n;
  return bytes_;
}

}  // namespace convert
