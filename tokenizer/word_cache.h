// Words of a text that were tokenized before in the same text: most words occur again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"

namespace tokenizer {

// Maps a word to the position of its ids in a list. A word replaces another with the same slot.
class WordCache {
 public:
  static constexpr size_t kMaxCachedBytes = 24;  // longer words are not kept
  struct Entry {
    std::array<char, kMaxCachedBytes> text;
    uint8_t size = 0, n_ids = 0;
    size_t begin = 0;

    bool Is(std::string_view word) const {
      return size == word.size() && std::memcmp(text.data(), word.data(), word.size()) == 0;
    }
  };

  // The place of a word of 1 to kMaxCachedBytes bytes.
  Entry& At(std::string_view word) {
    constexpr size_t kEntries = size_t{1} << 12;
    if (entries_.empty()) entries_.resize(kEntries);
    return entries_[hash_(word) % kEntries];
  }
  static void Keep(std::string_view word, size_t begin, size_t n_ids, Entry& entry) {
    std::memcpy(entry.text.data(), word.data(), word.size());
    entry.size = static_cast<uint8_t>(word.size());
    entry.n_ids = static_cast<uint8_t>(n_ids);
    entry.begin = begin;
  }

 private:
  SeededHash hash_;
  std::vector<Entry> entries_;
};

}  // namespace tokenizer
