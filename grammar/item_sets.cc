// Stores sets of items by number.
#include "grammar/item_sets.h"

#include <algorithm>

namespace grammar {

void ReachedItems::Clear() {
  items_.clear();
  slots_.assign(64, 0);
}

// The item's slot, or the empty one in which it belongs.
uint32_t& ReachedItems::SlotOf(const Item& item) {
  uint64_t hash = (uint64_t{item.at} << 32 | item.below) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ hash >> 32 ^ item.data) * 0x9E3779B97F4A7C15u;
  for (size_t i = hash >> 32;; ++i) {
    uint32_t& slot = slots_[i & (slots_.size() - 1)];
    if (slot == 0 || items_[slot - 1] == item) return slot;
  }
}

void ReachedItems::Add(const Item& item) {
  uint32_t& slot = SlotOf(item);
  if (slot != 0) return;
  items_.push_back(item);
  slot = static_cast<uint32_t>(items_.size());
  if (2 * items_.size() <= slots_.size()) return;
  slots_.assign(4 * slots_.size(), 0);
  for (uint32_t i = 0; i < items_.size(); ++i) SlotOf(items_[i]) = i + 1;
}

ItemSets::ItemSets() : numbers_(16, Hash{this}, Equal{this}) { Clear(); }

size_t ItemSets::Hash::operator()(SetId id) const {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a on whole items
  for (const Item& item : (*sets)[id]) {
    hash = (hash ^ (uint64_t{item.at} << 32 | item.below)) * 0x100000001B3u;
    hash = (hash ^ item.data) * 0x100000001B3u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool ItemSets::Equal::operator()(SetId a, SetId b) const {
  return std::ranges::equal((*sets)[a], (*sets)[b]);
}

void ItemSets::Clear() {
  items_.clear();
  starts_ = {0};
  numbers_.clear();
  std::vector<Item> nothing, end = {{kAccept, 0, kNothing}}, unknown = {{kEscape, 0, kNothing}};
  Intern(nothing);
  Intern(end);
  Intern(unknown);
}

SetId ItemSets::Intern(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  const auto id = static_cast<SetId>(size());
  const size_t n_before = items_.size();
  items_.insert(items_.end(), items.begin(), items.end());
  starts_.push_back(items_.size());
  const auto [found, is_new] = numbers_.insert(id);
  if (!is_new) {
    items_.resize(n_before);
    starts_.pop_back();
  }
  return *found;
}

SetId ItemSets::Forget(SetId kept) {
  // A set has a higher number than all sets below it.
  std::vector<bool> needed(size());
  needed[kept] = true;
  for (size_t id = kept + 1; id-- > 0;) {
    if (!needed[id]) continue;
    for (const Item& item : (*this)[static_cast<SetId>(id)]) needed[item.below] = true;
  }
  std::vector<std::vector<Item>> sets;
  std::vector<SetId> old;
  for (SetId id = 0; id <= kept; ++id) {
    if (!needed[id]) continue;
    const std::span<const Item> items = (*this)[id];
    sets.emplace_back(items.begin(), items.end());
    old.push_back(id);
  }
  std::vector<SetId> renamed(kept + size_t{1});
  Clear();
  for (size_t i = 0; i < sets.size(); ++i) {
    for (Item& item : sets[i]) item.below = renamed[item.below];
    renamed[old[i]] = Intern(sets[i]);
  }
  return renamed[kept];
}

}  // namespace grammar
