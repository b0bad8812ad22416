// WordPiece (Schuster and Nakajima 2012), as BERT uses it: a text without case and accents is cut
// into words and signs, and each word into the longest tokens from left to right.

#include <algorithm>
#include <string>
#include <vector>

#include "gguf/utf8.h"
#include "tokenizer/decomposition.h"
#include "tokenizer/families.h"
#include "tokenizer/jinja/values/unicode.h"
#include "tokenizer/spelling.h"
#include "tokenizer/split.h"

namespace tokenizer {
namespace {

// Longer tokens are never matched: each place in a word tries all lengths.
constexpr size_t kLongestMatched = 256;

// Runs of kept characters: not control, format and the like, nor marks if accents are stripped.
constexpr SplitRule kKept = {.names = {},
                             .patterns = {R"((?:[^\p{Cc}\p{Cf}\p{Co}\x{FFFD}]|[\t-\r\x{85}])+)"}};
constexpr SplitRule kKeptWithoutMarks = {
    .names = {}, .patterns = {R"((?:[^\p{Cc}\p{Cf}\p{Co}\x{FFFD}\p{M}]|[\t-\r\x{85}])+)"}};
// Words: one sign or ideograph, or what is between these and white space.
constexpr SplitRule kWords = {
    .names = {},
    .patterns = {R"(([\p{P}$+<=>^`|~\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF})"
                 R"(\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}\x{2B920}-\x{2CEAF}\x{F900}-\x{FAFF})"
                 R"(\x{2F800}-\x{2FA1F}])|(?:(?!(?1))[^\t-\r\x{85}\p{Z}])+)"}};

// Published files lack keys for some of these; all texts are put between [CLS] and [SEP].
Vocabulary ReadWordPieces(const gguf::Metadata& metadata, size_t rows) {
  Vocabulary vocab = ReadVocabulary(metadata, {.rows = rows});
  const auto usual = [&](const char* key, TokenId id, TokenId& out) {
    if (!metadata.Has(key) && vocab.Has(id)) out = id;
  };
  usual("tokenizer.ggml.bos_token_id", 101, vocab.bos);
  usual("tokenizer.ggml.seperator_token_id", 102, vocab.sep);
  usual("tokenizer.ggml.unknown_token_id", 100, vocab.unk);
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
        kept_(strips_ ? kKeptWithoutMarks : kKept),
        words_(kWords) {
    for (const std::string_view token : vocab().tokens) {
      if (token.size() <= kLongestMatched) longest_ = std::max(longest_, token.size());
    }
  }

 private:
  void EncodeText(std::string_view text, bool, IdList& out) const override {
    std::string normal, kept;
    for (const auto& [code, bytes] : gguf::Characters(text)) {
      const char32_t plain = strips_ ? WithoutAccents(code) : code;
      normal += gguf::ToUtf8(lowers_ ? jinja::ToLower(plain) : plain);
    }
    kept_.Match(normal, [&](std::string_view part) { kept += part; });
    words_.Match(kept, [&](std::string_view word) { EncodeWord(word, out); });
  }

  // A word with a place where no token matches is unknown as a whole.
  void EncodeWord(std::string_view word, IdList& out) const {
    const std::string marked = std::string(kSpaceMark) + std::string(word);
    std::vector<TokenId> ids;
    for (std::string_view rest = marked; !rest.empty();) {
      out.Look();
      size_t n = std::min(rest.size(), longest_);
      while (n > 0 && FindNormal(rest.substr(0, n)) < 0) --n;
      if (n == 0) return Append(-1, out);
      ids.push_back(FindNormal(rest.substr(0, n)));
      rest.remove_prefix(n);
    }
    for (const TokenId id : ids) out.push_back(id);
  }

  TokenId ByteToken(uint8_t) const override { return -1; }
  std::string TextOf(TokenId id) const override { return UnmarkSpaces(Spelling(id)); }

  bool lowers_, strips_;
  Splitter kept_, words_;
  size_t longest_ = 0;  // bytes of a token
};

}  // namespace

std::unique_ptr<Tokenizer> CreateWordPiece(const gguf::Metadata& metadata, size_t rows) {
  return std::make_unique<WordPieceTokenizer>(metadata, rows);
}

}  // namespace tokenizer
