// Speculation: proposes the drafts that a pass reads after the sampled token, and learns from their
// acceptance. Session asks it before each pass of generation.
//
// The text does not depend on drafts. A pass gives the logits after each of its tokens, with the
// same bits as if the tokens were read one by one. The sampler goes through them in order, with its
// own random numbers. A draft equal to the sampled token is accepted; the first mismatch drops the
// rest.
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
  std::optional<size_t> fixed = {};        // the number of drafts; empty: the controller chooses it
  size_t max = kMaxDrafts;                 // the largest number of drafts in a pass
  bool lookup = true;                      // LookupDrafter
  bool nextn = true;                       // NextnDrafter, if the model has the block
  const Model* model = nullptr;            // ModelDrafter, with this model; or null
  std::shared_ptr<Drafter> own = {};       // the caller's drafter, or null
  std::function<bool()> should_stop = {};  // called while the small model runs; true: no drafts
};

struct DraftCounts {
  uint64_t drafted = 0;  // tokens read as drafts
  uint64_t accepted = 0;
  uint64_t n_tokens = 0;  // generated tokens, including accepted drafts
  uint64_t n_passes = 0;
  uint64_t n_single_passes = 0;  // passes with one token, without drafts
  // Times: `seconds` covers all passes, the undoing of rejected drafts, and drafting;
  // single_seconds covers passes with one token.
  double seconds = 0, single_seconds = 0;

  DraftCounts operator-(const DraftCounts& before) const;
  // The speedup over generating without drafts; nothing if too few passes had no drafts.
  std::optional<double> Gain() const;
};

class Speculation {
 public:
  Speculation(std::vector<std::shared_ptr<Drafter>> drafters, const DraftOptions& options,
              size_t vocab_size);

  // Returns up to `room` drafts for a pass that also runs the last n_known tokens of this text. A
  // grammar forced all but one of these tokens, which count as accepted drafts.
  std::span<const tokenizer::TokenId> Propose(std::span<const tokenizer::TokenId> text, size_t room,
                                              size_t n_known = 1);
  // Records the time of a pass, including the undoing of the previous pass's rejected drafts. The
  // controller ignores a pass that computed only some logits.
  void RecordPass(size_t n_tokens, double seconds, bool has_all_logits = true);
  // Records that this token joined the text. was_draft: it was an accepted draft.
  void Add(tokenizer::TokenId id, bool was_draft);

  // Passes the tokens to each drafter's Observe().
  void Observe(std::span<const tokenizer::TokenId> tokens, size_t first, const float* x);
  // Records that drafts were rejected: only the first n tokens are part of the text.
  void Undo(size_t n);
  // Records that the text was cut to its first n tokens.
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
    std::vector<double> probabilities = {};  // the probabilities by their model, if known
    size_t n_read = 0;                       // how many of the drafts a pass read
    size_t place = 0;  // the index of the next draft to compare; drafts.size(): none is left
    bool is_on() const { return place < drafts.size(); }
  };
  struct Source {
    std::shared_ptr<Drafter> drafter;
    size_t first_kind;  // the controller's number for the drafter's kind 0
    Watch watch;
  };
  void Make(Source& source, size_t kind, std::span<const tokenizer::TokenId> text, size_t n);

  DraftOptions options_;
  size_t vocab_size_;
  std::vector<Source> sources_;
  DraftController controller_;
  DraftCounts counts_;
  std::vector<tokenizer::TokenId> drafts_;  // the next pass's drafts
  double drafting_seconds_ = 0;             // the time it took to make them
};

}  // namespace engine
