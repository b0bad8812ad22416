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

// Types removed from the format, and types of other programs, named in messages.
std::string ForeignTypeName(uint32_t id) {
  constexpr std::pair<uint32_t, std::string_view> kRetired[] = {
      {4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},  {32, "Q4_0_4_8"},
      {33, "Q4_0_8_8"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};
  for (const auto& [retired, name] : kRetired) {
    if (retired == id) return std::string(name);
  }
  constexpr uint32_t kFirst = 133, kFirstRepacked = 202, kLastRepacked = 399;
  constexpr auto kIk = std::to_array<std::string_view>(
      {"Q6_0",  "IQ1_BN", "IQ2_BN", "Q8_K64", "IQ2_K",   "IQ3_K",  "IQ4_K",  "IQ5_K",  "IQ6_K",
       "",      "",       "IQ4_KS", "IQ2_KS", "IQ4_KSS", "Q8_K16", "Q8_K32", "Q8_KR8", "Q8_K128",
       "Q8_KV", "IQ5_KS", "IQ2_KT", "IQ3_KT", "IQ4_KT",  "IQ3_KS", "IQ2_KL", "IQ1_KT"});
  if (id >= kFirst && id < kFirst + kIk.size()) {
    return std::string(kIk[id - kFirst]) + " of ik_llama.cpp";
  }
  const bool is_repacked = id >= kFirstRepacked && id <= kLastRepacked;
  return is_repacked ? "a repacked type of ik_llama.cpp" : "";
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
    const std::string name = ForeignTypeName(id);
    found += (found.empty() ? "" : ", ") + std::to_string(id);
    found += " (" + (name.empty() ? "" : name + ", ") + std::to_string(count) +
             (count == 1 ? " tensor)" : " tensors)");
  }
  cursor.set_item({"tensor", 0, first->name});
  cursor.Fail(first->info_at, "expected tensor types that pronk knows, found type ", found,
              ": get the model in another quantization, for example Q4_K_M");
}

// The data's size in bytes. Only the last product could wrap, and it is checked.
uint64_t CheckedBytes(const TensorInfo& info, const DTypeInfo& type, const Cursor& cursor) {
  const uint64_t cols = info.dims[0];
  if (cols % type.block_size != 0) {
    cursor.Fail(info.info_at, "expected rows of a multiple of ", type.block_size,
                " weights for type ", type.name, ", found ", cols);
  }
  const uint64_t elements = cols * info.dims[1] * info.dims[2] * info.dims[3];
  const uint64_t blocks = elements / type.block_size;
  if (blocks > (UINT64_MAX - type.tail_bytes) / type.block_bytes) {
    cursor.Fail(info.info_at, "expected fewer than 2^64 bytes of data, found ", elements,
                " elements of type ", type.name);
  }
  return blocks * type.block_bytes + type.tail_bytes;
}

TensorView Place(const TensorInfo& info, const DTypeInfo& type, std::span<const std::byte> data,
                 uint64_t data_at, uint64_t alignment, const Cursor& cursor) {
  const uint64_t bytes = CheckedBytes(info, type, cursor);
  if (info.offset % alignment != 0) {
    cursor.Fail(info.info_at, "expected a data offset that is a multiple of ", alignment,
                ", found ", info.offset);
  }
  if (info.offset > data.size() || bytes > data.size() - info.offset) {
    cursor.Fail(info.info_at, "expected ", bytes, " bytes of data at offset ", info.offset,
                " of the data section, which starts at byte ", data_at,
                ", found the end of the file at byte ", cursor.bytes().size(),
                ": truncated or damaged, download or copy it again");
  }
  return {.name = info.name,
          .dtype = type.type,
          .n_dims = info.n_dims,
          .dims = info.dims,
          .data = data.data() + info.offset,
          .bytes = bytes};
}

// An id may stand for two types; the space from a tensor's data to the next offset, in `ends`,
// tells which. PrismML's llama.cpp has written PQ2_0 under the id of Q2_0, and for a while
// llama.cpp had IQ4_NL, repacked, under I2_S's id.
const DTypeInfo& TypeOf(const TensorInfo& info, std::span<const uint64_t> ends, uint64_t alignment,
                        Cursor& cursor) {
  const DTypeInfo& type = *FindDType(info.type_id);
  const bool may_be_pq2_0 = type.type == DType::kQ2_0, may_be_iq4 = type.type == DType::kI2_S;
  if (!may_be_pq2_0 && !may_be_iq4) return type;
  const DTypeInfo& other = Info(may_be_pq2_0 ? DType::kPQ2_0 : DType::kIQ4_NL);
  const auto end = std::ranges::upper_bound(ends, info.offset);
  const uint64_t elements = info.dims[0] * info.dims[1] * info.dims[2] * info.dims[3];
  if (end == ends.end() || info.dims[0] % other.block_size != 0 ||
      elements / other.block_size > ends.back() / other.block_bytes)
    return type;
  const uint64_t room = *end - info.offset;
  const uint64_t bytes = elements / other.block_size * other.block_bytes;
  if (room < bytes || room - bytes >= alignment) return type;
  if (may_be_pq2_0) return room < CheckedBytes(info, type, cursor) ? other : type;
  if (room - bytes >= other.block_bytes) return type;
  cursor.Fail(info.info_at,
              "expected type I2_S, found IQ4_NL_4_4, which had its number: get the "
              "model in another quantization, for example Q4_K_M");
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
    cursor.Fail(info.info_at, "expected data of its own, found it overlapping tensor ",
                Quoted(before.name));
  }
}

}  // namespace

std::vector<TensorView> PlaceTensors(const std::vector<TensorInfo>& infos, uint64_t alignment,
                                     Cursor& cursor) {
  CheckTypesKnown(infos, cursor);
  // Without tensors the file may end after the head, unpadded.
  const std::span<const std::byte> bytes = cursor.bytes();
  const uint64_t data_at = (cursor.offset() + alignment - 1) / alignment * alignment;
  const std::span<const std::byte> data = bytes.subspan(std::min<uint64_t>(data_at, bytes.size()));
  std::vector<uint64_t> ends = {data.size()};
  for (const TensorInfo& info : infos) ends.push_back(info.offset);
  std::ranges::sort(ends);

  std::vector<TensorView> tensors;
  tensors.reserve(infos.size());
  for (const TensorInfo& info : infos) {
    cursor.set_item({"tensor", tensors.size(), info.name});
    const DTypeInfo& type = TypeOf(info, ends, alignment, cursor);
    tensors.push_back(Place(info, type, data, data_at, alignment, cursor));
  }
  CheckOverlaps(tensors, infos, cursor);
  return tensors;
}

}  // namespace gguf
