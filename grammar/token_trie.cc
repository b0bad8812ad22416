#include "grammar/token_trie.h"

#include <algorithm>
#include <string>
#include <utility>

namespace grammar {

using tokenizer::TokenId;

TokenTrie::TokenTrie(const tokenizer::Tokenizer& tokenizer) {
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  std::vector<std::pair<std::string, TokenId>> texts;
  texts.reserve(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    std::string text = tokenizer.Piece(id);
    if (text.empty() || text.size() > kMaxBytes || vocab.IsEog(id)) continue;
    texts.emplace_back(std::move(text), id);
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
                        static_cast<uint8_t>(text[depth - size_t{1}])});
    }
    tokens_.push_back(id);
  }
  close(0);
  nodes_.push_back(
      {static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(tokens_.size()), 0, 0, 0});
}

}  // namespace grammar
