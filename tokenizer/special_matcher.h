// Finds special tokens (control and user-defined ones) in text: "<|eot_id|>" is one token and not
// eight characters of text.
#ifndef PRONK_TOKENIZER_SPECIAL_MATCHER_H_
#define PRONK_TOKENIZER_SPECIAL_MATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

class SpecialMatcher {
 public:
  struct Entry {
    std::string text;
    int32_t id;
  };
  struct Match {
    size_t begin;   // offset in the text; its size where nothing was found
    size_t length;  // bytes; 0 where nothing was found
    int32_t id;
  };

  // Entries with an empty text never match; of equal texts the last one counts.
  explicit SpecialMatcher(std::vector<Entry> entries = {});

  // The first match at or after `from`; of several that begin there, the longest. The cost of a
  // byte of text does not depend on the number of entries unless an entry begins with that byte.
  Match Find(std::string_view text, size_t from) const;

 private:
  // The longest entry that `text` begins with, or nullptr.
  const Entry* LongestAt(std::string_view text) const;

  std::vector<Entry> entries_;            // sorted by text
  std::array<uint32_t, 257> first_byte_;  // entries_[first_byte_[b] ..] begin with byte b
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_SPECIAL_MATCHER_H_
