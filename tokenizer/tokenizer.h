// Text to token ids and back, with the vocabulary of a GGUF file.
//
// The kinds (kinds.h) share this part: special tokens, options, and ids as bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tokenizer/byte_span.h"
#include "tokenizer/id_list.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/split.h"
#include "tokenizer/token_index.h"
#include "tokenizer/vocabulary.h"

namespace tokenizer {

struct EncodeOptions {
  bool add_special = true;  // add the tokens around a text, as the vocabulary says: bos, eos, sep
  bool parse_special = false;  // "<|eot_id|>" in the text is one token, not eight characters
  // Ascending spans of the text, such as a user's messages, in which control tokens stay plain
  // text.
  std::span<const ByteSpan> plain = {};
  // Tokenizing ends soon after there are more ids than this: the rest of the text would not fit.
  size_t max_ids = SIZE_MAX;
  // Called regularly; true ends it with tokenizer::Interrupted.
  const std::function<bool()>* should_stop = nullptr;
};

// Data that users of a tokenizer compute from its vocabulary once: see Tokenizer::Once().
class Derived {
 public:
  Derived() = default;
  Derived(const Derived&) = delete;
  Derived& operator=(const Derived&) = delete;
  virtual ~Derived() = default;
};

// Immutable after Create: threads may share it.
class Tokenizer {
 public:
  // Reads the vocabulary of a file, which must outlive the tokenizer. Throws gguf::Error if it is
  // absent or broken. rows: how many rows the embedding has, if fewer than tokens
  // (VocabularyDefaults::rows).
  static std::unique_ptr<Tokenizer> Create(const gguf::File& file, size_t rows = SIZE_MAX);
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  const Vocabulary& vocab() const { return vocab_; }
  // Any bytes are text: invalid UTF-8 becomes byte tokens (or the unknown token). User-defined
  // tokens are always found in the text, control tokens if `parse_special`; of overlapping tokens
  // the first wins, of tokens at one position the longest.
  std::vector<TokenId> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  // A token's bytes: none for control and unknown tokens unless `special`, none for an unknown id.
  std::string Piece(TokenId id, bool special = false) const;
  // The bytes of many tokens. An SPM text loses the space that add_space_prefix put before it (at
  // the start and after each special token), so Decode(Encode(text)) is the text.
  std::string Decode(const std::vector<TokenId>& ids, bool special = false) const;
  // The id of the token with exactly this spelling in the file, or -1.
  TokenId Find(std::string_view token) const { return index_.Find(token); }
  // Calls `make` once, keeps its result and returns it from then on. Threads may call it at once.
  const Derived& Once(const std::function<std::unique_ptr<Derived>()>& make) const {
    std::call_once(once_, [&] { derived_ = make(); });
    return *derived_;
  }

 protected:
  explicit Tokenizer(Vocabulary vocab);
  // Encodes normalized, valid UTF-8 without special tokens; may be empty. space: put one before it.
  virtual void EncodeText(std::string_view text, bool space, IdList& out) const = 0;
  // The normalizer of files without the key; "" for none.
  virtual std::string_view DefaultNormalizer() const { return ""; }
  // The token for a byte that is not valid UTF-8, or -1.
  virtual TokenId ByteToken(uint8_t byte) const = 0;
  // The bytes of a normal, unused or user-defined token.
  virtual std::string TextOf(TokenId id) const = 0;

  // The token that text with this spelling can become, or -1: never a control token.
  TokenId FindNormal(std::string_view spelling) const {
    const TokenId id = spelling.size() <= kMaxTokenBytes ? Find(spelling) : -1;
    return id >= 0 && TypeOf(id) == TokenType::kNormal ? id : -1;
  }
  // Appends a token; for -1 the unknown token, or nothing if the vocabulary has none.
  void Append(TokenId id, IdList& out) const {
    if (id >= 0 || vocab_.unk >= 0) out.push_back(id >= 0 ? id : vocab_.unk);
  }

  const TokenIndex& index() const { return index_; }
  TokenType TypeOf(TokenId id) const { return vocab_.types[static_cast<size_t>(id)]; }
  std::string_view Spelling(TokenId id) const { return vocab_.tokens[static_cast<size_t>(id)]; }

 private:
  void FindSpecials(const gguf::Metadata& metadata);
  void EncodeAll(std::string_view text, const EncodeOptions& options, IdList& out) const;
  void EncodeBytes(std::string_view text, bool at_start, IdList& out) const;
  void EncodeNormalized(std::string_view text, bool first, bool at_start, IdList& out) const;
  bool GetsSpace(std::string_view text, bool first, bool at_start) const;
  bool IsInWord(std::string_view text, size_t begin, size_t end) const;

  Vocabulary vocab_;
  TokenIndex index_;
  std::deque<std::string> respelt_;  // texts of special tokens that the file spells differently
  SpecialMatcher specials_;          // user-defined, control and unknown tokens
  Normalizer normalizer_;
  SpecialMatcher normalized_;             // tokens that are found in the normalized text
  bool finds_normalized_ = false;         // normalized_ has tokens
  std::unique_ptr<const Splitter> word_;  // a character of a word; null if no token needs it
  mutable std::once_flag once_;
  mutable std::unique_ptr<Derived> derived_;
};

// Takes the bytes of tokens and returns whole UTF-8 characters: an incomplete character is kept
// until it is complete. Invalid bytes are replaced by U+FFFD.
class StreamDecoder {
 public:
  // The text that can be printed now.
  std::string Push(std::string_view bytes);
  // At the end an incomplete character becomes U+FFFD.
  std::string Finish();

 private:
  std::string pending_;  // at most three bytes
};

}  // namespace tokenizer
