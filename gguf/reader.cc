// The GGUF head, in file order: header, key-value pairs, tensor infos. See README.md.
//
// The file is assumed to be hostile: nothing is used before it is checked, no size computation can
// wrap, memory grows only with bytes that were read, and recursion is limited to kMaxArrayDepth.
// The cost of refusing a file is bounded by the size of its head.
#include "gguf/reader.h"

#include <algorithm>
#include <utility>

#include "gguf/cursor.h"
#include "gguf/error.h"
#include "gguf/format_guess.h"
#include "gguf/layout.h"

namespace gguf {
namespace {

constexpr int kMaxArrayDepth = 4;  // arrays in arrays; real files have one level
constexpr std::string_view kAlignmentKey = "general.alignment";

// The smallest size of a value of this type: a string's length field, an array's type and length.
uint64_t LeastBytes(ValueType type) {
  if (type == ValueType::kString) return sizeof(uint64_t);
  if (type == ValueType::kArray) return sizeof(uint32_t) + sizeof(uint64_t);
  return ValueTypeBytes(type);
}

class FilePartReader {
 public:
  FilePartReader(const std::string& path, std::span<const std::byte> bytes, uint64_t max_tensors,
                 MappedFile* mapping)
      : path_(path), cursor_(path, bytes, mapping), max_tensors_(max_tensors) {}

  FilePart Read() {
    ReadHeader();
    ReadEntries();
    ReadAlignment();
    ReadTensorInfos();
    part_.tensors = PlaceTensors(infos_, part_.alignment, cursor_);
    return std::move(part_);
  }

 private:
  // Header: "GGUF", u32 version, tensor count, key-value count.

  void CheckMagic() const {
    const std::span<const std::byte> bytes = cursor_.bytes();
    const std::string_view found(reinterpret_cast<const char*>(bytes.data()),
                                 std::min(bytes.size(), kMagic.size()));
    if (found == kMagic) return;
    std::string message = "expected the magic \"GGUF\", found " + Quoted(found);
    const std::string_view guess = GuessFormat(bytes);
    message += guess.empty() ? ": not a GGUF file" : ": this is " + std::string(guess);
    cursor_.Fail<NotGguf>(0, message);
  }

  void ReadHeader() {
    CheckMagic();
    cursor_.Take(kMagic.size(), "magic");
    const uint64_t version_at = cursor_.offset();
    const auto version = cursor_.Read<uint32_t>("version");
    if (version != 0 && (version & 0xffff) == 0) {
      cursor_.Fail(version_at,
                   "expected a little-endian file, found a big-endian one: get or convert it to "
                   "little-endian");
    }
    if (version < 2 || version > 3) {
      cursor_.Fail(version_at, "expected GGUF version 2 or 3, found ", version);
    }
    part_.version = version;
    const uint64_t counts_at = cursor_.offset();
    n_tensors_ = cursor_.Read<uint64_t>("number of tensors");
    n_entries_ = cursor_.Read<uint64_t>("number of keys");
    // The smallest entries: a one-letter key with a value of one byte; a one-letter tensor with one
    // dimension. Counts are not trusted further: vectors grow as entries are read.
    CheckCount(counts_at, n_tensors_, max_tensors_, 8 + 1 + 4 + 8 + 4 + 8, "tensors");
    CheckCount(counts_at + 8, n_entries_, kMaxItems, 8 + 1 + 4 + 1, "keys");
  }

  // limit: the largest allowed count. min_bytes: the smallest size of an item.
  void CheckCount(uint64_t at, uint64_t count, uint64_t limit, uint64_t min_bytes,
                  std::string_view what) const {
    const uint64_t fits = cursor_.remaining() / min_bytes;
    const std::string found = ", found a count of " + std::to_string(count);
    if (count > fits) {
      cursor_.Fail(at, "expected at most ", fits, " ", what, " in the rest of the file", found,
                   ": truncated or damaged");
    }
    if (count > limit) {
      const std::string others = limit < kMaxItems ? " besides those of the parts before" : "";
      cursor_.Fail(at, "expected at most ", limit, " ", what, others, found);
    }
  }

  // Key-value pairs: string key, u32 type, value.

  std::string_view ReadName() {
    const uint64_t at = cursor_.offset();
    const std::string_view name = cursor_.ReadString("name");
    if (name.empty()) cursor_.Fail(at, "expected a name, found an empty one");
    if (name.size() > kMaxNameBytes) {
      cursor_.Fail(at, "expected a name of at most ", kMaxNameBytes, " bytes, found one of ",
                   name.size());
    }
    return name;
  }

  void ReadEntries() {
    std::vector<Metadata::Entry> entries;
    for (uint64_t i = 0; i < n_entries_; ++i) {
      cursor_.set_item({"key", i, {}});
      const std::string_view key = ReadName();
      cursor_.set_item({"key", i, key});
      entries.push_back({key, ReadValue()});
    }
    part_.metadata = Metadata(path_, std::move(entries));
    for (const Metadata::Entry& entry : part_.metadata.entries()) {
      // Find() returns one of several equal keys' values, always the same one: a key repeats if
      // Find() returns another entry's value.
      if (part_.metadata.Find(entry.key) == &entry.value) continue;
      cursor_.set_item({"key", 0, entry.key});
      const auto at = reinterpret_cast<const std::byte*>(entry.key.data()) - cursor_.bytes().data();
      cursor_.Fail(static_cast<uint64_t>(at), "expected each key once, found it again");
    }
    cursor_.set_item({});
  }

  ValueType ReadValueType(std::string_view what) {
    const uint64_t at = cursor_.offset();
    const auto id = cursor_.Read<uint32_t>(what);
    if (!IsValueType(id)) {
      cursor_.Fail(at, "expected ", what, " from 0 to 12, found ", id);
    }
    return static_cast<ValueType>(id);
  }

  Value ReadValue() {
    Value value;
    value.type = ReadValueType("a value type");
    if (value.type == ValueType::kArray) {
      value.element_type = ReadValueType("an element type");
      value.count = cursor_.Read<uint64_t>("array length");
    }
    value.data = cursor_.here();
    if (value.type == ValueType::kArray) {
      SkipElements(value.element_type, value.count, 1);
    } else {
      SkipElements(value.type, 1, 0);
    }
    value.bytes = static_cast<uint64_t>(cursor_.here() - value.data);
    return value;
  }

  // Skips the elements of an array (or one value), checking everything that a getter relies on.
  void SkipElements(ValueType type, uint64_t count, int depth) {
    if (depth > kMaxArrayDepth) {
      cursor_.Fail(cursor_.offset(), "expected arrays at most ", kMaxArrayDepth,
                   " deep, found deeper ones");
    }
    if (count > cursor_.remaining() / LeastBytes(type)) {
      cursor_.Fail(cursor_.offset(), "expected ", count, " elements of type ", ValueTypeName(type),
                   ", found ", cursor_.remaining(),
                   " bytes before the end of the file: truncated or damaged");
    }
    if (type == ValueType::kString) {
      for (uint64_t i = 0; i < count; ++i) cursor_.ReadString("text");
    } else if (type == ValueType::kArray) {
      for (uint64_t i = 0; i < count; ++i) {
        const ValueType inner = ReadValueType("an element type");
        SkipElements(inner, cursor_.Read<uint64_t>("array length"), depth + 1);
      }
    } else {
      const uint64_t at = cursor_.offset();
      const std::byte* const data = cursor_.Take(count * ValueTypeBytes(type), "value");
      if (type != ValueType::kBool) return;
      const auto bad =
          std::find_if(data, data + count, [](std::byte b) { return b > std::byte{1}; });
      if (bad == data + count) return;
      cursor_.Fail(at + static_cast<uint64_t>(bad - data), "expected a bool of 0 or 1, found ",
                   std::to_integer<int>(*bad));
    }
  }

  void ReadAlignment() {
    const Metadata& metadata = part_.metadata;
    const Value* const value = metadata.Find(kAlignmentKey);
    if (value == nullptr) return;
    if (value->type != ValueType::kU32) {
      metadata.Fail(kAlignmentKey, "expected type u32, found ", ValueTypeName(value->type));
    }
    const uint64_t alignment = metadata.GetUint(kAlignmentKey);
    if (!IsValidAlignment(alignment)) {
      metadata.Fail(kAlignmentKey, "expected a power of two from ", kMinAlignment, " to ",
                    kMaxAlignment, ", found ", alignment);
    }
    part_.alignment = alignment;
  }

  // Tensor infos: string name, u32 n_dims, dims, u32 type, u64 offset.

  TensorInfo ReadTensorInfo() {
    TensorInfo info;
    info.info_at = cursor_.offset();
    info.name = ReadName();
    cursor_.set_item({"tensor", infos_.size(), info.name});
    uint64_t at = cursor_.offset();
    info.n_dims = cursor_.Read<uint32_t>("number of dimensions");
    if (info.n_dims < 1 || info.n_dims > info.dims.size()) {
      cursor_.Fail(at, "expected 1 to 4 dimensions, found ", info.n_dims);
    }
    uint64_t elements = 1;  // stays below 2^63, so that no product of dims wraps from here on
    for (uint32_t i = 0; i < info.n_dims; ++i) {
      at = cursor_.offset();
      const uint64_t dim = cursor_.Read<uint64_t>("dimension");
      if (dim == 0) cursor_.Fail(at, "expected a dimension of at least 1, found 0");
      if (dim > INT64_MAX / elements) {
        cursor_.Fail(at, "expected fewer than 2^63 elements, found a dimension of ", dim, " after ",
                     elements, " elements");
      }
      elements *= dim;
      info.dims[i] = dim;
    }
    info.type_id = cursor_.Read<uint32_t>("tensor type");
    info.offset = cursor_.Read<uint64_t>("tensor offset");
    return info;
  }

  void ReadTensorInfos() {
    for (uint64_t i = 0; i < n_tensors_; ++i) {
      cursor_.set_item({"tensor", i, {}});
      infos_.push_back(ReadTensorInfo());
    }
    cursor_.set_item({});
  }

  std::string path_;
  Cursor cursor_;
  uint64_t max_tensors_;
  uint64_t n_entries_ = 0;
  uint64_t n_tensors_ = 0;
  std::vector<TensorInfo> infos_;
  FilePart part_;
};

}  // namespace

FilePart ReadFilePart(const std::string& path, std::span<const std::byte> bytes) {
  return FilePartReader(path, bytes, kMaxItems, nullptr).Read();
}

FilePart ReadFilePart(const std::string& path, MappedFile& mapping, uint64_t max_tensors) {
  return FilePartReader(path, mapping.bytes(), max_tensors, &mapping).Read();
}

}  // namespace gguf
