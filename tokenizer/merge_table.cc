// A hash table from pairs of tokens to the merged token and its rank.
#include "tokenizer/merge_table.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "gguf/error.h"

namespace tokenizer {
namespace {

constexpr std::string_view kMerges = "tokenizer.ggml.merges";

class MergeReader {
 public:
  MergeReader(const gguf::Metadata& metadata, const std::vector<std::string_view>& tokens,
              const TokenIndex& index)
      : metadata_(metadata), tokens_(tokens), index_(index) {}

  // A merge is two tokens with a space between, which spell a third; FindAll() looks up a batch.
  std::vector<Merge> Read(const std::vector<std::string_view>& strings) {
    constexpr size_t kBatch = 1024;
    merges_.reserve(strings.size());
    std::vector<std::string_view> parts;
    for (const std::string_view merge : strings) {
      const size_t space = std::min(merge.find(' '), merge.size());
      parts.push_back(merge.substr(0, space));
      parts.push_back(merge.substr(std::min(space + 1, merge.size())));
      if (parts.size() < 2 * kBatch && merges_.size() + parts.size() / 2 < strings.size()) continue;
      Add(parts);
      parts.clear();
    }
    return std::move(merges_);
  }

 private:
  // parts: left, right, left, right...
  void Add(const std::vector<std::string_view>& parts) {
    const std::vector<TokenId> ids = index_.FindAll(parts);
    for (size_t i = 0; i < parts.size(); i += 2) {
      const std::string_view left = parts[i];
      const std::string_view right = parts[i + 1];
      const TokenId result = JoinedToken(left, right);
      if (left.empty() || right.empty() || ids[i] < 0 || ids[i + 1] < 0 || result < 0) {
        metadata_.Fail(kMerges, "expected \"A B\" where A, B and AB are tokens, found ",
                       gguf::Quoted(left), " and ", gguf::Quoted(right), " as merge ",
                       merges_.size());
      }
      merges_.push_back({ids[i], ids[i + 1], result});
    }
  }

  // The token spelt as both joined, or -1. Vocabularies list the results of merges in the order of
  // the merges, some of them repeatedly: usually it is the previous result or the token after it,
  // which saves the search. (If spellings repeat, only Find knows which token counts.)
  TokenId JoinedToken(std::string_view left, std::string_view right) const {
    const auto before = static_cast<size_t>(merges_.empty() ? 0 : merges_.back().result);
    for (size_t i = before; index_.AllDiffer() && i <= before + 1 && i < tokens_.size(); ++i) {
      const std::string_view text = tokens_[i];
      if (text.size() == left.size() + right.size() && text.starts_with(left) &&
          text.ends_with(right)) {
        return static_cast<TokenId>(i);
      }
    }
    return index_.Find(std::string(left).append(right));
  }

  const gguf::Metadata& metadata_;
  const std::vector<std::string_view>& tokens_;
  const TokenIndex& index_;
  std::vector<Merge> merges_;
};

}  // namespace

MergeTable::MergeTable(size_t most) : slots_(std::bit_ceil(most + most / 2 + 1)) {
  results_.reserve(most);
}

MergeTable::MergeTable(std::span<const Merge> merges) : MergeTable(merges.size()) {
  constexpr size_t kAhead = 16;  // merges; distance of the prefetch
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i + kAhead < merges.size()) {
      const Merge& later = merges[i + kAhead];
      __builtin_prefetch(&slots_[Home(later.left, later.right)]);
    }
    Add(merges[i]);
  }
}

void MergeTable::Add(const Merge& merge) {
  Slot& slot = slots_[Locate(merge.left, merge.right)];
  if (slot.left < 0) slot = {merge.left, merge.right, static_cast<Rank>(results_.size())};
  results_.push_back(merge.result);
}

size_t MergeTable::Home(TokenId left, TokenId right) const {
  const uint64_t pair = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  return hash_(pair) & (slots_.size() - 1);
}

size_t MergeTable::Locate(TokenId left, TokenId right) const {
  size_t at = Home(left, right);
  while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) {
    at = (at + 1) & (slots_.size() - 1);
  }
  return at;
}

Rank MergeTable::Find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[Locate(left, right)];
  return slot.left < 0 ? kNoMerge : slot.rank;
}

std::vector<Merge> ReadMerges(const gguf::Metadata& metadata,
                              const std::vector<std::string_view>& tokens,
                              const TokenIndex& index) {
  CheckCount(metadata, kMerges, 1, kMaxMerges, "merges");
  return MergeReader(metadata, tokens, index).Read(metadata.GetStrings(kMerges));
}

}  // namespace tokenizer
