// Batches texts into passes, pools and normalizes their vectors.
#include "engine/session/embedder.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/pass/forward.h"
#include "engine/pass/pooling.h"
#include "engine/session/encode.h"

namespace engine {
namespace {

using tokenizer::TokenId;

Pooling Checked(const Config& config, std::optional<Pooling> asked) {
  const Pooling pooling = asked.value_or(config.pooling);
  if (config.backbone_length > 0)
    throw Error("this model only drafts for a larger one, and makes no vectors of texts");
  if (pooling == Pooling::kNone)
    throw Error("this model's file names no pooling, and so makes no vectors: see --pooling");
  if ((pooling == Pooling::kRank) != (config.pooling == Pooling::kRank))
    throw Error(config.pooling == Pooling::kRank
                    ? "this is a reranker, which makes scores, not vectors"
                    : "this model is not a reranker: it makes no scores");
  return pooling;
}

// Layers that see ahead need the whole text in one batch.
MemoryPlan Plan(const Model& model, const SessionOptions& options, size_t context,
                size_t n_threads) {
  return PlanMemory(model.config, model.file.file_bytes(),
                    {.context = context,
                     .batch = model.config.SeesAhead() ? context : options.batch,
                     .n_threads = n_threads,
                     .kv_type = options.kv_type},
                    MachineMemory().available);
}

// The number of tokens for which there is room.
size_t RoomOf(const Config& config, const MemoryPlan& plan) {
  return config.SeesAhead() ? plan.batch : plan.context;
}

}  // namespace

Embedder::Embedder(const Model& model, const SessionOptions& options,
                   std::optional<Pooling> pooling)
    : model_(model),
      options_(options),
      pooling_(Checked(model.config, pooling)),
      pool_(options.Threads().prompt, kernels::Oversubscription::kRunOnCaller),
      plan_(Plan(model, options, ContextOf(model.config, options.context), pool_.size())),
      capacity_(Longest()),
      batch_(std::min(options.batch, plan_.batch)),
      ropes_(MakeRopes(model, plan_.context)),
      state_(std::make_unique<SequenceState>(model.config, StateSize(plan_))),
      scratch_(std::make_unique<Scratch>(model.config, plan_.batch, plan_.n_threads)) {}

// The longest text for which there is memory, within the options' limit.
size_t Embedder::Longest() const {
  const Config& config = model_.config;
  const size_t now = RoomOf(config, plan_), max_context = MaxContextOf(config, options_.context);
  if (max_context <= now) return now;
  // The angles of such a model depend on the context (Phi-3), and a text's vector must not.
  if (HasLongFactors(model_, max_context) != HasLongFactors(model_, plan_.context)) return now;
  try {
    return std::max(now, RoomOf(config, Plan(model_, options_, max_context, pool_.size())));
  } catch (const NoMemory&) {
    return config.SeesAhead() ? now
                              : std::max(now, LongestContext(config, plan_, max_context,
                                                             MachineMemory().available));
  }
}

// Makes room for a text. If it throws engine::NoMemory, nothing changes.
void Embedder::Reserve(size_t n_tokens) {
  const size_t now = RoomOf(model_.config, plan_);
  if (n_tokens <= now) return;
  const size_t context = std::min(std::max(n_tokens, 2 * now), capacity_);
  const MemoryPlan plan = Plan(model_, options_, context, pool_.size());
  auto state = std::make_unique<SequenceState>(model_.config, StateSize(plan));
  scratch_ = std::make_unique<Scratch>(model_.config, plan.batch, plan.n_threads);
  state_ = std::move(state);
  ropes_ = MakeRopes(model_, plan.context);
  plan_ = plan;
}

size_t Embedder::width() const {
  return pooling_ == Pooling::kRank ? model_.config.n_labels : model_.config.embedding_length;
}

size_t Embedder::capacity() const {
  const size_t max_tokens = model_.config.max_text_tokens;
  return max_tokens > 0 ? std::min(capacity_, max_tokens) : capacity_;
}

void Embedder::Check(std::span<const TokenId> text) const {
  if (text.empty()) throw Error("a text without tokens has no vector");
  if (text.size() > capacity()) {
    ThrowNoRoom(text.size(), /*at_least=*/false, capacity(), model_.config);
  }
  CheckIds(text, model_.config);
}

void Embedder::Embed(std::span<const std::vector<TokenId>> texts, const Results& results) {
  std::vector<TokenId> tokens;
  std::vector<size_t> ends;
  for (size_t first = 0; first < texts.size(); first += ends.size()) {
    tokens.clear();
    ends.clear();
    for (const std::vector<TokenId>& text : texts.subspan(first)) {
      const bool is_alone = state_->is_recurrent();
      if (!ends.empty() && (is_alone || tokens.size() + text.size() > batch_)) break;
      Check(text);
      tokens.insert(tokens.end(), text.begin(), text.end());
      ends.push_back(tokens.size());
    }
    Reserve(tokens.size());
    Read(tokens, ends);
    if (!results(first, ends.size(), results_)) return;
  }
}

// Runs several texts in one batch, or one text in several batches.
void Embedder::Read(std::span<const TokenId> tokens, std::span<const size_t> ends) {
  pooled_.assign(ends.size() * model_.config.embedding_length, 0.0f);
  results_.resize(ends.size() * width());
  state_->Rewind(0);
  for (size_t done = 0, n; done < tokens.size(); done += n) {
    n = std::min(tokens.size() - done, scratch_->max_tokens);
    const bool is_one = ends.size() == 1;
    std::vector<SequenceSlice> texts;
    texts.reserve(ends.size());
    for (size_t i = 0; i < ends.size(); ++i) {
      texts.push_back({ropes_, *state_, done, is_one ? n : ends[i], i == 0 ? 0 : ends[i - 1]});
    }
    pool_.Run([&] {
      Forward(model_, tokens.subspan(done, n), texts, *scratch_, pool_);
      Pool(model_, pooling_, is_one ? std::span<const size_t>(&n, 1) : ends, done, *scratch_, pool_,
           pooled_.data());
    });
    state_->Extend(done + n);
  }
  pool_.Run([&] {
    FinishPooled(model_, pooling_, ends.size(), *scratch_, pool_, pooled_.data(), results_.data());
  });
}

}  // namespace engine
