// What a JSON text must not repeat: the keys of its open objects, and the items of open lists whose
// items are unique.
//
// A grammar knows which of the named properties are there (Members). Other keys, and items, could
// be any text, which no state of a grammar can hold: they are remembered here, and tokens that
// would repeat one are taken out of a mask.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/token_masks.h"
#include "grammar/token_trie.h"

namespace grammar {

class WrittenParts {
 public:
  void Clear() { *this = {}; }
  // Whether the '[' at this byte of a text opens a list of unique items.
  using OpensUnique = std::function<bool(size_t at)>;
  // Appends to the text, which may have other text before its first bracket and after its last one.
  // False: it repeats a key or an item.
  bool Write(std::string_view text, const OpensUnique& opens_unique);
  // Whether appending this text would repeat a key or an item. Inside a list of unique items, a
  // list that begins in the text counts as one, too.
  bool Repeats(std::string_view text) const;
  // Whether some token might repeat something.
  bool MayRepeat() const;
  // Takes out of a mask the tokens that do.
  void Exclude(const TokenTrie& trie, const tokenizer::Tokenizer& tokenizer,
               TokenMasks::Mask& mask) const;

 private:
  // Shared by copies: most texts end no key and no item.
  using Seen = std::shared_ptr<const std::set<std::string, std::less<>>>;
  struct Level {
    bool is_object = false, is_unique = false;
    Seen seen;         // keys as they are written, or items in one spelling
    size_t begin = 0;  // is_unique: of the item, in text_
    bool Has(std::string_view part) const { return seen != nullptr && seen->contains(part); }
    bool Add(std::string part);
  };
  // Where a text is: in a string or not, before a key or not, in a number or name.
  struct Place {
    bool in_string = false, escaped = false, before_key = false, in_key = false, in_word = false;
  };
  bool EndItem();

  std::vector<Level> levels_;
  Place place_;
  std::string key_;      // in_key: as far as it is written
  std::string text_;     // since the outermost list of unique items began
  size_t n_unique_ = 0;  // such lists
};

}  // namespace grammar
