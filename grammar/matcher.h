// Matcher: follows a grammar through a text, byte by byte.
//
// A position in a text is a set of items (item_sets.h), identified by its number; the step from a
// number with a byte to the next is computed once. So repeated positions, such as the inside of a
// string, cost a table lookup. A new step takes work bounded by the grammar's size times the text's
// length, however many readings a text has (as in Earley 1970).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/item_sets.h"

namespace grammar {

class Matcher {
 public:
  // The grammar must outlive it.
  explicit Matcher(const Grammar& grammar) : grammar_(grammar) {}

  const Grammar& grammar() const { return grammar_; }
  // The position before the first byte.
  SetId Start();
  // The position after this byte; kNothing if the grammar does not allow it. Throws grammar::Error
  // if the grammar is so ambiguous that the sets take more memory than any real grammar's.
  SetId Step(SetId from, uint8_t byte) {
    const Moves* const moves = from < moves_.size() ? moves_[from].get() : nullptr;
    if (moves != nullptr && moves->next[byte] != kNotYet) return moves->next[byte];
    return Find(from, byte);
  }
  // The set after each byte, for many steps from a set; kNotYet where Step() has not been called.
  // Valid until Forget().
  static constexpr SetId kNotYet = kNone;
  const std::array<SetId, 256>& NextOf(SetId from) { return MovesOf(from).next; }
  SetId Steps(SetId from, std::string_view bytes);
  // The set of bytes and calls that these items reach without consuming a byte.
  SetId Close(std::vector<Item>& items);
  // The set that the items lead to once their rules have ended: see TokenMasks.
  SetId Resolve(SetId set);
  // The set of these items.
  SetId Intern(std::vector<Item>& items) { return sets_.Intern(items); }

  std::span<const Item> Items(SetId set) const { return sets_[set]; }
  bool MayEnd(SetId set) const { return Has(set, kAccept); }
  bool Escapes(SetId set) const { return Has(set, kEscape); }
  bool MustEnd(SetId set) const { return MayEnd(set) && Items(set).size() == 1; }
  // Whether a list of unique items may begin with the next byte.
  bool OpensUnique(SetId set);
  // The byte that must come; empty if there are several, or the text may end.
  std::optional<uint8_t> OnlyByte(SetId set);
  // The bytes that may come, white space and at most `most` other bytes; empty if there are more,
  // or the text may end.
  std::string FewBytes(SetId set, size_t most);
  // Whether no other byte may come, and the text may not end.
  bool AllowsOnly(SetId set, std::string_view bytes);

  // True if the tables exceed the CPU's caches: time for Forget().
  bool IsFull() const;
  // Drops all sets and steps except this set, whose number changes.
  SetId Forget(SetId kept);

 private:
  // A byte that may come, and the item after it.
  struct Move {
    uint8_t low, high;
    Item after;
    bool opens_unique = false;
  };
  struct Moves {
    std::vector<Move> all;
    std::array<SetId, 256> next;
  };

  bool Has(SetId set, StateId at) const;
  Moves& MovesOf(SetId set);
  void Expand(SetId set, Moves& moves);
  SetId Find(SetId from, uint8_t byte);
  void CheckSize() const;
  void Charge(size_t n_items);

  // The keys already written in an object: the number of unnamed keys, and a bit for each named
  // one.
  using Keys = std::vector<uint64_t>;
  uint32_t KeysWith(uint32_t keys, const Members& members, uint32_t key);
  // Whether the object may end here, and the keys that may come (kNone: an unnamed one).
  bool MayClose(const Members& members, const Keys& keys) const;
  std::vector<uint32_t> NextKeys(const Members& members, uint32_t keys);

  const Grammar& grammar_;
  ItemSets sets_;
  std::vector<std::unique_ptr<Moves>> moves_;  // [set]; null until the first step from it
  size_t n_moves_ = 0;
  size_t excess_ = 0;  // items visited beyond kItemsOfStep per step
  std::map<Keys, uint32_t> key_numbers_ = {{{0}, 0}};
  std::vector<const Keys*> keys_ = {&key_numbers_.begin()->first};  // [number]
  // Scratch space of Close().
  ReachedItems reached_;
  std::vector<Item> closed_;
  std::map<std::pair<StateId, SetId>, uint32_t> counted_;
};

}  // namespace grammar
