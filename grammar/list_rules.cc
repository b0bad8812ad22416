// The rules of lists.
#include <algorithm>

#include "gguf/error.h"
#include "grammar/converter.h"

namespace grammar {
namespace {

constexpr size_t kMaxUnique = 1000;    // values that a list may have once each
constexpr uint64_t kMaxPlaces = 4096;  // pairs of counts: items, contained items
constexpr size_t kMaxContains = 6;

}  // namespace

Converter::MaybePart Converter::Array(const Shape& shape) {
  uint64_t n_first = 0;
  std::vector<Contains> contains;
  for (const uint32_t node : shape.nodes) {
    const Schema& s = schemas_[Literal{node}];
    n_first = std::max<uint64_t>(n_first, s.first.size());
    if (s.contains.is_there()) contains.push_back(s.contains);
  }
  uint64_t most = shape.count.max;
  std::vector<RuleId> first;
  std::optional<RuleId> rest;
  for (uint64_t i = 0; i <= n_first; ++i) {
    const Conjunction item = all_.Item(shape, i);
    const auto rule = RuleOf(item, shape.place + "/items");
    if (!rule || all_.IsEmpty(item)) {  // no value fits here: the list ends before it
      most = std::min(most, i);
      break;
    }
    if (i == n_first) {
      rest = rule;
    } else {
      first.push_back(*rule);
    }
  }
  if (shape.count.min > most) return std::nullopt;
  if (shape.unique && most > 1) {
    const auto few = n_first == 0 && contains.empty() ? FewValues(shape) : std::nullopt;
    if (few) return UniqueOf(shape, *few, most);
  }
  if (!contains.empty()) return Containing(shape, n_first, most, contains);
  if (shape.count.min >= kNone) FailAt(shape.place, "so many items are not supported");
  return Items(shape, first, rest, most);
}

Part Converter::Item(RuleId rule, bool is_first) {
  return is_first ? builder_.Call(rule) : After(",", builder_.Call(rule));
}

// The first items, then the rest.
Part Converter::Items(const Shape& shape, const std::vector<RuleId>& first,
                      std::optional<RuleId> rest, uint64_t n_most) {
  const auto least = static_cast<uint32_t>(shape.count.min);
  const uint32_t most = n_most < kNone ? static_cast<uint32_t>(n_most) : kNone;
  const Brackets brackets = BracketsOf('[', shape.unique);
  StateId at = brackets.open.end;
  uint32_t n = 0;
  const auto item = [&](RuleId rule) {
    if (n >= least) builder_.Link(at, n == 0 ? brackets.after_none : brackets.after_some);
    const Part part = Item(rule, n == 0);
    builder_.Link(at, part.start);
    at = part.end;
    ++n;
  };
  for (; n < first.size() && n < most;) item(first[n]);
  if (rest && n == 0 && most > 0) item(*rest);
  if (n == 0) {
    builder_.Link(at, brackets.after_none);
  } else if (rest && n < most) {
    const Part more = builder_.Repeat(After(",", builder_.Call(*rest)), least > n ? least - n : 0,
                                      most == kNone ? kNone : most - n);
    builder_.Link(at, more.start);
    builder_.Link(more.end, brackets.after_some);
  } else {
    builder_.Link(at, brackets.after_some);
  }
  return {brackets.open.start, brackets.end};
}

// A state for each number of items, and of items that each `contains` counts, up to the counts that
// matter.
Converter::MaybePart Converter::Containing(const Shape& shape, uint64_t n_first, uint64_t most,
                                           const std::vector<Contains>& contains) {
  using Counts = std::vector<uint64_t>;  // the number of items, and one for each `contains`
  Counts limits = {most != UINT64_MAX ? most : std::max<uint64_t>({shape.count.min, n_first, 1})};
  for (const Contains& c : contains) {
    if (most == UINT64_MAX) limits[0] = std::max(limits[0], c.from);
    limits.push_back(c.count.max != UINT64_MAX ? c.count.max : c.count.min);
  }
  uint64_t n_places = 1;
  for (const uint64_t limit : limits) n_places *= std::min(limit, kMaxPlaces) + 1;
  if (contains.size() > kMaxContains || n_places > kMaxPlaces)
    FailAt(Below(shape.place, "contains"), "too many items to be counted");
  const Brackets brackets = BracketsOf('[', shape.unique);
  std::map<Counts, StateId> places;
  std::vector<Counts> todo;
  const auto place = [&](Counts counts) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] = std::min(counts[i], limits[i]);
    const auto [found, is_new] = places.try_emplace(counts);
    if (is_new) {
      found->second = builder_.Fork();
      todo.push_back(counts);
    }
    return found->second;
  };
  builder_.Link(brackets.open.end, place(Counts(limits.size())));
  for (size_t i = 0; i < todo.size(); ++i) {
    const Counts counts = todo[i];
    const uint64_t n = counts[0];
    const StateId at = places[counts];
    bool is_enough = n >= shape.count.min;
    for (size_t c = 0; c < contains.size(); ++c)
      is_enough &= counts[c + 1] >= contains[c].count.min;
    if (is_enough) builder_.Link(at, n == 0 ? brackets.after_none : brackets.after_some);
    if (n >= most) continue;
    // Each item is counted by a subset of `contains`. A `contains` without a maximum may also match
    // items that it does not count.
    for (uint32_t ways = 0; ways < 1u << contains.size(); ++ways) {
      Conjunction item = all_.Item(shape, n);
      Counts to = counts;
      ++to[0];
      bool fits = true;
      for (size_t c = 0; c < contains.size() && fits; ++c) {
        const auto& [wanted, count, from] = contains[c];
        const bool is_limited = count.max != UINT64_MAX, is_in = (ways >> c & 1) != 0;
        if (is_in) {
          fits = n >= from && (is_limited || counts[c + 1] < count.min) &&
                 counts[c + 1] < count.max && Conjunctions::Add(item, wanted);
          ++to[c + 1];
        } else if (is_limited && n >= from) {
          fits = Conjunctions::Add(item, !wanted);
        }
      }
      const auto rule = fits ? RuleOf(item, shape.place + "/items") : std::nullopt;
      if (!rule) continue;
      const Part part = Item(*rule, n == 0);
      builder_.Link(at, part.start);
      builder_.Link(part.end, place(std::move(to)));
    }
  }
  return Part{brackets.open.start, brackets.end};
}

// All texts of a shape, or more than kMaxUnique.
Names Converter::FewTexts(const Shape& shape) {
  Names texts;
  const NumberSet& n = shape.numbers;
  if (shape.type == kString && !shape.patterns.empty()) {
    Shape any_length = shape;
    any_length.length = {};
    for (const std::string& text : all_.StringsOf(any_length).Strings(kMaxUnique)) {
      if (shape.length.Has(CountCharacters(text))) texts.push_back(gguf::JsonQuoted(text));
    }
    return texts;
  }
  if (shape.type == kNumber && !n.fractions && n.min && n.max)
    return n.Spellings(schemas_.budget()).Strings(kMaxUnique);
  return Names(kMaxUnique + 1);
}

// The texts of a list's items, if they are few.
std::optional<Names> Converter::FewValues(const Shape& shape) {
  Names texts;
  const auto add = [&](const std::string& text) {
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  };
  for (const Shape& one : all_.ShapesOf(all_.Item(shape, 0))) {
    const Names more = one.is_listed ? Names() : FewTexts(one);
    if (more.size() + one.values.size() + texts.size() > kMaxUnique) return std::nullopt;
    for (const std::string& text : more) add(text);
    for (const JsonView& value : one.values) {
      if (value.IsArray() || value.IsObject()) return std::nullopt;
      add(value.IsNumber() ? NumberText(value) : Spelled(value));
    }
  }
  return texts;
}

// Items of a few values, each at most once.
Converter::MaybePart Converter::UniqueOf(const Shape& shape, const Names& texts, uint64_t most) {
  if (shape.count.min > texts.size()) return std::nullopt;
  const uint32_t id = builder_.AddMembers();
  for (const std::string& text : texts) AddMember(id, builder_.Literal(text), std::nullopt, false);
  Members& members = builder_.members(id);
  members.min = static_cast<uint32_t>(shape.count.min);
  members.max = static_cast<uint32_t>(std::min<uint64_t>(most, kNone));
  return MembersIn('[', id, std::nullopt);
}

}  // namespace grammar
