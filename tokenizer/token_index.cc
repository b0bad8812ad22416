#include "tokenizer/token_index.h"

#include <bit>

namespace tokenizer {

TokenIndex::TokenIndex(const std::vector<std::string_view>& tokens)
    : tokens_(&tokens), slots_(std::bit_ceil(tokens.size() + tokens.size() / 2 + 1)) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint64_t hash = hash_(tokens[i]);
    slots_[Locate(tokens[i], hash)] = {static_cast<uint32_t>(hash >> 32), static_cast<int32_t>(i)};
  }
}

size_t TokenIndex::Locate(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & mask;
  while (slots_[at].id >= 0 &&
         (slots_[at].tag != tag || (*tokens_)[static_cast<size_t>(slots_[at].id)] != text)) {
    at = (at + 1) & mask;
  }
  return at;
}

int32_t TokenIndex::Find(std::string_view text) const {
  return slots_[Locate(text, hash_(text))].id;
}

}  // namespace tokenizer
