// Builds the trie of a vocabulary.
#include "grammar/token_trie.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "gguf/utf8.h"

namespace grammar {

using tokenizer::TokenId;

NamedTokens::NamedTokens(const Grammar& grammar, const tokenizer::Tokenizer& tokenizer) {
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  for (const auto& [name, is_wanted] : grammar.tokens()) {
    std::vector<TokenId> found;
    if (name.starts_with("<[") && name.ends_with("]>")) {
      const int64_t id = std::stoll(name.substr(2));
      if (std::cmp_less(id, vocab.size())) found.push_back(static_cast<TokenId>(id));
    } else {
      found = tokenizer.Encode(name, {.add_special = false, .parse_special = true});
    }
    if (found.size() != 1) throw Error(name, " is not a token of this model");
    if (is_wanted && vocab.IsEog(found[0])) {
      throw Error(name, " ends a generation: it is written where the grammar ends");
    }
    if (std::ranges::find(ids_, found[0]) != ids_.end()) {
      throw Error("the grammar has two names of one token, of which one is ", name);
    }
    ids_.push_back(found[0]);
  }
}

std::string NamedTokens::Spelling(TokenId id) const {
  if (ids_.empty()) return "";
  const auto found = std::ranges::find(ids_, id);
  const auto index = static_cast<uint8_t>(found - ids_.begin());
  const uint8_t last = found == ids_.end() ? kOtherToken : index;
  return {static_cast<char>(kTokenByte), static_cast<char>(last)};
}

std::string TokenTrie::TextOf(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  std::string text = tokenizer.Piece(id);
  const bool is_text = text.find(static_cast<char>(kTokenByte)) == std::string::npos;
  return is_text && text.size() <= kMaxBytes ? text : "";
}

namespace {

// For each byte of a text, the kinds of the characters from there on.
void FindKinds(std::string_view text, std::vector<Kinds>& kinds) {
  kinds.assign(text.size(), kOdd);  // inside of a character
  std::array<uint8_t, TokenTrie::kMaxBytes> starts;
  size_t n = 0;
  for (size_t i = 0; i < text.size();) {
    const gguf::Utf8Step step = gguf::NextUtf8(text.substr(i));
    if (step.kind == gguf::Utf8Kind::kValid) kinds[i] = KindOf(step.code);
    starts[n++] = static_cast<uint8_t>(i);
    i += step.length;
  }
  Kinds after = 0;
  while (n-- > 0) after = kinds[starts[n]] |= after;
}

// The index of a text's part in TokenTrie::parts().
uint8_t PartOf(std::string_view text, Kinds kinds) {
  if ((kinds & ~kWordKinds) == 0) return 0;
  if ((kinds & ~(kWordKinds | kSpaceKind)) == 0 && text.rfind(' ') == 0) return 1;
  return (kinds & (kQuotedKinds | kOdd)) == 0 ? 2 : 3;
}

}  // namespace

const TokenTrie& TokenTrie::Of(const tokenizer::Tokenizer& tokenizer) {
  const auto make = [&] { return std::make_unique<TokenTrie>(tokenizer, nullptr); };
  return dynamic_cast<const TokenTrie&>(tokenizer.Once(make));
}

// The nodes of a text's bytes, up to the first byte without a node.
std::vector<size_t> TokenTrie::PathOf(std::string_view text, const Part& part) const {
  std::vector<size_t> path;
  uint32_t below = part.begin, end = part.end;
  for (const char c : text) {
    while (below < end && nodes_[below].byte != static_cast<uint8_t>(c)) below = nodes_[below].end;
    if (below >= end) break;
    path.push_back(below);
    end = nodes_[below].end;
    ++below;
  }
  return path;
}

std::span<const TokenId> TokenTrie::BeginningWith(std::string_view text) const {
  const std::vector<size_t> path = PathOf(text, parts_.back());
  return path.size() < text.size() ? std::span<const TokenId>() : Branch(path.back());
}

std::vector<std::pair<TokenId, size_t>> TokenTrie::BeginningsOf(std::string_view text) const {
  std::vector<std::pair<TokenId, size_t>> beginnings;
  for (const Part& part : parts_) {
    for (const size_t node : PathOf(text, part)) {
      for (const TokenId id : Tokens(node)) beginnings.emplace_back(id, nodes_[node].depth);
    }
  }
  return beginnings;
}

TokenTrie::TokenTrie(const tokenizer::Tokenizer& tokenizer, const NamedTokens* named) {
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  struct Text {
    uint8_t part;
    TokenId id;
    std::string_view text;
    auto Key() const { return std::tuple(part, text, id); }
  };
  std::string bytes;
  std::vector<std::pair<TokenId, size_t>> ends;  // ids, and the ends of their texts in `bytes`
  const auto add = [&](const std::string& text, TokenId id) {
    if (text.empty()) return;
    bytes += text;
    ends.emplace_back(id, bytes.size());
  };
  for (size_t i = 0; i < vocab.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (vocab.IsEog(id)) continue;
    add(TextOf(tokenizer, id), id);
    if (named != nullptr) add(named->Spelling(id), id);
  }
  std::vector<Text> texts;
  texts.reserve(ends.size());
  std::vector<Kinds> kinds;
  size_t begin = 0;
  for (const auto& [id, end] : ends) {
    const auto text = std::string_view(bytes).substr(begin, end - begin);
    FindKinds(text, kinds);
    texts.push_back({PartOf(text, kinds[0]), id, text});
    begin = end;
  }
  std::ranges::sort(texts, {}, &Text::Key);
  std::vector<uint32_t> path;  // the previous text's nodes
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      Node& node = nodes_[path.back()];
      node.end = static_cast<uint32_t>(nodes_.size());
      longest_ = std::max(longest_, node.deepest);
      if (path.size() == 1) continue;
      Node& above = nodes_[path[path.size() - 2]];
      above.deepest = std::max(above.deepest, node.deepest);
    }
  };
  size_t n_parts = 0;
  const auto begin_parts = [&](size_t end) {
    for (; n_parts < end; ++n_parts) {
      close(0);
      const auto node = static_cast<uint32_t>(nodes_.size());
      if (n_parts > 0) parts_[n_parts - 1].end = node;
      if (n_parts < kParts)
        parts_[n_parts] = {node, node, 0, 0, std::vector<uint64_t>((vocab.size() + 63) / 64)};
    }
  };
  for (const auto& [part, id, text] : texts) {
    begin_parts(part + size_t{1});
    FindKinds(text, kinds);
    size_t common = 0;
    while (common < std::min(path.size(), text.size()) &&
           nodes_[path[common]].byte == static_cast<uint8_t>(text[common])) {
      ++common;
    }
    close(common);
    while (path.size() < text.size()) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      const auto depth = static_cast<uint8_t>(path.size());
      nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), depth, depth,
                        static_cast<uint8_t>(text[depth - size_t{1}]), 0});
    }
    for (size_t i = 0; i < path.size(); ++i) nodes_[path[i]].kinds |= kinds[i];
    tokens_.push_back(id);
    Part& own = parts_[part];
    const auto bit = static_cast<size_t>(id);
    own.tokens[bit / 64] |= uint64_t{1} << (bit % 64);
    own.kinds |= kinds[0];
    own.longest = std::max(own.longest, static_cast<uint8_t>(text.size()));
    size_t n_quotes = 0, n_closing = 0;
    for (const char c : text) {
      n_quotes += c == '"';
      n_closing += c == '}' || c == ']';
    }
    if (n_quotes + n_closing > 0) ending_.push_back({id, std::string(text), n_quotes, n_closing});
    n_quoted_ += n_quotes >= 2;
  }
  begin_parts(kParts + 1);
  nodes_.push_back({static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(tokens_.size()),
                    0, 0, 0, 0});
  std::ranges::stable_sort(ending_, std::greater(), &Ending::n_quotes);
  std::ranges::stable_sort(texts, std::greater(),
                           [](const Text& one) { return static_cast<uint8_t>(one.text.size()); });
  for (const Text& one : texts) {
    by_length_.push_back(one.id);
    for (size_t n = 0; n < one.text.size(); ++n) ++n_longer_[n];
  }
}

}  // namespace grammar
