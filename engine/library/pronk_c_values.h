// The values that cross the border of pronk_c.h: handles, flags, structures and options, each
// checked before it becomes a value of pronk.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/pronk.h"
#include "engine/pronk_c.h"

struct pronk_model : pronk::Model {
  pronk::SpecialTokens special = special_tokens();
};
struct pronk_grammar : pronk::Grammar {};
struct pronk_session : pronk::Session {};
struct pronk_batch : pronk::Batch {};
struct pronk_chat : pronk::Chat {};
struct pronk_embedder : pronk::Embedder {};
struct pronk_reranker : pronk::Reranker {};

namespace library {

// Each throws pronk::Error for a value that pronk_c.h does not allow.
pronk::Options ReadOptions(const char* text);  // "temperature=0.5 draft=\"my model.gguf\""
pronk::Pooling ReadPooling(const char* name);
pronk::Reading ReadReading(unsigned flags);
pronk::Rendering ReadRendering(const pronk_rendering* rendering_or_null);
pronk::Limits ReadLimits(const pronk_limits* limits_or_null, void* user);
std::vector<pronk::Message> ReadMessages(const char* json_or_null);
std::string_view ReadBytes(const char* text, std::size_t n_bytes);
std::vector<std::int32_t> ReadIds(const std::int32_t* ids, std::size_t n_ids);
std::vector<std::string> ReadTexts(const char* const* texts, std::size_t n_texts);
pronk::OnText Caller(pronk_on_text on_text, void* user);

// The size with which a structure begins; throws if no structure has that size.
std::size_t CheckedSize(std::size_t size, std::size_t alignment, std::size_t known);
template <class Struct>
std::size_t CheckedSize(const Struct& of) {
  return CheckedSize(of.size, alignof(Struct), sizeof(Struct));
}

// A structure with the fields known here. The program's structure may be older: fields that it
// lacks become zero. Or it may be newer: its further fields must be zero.
template <class Struct>
Struct Known(const Struct& from) {
  const std::size_t size = CheckedSize(from);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&from);
  if (std::any_of(bytes + std::min(size, sizeof(Struct)), bytes + size,
                  [](unsigned char byte) { return byte != 0; }))
    throw pronk::Error("a structure has fields that this version of the library does not know");
  Struct known = {};
  std::memcpy(&known, &from, std::min(size, sizeof(known)));
  return known;
}

// Copies as much of a structure as the program's has room for; `to` may be null.
template <class Struct>
void Give(Struct whole, Struct* to) {
  if (to == nullptr) return;
  whole.size = CheckedSize(*to);
  std::memcpy(to, &whole, std::min(whole.size, sizeof(whole)));
}
void Give(const pronk::Completion& from, pronk_completion* to);
void Give(const pronk::MemoryUse& from, pronk_memory_use* to);
// False: the program's function ended it.
bool Give(const pronk::Token& token, pronk_on_token to, void* user);
// Copies as many items as there is room for, and writes their full number to n.
template <class Items, class Item>
void Give(const Items& items, Item* to, std::size_t room, std::size_t* n) {
  if (to != nullptr) std::copy_n(items.begin(), std::min(items.size(), room), to);
  *n = items.size();
}

}  // namespace library
