// Speculation: proposes the drafts that a pass reads after the sampled token, and learns from their
// acceptance. Session asks it before each pass of generation.
//
// The text does not depend on it. A pass gives the logits after each of its tokens, with the same
// bits as if they were read one by one. The sampler goes through them in order, with its own random
// numbers. A draft equal to the sampled token is accepted; the first mismatch drops the rest.
#pragma once

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

// The drafters that a session may use.
struct DraftOptions {
  bool on = false;
  std::optional<size_t> fixed = {};  // the number of drafts; nothing: adaptive
  size_t max = kMaxDrafts;
  bool lookup = true;                      // LookupDrafter
  bool nextn = true;                       // NextnDrafter, if the model has the block
  const Model* model = nullptr;            // ModelDrafter, with this model; or null
  std::shared_ptr<Drafter> own = {};       // one of the caller's, or null
  std::function<bool()> interrupted = {};  // asked while the small model reads; true: no drafts
};

struct DraftCounts {
  uint64_t drafted = 0;  // tokens read as drafts
  uint64_t accepted = 0;
  uint64_t n_tokens = 0;  // generated, accepted drafts included
  uint64_t n_passes = 0;
  uint64_t n_single = 0;  // passes with one token, thus without drafts
  // By the clock: all passes, the undoing of rejected drafts, and drafting; passes with one token.
  double seconds = 0, single_seconds = 0;

  DraftCounts operator-(const DraftCounts& before) const;
  // The speedup over generating without drafts; nothing if too few passes had no drafts.
  std::optional<double> Gain() const;
};

class Speculation {
 public:
  // n_tokens: the size of the vocabulary.
  Speculation(std::vector<std::shared_ptr<Drafter>> drafters, const DraftOptions& options,
              size_t n_tokens);

  // Drafts after this text, at most `room`, in a pass that also reads its last n_known tokens. All
  // but one of these were forced by a grammar and count as accepted drafts.
  std::span<const tokenizer::TokenId> Propose(std::span<const tokenizer::TokenId> text, size_t room,
                                              size_t n_known = 1);
  // Records the time of a pass, including the undoing of the previous pass's rejected drafts. Of
  // one that made few logits nothing can be learned.
  void Passed(size_t n_tokens, double seconds, bool has_all_logits = true);
  // This token joined the text; it was an accepted draft or not.
  void Add(tokenizer::TokenId id, bool was_draft);

  // Passes the tokens to each drafter's Read().
  void Read(std::span<const tokenizer::TokenId> tokens, size_t first, const float* x);
  // Drafts were rejected: only the first n tokens are part of the text.
  void Undo(size_t n);
  // The text was cut to its first n tokens.
  void Truncate(size_t n);
  void Grow(size_t capacity) {
    for (const Source& source : sources_) source.drafter->Grow(capacity);
  }

  const DraftCounts& counts() const { return counts_; }

 private:
  // A drafter's drafts, compared with the text as it is generated.
  struct Watch {
    size_t kind = 0;
    std::vector<tokenizer::TokenId> drafts;
    std::vector<double> shares = {};  // their model's probabilities, as far as they are known
    size_t n_read = 0;                // of the drafts
    size_t place = 0;                 // of the next one to compare; drafts.size(): none
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
