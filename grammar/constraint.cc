// Follows a text through a grammar for the sampler: masks, forced tokens.
#include "grammar/constraint.h"

#include <algorithm>
#include <string>
#include <utility>

namespace grammar {
namespace {

using tokenizer::TokenId;

// How far back a tokenizer may have to look to split the following text as it would in one piece.
constexpr size_t kContextTokens = 8;
// At most this many forced tokens at once: a grammar may force text without end.
constexpr size_t kMaxForcedBytes = 512;

}  // namespace

Constraint::Constraint(std::shared_ptr<const Grammar> grammar,
                       const tokenizer::Tokenizer& tokenizer)
    : grammar_(std::move(grammar)),
      tokenizer_(tokenizer),
      named_(*grammar_, tokenizer),
      own_trie_(named_.empty() ? nullptr : std::make_unique<TokenTrie>(tokenizer, &named_)),
      trie_(named_.empty() ? TokenTrie::Of(tokenizer) : *own_trie_),
      matcher_(*grammar_),
      masks_(tokenizer.vocab(), trie_, matcher_),
      all_but_end_((tokenizer.vocab().size() + 63) / 64, ~uint64_t{0}),
      at_(matcher_.Start()) {
  for (const TokenId id : tokenizer.vocab().eog) {
    const auto bit = static_cast<size_t>(id);
    all_but_end_[bit / 64] &= ~(uint64_t{1} << (bit % 64));
  }
}

void Constraint::Restart() {
  at_ = matcher_.Start();
  waiting_ = false;
  opening_ = -1;
  last_.clear();
  written_.Clear();
}

std::span<const uint64_t> Constraint::Allowed() {
  if (waiting_) return all_but_end_;
  std::span<const uint64_t> mask = masks_.Of(at_);
  if (grammar_->has_unique_keys() && written_.MayRepeat()) {
    changed_.assign(mask.begin(), mask.end());
    written_.Exclude(trie_, tokenizer_, matcher_, at_, changed_);
    mask = changed_;
  }
  if (std::ranges::all_of(mask, [](uint64_t word) { return word == 0; })) {
    throw Error("the vocabulary has no token for what the grammar needs next");
  }
  if (opening_ >= 0) {
    if (mask.data() != changed_.data()) changed_.assign(mask.begin(), mask.end());
    const auto bit = static_cast<size_t>(opening_);
    changed_[bit / 64] |= uint64_t{1} << (bit % 64);
    return changed_;
  }
  return mask;
}

bool Constraint::Allows(TokenId id) {
  const tokenizer::Vocabulary& vocab = tokenizer_.vocab();
  if (!vocab.Has(id)) return false;
  if (vocab.IsEog(id)) return may_end();
  if (waiting_ || (opening_ >= 0 && id == opening_)) return true;
  if (After(id) == ItemSets::kNothing) return false;
  return !grammar_->has_unique_keys() ||
         !written_.Repeats(TokenTrie::TextOf(tokenizer_, id), matcher_, at_);
}

// The token as text, or as the grammar names it, or both.
SetId Constraint::After(TokenId id) {
  const std::string text = TokenTrie::TextOf(tokenizer_, id), name = named_.Spelling(id);
  const SetId by_text = text.empty() ? ItemSets::kNothing : matcher_.Steps(at_, text);
  const SetId by_name = name.empty() ? ItemSets::kNothing : matcher_.Steps(at_, name);
  if (by_text == ItemSets::kNothing || by_name == ItemSets::kNothing) {
    return std::max(by_text, by_name);
  }
  const auto first = matcher_.Items(by_text), second = matcher_.Items(by_name);
  std::vector<Item> both(first.begin(), first.end());
  both.insert(both.end(), second.begin(), second.end());
  return matcher_.Intern(both);
}

void Constraint::Accept(TokenId id) {
  if (std::exchange(opening_, -1) == id && id >= 0) waiting_ = true;
  if (waiting_) return;
  if (const std::string text = tokenizer_.Piece(id);
      !text.empty() || !named_.Spelling(id).empty()) {
    MoveTo(After(id), text);
  }
  if (last_.size() == kContextTokens) last_.erase(last_.begin());
  last_.push_back(id);
}

void Constraint::AcceptText(std::string_view text) { MoveTo(matcher_.Steps(at_, text), text); }

void Constraint::AcceptSpelt(std::string_view text) {
  while (!text.empty()) {
    TokenId first = -1;
    std::string mark;
    size_t at = text.size();
    for (const TokenId id : named_.ids()) {
      const std::string spelt = tokenizer_.Piece(id, /*special=*/true);
      if (const size_t found = spelt.empty() ? text.npos : text.find(spelt); found < at) {
        first = id;
        mark = spelt;
        at = found;
      }
    }
    if (at > 0) AcceptText(text.substr(0, at));
    if (first >= 0) Accept(first);
    text.remove_prefix(at + mark.size());
  }
}

void Constraint::MoveTo(SetId next, std::string_view text) {
  if (next == ItemSets::kNothing) throw Error("the text has left the grammar");
  if (grammar_->has_unique_keys()) {
    WrittenParts after = written_;
    if (!after.Write(text, matcher_, at_))
      throw Error("the text repeats a key, or an item of a list");
    written_ = std::move(after);
  }
  at_ = next;
  if (matcher_.IsFull()) {
    at_ = matcher_.Forget(at_);
    masks_.Forget();
  }
}

std::vector<TokenId> Constraint::Forced() {
  if (waiting_ || opening_ >= 0) return {};
  std::string text;
  SetId at = at_;
  while (text.size() < kMaxForcedBytes) {
    const std::optional<uint8_t> byte = matcher_.OnlyByte(at);
    if (!byte || *byte == kTokenByte) break;
    text.push_back(static_cast<char>(*byte));
    at = matcher_.Step(at, *byte);
  }
  if (text.empty() || (grammar_->has_unique_keys() && written_.Repeats(text, matcher_, at_)))
    return {};
  std::vector<TokenId> ids = Cut(text);
  // The following text could make the last token a longer one.
  if (!ids.empty() && !matcher_.MustEnd(at)) ids.pop_back();
  return ids;
}

// The tokens of a text that follows the last tokens, as the tokenizer splits the two joined. If it
// would split the existing text differently, or the vocabulary puts a space before every text, the
// text is split as if after a line feed. Empty if neither gives exactly this text.
std::vector<TokenId> Constraint::Cut(std::string_view text) const {
  const auto after = [&](std::string_view before, const std::vector<TokenId>& before_ids) {
    const std::vector<TokenId> ids =
        tokenizer_.Encode(std::string(before).append(text), {.add_special = false});
    if (ids.size() < before_ids.size() ||
        !std::equal(before_ids.begin(), before_ids.end(), ids.begin())) {
      return std::vector<TokenId>();
    }
    std::vector<TokenId> rest(ids.begin() + static_cast<ptrdiff_t>(before_ids.size()), ids.end());
    std::string spelt;
    for (const TokenId id : rest) spelt += tokenizer_.Piece(id);
    return spelt == text ? rest : std::vector<TokenId>();
  };
  std::string before;
  for (const TokenId id : last_) before += tokenizer_.Piece(id);
  std::vector<TokenId> ids = after(before, last_);
  if (ids.empty()) ids = after("\n", tokenizer_.Encode("\n", {.add_special = false}));
  return ids;
}

}  // namespace grammar
