// Keeps the keys and unique items that a text has written.
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

constexpr std::string_view kSpace = " \t\n\r";

// Equal values have one spelling.
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
  } catch (const gguf::Error&) {  // deeper than a reader of JSON goes
    return std::string(text);
  }
}

bool HasBit(const TokenMasks::Mask& mask, TokenId id) {
  const auto bit = static_cast<size_t>(id);
  return (mask[bit / 64] >> (bit % 64) & 1) != 0;
}

}  // namespace

bool WrittenParts::Level::Add(std::string part) {
  if (Has(part)) return false;
  auto more = seen == nullptr ? std::make_shared<std::set<std::string, std::less<>>>()
                              : std::make_shared<std::set<std::string, std::less<>>>(*seen);
  more->insert(std::move(part));
  seen = std::move(more);
  return true;
}

// The value of a list of unique items has ended.
bool WrittenParts::EndItem() {
  place_.in_word = false;
  if (levels_.empty() || !levels_.back().is_unique) return true;
  Level& list = levels_.back();
  std::string_view item = std::string_view(text_).substr(list.begin);
  item.remove_prefix(std::min(item.find_first_not_of(kSpace), item.size()));
  item = item.substr(0, item.find_last_not_of(kSpace) + 1);
  return list.Add(OneSpelling(item));
}

bool WrittenParts::Write(std::string_view text, const OpensUnique& opens_unique) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool ends_word = c == ',' || c == ']' || kSpace.find(c) != kSpace.npos;
    if (!place_.in_string && place_.in_word && ends_word && !EndItem()) return false;
    if (n_unique_ > 0) text_ += c;
    if (place_.in_string) {
      if (c == '"' && !place_.escaped) {
        const bool is_key = place_.in_key && !levels_.empty();
        place_ = {};
        if (is_key ? !levels_.back().Add(std::exchange(key_, "")) : !EndItem()) return false;
        continue;
      }
      place_.escaped = c == '\\' && !place_.escaped;
      if (place_.in_key) key_ += c;
    } else if (c == '{' || c == '[') {
      const bool is_unique = c == '[' && opens_unique(i);
      n_unique_ += is_unique;
      levels_.push_back({c == '{', is_unique, nullptr, text_.size()});
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
    } else if (levels_.back().is_unique && !place_.in_word && !ends_word) {
      // true, false or null must not begin if the list already has it, since it could not end.
      place_.in_word = true;
      for (const char* const name : {"true", "false", "null"}) {
        if (c == name[0] && levels_.back().Has(name)) return false;
      }
    }
  }
  return true;
}

bool WrittenParts::Repeats(std::string_view text) const {
  WrittenParts after = *this;
  return !after.Write(text, [&](size_t) { return n_unique_ > 0; });
}

bool WrittenParts::MayRepeat() const {
  return std::ranges::any_of(levels_, [](const Level& level) { return level.seen != nullptr; });
}

void WrittenParts::Exclude(const TokenTrie& trie, const tokenizer::Tokenizer& tokenizer,
                           TokenMasks::Mask& mask) const {
  const auto clear = [&](TokenId id) {
    const auto bit = static_cast<size_t>(id);
    mask[bit / 64] &= ~(uint64_t{1} << (bit % 64));
  };
  // Tokens that would complete the current key to one that the object already has.
  if (place_.in_key && !levels_.empty() && levels_.back().seen != nullptr) {
    const auto& keys = *levels_.back().seen;
    for (auto key = keys.lower_bound(key_); key != keys.end() && key->starts_with(key_); ++key) {
      for (const TokenId id : trie.BeginningWith(key->substr(key_.size()) + '"')) clear(id);
    }
  }
  // Tokens in which a key begins and ends.
  for (const TokenTrie::Ending& token : trie.quoted()) {
    if (HasBit(mask, token.id) && Repeats(token.text)) clear(token.id);
  }
  if (n_unique_ == 0) return;
  // Tokens that end an item. The brackets that a token closes show whether it can; directly in a
  // list, outside of strings, few tokens are left, and all are tried.
  const bool in_list = levels_.back().is_unique && !place_.in_string;
  const bool ends_string = levels_.back().is_unique && place_.in_string;
  size_t n_open = levels_.size();
  for (size_t depth = levels_.size(); depth-- > 0;) {
    if (levels_[depth].is_unique && levels_[depth].seen != nullptr)
      n_open = std::min(n_open, levels_.size() - 1 - depth);
  }
  if (n_open == levels_.size()) return;
  if (in_list && n_open == 0) {
    for (size_t word = 0; word < mask.size(); ++word) {
      for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
        const auto id =
            static_cast<TokenId>(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
        if (Repeats(TokenTrie::TextOf(tokenizer, id))) clear(id);
      }
    }
    return;
  }
  for (const auto& [id, text, n_quotes, n_closing] : trie.ending()) {
    const bool may_end = (ends_string && n_quotes > 0) || (n_open > 0 && n_closing >= n_open);
    if (may_end && HasBit(mask, id) && Repeats(text)) clear(id);
  }
}

}  // namespace grammar
