// The keys of the objects that are open at the end of a JSON text, so that none is written twice.
//
// A grammar knows which of the named properties are there (Members). Keys that a schema does not
// name could be any text, which no state of a grammar can hold: they are remembered here, and
// tokens that would repeat one are taken out of a mask.
#ifndef PRONK_GRAMMAR_WRITTEN_KEYS_H_
#define PRONK_GRAMMAR_WRITTEN_KEYS_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/token_masks.h"
#include "grammar/token_trie.h"

namespace grammar {

class WrittenKeys {
 public:
  void Clear() { *this = {}; }
  // More of the text. It may have other text before its first bracket and after its last one.
  void Write(std::string_view text);
  // Whether a key is there twice after this text.
  bool Repeats(std::string_view text) const;
  // Whether some token might repeat a key.
  bool MayRepeat() const;
  // Takes out of a mask the tokens that do.
  void Exclude(const TokenTrie& trie, TokenMasks::Mask& mask) const;

 private:
  struct Level {
    bool is_object = false;
    std::set<std::string, std::less<>> keys = {};
  };
  // Where a text is: in a string or not, and before a key or not.
  struct Place {
    bool in_string = false, escaped = false, before_key = false, in_key = false;
  };

  std::vector<Level> levels_;
  Place place_;
  std::string key_;  // in_key: as far as it is written
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_WRITTEN_KEYS_H_
