// Metadata as text in pieces; statistics and errors of tensors, on all threads.
#include "cli/output/file_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cli/output/json_file.h"
#include "engine/session/xxh64.h"
#include "gguf/dtype.h"
#include "gguf/load.h"
#include "kernels/matmul/reference.h"
#include "kernels/ops/ops.h"

namespace cli {
namespace {

using gguf::Load;
using gguf::ValueType;

constexpr uint64_t kArrayHead = 8;  // array elements that are shown

std::string FloatText(double number) {
  if (std::isfinite(number)) return JsonLine(number);
  return std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
}

// The text of a number or a bool.
std::string ScalarText(ValueType type, const std::byte* at) {
  if (type == ValueType::kF32) return FloatText(Load<float>(at));
  if (type == ValueType::kF64) return FloatText(Load<double>(at));
  if (type == ValueType::kBool) return Load<uint8_t>(at) != 0 ? "true" : "false";
  uint64_t bits = 0;
  const uint64_t bytes = gguf::ValueTypeBytes(type), unused = 64 - 8 * bytes;
  std::memcpy(&bits, at, bytes);
  using enum ValueType;
  const bool is_signed = type == kI8 || type == kI16 || type == kI32 || type == kI64;
  return is_signed ? std::to_string(static_cast<int64_t>(bits << unused) >> unused)
                   : std::to_string(bits);
}

// Walks over one value in the file (checked when the file was opened) and writes the text.
class ValueWriter {
 public:
  // described: arrays are objects with type and count, numbers that JSON lacks are strings;
  // otherwise arrays are lists, and numbers stay. At most max_string bytes of a string are written.
  ValueWriter(bool described, size_t max_string, const TextSink& sink)
      : described_(described), max_string_(max_string), sink_(sink) {}

  // Returns the byte after the value.
  const std::byte* Write(ValueType type, const std::byte* at) {
    if (type == ValueType::kString) {
      const uint64_t length = Length(at);
      const auto* const text = reinterpret_cast<const char*>(at);
      WriteJsonString({text, std::min<uint64_t>(length, max_string_)}, sink_);
      return at + length;
    }
    if (type == ValueType::kArray) {
      const auto element = static_cast<ValueType>(Load<uint32_t>(at));
      at += sizeof(uint32_t);
      const uint64_t count = Length(at);
      return WriteArray(element, count, at);
    }
    const std::string text = ScalarText(type, at);
    const bool strange = text.ends_with('N') || text.ends_with('y');
    sink_(described_ && strange ? '"' + text + '"' : text);
    return at + gguf::ValueTypeBytes(type);
  }

  const std::byte* WriteArray(ValueType element, uint64_t count, const std::byte* at) {
    if (described_) {
      sink_("{\"type\": \"" + std::string(gguf::ValueTypeName(element)) +
            "\", \"count\": " + std::to_string(count) + ", \"first\": ");
    }
    sink_("[");
    const uint64_t n_shown = std::min(count, kArrayHead);
    for (uint64_t i = 0; i < n_shown; ++i) {
      if (i > 0) sink_(",");
      at = Write(element, at);
    }
    sink_(count > n_shown && !described_ ? ",\u2026]" : "]");
    if (described_) sink_("}");
    return Skip(element, count - n_shown, at);
  }

 private:
  // The length of the string or array at `at`; moves `at` past it.
  static uint64_t Length(const std::byte*& at) {
    at += sizeof(uint64_t);
    return Load<uint64_t>(at - sizeof(uint64_t));
  }

  // Returns the byte after these elements, which matters only for an array inside another array.
  static const std::byte* Skip(ValueType element, uint64_t count, const std::byte* at) {
    if (element != ValueType::kString && element != ValueType::kArray) {
      return at + count * gguf::ValueTypeBytes(element);
    }
    for (uint64_t i = 0; i < count; ++i) {
      if (element == ValueType::kString) {
        const uint64_t length = Length(at);
        at += length;
      } else {
        const auto inner = static_cast<ValueType>(Load<uint32_t>(at));
        at += sizeof(uint32_t);
        const uint64_t n = Length(at);
        at = Skip(inner, n, at);
      }
    }
    return at;
  }

  bool described_;
  size_t max_string_;
  const TextSink& sink_;
};

void Write(const gguf::Value& value, bool described, size_t max_string, const TextSink& sink) {
  ValueWriter writer(described, max_string, sink);
  if (value.type == ValueType::kArray) {
    writer.WriteArray(value.element_type, value.count, value.data);
  } else {
    writer.Write(value.type, value.data);
  }
}

// Numbers unpacked at a time: whole blocks of any type, as rows are, so row ends do not matter.
constexpr uint64_t kPiece = 4096;
// Numbers that a thread takes at a time, with a result of its own.
constexpr uint64_t kPart = 64 * kPiece;

using Piece = std::array<float, kPiece>;

uint64_t Parts(const gguf::TensorView& tensor) {
  return kernels::IsWeightType(tensor.dtype) ? (tensor.elements() + kPart - 1) / kPart : 0;
}

void Unpack(const gguf::TensorView& tensor, uint64_t at, uint64_t n, Piece& piece) {
  kernels::DequantizeRow(tensor.dtype, tensor.data + gguf::RowBytes(tensor.dtype, at), n,
                         piece.data());
  if (const float scale = tensor.scale(); scale != 1) kernels::Scale(piece.data(), scale, n);
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

void WriteJsonString(std::string_view text, const TextSink& sink) {
  constexpr size_t kTextPiece = size_t{1} << 16;
  sink("\"");
  while (!text.empty()) {
    size_t n = std::min(text.size(), kTextPiece);
    // Cut at the edge of a character, which has at most four bytes.
    for (int i = 0; i < 3 && n < text.size() && (text[n] & 0xC0) == 0x80; ++i) --n;
    const std::string quoted = JsonLine(Json(text.substr(0, n)));
    sink(std::string_view(quoted).substr(1, quoted.size() - 2));
    text.remove_prefix(n);
  }
  sink("\"");
}

void WriteJsonValue(const gguf::Value& value, const TextSink& sink) {
  Write(value, /*described=*/true, SIZE_MAX, sink);
}

std::string ValueLine(const gguf::Value& value, size_t columns) {
  std::string line;
  if (value.type == ValueType::kArray) {
    line = std::to_string(value.count) + " x " +
           std::string(gguf::ValueTypeName(value.element_type)) + " ";
  }
  // A column takes at most four bytes.
  Write(value, /*described=*/false, 4 * columns, [&](std::string_view text) { line += text; });
  return line;
}

TensorCheck CheckTensor(kernels::ThreadPool& pool, const gguf::TensorView& tensor) {
  const uint64_t n_parts = Parts(tensor);
  std::vector<TensorCheck> parts(n_parts);
  TensorCheck all;
  pool.Run([&] {
    // The first item is the hash, which one thread computes while other threads check numbers.
    pool.ForDynamic(n_parts + 1, 1, [&](size_t begin, size_t end, size_t) {
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
  // Not std::max, which drops a NaN.
  if (!std::isnan(largest) && !(other.largest <= largest)) largest = other.largest;
}

double TensorError::Relative() const { return error_squares == 0 ? 0 : error_squares / squares; }

TensorError CompareTensors(kernels::ThreadPool& pool, const gguf::TensorView& a,
                           const gguf::TensorView& b) {
  std::vector<TensorError> parts(Parts(a));
  pool.Run([&] {
    pool.ForDynamic(parts.size(), 1, [&](size_t begin, size_t end, size_t) {
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
