// Session: reads and generates one text. To read a token is to run it through the model: its key
// and value join the cache, and the logits after it can be computed. A session owns all mutable
// state (KV cache, scratch, sampler, position). It borrows the model, which other sessions may
// share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft/speculation.h"
#include "engine/model/model.h"
#include "engine/pass/forward.h"
#include "engine/pass/rope.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "engine/sampling/sampler.h"
#include "engine/session/encode.h"
#include "engine/session/memory.h"
#include "kernels/threads/default_threads.h"
#include "kernels/threads/pool_size.h"
#include "kernels/threads/thread_pool.h"

namespace engine {

// The logits that the caller of a pass will use.
struct WantedLogits {
  std::span<const uint64_t> allowed = {};  // the tokens that may be sampled, as bits; empty: all
  bool all = false;  // the caller reports the logits of every token, allowed or not
};

struct SessionOptions {
  size_t context = kDefaultContext;  // positions at first; ContextOf() resolves it for a model
  size_t max_context = 0;            // the positions it may grow to; 0: MaxContextOf(`context`)
  size_t batch = 512;                // prompt tokens per pass
  int n_threads = 0;  // threads that generate; 0: the fastest number (kernels/threads/pool_size.h)
  int n_threads_batch = 0;        // threads that run prompts; 0: n_threads, or all cores
  kernels::KvTypes kv_type = {};  // types of the cache's keys and values
  Sampling sampling = {};
  DraftOptions draft = {};  // reads ahead while generating
  std::shared_ptr<kernels::ThreadPool> pool =
      nullptr;  // shared with another session; null: its own

  // The numbers of threads that n_threads and n_threads_batch stand for on this machine.
  kernels::ThreadCounts Threads() const;
};

class Session {
 public:
  // Throws engine::Error if the machine lacks memory for the context; the message says what fits.
  Session(const Model& model, const SessionOptions& options,
          const Memory& memory = MachineMemory());

  const Model& model() const { return model_; }
  // The most tokens that the text may have. The state grows up to this capacity, as memory allows.
  // The capacity shrinks when other programs take the memory.
  size_t capacity() const { return capacity_; }
  // The text so far: all ids in the state.
  std::span<const tokenizer::TokenId> tokens() const { return tokens_; }
  size_t position() const { return tokens_.size(); }
  const SequenceState& state() const { return state_; }
  size_t n_threads() const { return std::min(pool_size_.best(), pool_->max_size()); }
  size_t n_threads_batch() const {
    return std::min(static_cast<size_t>(threads_.prompt), pool_->max_size());
  }
  size_t n_passes() const { return n_passes_; }  // passes so far
  kernels::ThreadPool& pool() { return *pool_; }

  // Throws engine::TooLong if the tokens do not fit after the text, engine::Error for unknown ids.
  void CheckRoom(std::span<const tokenizer::TokenId> tokens) const;
  // Lets the state grow to at least n_positions. The logits have the same bits as if the state had
  // that size from the start. Returns false if that exceeds capacity() or memory, or if a text has
  // begun and the model has other RoPE frequencies for so long a context (Phi-3). Throws
  // std::bad_alloc.
  bool Reserve(size_t n_positions);
  bool MakeRoom(size_t n_tokens) { return Reserve(position() + n_tokens); }

  // Called between chunks of the work on a prompt, thousands of times a second, with the number of
  // tokens read so far (a batch counts in proportion to its finished layers). Returning false stops
  // the reading within milliseconds, at the end of the last whole batch.
  using Progress = std::function<bool(size_t done)>;

  // Reads tokens after the text so far and computes the logits of the last one. Throws as
  // CheckRoom(). Returns false if `progress` stopped it.
  bool Prefill(std::span<const tokenizer::TokenId> tokens, const Progress& progress = nullptr);

  // Prefill with the logits of every token, for comparing engines and for perplexity. `rows` is
  // called with `first` and rows [first, first + n) as [n][vocab_size], and `progress` during each
  // batch.
  using LogitRows = std::function<void(size_t first, size_t n, std::span<const float> rows)>;
  bool PrefillAllLogits(std::span<const tokenizer::TokenId> tokens, const LogitRows& rows,
                        const Progress& progress = nullptr);

  // Sets how tokens are picked from now on.
  void SetSampling(const Sampling& options);
  // Picks the next token from logits(); Decode() adds it. allowed: as for Sampler::Sample().
  tokenizer::TokenId Sample(std::span<const uint64_t> allowed = {}) {
    return Sample(logits(), allowed);
  }
  // Picks the next token from these logits.
  tokenizer::TokenId Sample(std::span<const float> logits, std::span<const uint64_t> allowed);
  // Adds one token and computes the logits after it, unless the token was an accepted draft and
  // they exist. The same pass also reads drafts of the tokens after it, as SessionOptions::draft
  // says. Throws as Prefill().
  void Decode(tokenizer::TokenId id) { Decode({&id, 1}); }
  // Adds several known tokens and computes only the logits after the last. If few tokens may be
  // sampled, their logits are those of LogitsOfAllowed(), bit for bit. Other logits are not
  // computed unless they are wanted: has_logits() is false until CompleteLogits().
  void Decode(std::span<const tokenizer::TokenId> tokens, const WantedLogits& wanted = {});
  // Computes the logits that Decode() omitted.
  void CompleteLogits();
  // Decode() for several sessions of one model in one pass, without drafts; each session gets the
  // same bits as alone. There are at most kMaxDecodeTokens sessions, and no more than scratch
  // holds. logits: [sessions][vocab_size].
  struct SessionAndToken {
    Session& session;
    tokenizer::TokenId id;
    std::span<const uint64_t> allowed = {};  // as in WantedLogits
  };
  static void DecodeTogether(std::span<const SessionAndToken> next, Scratch& scratch,
                             kernels::ThreadPool& pool, float* logits);
  // Copies the text, the state and the sampler of another session of this model with this type of
  // cache. If it throws engine::NoMemory, this session has no text.
  void CopyFrom(Session& other);
  // Frees the buffers of passes. The next pass of this session alone allocates them again.
  void ReleaseScratch() {
    scratch_.reset();
    computed_.has_allowed = false;
  }

  // The logits of the last token, [vocabulary], without the embedding's padding rows.
  std::span<const float> logits() const {
    return {logits_.get() + computed_.row * model_.config.vocab_size,
            model_.tokenizer->vocab().size()};
  }
  size_t scratch_bytes() const;
  // Whether some sampled logits were not finite.
  bool has_met_bad_logits() const { return sampler_.has_met_bad_logits(); }
  // Drafting statistics; null if drafting is off.
  const Speculation* speculation() const { return speculation_.get(); }

  // From now on every pass adds its operations to this trace; null stops it.
  void TraceTo(Trace* trace) { trace_ = trace; }

  // Lets Rewind() return to this position. The last SequenceState::kSnapshots bookmarks are kept.
  void Bookmark();
  // Makes a bookmark, without logits, as soon as a prompt reaches this position.
  void BookmarkAt(size_t position) { bookmark_at_ = position; }
  // Forgets everything from `position` (<= position()) on, also in the sampler's penalties. Returns
  // the position reached, which may be earlier; the text after it must be read again.
  size_t Rewind(size_t position);
  // Goes back to the common prefix of the text so far and these tokens. Goes back further if
  // reading the rest would otherwise not give logits, and to the beginning if these tokens need
  // other RoPE frequencies (Reserve). Returns how many tokens need not be read again.
  size_t RewindToCommon(std::span<const tokenizer::TokenId> tokens);
  // Whether all logits() belong to the text so far; false after Rewind() to a position without a
  // bookmark.
  bool has_logits() const { return computed_.has_all; }

  // SaveSession() and LoadSession() (session_file.h) call these: the state after the text so far,
  // the update of the session once that state is filled in, and the model's hashes.
  SequenceState& RememberedState();
  void Restore(std::span<const tokenizer::TokenId> tokens, std::span<const float> logits);
  struct ModelHash {
    uint64_t hash = 0, stamp = 0;  // 0: not known yet
  };
  ModelHash& model_hash() { return model_hash_; }

 private:
  struct LogitsState {
    size_t row = 0;        // the last token's row of logits_
    bool has_all = false;  // all logits of the row belong to the text so far
    // Only some logits are computed: for token allowed_row of the last pass, the logits of the ids
    // that were allowed then, as bits.
    bool has_allowed = false;
    size_t allowed_row = 0;
    std::vector<uint64_t> allowed;
  };

  Scratch& scratch();
  SequenceSlice SliceFrom(size_t first_position, size_t batch_end) {
    return {ropes_, state_, first_position, batch_end};
  }
  [[noreturn]] void Refuse(size_t n_tokens, size_t room) const;
  void Claim(std::span<const tokenizer::TokenId> tokens);
  bool RunBatches(std::span<const tokenizer::TokenId> tokens, const Progress& progress,
                  const LogitRows& rows, const WantedLogits& wanted = {});
  bool RunInterruptibly(const Progress& progress, size_t done, size_t n,
                        kernels::FunctionRef<void()> pass);
  bool RunPass(size_t n, bool is_prompt, kernels::FunctionRef<void()> pass,
               const kernels::FunctionRef<bool()>* keep_going = nullptr);
  size_t AcceptDrafts(std::span<const tokenizer::TokenId> tokens);
  void RunWithDrafts(size_t n_known, const WantedLogits& wanted);
  void ChooseLogits(bool only_allowed, size_t row, std::span<const uint64_t> allowed);
  void LogitsFrom(size_t row, size_t n, std::span<const uint64_t> allowed);
  float* RowOfLogits() { return logits_.get() + computed_.row * model_.config.vocab_size; }
  void DropDrafts();

  const Model& model_;
  kernels::ThreadCounts threads_;
  std::shared_ptr<kernels::ThreadPool> pool_;
  kernels::PoolSize pool_size_;  // the number of threads that generate
  MemoryPlan plan_;
  uint64_t memory_;  // bytes that the session may have
  size_t capacity_;
  std::vector<RopeAngles> ropes_;
  SequenceState state_;
  uint64_t room_for_weights_ = 0;     // bytes of memory left by the state and scratch
  std::unique_ptr<Scratch> scratch_;  // made when first needed
  Sampler sampler_;
  Trace* trace_ = nullptr;
  std::vector<tokenizer::TokenId> tokens_;  // never more than the capacity
  kernels::Buffer<float> logits_;  // [rows][vocab_size], a row for each token of a pass with drafts
  size_t n_passes_ = 0;
  LogitsState computed_;  // describes logits_
  // The last pass with drafts: its tokens, some of which may have joined the text, and the position
  // of the first token. The tokens from position() on are drafts that were read ahead.
  std::vector<tokenizer::TokenId> last_pass_tokens_;
  size_t pass_begin_ = 0;
  double undo_seconds_ = 0;    // the time that undoing its drafts took
  double excess_seconds_ = 0;  // the time lost in a pass that pool_size_ tried
  std::unique_ptr<Speculation> speculation_;
  size_t bookmark_at_ = 0;
  ModelHash model_hash_;
  struct SavedLogits {
    size_t position;
    std::vector<float> logits;
  };
  std::vector<SavedLogits> bookmarks_;  // sorted by position
};

}  // namespace engine
