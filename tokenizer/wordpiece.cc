// WordPiece (Schuster and Nakajima 2012), as BERT uses it: a text without case and accents is cut
// into words and punctuation, and each word into the longest tokens from left to right.

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gguf/utf8.h"
#include "tokenizer/characters.h"
#include "tokenizer/kinds.h"
#include "tokenizer/normal_form.h"
#include "tokenizer/spelling.h"
#include "tokenizer/unicode_data.h"

namespace tokenizer {
namespace {

// A longer word is unknown, as in the library that trained these models.
constexpr std::string_view kMaxCharactersKey = "tokenizer.pronk.max_word_characters";
constexpr uint32_t kDefaultMaxCharacters = 100;

// Each ideograph is a word of its own.
bool IsIdeograph(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},  {0x20000, 0x2A6DF},
      {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return std::ranges::any_of(
      kRanges, [&](const auto& range) { return c >= range.first && c <= range.second; });
}

// Published files lack keys for some of these; all texts are put between [CLS] and [SEP].
Vocabulary ReadWordPieces(const gguf::Metadata& metadata, size_t rows) {
  Vocabulary vocab = ReadVocabulary(metadata, {.rows = rows});
  const auto set_default = [&](const char* key, TokenId id, TokenId& out) {
    if (!metadata.Has(key) && vocab.Has(id)) out = id;
  };
  set_default("tokenizer.ggml.bos_token_id", 101, vocab.bos);
  set_default("tokenizer.ggml.seperator_token_id", 102, vocab.sep);
  set_default("tokenizer.ggml.unknown_token_id", 100, vocab.unk);
  vocab.add_bos = vocab.ends_with_sep = true;
  vocab.add_sep = metadata.GetBoolOr("tokenizer.ggml.add_sep_token", true);
  return vocab;
}

class WordPieceTokenizer final : public Tokenizer {
 public:
  WordPieceTokenizer(const gguf::Metadata& metadata, size_t rows)
      : Tokenizer(ReadWordPieces(metadata, rows)),
        lowers_(metadata.GetBoolOr("tokenizer.ggml.normalizer.lowercase", true)),
        strips_(metadata.GetBoolOr("tokenizer.ggml.normalizer.strip_accents", lowers_)),
        cleans_(metadata.GetBoolOr("tokenizer.pronk.clean_text", true)),
        splits_ideographs_(metadata.GetBoolOr("tokenizer.pronk.handle_chinese_chars", true)),
        max_characters_(metadata.Has(kMaxCharactersKey) ? metadata.GetUint(kMaxCharactersKey)
                                                        : kDefaultMaxCharacters),
        removed_(kRemoved),
        accents_(kAccents),
        punctuation_(kPunctuation) {
    std::vector<SpecialMatcher::Entry> entries;
    for (size_t i = 0; i < vocab().size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (TypeOf(id) == TokenType::kNormal) entries.push_back({Spelling(id), id});
    }
    pieces_ = SpecialMatcher(std::move(entries));
  }

 private:
  void EncodeText(std::string_view text, bool, IdList& out) const override {
    const std::string normal = Normalized(text);
    size_t begin = 0, end = 0;
    const auto end_word = [&] {
      if (begin < end) EncodeWord(std::string_view(normal).substr(begin, end - begin), out);
    };
    for (const auto& [c, bytes] : gguf::Characters(normal)) {
      const bool is_sign = punctuation_.Has(c);
      if (is_sign || IsWhiteSpace(c)) {
        end_word();
        if (is_sign) EncodeWord(bytes, out);
        begin = end + bytes.size();
      }
      end += bytes.size();
    }
    end_word();
  }

  // Removes control characters, case and accents, and puts spaces around ideographs.
  std::string Normalized(std::string_view text) const {
    std::string normal;
    for (const auto& [c, bytes] : gguf::Characters(text)) {
      if (cleans_ && removed_.Has(c)) continue;
      const bool is_apart = splits_ideographs_ && IsIdeograph(c);
      if (is_apart) normal += ' ';
      normal += bytes;
      if (is_apart) normal += ' ';
    }
    if (strips_) {
      const std::string decomposed = ToNormalForm(normal, NormalForm::kNfd);
      normal.clear();
      for (const auto& [c, bytes] : gguf::Characters(decomposed)) {
        if (c < 0x80 || !accents_.Has(c)) normal += bytes;
      }
    }
    return lowers_ ? ToLowerCase(normal) : normal;
  }

  // A word with a place where no token matches is unknown as a whole, and so is a long one.
  void EncodeWord(std::string_view word, IdList& out) const {
    size_t n_characters = 0;
    for (const char c : word) n_characters += (c & 0xC0) != 0x80;
    // U+2581 itself is in no token: it marks tokens that begin a word.
    const bool is_marked = word.find(kSpaceMark) != std::string_view::npos;
    if (n_characters > max_characters_ || is_marked) return Append(-1, out);
    const std::string marked = std::string(kSpaceMark) + std::string(word);
    std::vector<TokenId> ids;
    const std::function<void()> tick = [&] { out.Check(); };
    SpecialMatcher::Search search(pieces_, marked, /*control=*/false, {}, tick);
    for (size_t at = 0; at < marked.size();) {
      const SpecialMatcher::Match match = search.Next(at);
      if (match.begin != at || match.length == 0) return Append(-1, out);
      ids.push_back(match.id);
      at += match.length;
    }
    for (const TokenId id : ids) out.push_back(id);
  }

  TokenId ByteToken(uint8_t) const override { return -1; }
  std::string TextOf(TokenId id) const override { return UnmarkSpaces(Spelling(id)); }

  bool lowers_, strips_, cleans_, splits_ideographs_;
  uint64_t max_characters_;  // characters
  CharacterSet removed_, accents_, punctuation_;
  SpecialMatcher pieces_;
};

}  // namespace

std::unique_ptr<Tokenizer> CreateWordPiece(const gguf::Metadata& metadata, size_t rows) {
  return std::make_unique<WordPieceTokenizer>(metadata, rows);
}

}  // namespace tokenizer
