// LookupDrafter: drafts what followed the previous occurrence of the text's last tokens ("prompt
// lookup decoding", Saxena 2023). Retold stories, edited code and lists repeat themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"

namespace engine {

// The index stores the last place of each pair of tokens, and for each place the previous place of
// its pair: 8 bytes and one step per token of text.
class LookupDrafter : public Drafter {
 public:
  // Texts have up to `capacity` tokens.
  explicit LookupDrafter(size_t capacity);

  // The kinds are the numbers of tokens that match the earlier place: 2, 3, 4 or 5, 6 to 9, more.
  size_t n_kinds() const override { return 5; }
  std::optional<size_t> FindDrafts(std::span<const tokenizer::TokenId> text) override;
  void Draft(std::span<const tokenizer::TokenId> text, size_t n,
             std::vector<tokenizer::TokenId>& drafts) override;
  bool costs_nothing() const override { return true; }
  void Truncate(size_t n) override;

 private:
  void Index(std::span<const tokenizer::TokenId> text);
  uint32_t& LastOf(std::span<const tokenizer::TokenId> text, size_t end);

  // A place is the position of a pair's second token, + 1 (0: no place).
  std::vector<uint32_t> last_;    // [a power of two]: indexed by a hash of the pair
  std::vector<uint32_t> before_;  // [places]: the previous place with this hash
  size_t begin_ = 0;              // start of the tokens after the earlier place
};

}  // namespace engine
