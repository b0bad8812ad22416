// TokenMasks: the tokens that may come next, as a bit for each id.
//
// The trie of tokens is walked together with the grammar, without branches that do not fit. That
// takes milliseconds for a large vocabulary, so a mask is computed once per set of items and kept.
//
// Most of a mask does not depend on a rule's caller: inside a string, all words fit at every depth
// of a document. So the walk is done once for the rule, as if what follows it were unknown, and
// kept for all callers. It records the few trie nodes at which the rule ends in the middle of a
// token (a quote, and more after it): from there the walk is repeated for each caller. Rules that
// are called side by side are walked together.
//
// Each count in a repetition such as x{0,1000} would be a new set. But only tokens that reach its
// end make a difference: for all shorter ones the walk from the first position is reused.
//
// Where any text of some characters fits (runs.h), branches of such tokens are taken as a whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/runs.h"
#include "grammar/token_trie.h"
#include "tokenizer/tokenizer.h"

namespace grammar {

class TokenMasks {
 public:
  using Mask = std::vector<uint64_t>;  // bit id % 64 of word id / 64

  // Both must outlive it.
  TokenMasks(const tokenizer::Vocabulary& vocab, const TokenTrie& trie, Matcher& matcher);

  // Allows tokens that end a generation if the text may end. Valid until the next call.
  std::span<const uint64_t> Of(SetId set);
  // Must be called with Matcher::Forget(), which renumbers the sets.
  void Forget();

 private:
  // The part of a set's mask that does not depend on its rule's callers.
  struct Local {
    Mask allowed;
    // Trie nodes at which the rule may end, and the sets there.
    std::vector<std::pair<uint32_t, SetId>> escapes;
  };

  const Local& LocalOf(SetId set);
  void Make(SetId set, Mask& mask);
  bool IsWorthAMask(RuleId rule);
  // Items of rules called from one place.
  void MakeGroup(std::span<const Item> group, Mask& mask);
  // calls: [rule] callers. Allows the tokens that fit the rules, and after them the callers.
  void MakeCalls(std::map<RuleId, std::vector<Item>>& calls, Mask& mask);
  // Allows the tokens of nodes [begin, end) that fit after `from`, in branches below `deeper_than`.
  void Walk(uint32_t begin, uint32_t end, SetId from, Mask& mask, Local* local = nullptr,
            uint8_t deeper_than = 0);
  void WalkAll(SetId from, Mask& mask, Local* local = nullptr, uint8_t deeper_than = 0);
  // A set on the path of a walk.
  struct Level {
    SetId set;
    Run run;
    const std::array<SetId, 256>* next;
  };
  void Enter(size_t depth, SetId set);
  const Run& RunOf(SetId set);

  const tokenizer::Vocabulary& vocab_;
  const TokenTrie& trie_;
  Matcher& matcher_;
  size_t n_words_;
  std::unordered_map<SetId, Mask> masks_;
  std::unordered_map<SetId, Local> locals_;
  Runs runs_;
  std::vector<std::optional<Run>> run_of_;                 // [set]
  std::array<Level, TokenTrie::kMaxBytes + 1> path_ = {};  // the walk's path, [depth]
};

}  // namespace grammar
