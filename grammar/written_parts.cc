// Keeps the keys and unique items that a text has written, and finds repetitions.
#include "grammar/written_parts.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "gguf/error.h"
#include "gguf/json.h"
#include "grammar/schema.h"

namespace grammar {

using tokenizer::TokenId;

namespace {

constexpr std::string_view kSpace = " \t\n\r", kWordEnds = ",] \t\n\r";
// How many bytes ahead a repetition that cannot be avoided is seen.
constexpr size_t kMaxAhead = 255;
// At most this many choices are followed to see whether all repeat an item.
constexpr size_t kMaxChoices = 8;
// In a list of unique items, this many tokens or fewer are all tried.
constexpr int kFewTokens = 2000;

// The value's spelling, the same for equal values.
std::string OneSpelling(const JsonView& value) {
  if (value.IsString()) return gguf::JsonQuoted(value.String());
  if (value.IsNumber()) return NumberText(value);
  std::string text;
  if (value.IsArray()) {
    for (const auto& [key, item] : value) text += OneSpelling(item) + ",";
    return "[" + text + "]";
  }
  if (!value.IsObject()) return std::string(value.text());
  std::map<std::string, std::string> members;
  for (const auto& [key, part] : value.Members()) members[key] = OneSpelling(part);
  for (const auto& [key, part] : members) text += gguf::JsonQuoted(key) + ":" + part + ",";
  return "{" + text + "}";
}

std::string OneSpelling(std::string_view text) {
  try {
    return OneSpelling(JsonView::Parse(std::string(text)));
  } catch (const gguf::Error&) {  // deeper than the JSON reader allows
    return std::string(text);
  }
}

bool HasBit(const TokenMasks::Mask& mask, TokenId id) {
  const auto bit = static_cast<size_t>(id);
  return (mask[bit / 64] >> (bit % 64) & 1) != 0;
}

}  // namespace

bool WrittenParts::Texts::Add(std::string text) {
  if (Has(text)) return false;
  auto more = empty() ? std::make_shared<Set>() : std::make_shared<Set>(*set_);
  more->insert(std::move(text));
  set_ = std::move(more);
  return true;
}

std::vector<std::string_view> WrittenParts::Texts::BeginningWith(std::string_view text) const {
  std::vector<std::string_view> found;
  if (empty()) return found;
  for (auto it = set_->lower_bound(text); it != set_->end() && it->starts_with(text); ++it)
    found.push_back(*it);
  return found;
}

// The written part of a list's item.
std::string_view WrittenParts::Item() const {
  const std::string_view item = std::string_view(text_).substr(levels_.back().begin);
  return item.substr(std::min(item.find_first_not_of(kSpace), item.size()));
}

// Ends an item in a list of unique items. Returns false if it repeats one.
bool WrittenParts::EndItem() {
  place_.in_word = false;
  if (levels_.empty() || !levels_.back().is_unique) return true;
  const std::string_view item = Item();
  return levels_.back().seen.Add(OneSpelling(item.substr(0, item.find_last_not_of(kSpace) + 1)));
}

// Whether the text is in a key, or in a string or a word (a number or name) of a list of unique
// items.
bool WrittenParts::IsInPart() const {
  if (levels_.empty()) return false;
  return place_.in_key || (levels_.back().is_unique && (place_.in_string || place_.in_word));
}

// The written part of that key, string or word.
std::string_view WrittenParts::Part() const { return place_.in_key ? key_ : Item(); }

// The bytes that end that part.
std::string_view WrittenParts::PartEnds() const { return place_.in_string ? "\"" : kWordEnds; }

bool WrittenParts::Write(std::string_view text, Matcher& matcher, SetId at) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const SetId before = std::exchange(at, matcher.Step(at, static_cast<uint8_t>(c)));
    const bool ends_word = kWordEnds.find(c) != kWordEnds.npos;
    const bool ends = place_.in_string ? c == '"' && !place_.escaped : place_.in_word && ends_word;
    if (ends && IsInPart() && matcher.AllowsOnly(before, PartEnds()))
      levels_.back().longest.Add(std::string(Part()));
    if (ends && !place_.in_string && !EndItem()) return false;
    if (n_unique_ > 0) text_ += c;
    if (place_.in_string) {
      if (ends) {
        const bool is_key = place_.in_key && !levels_.empty();
        place_ = {};
        if (is_key ? !levels_.back().seen.Add(std::exchange(key_, "")) : !EndItem()) return false;
        continue;
      }
      place_.escaped = c == '\\' && !place_.escaped;
      if (place_.in_key) key_ += c;
    } else if (c == '{' || c == '[') {
      const bool is_unique = c == '[' && matcher.OpensUnique(before);
      n_unique_ += is_unique;
      levels_.push_back({c == '{', is_unique, text_.size()});
      place_.before_key = c == '{';
    } else if (levels_.empty()) {
      continue;
    } else if (c == '}' || c == ']') {
      n_unique_ -= levels_.back().is_unique;
      if (n_unique_ == 0) text_.clear();
      levels_.pop_back();
      place_.before_key = false;
      if (!EndItem()) return false;
    } else if (c == ',') {
      place_.before_key = levels_.back().is_object;
      levels_.back().begin = text_.size();
    } else if (c == '"') {
      place_ = {.in_string = true, .in_key = place_.before_key};
    } else if (levels_.back().is_unique && place_.in_word && (c == 'e' || c == 'E')) {
      // 0e5 is 0, and so are all its continuations.
      const bool is_zero = Item().find_first_not_of("-0.eE") == std::string_view::npos;
      if (is_zero && levels_.back().seen.Has("0")) return false;
    } else if (levels_.back().is_unique && !place_.in_word && !ends_word) {
      // true, false or null must not begin if the list already has it, since it could not end.
      place_.in_word = true;
      for (const char* const name : {"true", "false", "null"}) {
        if (c == name[0] && levels_.back().seen.Has(name)) return false;
      }
    }
  }
  return true;
}

bool WrittenParts::Repeats(std::string_view text, Matcher& matcher, SetId at) const {
  WrittenParts after = *this;
  if (!after.Write(text, matcher, at)) return true;
  if (after.n_unique_ == 0 && !after.HasLongest()) return false;
  const SetId end = matcher.Steps(at, text);
  const bool is_led =
      after.IsInPart() && (after.place_.in_word || !after.levels_.back().longest.empty());
  if (is_led && after.MustRepeat(std::string(after.Part()), 0, matcher, end)) return true;
  size_t n_left = kMaxAhead;
  return after.MustRepeatItem(matcher, end, n_left);
}

// The bytes to follow of these: one for all texts that differ only in white space.
std::string WrittenParts::WithoutSpace(const std::string& bytes) const {
  if (place_.in_string || bytes.empty()) return bytes;
  std::string without = bytes;
  std::erase_if(without, [](char c) { return kSpace.find(c) != kSpace.npos; });
  const bool is_other =
      without.size() < bytes.size() && without.find_first_of(",]}") == without.npos;
  if (!without.empty() && !(place_.in_word && is_other)) return without;
  return without + kSpace[0];
}

// Whether every continuation repeats an item. Follows an object's or a list's last values, if few.
// n_left: how many bytes may still be followed.
bool WrittenParts::MustRepeatItem(Matcher& matcher, SetId at, size_t& n_left) const {
  if (n_unique_ == 0) return false;
  const std::string bytes = WithoutSpace(matcher.FewBytes(at, kMaxChoices));
  return !bytes.empty() && std::ranges::all_of(bytes, [&](char c) {
    if (n_left == 0) return false;
    --n_left;
    WrittenParts after = *this;
    return !after.Write({&c, 1}, matcher, at) ||
           after.MustRepeatItem(matcher, matcher.Step(at, static_cast<uint8_t>(c)), n_left);
  });
}

// Whether every continuation of this part ends as a written part. All are followed, at little cost:
// where another byte fits, the answer is no. n_ahead: bytes of the part that are not written yet.
bool WrittenParts::MustRepeat(const std::string& part, size_t n_ahead, Matcher& matcher,
                              SetId at) const {
  if (n_ahead > kMaxAhead) return place_.in_word;  // zeros without end
  const Level& level = levels_.back();
  // After an odd number of backslashes a quote ends nothing.
  const size_t n_plain = part.find_last_not_of('\\') + 1;
  const bool is_escaped = place_.in_string && (part.size() - n_plain) % 2 == 1;
  const std::string_view ends = is_escaped ? "" : PartEnds();
  // Zeros at the end of a fraction, and the point before them, do not change a number.
  const bool is_number = place_.in_word && part.find_first_not_of("-.0123456789") == part.npos;
  std::string next = is_number ? ".0" : "";
  for (const std::string_view longest : level.longest.BeginningWith(part)) {
    if (longest.size() > part.size() && next.find(longest[part.size()]) == next.npos)
      next += longest[part.size()];
  }
  if (!matcher.AllowsOnly(at, next + std::string(ends))) return false;
  const bool may_end = std::ranges::any_of(ends, [&](char c) {
    return matcher.Step(at, static_cast<uint8_t>(c)) != ItemSets::kNothing;
  });
  const bool is_item = !place_.in_key;
  if (may_end &&
      !level.seen.Has(is_item ? OneSpelling(part + (place_.in_string ? "\"" : "")) : part))
    return false;
  return std::ranges::all_of(next, [&](char c) {
    const SetId after = matcher.Step(at, static_cast<uint8_t>(c));
    return after == ItemSets::kNothing || MustRepeat(part + c, n_ahead + 1, matcher, after);
  });
}

bool WrittenParts::HasLongest() const {
  return std::ranges::any_of(levels_, [](const Level& level) { return !level.longest.empty(); });
}

bool WrittenParts::MayRepeat() const {
  return n_unique_ > 0 ||  // a token may end the first item and begin the second
         std::ranges::any_of(levels_, [](const Level& level) { return !level.seen.empty(); });
}

void WrittenParts::Exclude(const TokenTrie& trie, const tokenizer::Tokenizer& tokenizer,
                           Matcher& matcher, SetId at, TokenMasks::Mask& mask) const {
  const auto clear = [&](TokenId id) {
    const auto bit = static_cast<size_t>(id);
    mask[bit / 64] &= ~(uint64_t{1} << (bit % 64));
  };
  const auto clear_if_repeats = [&](TokenId id, std::string_view text) {
    if (HasBit(mask, id) && Repeats(text, matcher, at)) clear(id);
  };
  // Tokens that would complete the current key to one that the object already has.
  if (place_.in_key && !levels_.empty()) {
    for (const std::string_view key : levels_.back().seen.BeginningWith(key_)) {
      const std::string rest = std::string(key.substr(key_.size())) + '"';
      for (const TokenId id : trie.BeginningWith(rest)) clear(id);
    }
  }
  // Tokens that continue a key or a string to where only a written one fits.
  if (IsInPart()) {
    for (const std::string_view longest : levels_.back().longest.BeginningWith(Part())) {
      const std::string_view rest = longest.substr(Part().size());
      if (matcher.Steps(at, rest) == ItemSets::kNothing) continue;
      for (const auto& [id, size] : trie.BeginningsOf(rest))
        clear_if_repeats(id, rest.substr(0, size));
    }
  }
  // Tokens in which a key begins and ends; or only begins, if it could become a written one.
  const bool may_lead_there = !place_.in_string && HasLongest();
  for (const TokenTrie::Ending& token : may_lead_there ? trie.ending() : trie.quoted())
    clear_if_repeats(token.id, token.text);
  if (n_unique_ == 0) return;
  // Tokens that end an item, or after which it can only repeat one. If many are left, these have
  // quotes or brackets.
  int n_left = 0;
  for (const uint64_t word : mask) n_left += std::popcount(word);
  const bool in_list = levels_.back().is_unique && !place_.in_string;
  if (in_list || n_left <= kFewTokens) {
    for (size_t word = 0; word < mask.size(); ++word) {
      for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
        const auto id =
            static_cast<TokenId>(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
        clear_if_repeats(id, TokenTrie::TextOf(tokenizer, id));
      }
    }
    return;
  }
  for (const auto& [id, text, n_quotes, n_closing] : trie.ending()) {
    if (n_closing > 0 || place_.in_string) clear_if_repeats(id, text);
  }
}

}  // namespace grammar
