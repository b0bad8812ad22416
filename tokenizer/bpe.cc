// Byte-level BPE: splits text into words (split.h), whose bytes merge by a list (word_merger.h).
// The file spells a token with one printable character for each byte (a space is Ġ);
// AppendSpelling() spells the bytes of a text in the same way (spelling.h).

#include <algorithm>
#include <array>
#include <string>

#include "gguf/error.h"
#include "tokenizer/kinds.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/spelling.h"
#include "tokenizer/split.h"
#include "tokenizer/word_merger.h"

namespace tokenizer {
namespace {

constexpr std::string_view kPre = "tokenizer.ggml.pre";

Vocabulary ReadVocabularyOf(const gguf::Metadata& metadata, size_t rows, const SplitRule& rule) {
  Vocabulary vocab = ReadVocabulary(metadata, {.add_bos = rule.add_bos, .rows = rows});
  vocab.add_sep = metadata.GetBoolOr("tokenizer.ggml.add_sep_token", rule.add_sep);
  return vocab;
}

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(const gguf::Metadata& metadata, size_t rows, const SplitRule& rule)
      : Tokenizer(ReadVocabularyOf(metadata, rows, rule)),
        rule_(rule),
        ignore_merges_(metadata.GetBoolOr("tokenizer.pronk.ignore_merges", rule.ignore_merges)),
        splitter_(rule),
        merges_(ReadMerges(metadata, vocab().tokens, index())) {
    size_t n_bytes = 0;
    for (size_t i = 0; i < 256; ++i) {
      std::string spelling;
      const char byte = static_cast<char>(i);
      AppendSpelling({&byte, 1}, spelling);
      bytes_[i] = Find(spelling);
      n_bytes += bytes_[i] >= 0;
    }
    if (n_bytes == 0) {
      metadata.Fail(kTokensKey, "expected tokens for single bytes (byte-level BPE), found none");
    }
  }

 private:
  // Buffers shared by all words of a text.
  struct Scratch {
    WordMerger<> merger;
    std::vector<TokenId> symbols = {}, merged = {};
    std::string spelling = {};
  };

  void EncodeText(std::string_view text, bool space, IdList& out) const override {
    std::string with_space;
    if (space) text = with_space.append(" ").append(text);
    Scratch scratch{WordMerger{ListedPairs(merges_)}};
    const auto encode = [&](std::string_view word) { EncodeWord(word, scratch, out); };
    if (rule_.drops_rest) {
      splitter_.Match(text, encode);
    } else {
      splitter_.Split(text, encode);
    }
  }

  void EncodeWord(std::string_view word, Scratch& scratch, IdList& out) const {
    const TokenId whole = ignore_merges_ ? WholeWord(word, scratch.spelling) : -1;
    if (whole >= 0) {
      out.push_back(whole);
      return;
    }
    for (; !word.empty(); word.remove_prefix(std::min(word.size(), kMaxMergedBytes))) {
      scratch.symbols.clear();
      for (const char byte : word.substr(0, kMaxMergedBytes)) {
        scratch.symbols.push_back(bytes_[static_cast<uint8_t>(byte)]);
      }
      scratch.merged.clear();
      scratch.merger.Merge(scratch.symbols, scratch.merged);
      for (const TokenId id : scratch.merged) Append(id, out);
    }
  }

  TokenId ByteToken(uint8_t byte) const override { return bytes_[byte]; }
  std::string_view DefaultNormalizer() const override { return rule_.composes ? "NFC" : ""; }

  std::string TextOf(TokenId id) const override {
    const std::string_view spelling = Spelling(id);
    // Added tokens are stored as plain text, as are some normal tokens.
    if (TypeOf(id) == TokenType::kUserDefined) return std::string(spelling);
    return BytesOfSpelling(spelling).value_or(std::string(spelling));
  }

  // The normal token equal to the whole word, or -1.
  TokenId WholeWord(std::string_view word, std::string& spelling) const {
    if (word.size() > kMaxTokenBytes) return -1;
    spelling.clear();
    AppendSpelling(word, spelling);
    return FindNormal(spelling);
  }

  const SplitRule& rule_;
  bool ignore_merges_;  // a word that is a token is that token
  Splitter splitter_;
  MergeTable merges_;
  std::array<TokenId, 256> bytes_;  // the tokens of single bytes; -1: none
};

const SplitRule& ReadSplitRule(const gguf::Metadata& metadata) {
  const std::string_view name = metadata.GetStringOr(kPre, "default");
  const SplitRule* rule = FindSplitRule(name);
  if (rule == nullptr) {
    metadata.Fail(kPre, "expected one of ", SplitRuleNames(), ", found ", gguf::Quoted(name));
  }
  return *rule;
}

}  // namespace

std::unique_ptr<Tokenizer> CreateBpe(const gguf::Metadata& metadata, size_t rows) {
  return std::make_unique<BpeTokenizer>(metadata, rows, ReadSplitRule(metadata));
}

}  // namespace tokenizer
