// LookupDrafter: drafts what followed the last time the text ended like this ("prompt lookup
// decoding", Saxena 2023). Retold stories, edited code and lists repeat themselves.
#ifndef PRONK_ENGINE_DRAFT_LOOKUP_DRAFTER_H_
#define PRONK_ENGINE_DRAFT_LOOKUP_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"

namespace engine {

// For each pair of tokens the index has its last place, and for each place the one before it of the
// pair that ends there: 8 bytes a token of text, and a step for each new one.
class LookupDrafter : public Drafter {
 public:
  // For texts of up to `capacity` tokens.
  explicit LookupDrafter(size_t capacity);

  // By how many of the last tokens agree with the earlier place: 2, 3, 4 or 5, 6 to 9, more.
  size_t n_kinds() const override { return 5; }
  std::optional<size_t> Look(std::span<const tokenizer::TokenId> text) override;
  void Draft(std::span<const tokenizer::TokenId> text, size_t n,
             std::vector<tokenizer::TokenId>& drafts) override;
  bool is_free() const override { return true; }
  void Cut(size_t n) override;

 private:
  void Index(std::span<const tokenizer::TokenId> text);
  uint32_t& LastOf(std::span<const tokenizer::TokenId> text, size_t end);

  // Both hold the place of a pair's second token, + 1 (0: none).
  std::vector<uint32_t> last_;    // [a power of two] by a hash of the pair
  std::vector<uint32_t> before_;  // [places] the same hash's place before this one
  size_t begin_ = 0;              // of what followed the earlier place
};

}  // namespace engine

#endif  // PRONK_ENGINE_DRAFT_LOOKUP_DRAFTER_H_
