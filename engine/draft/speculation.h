// Speculation: proposes the tokens that a pass reads behind the one that is certain, and learns
// from what became of them. Session asks it before each pass of generation.
//
// The text does not depend on it. A pass gives the logits behind each of its tokens, with the same
// bits as if they were read one by one; the sampler goes through them in order, with its own random
// numbers, and a draft is part of the text if it is what was sampled. The first that is not, and
// what was read behind it, is forgotten.
#ifndef PRONK_ENGINE_DRAFT_SPECULATION_H_
#define PRONK_ENGINE_DRAFT_SPECULATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/controller.h"
#include "engine/draft/drafter.h"

namespace engine {

struct Model;

// What a session may draft with.
struct DraftOptions {
  bool on = false;
  std::optional<size_t> fixed = {};   // so many drafts whenever there are some; nothing: as it pays
  size_t max = kMaxDrafts;            // at most
  bool lookup = true;                 // from the text itself
  bool nextn = true;                  // by the model's own block for that, where it has one
  const Model* model = nullptr;       // a small model with the same vocabulary, or null
  std::shared_ptr<Drafter> own = {};  // one of the caller's, or null
  std::function<bool()> interrupted = {};  // asked while the small model reads; true: no drafts
};

// What became of it.
struct DraftCounts {
  uint64_t drafted = 0;   // tokens read as drafts
  uint64_t accepted = 0;  // of these, part of the text now
  uint64_t n_tokens = 0;  // of the text that passes of generation gave, drafts included
  uint64_t n_passes = 0;
  double seconds = 0;          // of all passes as such take them, drafting included
  double seconds_without = 0;  // that one pass for each token would have taken

  DraftCounts operator-(const DraftCounts& before) const;
};

class Speculation {
 public:
  // n_tokens: of the vocabulary.
  Speculation(std::vector<std::shared_ptr<Drafter>> drafters, const DraftOptions& options,
              size_t n_tokens);

  // Drafts behind this text, at most `room`.
  std::span<const tokenizer::TokenId> Propose(std::span<const tokenizer::TokenId> text,
                                              size_t room);
  // A pass of so many tokens took so long, with what was to be undone behind the pass before.
  void Passed(size_t n_tokens, double seconds);
  // The text went on with this token, read ahead or not.
  void Took(tokenizer::TokenId id, bool was_ahead);

  // A pass has read these tokens: see Drafter.
  void Read(std::span<const tokenizer::TokenId> tokens, size_t first, Scratch& scratch);
  // Only the first n tokens that were read are part of the text; it goes on otherwise.
  void Undo(size_t n);
  // The text was cut to its first n tokens.
  void Cut(size_t n);

  const DraftCounts& counts() const { return counts_; }

 private:
  // Drafts of a drafter that are compared with what comes.
  struct Watch {
    size_t kind = 0;
    std::vector<tokenizer::TokenId> drafts;
    size_t place = 0;  // of the next one to compare; drafts.size(): none
    bool is_on() const { return place < drafts.size(); }
  };
  struct Source {
    std::shared_ptr<Drafter> drafter;
    size_t first_kind;  // of the controller's
    Watch watch;
  };
  void Make(Source& source, size_t kind, std::span<const tokenizer::TokenId> text, size_t n);

  DraftOptions options_;
  size_t n_tokens_;
  std::vector<Source> sources_;
  DraftController controller_;
  DraftCounts counts_;
  std::vector<tokenizer::TokenId> drafts_;  // of the pass to come
  double drafting_seconds_ = 0;             // for it
};

}  // namespace engine

#endif  // PRONK_ENGINE_DRAFT_SPECULATION_H_
