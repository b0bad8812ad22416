// Checks the header: types, shapes, and data that neither overlaps nor ends outside.
#include "engine/hf/safetensors.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/hf/fields.h"
#include "gguf/error.h"
#include "gguf/load.h"
#include "gguf/reader.h"

namespace engine {
namespace {

using gguf::DType;

constexpr uint64_t kMaxHead = 100'000'000;  // bytes; the format's own limit
constexpr size_t kMaxRank = 8;

struct Kind {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> floats;
};
constexpr std::array kNumberKinds = {
    Kind{"F64", 64, DType::kF64},     Kind{"F32", 32, DType::kF32},
    Kind{"F16", 16, DType::kF16},     Kind{"BF16", 16, DType::kBF16},
    Kind{"I64", 64, std::nullopt},    Kind{"U64", 64, std::nullopt},
    Kind{"I32", 32, std::nullopt},    Kind{"U32", 32, std::nullopt},
    Kind{"I16", 16, std::nullopt},    Kind{"U16", 16, std::nullopt},
    Kind{"I8", 8, std::nullopt},      Kind{"U8", 8, std::nullopt},
    Kind{"BOOL", 8, std::nullopt},    Kind{"F8_E4M3", 8, std::nullopt},
    Kind{"F8_E5M2", 8, std::nullopt}, Kind{"F8_E8M0", 8, std::nullopt},
    Kind{"F6_E2M3", 6, std::nullopt}, Kind{"F6_E3M2", 6, std::nullopt},
    Kind{"F4", 4, std::nullopt},
};

// The size in bytes of a tensor of this shape.
uint64_t BytesOf(SafeTensor& tensor, uint64_t bits) {
  for (const uint64_t dim : tensor.shape) {
    // This keeps every product from overflowing.
    if (dim != 0 && tensor.elements > (INT64_MAX / 64) / dim) {
      tensor.Fail("shape: expected fewer than 2^57 elements, found ", ShapeText(tensor.shape));
    }
    tensor.elements *= dim;
  }
  if (tensor.elements * bits % 8 != 0) tensor.Fail("shape: expected whole bytes of data");
  return tensor.elements * bits / 8;
}

SafeTensor ReadTensor(const std::string& file, const std::string& name, const JsonView& json,
                      std::span<const std::byte> data) {
  SafeTensor tensor;
  tensor.file = file;
  tensor.name = name;
  if (name.empty() || name.size() > gguf::kMaxNameBytes) {
    tensor.Fail("expected a name of 1 to ", gguf::kMaxNameBytes, " bytes");
  }
  if (!json.IsObject()) tensor.Fail("expected dtype, shape and data_offsets");
  const Fields entry(file, json, "tensor " + gguf::Quoted(name) + ": ");
  tensor.dtype = entry.Text("dtype");
  const auto* const kind = std::ranges::find(kNumberKinds, tensor.dtype, &Kind::name);
  if (kind == kNumberKinds.end()) {
    tensor.Fail("dtype: expected one that is known, found ", gguf::Quoted(tensor.dtype, 20));
  }
  tensor.floats = kind->floats;
  tensor.shape = entry.Wholes("shape", kMaxRank);
  const uint64_t bytes = BytesOf(tensor, kind->bits);
  const std::vector<uint64_t> offsets = entry.Wholes("data_offsets", 2);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size()) {
    tensor.Fail("data_offsets: expected begin and end within ", data.size(),
                " bytes of data, found ", ShapeText(offsets),
                ": truncated or damaged, download or copy it again");
  }
  if (offsets[1] - offsets[0] != bytes) {
    tensor.Fail("data_offsets: expected ", bytes, " bytes for ", tensor.dtype, " ",
                ShapeText(tensor.shape), ", found ", offsets[1] - offsets[0]);
  }
  tensor.data = data.subspan(offsets[0], bytes);
  return tensor;
}

void RefuseOverlaps(const std::vector<SafeTensor>& tensors) {
  std::vector<const SafeTensor*> by_place;
  for (const SafeTensor& tensor : tensors) {
    if (!tensor.data.empty()) by_place.push_back(&tensor);
  }
  std::ranges::sort(by_place, {}, [](const SafeTensor* tensor) { return tensor->data.data(); });
  for (size_t i = 1; i < by_place.size(); ++i) {
    const SafeTensor &before = *by_place[i - 1], &after = *by_place[i];
    if (before.data.data() + before.data.size() <= after.data.data()) continue;
    after.Fail("expected data of its own, found it overlapping tensor ", gguf::Quoted(before.name));
  }
}

std::vector<SafeTensor> Read(const std::string& path, std::span<const std::byte> bytes) {
  if (bytes.size() < 8)
    gguf::Fail(path, "expected a safetensors file, found ", bytes.size(), " bytes");
  const auto length = gguf::Load<uint64_t>(bytes.data());
  const std::span<const std::byte> rest = bytes.subspan(8);
  if (length > kMaxHead || length > rest.size()) {
    gguf::Fail(path, "byte 0: expected the length of a safetensors header, at most ",
               std::min<uint64_t>(kMaxHead, rest.size()), ", found ", length,
               ": truncated, damaged, or not a safetensors file");
  }
  if (length == 0 || static_cast<char>(rest[0]) != '{') {
    gguf::Fail(path, "byte 8: expected a safetensors header, which begins with {");
  }
  const Fields head =
      ParseObject(path, std::string(reinterpret_cast<const char*>(rest.data()), length));
  const size_t n = head.json().size();
  if (n > gguf::kMaxItems) {
    gguf::Fail(path, "expected at most ", gguf::kMaxItems, " tensors, found ", n);
  }
  std::vector<SafeTensor> tensors;
  for (const auto& [name, entry] : head.json()) {
    if (name == "__metadata__") continue;
    tensors.push_back(ReadTensor(path, name, entry, rest.subspan(length)));
  }
  std::ranges::sort(tensors, {}, &SafeTensor::name);
  RefuseOverlaps(tensors);
  return tensors;
}

}  // namespace

Safetensors Safetensors::Open(const std::string& path) {
  Safetensors file;
  file.mapping_ = gguf::MappedFile::Open(path, "a safetensors file");
  file.tensors_ = Read(path, file.mapping_->bytes());
  return file;
}

Safetensors Safetensors::Parse(const std::string& name, std::span<const std::byte> bytes) {
  Safetensors file;
  file.tensors_ = Read(name, bytes);
  return file;
}

std::optional<gguf::FileId> Safetensors::id() const {
  if (!mapping_) return std::nullopt;
  return mapping_->id();
}

}  // namespace engine
