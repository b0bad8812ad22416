#include "cli/output/tensor_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "engine/session/xxh64.h"
#include "gguf/dtype.h"
#include "kernels/matmul/reference.h"

namespace cli {
namespace {

// Numbers that are unpacked at a time: whole blocks of any type. Rows are whole blocks, too, so
// where they end does not matter.
constexpr uint64_t kPiece = 4096;
// Numbers that a thread takes at a time, with a result of their own.
constexpr uint64_t kPart = 64 * kPiece;

using Piece = std::array<float, kPiece>;

uint64_t Parts(const gguf::TensorView& tensor) {
  return kernels::IsWeightType(tensor.dtype) ? (tensor.elements() + kPart - 1) / kPart : 0;
}

void Unpack(const gguf::TensorView& tensor, uint64_t at, uint64_t n, Piece& piece) {
  kernels::DequantizeRow(tensor.dtype, tensor.data + gguf::RowBytes(tensor.dtype, at), n,
                         piece.data());
}

// Calls work(at, n) for each piece of a part.
template <class Work>
void ForPieces(const gguf::TensorView& tensor, uint64_t part, Work work) {
  const uint64_t end = std::min(tensor.elements(), (part + 1) * kPart);
  for (uint64_t at = part * kPart; at < end; at += kPiece) work(at, std::min(kPiece, end - at));
}

void Look(std::span<const float> values, TensorCheck& check) {
  for (const float value : values) {
    if (std::isfinite(value)) {
      check.least = std::min(check.least, value);
      check.most = std::max(check.most, value);
      if (value == 0) ++check.n_zero;
    } else {
      ++(std::isnan(value) ? check.n_nan : check.n_infinite);
    }
  }
}

}  // namespace

TensorCheck CheckTensor(kernels::Team& team, const gguf::TensorView& tensor) {
  const uint64_t n_parts = Parts(tensor);
  std::vector<TensorCheck> parts(n_parts);
  TensorCheck all;
  team.Run([&] {
    // The first item is the hash, which one thread makes while others look.
    team.ForDynamic(n_parts + 1, 1, [&](size_t begin, size_t end, size_t) {
      Piece piece;
      for (size_t i = begin; i < end; ++i) {
        if (i == 0) {
          all.hash = engine::Xxh64(std::span(tensor.data, tensor.bytes));
          continue;
        }
        ForPieces(tensor, i - 1, [&](uint64_t at, uint64_t n) {
          Unpack(tensor, at, n, piece);
          Look(std::span(piece).first(n), parts[i - 1]);
        });
      }
    });
  });
  for (const TensorCheck& part : parts) {
    all.n_nan += part.n_nan;
    all.n_infinite += part.n_infinite;
    all.n_zero += part.n_zero;
    all.least = std::min(all.least, part.least);
    all.most = std::max(all.most, part.most);
  }
  return all;
}

void TensorError::Add(const TensorError& other) {
  squares += other.squares;
  error_squares += other.error_squares;
  // Not std::max, which forgets a NaN.
  if (!std::isnan(largest) && !(other.largest <= largest)) largest = other.largest;
}

double TensorError::Relative() const { return error_squares == 0 ? 0 : error_squares / squares; }

TensorError CompareTensors(kernels::Team& team, const gguf::TensorView& a,
                           const gguf::TensorView& b) {
  std::vector<TensorError> parts(Parts(a));
  team.Run([&] {
    team.ForDynamic(parts.size(), 1, [&](size_t begin, size_t end, size_t) {
      Piece of_a, of_b;
      for (size_t part = begin; part < end; ++part) {
        ForPieces(a, part, [&](uint64_t at, uint64_t n) {
          Unpack(a, at, n, of_a);
          Unpack(b, at, n, of_b);
          for (uint64_t i = 0; i < n; ++i) {
            const double value = of_a[i], error = of_b[i] - value;
            parts[part].Add({value * value, error * error, std::abs(error)});
          }
        });
      }
    });
  });
  TensorError all;
  for (const TensorError& part : parts) all.Add(part);
  return all;
}

}  // namespace cli
