// Sets of items, each stored once and identified by its number.
//
// An item is a position in a grammar: a state of a rule, its register, and the set of items that
// continue after that rule. So a number represents every continuation of a text: a graph-structured
// stack of rules (Tomita 1985), however many ways there are to parse the text so far.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "grammar/grammar.h"

namespace grammar {

using SetId = uint32_t;

struct Item {
  StateId at;
  uint32_t data;  // the register of this call of the rule
  SetId below;    // always an older set than this item's
  auto operator<=>(const Item&) const = default;
};

// Instead of a state: the text may end here.
inline constexpr StateId kAccept = kNone - 1;
// Instead of a state: the known rules end here, and the continuation is unknown.
inline constexpr StateId kEscape = kNone - 2;

// Items in the order in which they were added, each once.
class ReachedItems {
 public:
  void Clear();
  void Add(const Item& item);
  size_t size() const { return items_.size(); }
  const Item& operator[](size_t i) const { return items_[i]; }

 private:
  uint32_t& SlotOf(const Item& item);

  std::vector<Item> items_;
  std::vector<uint32_t>
      slots_;  // by hash: index + 1 of an item, or 0; a power of two, at most half in use
};

class ItemSets {
 public:
  ItemSets();
  ItemSets(const ItemSets&) = delete;
  ItemSets& operator=(const ItemSets&) = delete;

  static constexpr SetId kNothing = 0;  // no items: no text fits
  static constexpr SetId kEnd = 1;      // only kAccept
  static constexpr SetId kUnknown = 2;  // only kEscape

  // The number of the set of these items. Sorts them and drops duplicates.
  SetId Intern(std::vector<Item>& items);
  std::span<const Item> operator[](SetId id) const {
    return std::span(items_).subspan(starts_[id], starts_[id + 1] - starts_[id]);
  }
  size_t size() const { return starts_.size() - 1; }
  size_t n_items() const { return items_.size(); }
  // Drops all sets but this one and the sets below it. Returns its new number.
  SetId Forget(SetId kept);

 private:
  struct Hash {
    const ItemSets* sets;
    size_t operator()(SetId id) const;
  };
  struct Equal {
    const ItemSets* sets;
    bool operator()(SetId a, SetId b) const;
  };
  void Clear();

  std::vector<Item> items_;
  std::vector<size_t> starts_;  // where each set begins in items_, and the end
  std::unordered_set<SetId, Hash, Equal> numbers_;
};

}  // namespace grammar
