// The hash table: building, probing, prefetching.
#include "tokenizer/token_index.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tokenizer {

template <class Use>
void TokenIndex::ForEachHash(std::span<const std::string_view> texts, const Use& use) const {
  constexpr size_t kBatch = 16;
  std::array<uint64_t, kBatch> hashes;
  for (size_t begin = 0; begin < texts.size(); begin += kBatch) {
    const size_t n = std::min(kBatch, texts.size() - begin);
    for (size_t i = 0; i < n; ++i) {
      hashes[i] = hash_(texts[begin + i]);
      __builtin_prefetch(&slots_[hashes[i] & (slots_.size() - 1)]);
    }
    for (size_t i = 0; i < n; ++i) use(begin + i, hashes[i]);
  }
}

TokenIndex::TokenIndex(const std::vector<std::string_view>& tokens)
    : tokens_(&tokens), slots_(std::bit_ceil(tokens.size() + tokens.size() / 2 + 1)) {
  ForEachHash(tokens, [&](size_t i, uint64_t hash) {
    Slot& slot = slots_[Locate(tokens[i], hash)];
    all_differ_ &= slot.id < 0;
    slot = {FirstBytes(tokens[i]), static_cast<uint32_t>(tokens[i].size()),
            static_cast<int32_t>(i)};
  });
}

size_t TokenIndex::Locate(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const uint64_t first_bytes = FirstBytes(text);
  size_t at = hash & mask;
  for (; slots_[at].id >= 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.first_bytes != first_bytes || slot.length != text.size()) continue;
    if (text.size() <= 8 || (*tokens_)[static_cast<size_t>(slot.id)] == text) break;
  }
  return at;
}

int32_t TokenIndex::Find(std::string_view text) const {
  return slots_[Locate(text, hash_(text))].id;
}

std::vector<int32_t> TokenIndex::FindAll(std::span<const std::string_view> texts) const {
  std::vector<int32_t> ids;
  ids.reserve(texts.size());
  ForEachHash(texts,
              [&](size_t i, uint64_t hash) { ids.push_back(slots_[Locate(texts[i], hash)].id); });
  return ids;
}

}  // namespace tokenizer
