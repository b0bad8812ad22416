// The tokens of a vocabulary as a trie of bytes (de la Briandais 1959), in depth-first order.
//
//     tokens a, ab, abc, b:    a  ab  abc  b       each node: its last byte, its depth,
//                              1   2    3  1       and where its branch ends
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/runs.h"
#include "tokenizer/tokenizer.h"

namespace grammar {

// The tokens that a grammar names: their ids, in the order of Grammar::tokens().
class NamedTokens {
 public:
  // Throws grammar::Error if a name is not one token's, or names a token that ends a generation.
  NamedTokens(const Grammar& grammar, const tokenizer::Tokenizer& tokenizer);
  // How the grammar spells this token; empty if it names none.
  std::string Spelling(tokenizer::TokenId id) const;
  const std::vector<tokenizer::TokenId>& ids() const { return ids_; }
  bool empty() const { return ids_.empty(); }

 private:
  std::vector<tokenizer::TokenId> ids_;
};

class TokenTrie : public tokenizer::Derived {
 public:
  // Longer tokens are left out, and so never allowed. The longest in use are runs of spaces.
  static constexpr size_t kMaxBytes = 255;

  // Contains the text tokens: no control tokens and none that end a generation. If a grammar names
  // tokens, it also contains all tokens except those that end a generation, as that grammar spells
  // them.
  TokenTrie(const tokenizer::Tokenizer& tokenizer, const NamedTokens* named);
  // The trie of a vocabulary, built at the first call. Threads may call it at once.
  static const TokenTrie& Of(const tokenizer::Tokenizer& tokenizer);
  // Empty for a token whose text no grammar allows.
  static std::string TextOf(const tokenizer::Tokenizer& tokenizer, tokenizer::TokenId id);

  struct Node {
    uint32_t end;     // first node after this one's branch
    uint32_t tokens;  // first of this node's tokens; the next node's begin where they end
    uint8_t depth;    // 1 for a first byte
    uint8_t deepest;  // depth of the branch
    uint8_t byte;
    Kinds kinds;  // kinds of characters from this byte on, in all tokens of the branch
  };
  // Tokens of like kinds of characters are next to each other: words, words after a space, other
  // plain text, and other texts. Each part is a trie of its own.
  struct Part {
    uint32_t begin, end;  // nodes
    Kinds kinds;
    uint8_t longest;               // token, in bytes
    std::vector<uint64_t> tokens;  // a bit for each id
  };
  static constexpr size_t kParts = 4;
  const std::array<Part, kParts>& parts() const { return parts_; }
  size_t size() const { return nodes_.size() - 1; }
  uint8_t longest() const { return longest_; }  // longest token, in bytes
  const Node& operator[](size_t i) const { return nodes_[i]; }
  // The tokens that end at this node: usually one or none.
  std::span<const tokenizer::TokenId> Tokens(size_t i) const {
    return std::span(tokens_).subspan(nodes_[i].tokens, nodes_[i + 1].tokens - nodes_[i].tokens);
  }
  // All tokens of a node's branch.
  std::span<const tokenizer::TokenId> Branch(size_t i) const {
    return std::span(tokens_).subspan(nodes_[i].tokens,
                                      nodes_[nodes_[i].end].tokens - nodes_[i].tokens);
  }
  // The tokens that begin with `text`, which has a quote.
  std::span<const tokenizer::TokenId> BeginningWith(std::string_view text) const;
  // The tokens that a text may begin with, and their lengths in bytes.
  std::vector<std::pair<tokenizer::TokenId, size_t>> BeginningsOf(std::string_view text) const;
  // Tokens that may end a string, a list or an object.
  struct Ending {
    tokenizer::TokenId id;
    std::string text;
    size_t n_quotes, n_closing;  // brackets
  };
  std::span<const Ending> ending() const { return ending_; }
  // Tokens with two quotes or more: a key may begin and end in them.
  std::span<const Ending> quoted() const { return std::span(ending_).first(n_quoted_); }
  // Tokens of more than `n_bytes` bytes.
  std::span<const tokenizer::TokenId> LongerThan(uint8_t n_bytes) const {
    return std::span(by_length_).first(n_longer_[n_bytes]);
  }

 private:
  std::vector<size_t> PathOf(std::string_view text, const Part& part) const;

  std::vector<Node> nodes_;  // and a sentinel
  std::vector<tokenizer::TokenId> tokens_;
  std::vector<Ending> ending_;  // tokens with more quotes first
  size_t n_quoted_ = 0;
  std::vector<tokenizer::TokenId> by_length_;  // the longest first
  std::array<uint32_t, kMaxBytes + 1> n_longer_ = {};
  std::array<Part, kParts> parts_;
  uint8_t longest_ = 0;
};

}  // namespace grammar
