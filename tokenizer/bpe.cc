#include "tokenizer/bpe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "gguf/error.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/split.h"

namespace tokenizer {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kPre = "tokenizer.ggml.pre";

// A longer word (which is no word of any language) is cut, so that the memory for merging it stays
// bounded: some 40 bytes for each of its bytes.
constexpr size_t kMaxWord = size_t{1} << 22;

// A word on its way from bytes to tokens: a list of symbols of which neighbours merge, always the
// pair of lowest rank, of equals the leftmost. Every pair that may merge waits in a queue; one that
// has changed since it was queued is skipped when its turn comes. n bytes take O(n log n).
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& merges) : merges_(merges) {}

  // Replaces symbols by merged ones until nothing merges, and appends what is left to `out`. A
  // symbol of -1 (a byte without a token) merges with nothing.
  void Merge(const std::vector<TokenId>& ids, std::vector<TokenId>& out) {
    symbols_.clear();
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      symbols_.push_back(
          {ids[i], at - 1, at + 1 < static_cast<int32_t>(ids.size()) ? at + 1 : -1, kNoMerge});
    }
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) QueuePair(static_cast<int32_t>(i));
    while (!queue_.empty()) {
      const uint64_t pair = queue_.top();
      queue_.pop();
      const auto rank = static_cast<Rank>(pair >> 32);
      const auto left = static_cast<int32_t>(pair & UINT32_MAX);
      if (at(left).rank == rank) MergePair(left, rank);
    }
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = at(i).next) out.push_back(at(i).id);
  }

 private:
  struct Symbol {
    TokenId id;
    int32_t previous, next;  // -1: none
    Rank rank;               // of the pair that this and the next symbol are; kNoMerge also if gone
  };
  Symbol& at(int32_t i) { return symbols_[static_cast<size_t>(i)]; }

  // Looks up the pair of `left` and the symbol after it.
  void QueuePair(int32_t left) {
    Symbol& symbol = at(left);
    symbol.rank = symbol.next < 0 ? kNoMerge : merges_.Find(symbol.id, at(symbol.next).id);
    if (symbol.rank != kNoMerge) {
      queue_.push(uint64_t{symbol.rank} << 32 | static_cast<uint32_t>(left));
    }
  }

  void MergePair(int32_t left, Rank rank) {
    Symbol& symbol = at(left);
    Symbol& gone = at(symbol.next);
    symbol.id = merges_.Result(rank);
    symbol.next = gone.next;
    gone.rank = kNoMerge;
    if (symbol.next >= 0) at(symbol.next).previous = left;
    QueuePair(left);
    if (symbol.previous >= 0) QueuePair(symbol.previous);
  }

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  // rank << 32 | position of the left symbol, lowest first
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue_;
};

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(const gguf::Metadata& metadata, const SplitRule& rule);

 private:
  void EncodeText(std::string_view text, bool first, std::vector<TokenId>& out) const override;
  TokenId ByteToken(uint8_t byte) const override { return bytes_[byte]; }
  std::string TextOf(TokenId id) const override;

  std::vector<Merge> ReadMerges(const gguf::Metadata& metadata) const;
  void AddMerges(const gguf::Metadata& metadata, const std::vector<std::string_view>& parts,
                 std::vector<Merge>& merges) const;
  TokenId JoinedToken(std::string_view left, std::string_view right, TokenId before) const;
  TokenId WholeWord(std::string_view word, std::string& spelling) const;

  const SplitRule& rule_;
  Splitter splitter_;
  MergeTable merges_;
  std::array<TokenId, 256> bytes_;  // the tokens of single bytes; -1: none
};

const SplitRule& ReadSplitRule(const gguf::Metadata& metadata) {
  const std::string_view name = metadata.GetStringOr(kPre, "default");
  const SplitRule* rule = FindSplitRule(name);
  if (rule == nullptr) {
    metadata.Fail(kPre, "expected one of " + SplitRuleNames() + ", found " + gguf::Quoted(name));
  }
  return *rule;
}

BpeTokenizer::BpeTokenizer(const gguf::Metadata& metadata, const SplitRule& rule)
    : Tokenizer(ReadVocabulary(metadata, {.add_bos = rule.add_bos})),
      rule_(rule),
      splitter_(rule),
      merges_(ReadMerges(metadata)) {
  size_t n_bytes = 0;
  for (size_t i = 0; i < 256; ++i) {
    std::string spelling;
    const char byte = static_cast<char>(i);
    AppendSpelling({&byte, 1}, spelling);
    bytes_[i] = Find(spelling);
    n_bytes += bytes_[i] >= 0;
  }
  if (n_bytes == 0) {
    metadata.Fail(kTokens, "expected tokens for single bytes (byte-level BPE), found none");
  }
}

// A merge is the spelling of two tokens with a space between; together they spell a third. Tokens
// are looked up in batches (see FindAll).
std::vector<Merge> BpeTokenizer::ReadMerges(const gguf::Metadata& metadata) const {
  constexpr size_t kBatch = 1024;
  const gguf::StringArray strings = metadata.GetStrings(kMerges);
  if (strings.size() == 0) metadata.Fail(kMerges, "expected merges, found an empty list");
  if (strings.size() > kMaxMerges) {
    metadata.Fail(kMerges, "expected at most " + std::to_string(kMaxMerges) + " merges, found " +
                               std::to_string(strings.size()));
  }
  std::vector<Merge> merges;
  merges.reserve(strings.size());
  std::vector<std::string_view> parts;
  for (const std::string_view merge : strings) {
    const size_t space = std::min(merge.find(' '), merge.size());
    parts.push_back(merge.substr(0, space));
    parts.push_back(merge.substr(std::min(space + 1, merge.size())));
    if (parts.size() < 2 * kBatch && merges.size() + parts.size() / 2 < strings.size()) continue;
    AddMerges(metadata, parts, merges);
    parts.clear();
  }
  return merges;
}

// parts: left, right, left, right...
void BpeTokenizer::AddMerges(const gguf::Metadata& metadata,
                             const std::vector<std::string_view>& parts,
                             std::vector<Merge>& merges) const {
  const std::vector<TokenId> ids = FindAll(parts);
  for (size_t i = 0; i < parts.size(); i += 2) {
    const std::string_view left = parts[i];
    const std::string_view right = parts[i + 1];
    const TokenId result = JoinedToken(left, right, merges.empty() ? 0 : merges.back().result);
    if (left.empty() || right.empty() || ids[i] < 0 || ids[i + 1] < 0 || result < 0) {
      metadata.Fail(kMerges, "expected \"A B\" where A, B and AB are tokens, found " +
                                 gguf::Quoted(left) + " and " + gguf::Quoted(right) + " as merge " +
                                 std::to_string(merges.size()));
    }
    merges.push_back({ids[i], ids[i + 1], result});
  }
}

// The token spelt as the two together, or -1. Vocabularies list the results of merges in the order
// of the merges, some of them repeatedly: in practice it is the one before or the next after that,
// which saves the search. (Not where tokens are spelt the same: then the one that Find finds
// counts.)
TokenId BpeTokenizer::JoinedToken(std::string_view left, std::string_view right,
                                  TokenId before) const {
  for (TokenId id = before; AllSpellingsDiffer() && id <= before + 1 && vocab().Has(id); ++id) {
    const std::string_view text = Spelling(id);
    if (text.size() == left.size() + right.size() && text.starts_with(left) &&
        text.ends_with(right)) {
      return id;
    }
  }
  return Find(std::string(left).append(right));
}

// The token that the word is spelt as; only an ordinary one, never a control token.
TokenId BpeTokenizer::WholeWord(std::string_view word, std::string& spelling) const {
  if (word.size() > kMaxTokenBytes) return -1;
  spelling.clear();
  AppendSpelling(word, spelling);
  const TokenId id = Find(spelling);
  return id >= 0 && TypeOf(id) == TokenType::kNormal ? id : -1;
}

void BpeTokenizer::EncodeText(std::string_view text, bool, std::vector<TokenId>& out) const {
  WordMerger merger(merges_);
  std::vector<TokenId> symbols;
  std::vector<TokenId> merged;
  std::string spelling;
  splitter_.Split(text, [&](std::string_view word) {
    const TokenId whole = rule_.ignore_merges ? WholeWord(word, spelling) : -1;
    if (whole >= 0) {
      out.push_back(whole);
      return;
    }
    for (; !word.empty(); word.remove_prefix(std::min(word.size(), kMaxWord))) {
      symbols.clear();
      for (const char byte : word.substr(0, kMaxWord)) {
        symbols.push_back(bytes_[static_cast<uint8_t>(byte)]);
      }
      merged.clear();
      merger.Merge(symbols, merged);
      for (const TokenId id : merged) {
        if (id >= 0 || vocab().unk >= 0) out.push_back(id >= 0 ? id : vocab().unk);
      }
    }
  });
}

std::string BpeTokenizer::TextOf(TokenId id) const {
  const std::string_view spelling = Spelling(id);
  if (TypeOf(id) == TokenType::kByte) {
    return std::string(1, static_cast<char>(ByteOfToken(spelling)));
  }
  // Added tokens are spelt as they are, and some that pass as normal ones too.
  if (TypeOf(id) == TokenType::kUserDefined) return std::string(spelling);
  return BytesOfSpelling(spelling).value_or(std::string(spelling));
}

}  // namespace

std::unique_ptr<Tokenizer> CreateBpe(const gguf::Metadata& metadata) {
  return std::make_unique<BpeTokenizer>(metadata, ReadSplitRule(metadata));
}

}  // namespace tokenizer
