// Raw BPE: merges by the file's list, on lines of text spelt as in SPM, without a split pattern.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gguf/utf8.h"
#include "tokenizer/kinds.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/spelling.h"
#include "tokenizer/word_merger.h"

namespace tokenizer {
namespace {

// Gemma 4 was trained with bos before every text, whatever its files say.
Vocabulary ReadVocabularyWithBos(const gguf::Metadata& metadata, size_t rows) {
  Vocabulary vocab = ReadVocabulary(metadata, {.rows = rows});
  if (metadata.GetString("tokenizer.ggml.model") != "gpt2") vocab.add_bos = true;
  return vocab;
}

class RawBpeTokenizer final : public Tokenizer {
 public:
  RawBpeTokenizer(const gguf::Metadata& metadata, size_t rows)
      : Tokenizer(ReadVocabularyWithBos(metadata, rows)),
        bytes_(FindByteTokens(metadata, vocab())),
        merges_(ReadMerges(metadata, vocab().tokens, index())) {}

 private:
  // Words are lines, and the runs of line ends between them: no token has both.
  void EncodeText(std::string_view text, bool, IdList& out) const override {
    WordMerger merger{ListedPairs(merges_)};
    bool owes_unknown = false;
    while (!text.empty()) {
      out.Check();
      const bool line_ends = text[0] == '\n';
      const size_t end = line_ends ? text.find_first_not_of('\n') : text.find('\n');
      const std::string spelling = MarkSpaces(text.substr(0, end));
      text.remove_prefix(std::min(end, text.size()));
      const TokenId whole = line_ends ? FindNormal(spelling) : -1;
      if (whole >= 0) {
        AppendKnown(whole, owes_unknown, out);
        continue;
      }
      for (std::string_view left = spelling; !left.empty();) {
        size_t length = std::min(left.size(), kMaxMergedBytes);
        while (length < left.size() && (left[length] & 0xC0) == 0x80) --length;  // whole characters
        EncodePiece(left.substr(0, length), merger, owes_unknown, out);
        left.remove_prefix(length);
      }
    }
    if (owes_unknown) Append(-1, out);
  }

  TokenId ByteToken(uint8_t byte) const override { return bytes_[byte]; }
  std::string TextOf(TokenId id) const override { return UnmarkSpaces(Spelling(id)); }

  void AppendKnown(TokenId id, bool& owes_unknown, IdList& out) const {
    if (std::exchange(owes_unknown, false)) Append(-1, out);
    out.push_back(id);
  }

  // Merges the characters of at most kMaxMergedBytes. A character without a token merges with
  // nothing: it stays -1, in the order of `unknown`, and is replaced by its bytes. Characters of
  // which a byte has no token are one unknown token, which comes before the next token that is not
  // a byte: so does Hugging Face's library. owes_unknown: that token is not written yet.
  void EncodePiece(std::string_view spelling, WordMerger<>& merger, bool& owes_unknown,
                   IdList& out) const {
    std::vector<TokenId> symbols;
    std::vector<std::string_view> unknown;
    while (!spelling.empty()) {
      const std::string_view character = spelling.substr(0, gguf::NextUtf8(spelling).length);
      symbols.push_back(FindNormal(character));
      if (symbols.back() < 0) unknown.push_back(character);
      spelling.remove_prefix(character.size());
    }
    std::vector<TokenId> merged;
    merger.Merge(symbols, merged);
    auto next_unknown = unknown.begin();
    for (const TokenId id : merged) {
      if (id >= 0) {
        AppendKnown(id, owes_unknown, out);
        continue;
      }
      const std::string_view character = *next_unknown++;
      const auto byte_of = [&](char c) { return bytes_[static_cast<uint8_t>(c)]; };
      if (std::ranges::any_of(character, [&](char c) { return byte_of(c) < 0; })) {
        owes_unknown = true;
        continue;
      }
      for (const char c : character) out.push_back(byte_of(c));
    }
  }

  ByteTokens bytes_;
  MergeTable merges_;
};

}  // namespace

std::unique_ptr<Tokenizer> CreateRawBpe(const gguf::Metadata& metadata, size_t rows) {
  return std::make_unique<RawBpeTokenizer>(metadata, rows);
}

}  // namespace tokenizer
