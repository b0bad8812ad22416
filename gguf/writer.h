// Writes GGUF version 3 files: for `pronk convert` and `quantize`, for tests and for tools.
//
//   Writer writer;
//   writer.Add("general.architecture", "llama");
//   writer.AddArray<float>("tokenizer.ggml.scores", scores);
//   writer.AddTensor("token_embd.weight", DType::kF16, {2048, 32000}, bytes);
//   writer.WriteFile("model.gguf");
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gguf/dtype.h"
#include "gguf/file_id.h"
#include "gguf/metadata.h"
#include "gguf/reader.h"

namespace gguf {

class OutputFile;

class Writer {
 public:
  // Called when the tensor is written, until it has returned all its bytes, piece by piece, so a
  // model can be larger than memory. A piece must stay valid until the next call of any source.
  using TensorSource = std::function<std::span<const std::byte>()>;

  // An alignment other than the default is recorded in general.alignment. All methods throw
  // gguf::Error on input that the reader refuses: a repeated name, an invalid shape, too many keys.
  explicit Writer(uint32_t alignment = static_cast<uint32_t>(kDefaultAlignment));

  // Key-value pairs. T, a fixed-size integer, float, double or bool, is the type in the file.
  template <typename T>
  requires std::is_arithmetic_v<T>
  void Add(std::string_view key, T value) {
    AddBytes(key, ValueTypeOf<T>(), std::as_bytes(std::span(&value, 1)));
  }
  void Add(std::string_view key, std::string_view value);
  template <typename T>
  requires std::is_arithmetic_v<T>
  void AddArray(std::string_view key, std::span<const T> values) {
    AddArrayBytes(key, ValueTypeOf<T>(), values.size(), std::as_bytes(values));
  }
  void AddStrings(std::string_view key, std::span<const std::string_view> values);
  // Copies an entry of another file.
  void Add(const Metadata::Entry& entry);

  // dims[0] is the length of a row. `bytes` is not copied: it must live until the file is written.
  void AddTensor(std::string_view name, DType dtype, std::vector<uint64_t> dims,
                 std::span<const std::byte> bytes);
  void AddTensor(std::string_view name, DType dtype, std::vector<uint64_t> dims,
                 TensorSource source);
  void AddTensor(const TensorView& tensor);

  // Writes through OutputFile. Replaces an existing file, unless it is one of the inputs.
  void WriteFile(const std::string& path, std::span<const FileId> inputs = {}) const;
  // Writes into an open file, and commits it.
  void WriteFile(OutputFile& file) const;
  std::vector<std::byte> ToBytes() const;

  // Known before writing: the head without the padding after it, and the size of the whole file.
  std::vector<std::byte> Head() const;
  uint64_t FileBytes() const;

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<uint64_t> dims;
    uint64_t bytes;
    TensorSource source;
  };
  using Sink = std::function<void(std::span<const std::byte>)>;

  template <typename T>
  static constexpr ValueType ValueTypeOf() {
    static_assert(sizeof(T) <= 8);
    if (std::is_same_v<T, bool>) return ValueType::kBool;
    if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? ValueType::kF32 : ValueType::kF64;
    using enum ValueType;
    constexpr ValueType kSigned[] = {kI8, kI16, kI32, kI64}, kUnsigned[] = {kU8, kU16, kU32, kU64};
    return (std::is_signed_v<T> ? kSigned : kUnsigned)[std::countr_zero(sizeof(T))];
  }
  void AddBytes(std::string_view key, ValueType type, std::span<const std::byte> value);
  void AddArrayBytes(std::string_view key, ValueType type, uint64_t count,
                     std::span<const std::byte> elements);
  void Emit(const Sink& sink) const;

  uint64_t alignment_;
  std::vector<std::byte> entries_;  // the key-value pairs, encoded
  std::set<std::string, std::less<>> keys_;
  std::vector<Tensor> tensors_;
  std::set<std::string, std::less<>> tensor_names_;
};

}  // namespace gguf
