// TokenMasks: which tokens may come next, as a bit for each id.
//
// The tokens are walked along with the grammar: where no token that begins so can fit, the whole
// branch is passed by. That takes milliseconds for a large vocabulary, so it is done once for each
// set of items, and the masks are kept.
//
// Most of a mask does not depend on where a rule was called from: inside a string, that all words
// fit is the same at every depth of a document. So the walk is done for the rule alone, with what
// comes behind it unknown, and kept for wherever the rule is met. It leaves a list of the few nodes
// of the tree at which the rule ended in the middle of a token (a quote, and more behind it): from
// there on the walk is done for the place itself.
//
// Of a row such as x{0,1000} every place would be another one. But only tokens that reach the row's
// end make a difference: for all shorter ones the walk from its first place serves.
#ifndef PRONK_GRAMMAR_TOKEN_MASKS_H_
#define PRONK_GRAMMAR_TOKEN_MASKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/token_trie.h"
#include "tokenizer/tokenizer.h"

namespace grammar {

class TokenMasks {
 public:
  using Mask = std::vector<uint64_t>;  // bit id % 64 of word id / 64

  // Both must outlive it.
  TokenMasks(const tokenizer::Vocabulary& vocab, const TokenTrie& trie, Matcher& matcher);

  // Tokens that end a generation are allowed where the text may end. Good until the next call.
  std::span<const uint64_t> Of(SetId set);
  // To be called with Matcher::Forget(): numbers of sets mean others now.
  void Forget();

 private:
  // What is known of a set whatever comes behind its rule.
  struct Local {
    Mask allowed;
    std::vector<uint32_t> escapes;  // nodes of the tree at which the rule may end
  };

  const Local& LocalOf(SetId set);
  const Mask& UpTo(uint8_t n_bytes);
  void Make(SetId set, Mask& mask);
  // Items of one rule, called from one place.
  void MakeGroup(std::span<const Item> group, Mask& mask);
  // Allows those tokens of nodes [begin, end) that fit behind `from`, of branches deeper than this.
  void Walk(uint32_t begin, uint32_t end, SetId from, Mask& mask, std::vector<uint32_t>* escapes,
            uint8_t deeper_than = 0);

  const tokenizer::Vocabulary& vocab_;
  const TokenTrie& trie_;
  Matcher& matcher_;
  size_t n_words_;
  std::unordered_map<SetId, Mask> masks_;
  std::unordered_map<SetId, Local> locals_;
  std::unordered_map<uint8_t, Mask> up_to_;                // all tokens of so many bytes at most
  std::array<SetId, TokenTrie::kMaxBytes + 1> path_ = {};  // of a walk, by depth
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_TOKEN_MASKS_H_
