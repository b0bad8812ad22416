// Parts that a JSON text must not repeat: the keys of its open objects, and the items of open lists
// whose items are unique.
//
// A grammar knows which named properties are written (Members). Other keys, and items, may be any
// text, which no state of a grammar can hold: they are stored here, and tokens that would repeat
// one, or lead to where only a repetition fits, are taken out of a mask.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/token_masks.h"
#include "grammar/token_trie.h"

namespace grammar {

class WrittenParts {
 public:
  void Clear() { *this = {}; }
  // Appends to the text, which is at this position of the grammar, and which may have other text
  // before its first bracket and after its last one. False: it repeats a key or an item.
  bool Write(std::string_view text, Matcher& matcher, SetId at);
  // Whether appending this text, which the grammar allows, would repeat a key or an item, or begin
  // one that can only become a repetition.
  bool Repeats(std::string_view text, Matcher& matcher, SetId at) const;
  // Whether some token might repeat something.
  bool MayRepeat() const;
  // Removes the tokens that would repeat something from a mask for this position.
  void Exclude(const TokenTrie& trie, const tokenizer::Tokenizer& tokenizer, Matcher& matcher,
               SetId at, TokenMasks::Mask& mask) const;

 private:
  // Shared by copies: most texts end no key and no item.
  class Texts {
   public:
    using Set = std::set<std::string, std::less<>>;
    bool empty() const { return set_ == nullptr; }
    bool Has(std::string_view text) const { return set_ != nullptr && set_->contains(text); }
    // False: the set has it.
    bool Add(std::string text);
    // The texts that begin with `text`, in order.
    std::vector<std::string_view> BeginningWith(std::string_view text) const;

   private:
    std::shared_ptr<const Set> set_;
  };
  struct Level {
    bool is_object = false, is_unique = false;
    size_t begin = 0;  // is_unique: where the item begins in text_
    Texts seen = {};   // keys as they are written, or items in one spelling
    // Keys, strings and words of `seen` that could not have been longer, as they are written, and
    // without their last quote.
    Texts longest = {};
  };
  // Where a text is: in a string or not, before a key or not, in a number or name.
  struct Place {
    bool in_string = false, escaped = false, before_key = false, in_key = false, in_word = false;
  };
  bool EndItem();
  std::string_view Item() const;
  bool IsInPart() const;
  std::string_view Part() const;
  std::string_view PartEnds() const;
  bool HasLongest() const;
  bool MustRepeat(const std::string& part, size_t n_ahead, Matcher& matcher, SetId at) const;
  std::string WithoutSpace(const std::string& bytes) const;
  bool MustRepeatItem(Matcher& matcher, SetId at, size_t& n_left) const;

  std::vector<Level> levels_;
  Place place_;
  std::string key_;      // in_key: the written part of the key
  std::string text_;     // the text since the outermost list of unique items began
  size_t n_unique_ = 0;  // open lists of unique items
};

}  // namespace grammar
