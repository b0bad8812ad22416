// Runs passes for one text: prompts in batches, tokens one by one, with drafts after them. A
// prompt's route is Prefill and RunBatches; a generated token's is Sample, then Decode and
// RunWithDrafts (with --draft off: RunBatches). Both end in Forward() and Logits(), in a lambda
// that RunPass() runs on the pool (for prompts: RunInterruptibly). session_rewind.cc makes room and
// goes back.
#include "engine/session/session.h"

#include <cmath>
#include <utility>

#include "engine/draft/assistant.h"
#include "engine/draft/lookup_drafter.h"
#include "engine/draft/nextn.h"
#include "engine/error.h"
#include "engine/session/model_drafter.h"
#include "engine/stopwatch.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// PoolSize keeps a time for each number of tokens that a generating pass may have.
static_assert(kMaxDecodeTokens == kernels::PoolSize::kMaxPassTokens);

// Rows of logits computed at a time if all rows are requested: a row can be half a megabyte.
constexpr size_t kLogitRows = 16;

// The number of threads that generate: fixed, or at first what the CPU's topology suggests.
kernels::PoolSize GeneratingSize(const kernels::ThreadCounts& threads, bool is_fixed) {
  const auto n = static_cast<size_t>(threads.generating);
  if (is_fixed) return {n, n, n};
  return {n, 1, std::max(n, static_cast<size_t>(threads.prompt))};
}

// The drafters that the options request and the model has.
std::unique_ptr<Speculation> MakeSpeculation(const Model& model, SessionOptions options,
                                             SequenceState& state, size_t capacity,
                                             const std::shared_ptr<kernels::ThreadPool>& pool) {
  options.pool = pool;  // the draft model runs while this model waits
  std::vector<std::shared_ptr<Drafter>> drafters;
  if (options.draft.own) drafters.push_back(options.draft.own);
  if (const Model* const draft = options.draft.model; draft != nullptr) {
    if (draft->config.backbone_length > 0) {
      CheckSameVocabulary(model, *draft);
      drafters.push_back(std::make_shared<AssistantDrafter>(model, *draft, state, *pool));
    } else {
      drafters.push_back(std::make_shared<ModelDrafter>(model, *draft, options));
    }
  }
  if (options.draft.lookup) drafters.push_back(std::make_shared<LookupDrafter>(capacity));
  if (options.draft.nextn && model.weights.nextn.eh_proj.tensor != nullptr) {
    drafters.push_back(
        std::make_shared<NextnDrafter>(model, state.capacity(), options.kv_type, *pool));
  }
  return std::make_unique<Speculation>(std::move(drafters), options.draft, model.config.vocab_size);
}

// The model, if it can continue a text.
const Model& RequireWriter(const Model& model) {
  if (model.config.WritesText()) return model;
  if (model.config.backbone_length > 0)
    throw Error(
        "this model only drafts for a larger one: open that with -m, and this one with -md");
  throw Error(model.config.pooling == Pooling::kRank
                  ? "this is a reranker, which scores texts and cannot generate any: pronk rerank"
                  : "this model turns texts into vectors and cannot generate any: pronk embed");
}

// Tokens that are never sampled get a bias of minus infinity.
Sampling WithoutBanned(const Model& model, Sampling options) {
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  const auto ban = [&](TokenId id) { options.logit_bias.emplace_back(id, -INFINITY); };
  if (options.ignore_end) std::ranges::for_each(vocab.eog, ban);
  std::ranges::for_each(vocab.suppressed, ban);
  return options;
}

std::vector<TokenId> BreakersOf(const Model& model, const Sampling& options) {
  if (!options.dry.IsOn()) return {};
  return TokensWith(options.dry.breakers, *model.tokenizer);
}

// A latent vector is key and value in one (LayerPlan::values_in_keys).
kernels::KvTypes CheckedTypes(const Config& config, kernels::KvTypes types) {
  const auto is_latent = [](const LayerPlan& plan) { return plan.values_in_keys; };
  if (types.k != types.v && std::ranges::any_of(config.layers, is_latent)) {
    throw Error(
        "--kv: expected one type, since this model's cache has keys and values in one, "
        "found two");
  }
  return types;
}

}  // namespace

kernels::ThreadCounts SessionOptions::Threads() const {
  const int n = n_threads;
  kernels::ThreadCounts counts = n > 0 ? kernels::ThreadCounts{n, n} : kernels::DefaultThreads();
  if (n_threads_batch > 0) counts.prompt = n_threads_batch;
  return counts;
}

Session::Session(const Model& model, const SessionOptions& options, const Memory& memory)
    : model_(RequireWriter(model)),
      threads_(options.Threads()),
      pool_(options.pool ? options.pool
                         : std::make_shared<kernels::ThreadPool>(
                               std::max(threads_.generating, threads_.prompt),
                               options.n_threads > 0 ? kernels::Oversubscription::kRunOnCaller
                                                     : kernels::Oversubscription::kIgnore)),
      pool_size_(GeneratingSize(threads_, options.n_threads > 0)),
      plan_(PlanMemory(
          model.config, model.file.file_bytes(),
          {.context = ContextOf(model.config, options.context),
           .max_context = options.max_context != 0 ? options.max_context
                                                   : MaxContextOf(model.config, options.context),
           .batch = options.batch,
           .n_threads = pool_->max_size(),
           .pass_tokens = options.draft.on ? kMaxDecodeTokens : 0,
           .kv_type = CheckedTypes(model.config, options.kv_type)},
          memory.available)),
      memory_(memory.available),
      capacity_(std::max(plan_.context, plan_.max_context)),
      ropes_(MakeRopes(model, plan_.context)),
      state_(model.config, StateSize(plan_)),
      sampler_(WithoutBanned(model, options.sampling), BreakersOf(model, options.sampling)),
      logits_(std::max<size_t>(plan_.pass_tokens, 1) * model.config.vocab_size) {
  if (capacity_ > plan_.context) {
    capacity_ = std::max(plan_.context, LongestContext(model.config, plan_, capacity_, memory_));
  }
  const uint64_t own =
      state_.bytes() + Scratch::BytesFor(model.config, plan_.batch, plan_.n_threads);
  room_for_weights_ = memory.for_files - std::min(memory.for_files, own);
  tokens_.reserve(plan_.context);  // nothing grows while generating, unless the context does
  last_pass_tokens_.reserve(plan_.pass_tokens);
  if (options.draft.on) speculation_ = MakeSpeculation(model, options, state_, capacity(), pool_);
}

Scratch& Session::scratch() {
  if (!scratch_) {
    scratch_ = std::make_unique<Scratch>(model_.config, plan_.batch, plan_.n_threads);
    scratch_->pager = Pager::IfLarger(model_, room_for_weights_);
  }
  return *scratch_;
}

size_t Session::scratch_bytes() const {
  return scratch_ ? Scratch::BytesFor(model_.config, plan_.batch, plan_.n_threads) : 0;
}

// If the context may not grow, the message does not blame memory.
void Session::Refuse(size_t n_tokens, size_t room) const {
  constexpr size_t kAny = size_t{1} << 40;
  const bool grows = plan_.max_context > plan_.context;
  ThrowNoRoom(position() + n_tokens, /*at_least=*/false, room, model_.config,
              grows ? LongestContext(model_.config, plan_, kAny, memory_) : 0);
}

void Session::CheckRoom(std::span<const TokenId> tokens) const {
  if (tokens.size() > capacity() - position()) Refuse(tokens.size(), capacity());
  CheckIds(tokens, model_.config);
}

// Checks these tokens and makes room for them.
void Session::Claim(std::span<const TokenId> tokens) {
  CheckRoom(tokens);
  if (!MakeRoom(tokens.size())) Refuse(tokens.size(), state_.capacity());
}

bool Session::Prefill(std::span<const TokenId> tokens, const Progress& progress) {
  Claim(tokens);
  return RunBatches(tokens.subspan(AcceptDrafts(tokens)), progress, nullptr);
}

bool Session::PrefillAllLogits(std::span<const TokenId> tokens, const LogitRows& rows,
                               const Progress& progress) {
  Claim(tokens);
  return RunBatches(tokens, progress, rows);
}

// Reads in batches. If `rows` is null, keeps the last token's logits as Decode() does; otherwise
// passes the logits of every token to `rows`.
bool Session::RunBatches(std::span<const TokenId> tokens, const Progress& progress,
                         const LogitRows& rows, const WantedLogits& wanted) {
  if (tokens.empty()) return true;
  DropDrafts();
  const size_t begin = position();
  kernels::ThreadPool& pool = *pool_;
  const size_t vocab_size = model_.config.vocab_size;
  Scratch& s = scratch();
  std::vector<float> buffer(rows ? kLogitRows * vocab_size : 0);
  for (size_t done = 0; done < tokens.size();) {
    size_t n = std::min(tokens.size() - done, s.max_tokens);
    if (bookmark_at_ > position()) n = std::min(n, bookmark_at_ - position());
    const std::span<const TokenId> batch = tokens.subspan(done, n);
    const SequenceSlice text = SliceFrom(position(), /*batch_end=*/n);
    const bool is_last = !rows && done + n == tokens.size();
    const auto pass = [&] {
      Forward(model_, batch, {&text, 1}, s, pool, trace_);
      if (is_last) LogitsFrom(n - 1, 1, wanted.allowed);
      for (size_t first = 0; rows && first < n; first += kLogitRows) {
        const size_t count = std::min(kLogitRows, n - first);
        Logits(model_, first, count, s, pool, buffer.data(), trace_);
        rows(done + first, count, {buffer.data(), count * vocab_size});
      }
    };
    computed_.row = 0;
    ChooseLogits(is_last && !wanted.all, n - 1, wanted.allowed);
    if (!RunInterruptibly(progress, done, n, pass)) {
      computed_.has_all = computed_.has_allowed = false;
      break;
    }
    ++n_passes_;
    if (speculation_) speculation_->Observe(batch, position(), s.x);
    tokens_.insert(tokens_.end(), batch.begin(), batch.end());
    state_.Extend(position());
    computed_.has_all = is_last && !computed_.has_allowed;
    if (position() == bookmark_at_) {
      state_.Snapshot();
      bookmark_at_ = 0;
    }
    done += n;
  }
  if (speculation_)
    speculation_->Truncate(position());  // drafters do not compare these tokens with their drafts
  return begin + tokens.size() == position();
}

// Runs `pass`, which reads a batch of n tokens after `done` tokens of the prompt. Returns false,
// with the state as before, if `progress` stopped it. For a few tokens of a recurrent model,
// `progress` is called only before the pass: saving the states would take a noticeable part of its
// time.
bool Session::RunInterruptibly(const Progress& progress, size_t done, size_t n,
                               kernels::FunctionRef<void()> pass) {
  if (!progress) return RunPass(n, n > 1, pass);
  if (state_.is_recurrent() && n <= kMaxDecodeTokens) {
    computed_.has_all = false;
    return progress(done) && RunPass(n, n > 1, pass);
  }
  state_.ExpectAbandon();
  Scratch& s = scratch();
  s.n_layers_done = 0;
  const size_t n_layers = model_.config.n_layers();
  try {
    const auto ask = [&] { return progress(done + n * s.n_layers_done / n_layers); };
    const kernels::FunctionRef<bool()> keep_going = ask;
    if (RunPass(n, n > 1, pass, &keep_going)) return true;
  } catch (...) {  // thrown by `progress`
    state_.Abandon(position() + n);
    computed_.has_all = false;
    throw;
  }
  state_.Abandon(position() + n);
  return false;
}

// Runs a pass of n tokens, with a suitable number of threads, until keep_going() (if not null)
// returns false. Returns whether the pass came to its end.
bool Session::RunPass(size_t n, bool is_prompt, kernels::FunctionRef<void()> pass,
                      const kernels::FunctionRef<bool()>* keep_going) {
  pool_->set_size(is_prompt ? n_threads_batch() : pool_size_.Choose(n));
  const Stopwatch watch;
  bool is_whole = true;
  if (keep_going != nullptr) {
    is_whole = pool_->RunWhile(*keep_going, pass);
  } else {
    pool_->Run(pass);
  }
  // A pass with few logits takes less time, so PoolSize must not compare it with other passes.
  if (is_whole && !is_prompt && !computed_.has_allowed)
    excess_seconds_ = pool_size_.Measured(n, watch.Seconds());
  pool_->set_size(n_threads());
  return is_whole;
}

// Adds the leading tokens that were already read ahead to the text, and returns their number. More
// tokens than fit in one pass are read anew: without drafts they would be read in larger batches,
// whose results round differently.
size_t Session::AcceptDrafts(std::span<const TokenId> tokens) {
  if (tokens.size() > kMaxDecodeTokens || bookmark_at_ > position()) return 0;
  size_t n = 0;
  for (; n < tokens.size(); ++n) {
    const size_t next = position() - pass_begin_;
    if (next >= last_pass_tokens_.size() || last_pass_tokens_[next] != tokens[n]) break;
    speculation_->Add(tokens[n], /*was_draft=*/true);
    tokens_.push_back(tokens[n]);
    computed_.row = next;
  }
  return n;
}

// Records whether the pass computes only the logits of `allowed` for its token `row`.
void Session::ChooseLogits(bool only_allowed, size_t row, std::span<const uint64_t> allowed) {
  computed_.has_allowed =
      only_allowed && trace_ == nullptr && ShouldComputeOnlyAllowed(model_, allowed);
  computed_.allowed_row = row;
  if (computed_.has_allowed) computed_.allowed.assign(allowed.begin(), allowed.end());
}

// Computes the logits of n tokens of the last pass, from its token `row` on; the token after `row`
// must be in `allowed`. Called inside pool_->Run(), after ChooseLogits(). Logits() makes only the
// largest logits exact. If few tokens are allowed, LogitsOfAllowed() computes their logits again,
// equally exactly: so the sampled token does not depend on whether the other logits were computed.
void Session::LogitsFrom(size_t row, size_t n, std::span<const uint64_t> allowed) {
  if (!computed_.has_allowed) Logits(model_, row, n, *scratch_, *pool_, RowOfLogits(), trace_);
  if (ShouldComputeOnlyAllowed(model_, allowed))
    LogitsOfAllowed(model_, row, allowed, *scratch_, *pool_, RowOfLogits());
}

void Session::Decode(std::span<const TokenId> tokens, const WantedLogits& wanted) {
  const bool only_allowed = ShouldComputeOnlyAllowed(model_, wanted.allowed);
  if (only_allowed && !scratch_) DropDrafts();  // LogitsOfAllowed() needs the last pass's buffers
  const size_t n_ahead = speculation_ ? AcceptDrafts(tokens) : 0;
  tokens = tokens.subspan(n_ahead);
  if (only_allowed && n_ahead > 0 && tokens.empty()) {
    pool_->Run([&] {
      LogitsOfAllowed(model_, computed_.row, wanted.allowed, *scratch_, *pool_, RowOfLogits());
    });
  }
  if (tokens.empty()) return;
  if (!speculation_ || tokens.size() > std::min(kMaxDecodeTokens, scratch().max_tokens)) {
    Claim(tokens);
    RunBatches(tokens, nullptr, nullptr, wanted);
    return;
  }
  for (const TokenId id : tokens) speculation_->Add(id, /*was_draft=*/false);
  Claim(tokens);
  DropDrafts();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  RunWithDrafts(tokens.size(), wanted);
}

void Session::CompleteLogits() {
  if (!std::exchange(computed_.has_allowed, false)) return;
  pool_->Run([&] {
    Logits(model_, computed_.allowed_row, 1, scratch(), *pool_, RowOfLogits());
    LogitsOfAllowed(model_, computed_.allowed_row, computed_.allowed, scratch(), *pool_,
                    RowOfLogits());
  });
  computed_.has_all = true;
}

// Reads the last n_known tokens of the text and the drafts after them.
void Session::RunWithDrafts(size_t n_known, const WantedLogits& wanted) {
  Scratch& s = scratch();
  const size_t max_tokens = std::min(kMaxDecodeTokens, s.max_tokens);
  // Drafts need all logits, which cost too much if only few are wanted and all take a quarter of a
  // pass or more.
  const WeightView& output = model_.weights.output;
  const bool only_allowed = !wanted.all && ShouldComputeOnlyAllowed(model_, wanted.allowed);
  const bool is_expensive = 4 * output.rows * output.row_bytes() > model_.BytesPerToken();
  const size_t room = only_allowed && is_expensive
                          ? 0
                          : std::min(max_tokens - n_known, state_.capacity() - position());
  std::span<const TokenId> drafts;
  try {
    drafts = speculation_->Propose(tokens_, room, n_known);
  } catch (...) {  // the tokens are not read
    tokens_.resize(tokens_.size() - n_known);
    throw;
  }
  pass_begin_ = position() - n_known;
  last_pass_tokens_.assign(tokens_.end() - static_cast<ptrdiff_t>(n_known), tokens_.end());
  last_pass_tokens_.insert(last_pass_tokens_.end(), drafts.begin(), drafts.end());
  if (!drafts.empty()) state_.ExpectUndo();
  const SequenceSlice text = SliceFrom(pass_begin_, /*batch_end=*/last_pass_tokens_.size());
  computed_.row = n_known - 1;
  ChooseLogits(only_allowed && drafts.empty(), computed_.row, wanted.allowed);
  const Stopwatch watch;
  RunPass(last_pass_tokens_.size(), /*is_prompt=*/false, [&] {
    Forward(model_, last_pass_tokens_, {&text, 1}, s, *pool_, trace_);
    LogitsFrom(computed_.row, last_pass_tokens_.size() - computed_.row, wanted.allowed);
  });
  ++n_passes_;
  state_.Extend(pass_begin_ + last_pass_tokens_.size());
  speculation_->Observe(last_pass_tokens_, pass_begin_, s.x);
  speculation_->RecordPass(last_pass_tokens_.size(),
                           watch.Seconds() - excess_seconds_ + std::exchange(undo_seconds_, 0),
                           !computed_.has_allowed);
  computed_.has_all = !computed_.has_allowed;
}

// Drops tokens that were read ahead but did not become the text.
void Session::DropDrafts() {
  const size_t kept = position() - pass_begin_;
  if (kept < last_pass_tokens_.size()) {
    const Stopwatch watch;
    state_.Undo(position());
    if (state_.is_recurrent()) pool_->Run([&] { Replay(model_, kept, state_, scratch(), *pool_); });
    speculation_->Undo(position());
    undo_seconds_ = watch.Seconds();
  }
  last_pass_tokens_.clear();
}

void Session::SetSampling(const Sampling& options) {
  sampler_.SetOptions(WithoutBanned(model_, options), BreakersOf(model_, options));
}

TokenId Session::Sample(std::span<const float> logits, std::span<const uint64_t> allowed) {
  return sampler_.Sample(logits, allowed, tokens_);
}

}  // namespace engine
