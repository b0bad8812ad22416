// The checks between a tensor's description and a pointer to its data.
#include "gguf/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "gguf/error.h"

namespace gguf {
namespace {

// Types removed from the format, named in messages.
std::string_view RetiredTypeName(uint32_t id) {
  constexpr std::pair<uint32_t, std::string_view> kRetired[] = {
      {4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
      {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};
  for (const auto& [retired, name] : kRetired) {
    if (retired == id) return name;
  }
  return {};
}

void CheckTypesKnown(const std::vector<TensorInfo>& infos, Cursor& cursor) {
  const TensorInfo* first = nullptr;
  std::map<uint32_t, uint64_t> unknown;  // type id -> tensors of it
  for (const TensorInfo& info : infos) {
    if (FindDType(info.type_id) != nullptr) continue;
    if (first == nullptr) first = &info;
    ++unknown[info.type_id];
  }
  if (first == nullptr) return;

  constexpr size_t kMaxListed = 4;
  std::string found;
  size_t listed = 0;
  for (const auto& [id, count] : unknown) {
    if (++listed > kMaxListed) {
      found += ", ...";
      break;
    }
    const std::string_view name = RetiredTypeName(id);
    found += (found.empty() ? "" : ", ") + std::to_string(id);
    found += " (" + (name.empty() ? "" : std::string(name) + ", ") + std::to_string(count) +
             (count == 1 ? " tensor)" : " tensors)");
  }
  cursor.set_item({"tensor", 0, first->name});
  cursor.Fail(first->info_at, "expected tensor types that pronk knows, found type " + found +
                                  ": get the model in another quantization, for example Q4_K_M");
}

// The data's size in bytes. Only the last product could wrap, and it is checked.
uint64_t CheckedBytes(const TensorInfo& info, const DTypeInfo& type, const Cursor& cursor) {
  const uint64_t cols = info.dims[0];
  if (cols % type.block_size != 0) {
    cursor.Fail(info.info_at, "expected rows of a multiple of " + std::to_string(type.block_size) +
                                  " weights for type " + std::string(type.name) + ", found " +
                                  std::to_string(cols));
  }
  const uint64_t elements = cols * info.dims[1] * info.dims[2] * info.dims[3];
  const uint64_t blocks = elements / type.block_size;
  if (blocks > UINT64_MAX / type.block_bytes) {
    cursor.Fail(info.info_at, "expected fewer than 2^64 bytes of data, found " +
                                  std::to_string(elements) + " elements of type " +
                                  std::string(type.name));
  }
  return blocks * type.block_bytes;
}

TensorView Place(const TensorInfo& info, std::span<const std::byte> data, uint64_t data_at,
                 uint64_t alignment, const Cursor& cursor) {
  const DTypeInfo& type = *FindDType(info.type_id);
  const uint64_t bytes = CheckedBytes(info, type, cursor);
  if (info.offset % alignment != 0) {
    cursor.Fail(info.info_at, "expected a data offset that is a multiple of " +
                                  std::to_string(alignment) + ", found " +
                                  std::to_string(info.offset));
  }
  if (info.offset > data.size() || bytes > data.size() - info.offset) {
    cursor.Fail(info.info_at, "expected " + std::to_string(bytes) + " bytes of data at offset " +
                                  std::to_string(info.offset) +
                                  " of the data section, which starts at byte " +
                                  std::to_string(data_at) + ", found the end of the file at byte " +
                                  std::to_string(cursor.bytes().size()) +
                                  ": truncated or damaged, download or copy it again");
  }
  return {.name = info.name,
          .dtype = type.type,
          .n_dims = info.n_dims,
          .dims = info.dims,
          .data = data.data() + info.offset,
          .bytes = bytes};
}

void CheckOverlaps(const std::vector<TensorView>& tensors, const std::vector<TensorInfo>& infos,
                   Cursor& cursor) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return tensors[i].data; });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorView& before = tensors[order[i - 1]];
    const TensorInfo& info = infos[order[i]];
    if (tensors[order[i]].data >= before.data + before.bytes) continue;
    cursor.set_item({"tensor", order[i], info.name});
    cursor.Fail(info.info_at,
                "expected data of its own, found it overlapping tensor " + Quoted(before.name));
  }
}

}  // namespace

std::vector<TensorView> PlaceTensors(const std::vector<TensorInfo>& infos, uint64_t alignment,
                                     Cursor& cursor) {
  CheckTypesKnown(infos, cursor);
  // Without tensors the file may end after the head, unpadded.
  const std::span<const std::byte> bytes = cursor.bytes();
  const uint64_t data_at = (cursor.offset() + alignment - 1) / alignment * alignment;
  const std::span<const std::byte> data = bytes.subspan(std::min(data_at, bytes.size()));

  std::vector<TensorView> tensors;
  tensors.reserve(infos.size());
  for (const TensorInfo& info : infos) {
    cursor.set_item({"tensor", tensors.size(), info.name});
    tensors.push_back(Place(info, data, data_at, alignment, cursor));
  }
  CheckOverlaps(tensors, infos, cursor);
  return tensors;
}

}  // namespace gguf
