// The tokens of a vocabulary as a trie of their bytes (de la Briandais 1959), its nodes stored in
// depth-first order.
//
//     tokens a, ab, abc, b:    a  ab  abc  b       each node: its last byte, its depth,
//                              1   2    3  1       and where its branch ends
#ifndef PRONK_GRAMMAR_TOKEN_TRIE_H_
#define PRONK_GRAMMAR_TOKEN_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace grammar {

class TokenTrie {
 public:
  // Longer tokens are left out, and so never allowed. The longest in use are runs of spaces.
  static constexpr size_t kMaxBytes = 255;

  // Contains the text tokens: no control tokens and none that end a generation.
  explicit TokenTrie(const tokenizer::Tokenizer& tokenizer);

  struct Node {
    uint32_t end;     // first node after this one's branch
    uint32_t tokens;  // first of this node's tokens; the next node's begin where they end
    uint8_t depth;    // 1 for a first byte
    uint8_t deepest;  // of the branch
    uint8_t byte;
  };
  size_t size() const { return nodes_.size() - 1; }
  uint8_t longest() const { return longest_; }  // longest token, in bytes
  const Node& operator[](size_t i) const { return nodes_[i]; }
  // The tokens that end at this node: usually one or none.
  std::span<const tokenizer::TokenId> Tokens(size_t i) const {
    return std::span(tokens_).subspan(nodes_[i].tokens, nodes_[i + 1].tokens - nodes_[i].tokens);
  }

 private:
  std::vector<Node> nodes_;  // and a sentinel
  std::vector<tokenizer::TokenId> tokens_;
  uint8_t longest_ = 0;
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_TOKEN_TRIE_H_
