// Drafter: guesses how a text goes on, so that the model can check several tokens in one pass.
//
// A drafter may be wrong as often as it likes: what it proposes never changes the text, only how
// fast it comes (speculation.h).
#ifndef PRONK_ENGINE_DRAFT_DRAFTER_H_
#define PRONK_ENGINE_DRAFT_DRAFTER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace engine {

struct Scratch;

class Drafter {
 public:
  virtual ~Drafter() = default;
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  // Drafts come in kinds that are right more or less often. How many there are, and of which kind
  // those behind this text would be; nothing where there are none. Costs next to nothing.
  virtual size_t n_kinds() const { return 1; }
  virtual std::optional<size_t> Look(std::span<const tokenizer::TokenId> text) = 0;
  // Appends up to n tokens that may follow the text that Look() was asked about last.
  virtual void Draft(std::span<const tokenizer::TokenId> text, size_t n,
                     std::vector<tokenizer::TokenId>& drafts) = 0;
  // True where drafts cost next to nothing: they are then made to learn from, read or not.
  virtual bool is_free() const { return false; }

  // Called after each pass, while the scratch still has its residual stream: these tokens stand at
  // `first` and behind it. Those that turn out to be no part of the text are Cut() afterwards.
  virtual void Read(std::span<const tokenizer::TokenId>, size_t /*first*/, Scratch&) {}
  // The text is now its first n tokens.
  virtual void Cut(size_t /*n*/) {}
};

}  // namespace engine

#endif  // PRONK_ENGINE_DRAFT_DRAFTER_H_
