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
    throw Error("this model's file names no pooling, and so makes no vectors of texts");
  if ((pooling == Pooling::kRank) != (config.pooling == Pooling::kRank))
    throw Error(config.pooling == Pooling::kRank
                    ? "this is a reranker, which makes scores, not vectors"
                    : "this model is no reranker: it makes no scores");
  return pooling;
}

// Layers that see ahead need a text in one batch.
MemoryPlan Plan(const Model& model, const SessionOptions& options, size_t n_threads) {
  const size_t context = ContextOf(model.config, options.context);
  return PlanMemory(model.config, model.file.file_bytes(),
                    {.context = context,
                     .batch = model.config.SeesAhead() ? context : options.batch,
                     .n_threads = n_threads,
                     .kv_type = options.kv_type},
                    MachineMemory().available);
}

}  // namespace

Embedder::Embedder(const Model& model, const SessionOptions& options,
                   std::optional<Pooling> pooling)
    : model_(model),
      pooling_(Checked(model.config, pooling)),
      team_(options.Threads().reading, kernels::Oversubscription::kGoAlone),
      plan_(Plan(model, options, team_.size())),
      batch_(std::min(options.batch, plan_.batch)),
      ropes_(MakeRopes(model, plan_.context)),
      state_(model.config, StateSize(plan_)),
      scratch_(model.config, plan_.batch, plan_.n_threads) {}

size_t Embedder::width() const {
  return pooling_ == Pooling::kRank ? model_.config.n_labels : model_.config.embedding_length;
}

size_t Embedder::capacity() const {
  const size_t room = model_.config.SeesAhead() ? plan_.batch : plan_.context;
  const size_t most = model_.config.most_text_tokens;
  return most > 0 ? std::min(room, most) : room;
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
      const bool is_alone = state_.is_recurrent();
      if (!ends.empty() && (is_alone || tokens.size() + text.size() > batch_)) break;
      Check(text);
      tokens.insert(tokens.end(), text.begin(), text.end());
      ends.push_back(tokens.size());
    }
    Read(tokens, ends);
    if (!results(first, ends.size(), results_)) return;
  }
}

// Several texts in one batch, or one in as many as it needs.
void Embedder::Read(std::span<const TokenId> tokens, std::span<const size_t> ends) {
  pooled_.assign(ends.size() * model_.config.embedding_length, 0.0f);
  results_.resize(ends.size() * width());
  state_.Rewind(0);
  for (size_t done = 0, n; done < tokens.size(); done += n) {
    n = std::min(tokens.size() - done, scratch_.max_tokens);
    const bool is_one = ends.size() == 1;
    std::vector<TextPart> parts;
    parts.reserve(ends.size());
    for (size_t i = 0; i < ends.size(); ++i) {
      parts.push_back({ropes_, state_, done, is_one ? n : ends[i], i == 0 ? 0 : ends[i - 1]});
    }
    team_.Run([&] {
      Forward(model_, tokens.subspan(done, n), parts, scratch_, team_);
      Pool(model_, pooling_, is_one ? std::span<const size_t>(&n, 1) : ends, done, scratch_, team_,
           pooled_.data());
    });
    state_.Extend(done + n);
  }
  team_.Run([&] {
    FinishPooled(model_, pooling_, ends.size(), scratch_, team_, pooled_.data(), results_.data());
  });
}

}  // namespace engine
