// The layout that reader.cc reads: header, key-value pairs, tensor infos, then the aligned data.
#include "gguf/writer.h"

#include <utility>

#include "gguf/error.h"
#include "gguf/output_file.h"

namespace gguf {
namespace {

constexpr uint32_t kVersion = 3;

void AppendBytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
void Append(std::vector<std::byte>& out, T number) {
  AppendBytes(out, std::as_bytes(std::span(&number, 1)));
}

void AppendString(std::vector<std::byte>& out, std::string_view text) {
  Append(out, uint64_t{text.size()});
  AppendBytes(out, std::as_bytes(std::span(text)));
}

uint64_t RoundUp(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Bytes of a tensor of this shape; throws if the shape is impossible.
uint64_t CheckedTensorBytes(std::string_view name, DType dtype, std::span<const uint64_t> dims) {
  const std::string where = "writing tensor " + Quoted(name) + ": ";
  if (dims.empty() || dims.size() > 4) {
    throw Error(where, "expected 1 to 4 dimensions, found ", dims.size());
  }
  uint64_t elements = 1;
  for (const uint64_t dim : dims) {
    if (dim == 0 || dim > INT64_MAX / elements) {
      throw Error(where, "expected 1 to 2^63 - 1 elements, found a dimension of ", dim);
    }
    elements *= dim;
  }
  const DTypeInfo& info = Info(dtype);
  if (dims[0] % info.block_size != 0) {
    throw Error(where, "expected rows of a multiple of ", info.block_size, " weights for type ",
                info.name, ", found ", dims[0]);
  }
  // No address space holds more, and rounding up to the alignment cannot wrap.
  if (elements / info.block_size > INT64_MAX / info.block_bytes) {
    throw Error(where, "expected fewer than 2^63 bytes, found ", elements, " elements of type ",
                info.name);
  }
  return RowBytes(dtype, elements) + info.tail_bytes;
}

// Inserts a name that must be new.
void Claim(std::set<std::string, std::less<>>& names, std::string_view name,
           std::string_view kind) {
  const std::string where = "writing " + std::string(kind) + " " + Quoted(name) + ": ";
  if (name.empty()) throw Error(where, "expected a name, found an empty one");
  if (name.size() > kMaxNameBytes) {
    throw Error(where, "expected a name of at most ", kMaxNameBytes, " bytes, found one of ",
                name.size());
  }
  if (names.size() == kMaxItems) {
    throw Error(where, "expected at most ", kMaxItems, " ", kind, "s, found more");
  }
  if (!names.emplace(name).second) throw Error(where, "expected each name once, found it again");
}

}  // namespace

Writer::Writer(uint32_t alignment) : alignment_(alignment) {
  if (!IsValidAlignment(alignment)) {
    throw Error("writing a GGUF file: expected an alignment that is a power of two from ",
                kMinAlignment, " to ", kMaxAlignment, ", found ", alignment);
  }
  if (alignment != kDefaultAlignment) Add("general.alignment", alignment);
}

void Writer::Add(std::string_view key, std::string_view value) {
  std::vector<std::byte> bytes;
  AppendString(bytes, value);
  AddBytes(key, ValueType::kString, bytes);
}

void Writer::AddStrings(std::string_view key, std::span<const std::string_view> values) {
  std::vector<std::byte> elements;
  for (const std::string_view value : values) AppendString(elements, value);
  AddArrayBytes(key, ValueType::kString, values.size(), elements);
}

void Writer::AddArrayBytes(std::string_view key, ValueType type, uint64_t count,
                           std::span<const std::byte> elements) {
  std::vector<std::byte> value;
  Append(value, static_cast<uint32_t>(type));
  Append(value, count);
  AppendBytes(value, elements);
  AddBytes(key, ValueType::kArray, value);
}

void Writer::Add(const Metadata::Entry& entry) {
  const auto& [key, value] = entry;
  const std::span<const std::byte> bytes(value.data, value.bytes);
  if (value.type == ValueType::kArray) {
    AddArrayBytes(key, value.element_type, value.count, bytes);
  } else {
    AddBytes(key, value.type, bytes);
  }
}

void Writer::AddBytes(std::string_view key, ValueType type, std::span<const std::byte> value) {
  Claim(keys_, key, "key");
  AppendString(entries_, key);
  Append(entries_, static_cast<uint32_t>(type));
  AppendBytes(entries_, value);
}

void Writer::AddTensor(std::string_view name, DType dtype, std::vector<uint64_t> dims,
                       std::span<const std::byte> bytes) {
  AddTensor(name, dtype, std::move(dims), [bytes] { return bytes; });
}

void Writer::AddTensor(std::string_view name, DType dtype, std::vector<uint64_t> dims,
                       TensorSource source) {
  const uint64_t bytes = CheckedTensorBytes(name, dtype, dims);
  Claim(tensor_names_, name, "tensor");
  tensors_.push_back({std::string(name), dtype, std::move(dims), bytes, std::move(source)});
}

void Writer::AddTensor(const TensorView& tensor) {
  AddTensor(tensor.name, tensor.dtype, {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims},
            std::span(tensor.data, tensor.bytes));
}

std::vector<std::byte> Writer::Head() const {
  std::vector<std::byte> head;
  AppendBytes(head, std::as_bytes(std::span(kMagic)));
  Append(head, kVersion);
  Append(head, uint64_t{tensors_.size()});
  Append(head, uint64_t{keys_.size()});
  AppendBytes(head, entries_);
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    AppendString(head, tensor.name);
    Append(head, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) Append(head, dim);
    Append(head, static_cast<uint32_t>(tensor.dtype));
    Append(head, offset);
    offset += RoundUp(tensor.bytes, alignment_);
  }
  return head;
}

uint64_t Writer::FileBytes() const {
  uint64_t bytes = RoundUp(Head().size(), alignment_);
  for (const Tensor& tensor : tensors_) bytes += RoundUp(tensor.bytes, alignment_);
  return bytes;
}

// Passes the file to `sink`, piece by piece.
void Writer::Emit(const Sink& sink) const {
  const std::vector<std::byte> zeros(alignment_);
  const auto pad = [&](uint64_t size) {
    sink(std::span(zeros).first(RoundUp(size, alignment_) - size));
  };
  const std::vector<std::byte> head = Head();
  sink(head);
  pad(head.size());
  for (const Tensor& tensor : tensors_) {
    for (uint64_t left = tensor.bytes; left > 0;) {
      const std::span<const std::byte> bytes = tensor.source();
      if (bytes.empty() || bytes.size() > left) {
        throw Error("writing tensor ", Quoted(tensor.name), ": expected ", left,
                    " bytes more, found ", bytes.size());
      }
      sink(bytes);
      left -= bytes.size();
    }
    pad(tensor.bytes);
  }
}

void Writer::WriteFile(const std::string& path, std::span<const FileId> inputs) const {
  OutputFile file(path, inputs);
  WriteFile(file);
}

void Writer::WriteFile(OutputFile& file) const {
  Emit([&](std::span<const std::byte> bytes) { file.Write(bytes); });
  file.Commit();
}

std::vector<std::byte> Writer::ToBytes() const {
  std::vector<std::byte> out;
  Emit([&](std::span<const std::byte> bytes) { AppendBytes(out, bytes); });
  return out;
}

}  // namespace gguf
