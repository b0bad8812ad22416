#include "grammar/token_trie.h"

#include <algorithm>
#include <memory>
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
      found = tokenizer.Encode(name, {.add_bos = false, .parse_special = true});
    }
    if (found.size() != 1) throw Error(name, " is no token of this model");
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

// How many bytes there are up to the last one that is no part of a whole plain character.
uint8_t LastOdd(std::string_view text) {
  size_t last = 0;
  for (size_t i = 0; i < text.size();) {
    const gguf::Utf8Step step = gguf::NextUtf8(text.substr(i));
    i += step.length;
    if (step.kind != gguf::Utf8Kind::kValid || !IsPlain(step.code)) last = i;
  }
  return static_cast<uint8_t>(last);
}

}  // namespace

const TokenTrie& TokenTrie::Of(const tokenizer::Tokenizer& tokenizer) {
  const auto make = [&] { return std::make_unique<TokenTrie>(tokenizer, nullptr); };
  return dynamic_cast<const TokenTrie&>(tokenizer.Once(make));
}

uint32_t TokenTrie::Find(uint32_t from, std::string_view text) const {
  uint32_t at = from;
  for (const char c : text) {
    const uint32_t end = at == kNone ? static_cast<uint32_t>(size()) : nodes_[at].end;
    uint32_t below = at == kNone ? 0 : at + 1;
    while (below < end && nodes_[below].byte != static_cast<uint8_t>(c)) below = nodes_[below].end;
    if (below >= end) return kNone;
    at = below;
  }
  return at;
}

TokenTrie::TokenTrie(const tokenizer::Tokenizer& tokenizer, const NamedTokens* named) {
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  std::vector<std::pair<std::string, TokenId>> texts;
  texts.reserve(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (vocab.IsEog(id)) continue;
    if (std::string text = TextOf(tokenizer, id); !text.empty())
      texts.emplace_back(std::move(text), id);
    if (named == nullptr) continue;
    if (std::string name = named->Spelling(id); !name.empty())
      texts.emplace_back(std::move(name), id);
  }
  std::sort(texts.begin(), texts.end());
  std::vector<uint32_t> path;  // the previous text's nodes
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      Node& node = nodes_[path.back()];
      node.end = static_cast<uint32_t>(nodes_.size());
      longest_ = std::max(longest_, node.deepest);
      if (path.size() == 1) continue;
      Node& above = nodes_[path[path.size() - 2]];
      above.deepest = std::max(above.deepest, node.deepest);
      above.last_odd = std::max(above.last_odd, node.last_odd);
    }
  };
  for (const auto& [text, id] : texts) {
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
    nodes_[path.back()].last_odd = std::max(nodes_[path.back()].last_odd, LastOdd(text));
    tokens_.push_back(id);
    if (std::ranges::count(text, '"') >= 2) quoted_.push_back(id);
  }
  close(0);
  nodes_.push_back({static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(tokens_.size()),
                    0, 0, 0, 0});
}

}  // namespace grammar
