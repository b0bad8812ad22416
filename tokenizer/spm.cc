// SPM: sentencepiece's byte-pair encoding (Kudo and Richardson 2018). Of all neighbours that
// together are a token, the pair whose token has the highest score merges first.

#include <algorithm>
#include <bit>
#include <bitset>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gguf/utf8.h"
#include "tokenizer/kinds.h"
#include "tokenizer/spelling.h"
#include "tokenizer/word_merger.h"

namespace tokenizer {
namespace {

// Longer tokens are never matched: looking up a pair takes time proportional to its length.
constexpr size_t kLongestPiece = 4096;

// An unused token may be a stage of a merge but not its result: it is taken apart again, by a
// recursion that is at most as deep as the token is long.
constexpr size_t kLongestUnused = 1024;

constexpr size_t kAscii = 128;

bool StartsCharacter(char c) { return (c & 0xC0) != 0x80; }

// A higher score has a lower rank; equal scores are equal ranks. Never kNoMerge: no score is NaN.
Rank RankOfScore(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.f);  // -0 is 0
  return (bits >> 31) != 0 ? bits : ~bits & INT32_MAX;
}

class SpmTokenizer final : public Tokenizer {
 public:
  SpmTokenizer(const gguf::Metadata& metadata, size_t rows)
      : Tokenizer(
            ReadVocabulary(metadata, {.is_sentencepiece = true, .add_bos = true, .rows = rows})),
        bytes_(FindByteTokens(metadata, vocab())),
        pairs_(kAscii * kAscii, -1) {
    for (size_t id = 0; id < vocab().tokens.size(); ++id) {
      const std::string_view token = vocab().tokens[id];
      if (token.size() > kSpaceMark.size()) NoteSpaces(token);
      if (token.size() <= kLongestPiece) longest_ = std::max(longest_, token.size());
      if (token.size() == 2 && IsAscii(token)) pairs_[PairIndex(token)] = FindIndexed(token);
    }
  }

 private:
  // The pairs that together are a token. Symbols are places in `word`.
  struct Pairs {
    Rank Find(Symbol& left, const Symbol& right) {
      const TokenId id = left.joined = Joined(left, right);
      if (id < 0) return kNoMerge;
      if (tokenizer.TypeOf(id) == TokenType::kUnused) {
        parts[Text(left, right)] = static_cast<size_t>(left.end - left.begin);
      }
      return RankOfScore(tokenizer.vocab().scores[static_cast<size_t>(id)]);
    }
    TokenId Result(const Symbol& left, const Symbol&) const { return left.joined; }

    TokenId Joined(const Symbol& left, const Symbol& right) {
      const std::string_view text = Text(left, right);
      if (n_bytes += text.size(); n_bytes > kTick) {
        n_bytes = 0;
        out.Check();
      }
      return tokenizer.FindPiece(text);
    }
    std::string_view Text(const Symbol& left, const Symbol& right) const {
      return word.substr(static_cast<size_t>(left.begin),
                         static_cast<size_t>(right.end - left.begin));
    }

    static constexpr size_t kTick = size_t{1} << 20;
    const SpmTokenizer& tokenizer;
    const IdList& out;
    std::string_view word = {};
    size_t n_bytes = 0;  // looked up since the last tick
    // For each unused token its first part's bytes; if several pairs form it, the last counts.
    std::unordered_map<std::string_view, size_t> parts = {};
  };

  void EncodeText(std::string_view text, bool space, IdList& out) const override {
    const std::string marked = (space ? std::string(kSpaceMark) : "") + MarkSpaces(text);
    WordMerger<Pairs> merger(Pairs{*this, out});
    std::string_view rest = marked;
    bool owes_unknown = false;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, WordLength(rest));
      rest.remove_prefix(word.size());
      if (owes_unknown || word.size() > WordCache::kMaxCachedBytes) {
        EncodeWord(word, merger, owes_unknown, out);
        continue;
      }
      WordCache::Entry& known = out.words().At(word);
      if (known.Is(word)) {
        out.Repeat(known.begin, known.n_ids);
        continue;
      }
      const size_t begin = out.size();
      EncodeWord(word, merger, owes_unknown, out);
      if (!owes_unknown) WordCache::Keep(word, begin, out.size() - begin, known);
    }
    if (owes_unknown) Append(-1, out);
  }

  // Merges the characters of a word. Neighbouring characters without a token or bytes are one
  // unknown token, which comes before the next token that is not a byte: so does Hugging Face's
  // library if single bytes are missing. owes_unknown: that token is not written yet.
  void EncodeWord(std::string_view word, WordMerger<Pairs>& merger, bool& owes_unknown,
                  IdList& out) const {
    merger.Clear();
    merger.pairs().word = word;
    merger.pairs().parts.clear();
    for (size_t at = 0; at < word.size();) {
      size_t end = at + 1;
      while (end < word.size() && !StartsCharacter(word[end])) ++end;
      merger.Add(-1, at, end);  // its token, if it has one, is looked up if nothing merges it
      at = end;
    }
    merger.Merge([&](const Symbol& symbol) {
      const std::string_view text = merger.pairs().Text(symbol, symbol);
      AppendPiece(symbol.id >= 0 ? symbol.id : FindPiece(text), text, merger.pairs(), owes_unknown,
                  out);
    });
  }

  // id: FindPiece(text)
  void AppendPiece(TokenId id, std::string_view text, const Pairs& pairs, bool& owes_unknown,
                   IdList& out) const {
    if (id >= 0 && TypeOf(id) == TokenType::kUnused) {
      const auto parts = pairs.parts.find(text);
      if (parts != pairs.parts.end()) {
        for (const std::string_view part :
             {text.substr(0, parts->second), text.substr(parts->second)}) {
          AppendPiece(FindPiece(part), part, pairs, owes_unknown, out);
        }
        return;
      }
    }
    const bool has_bytes = id < 0 && std::ranges::all_of(text, [&](char c) {
                             return bytes_[static_cast<uint8_t>(c)] >= 0;
                           });
    if (id >= 0) {
      if (std::exchange(owes_unknown, false)) Append(-1, out);
      out.push_back(id);
    } else if (has_bytes) {
      for (const char c : text) out.push_back(bytes_[static_cast<uint8_t>(c)]);
    } else {
      owes_unknown = true;
    }
  }

  TokenId ByteToken(uint8_t byte) const override { return bytes_[byte]; }
  std::string TextOf(TokenId id) const override { return UnmarkSpaces(Spelling(id)); }

  // The token that text can become, or -1. Control and user-defined tokens are found before it.
  TokenId FindPiece(std::string_view text) const {
    if (text.size() == 2 && IsAscii(text)) return pairs_[PairIndex(text)];
    return FindIndexed(text);
  }
  TokenId FindIndexed(std::string_view text) const {
    if (text.size() > longest_) return -1;
    const TokenId id = Find(text);
    if (id < 0 || TypeOf(id) == TokenType::kNormal) return id;
    return TypeOf(id) == TokenType::kUnused && text.size() <= kLongestUnused ? id : -1;
  }

  // Records the bytes that precede a space within a token.
  void NoteSpaces(std::string_view token) {
    for (size_t at = 1; (at = token.find(kSpaceMark, at)) != std::string_view::npos; ++at) {
      if (!token.substr(0, at).ends_with(kSpaceMark)) {
        before_space_.set(static_cast<uint8_t>(token[at - 1]));
      }
    }
  }

  // The number of bytes that can be merged on their own: up to a space after another character, if
  // no token spans the two. Without such a place a text is cut after kMaxMergedBytes bytes.
  size_t WordLength(std::string_view text) const {
    const size_t most = std::min(text.size(), kMaxMergedBytes);
    for (size_t at = 1; (at = text.find(kSpaceMark, at)) < most; at += kSpaceMark.size()) {
      if (!before_space_[static_cast<uint8_t>(text[at - 1])] &&
          !text.substr(0, at).ends_with(kSpaceMark)) {
        return at;
      }
    }
    if (most == text.size()) return most;
    size_t at = most;
    while (!StartsCharacter(text[at])) --at;
    return at;
  }

  static bool IsAscii(std::string_view two) { return ((two[0] | two[1]) & 0x80) == 0; }
  static size_t PairIndex(std::string_view two) {
    return static_cast<size_t>(two[0]) * kAscii + static_cast<size_t>(two[1]);
  }

  ByteTokens bytes_;
  std::vector<TokenId> pairs_;     // pairs of ASCII characters: most look-ups end here
  size_t longest_ = 0;             // bytes of a token
  std::bitset<256> before_space_;  // last bytes before a space within a token
};

}  // namespace

std::unique_ptr<Tokenizer> CreateSpm(const gguf::Metadata& metadata, size_t rows) {
  return std::make_unique<SpmTokenizer>(metadata, rows);
}

}  // namespace tokenizer
