// Records each layer of a pass, and applies the logit lens to its residual stream.
#include "cli/trace/trace_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/pass/forward.h"
#include "engine/pass/scratch.h"
#include "engine/sampling/log_probabilities.h"
#include "kernels/attention/reference.h"
#include "kernels/threads/thread_pool.h"

namespace cli {
namespace {

// Tokens shown of a layer's prediction, and of the last one.
constexpr size_t kMaxLens = 5, kMaxNext = 8;

std::vector<Share> MostLikely(std::span<const float> logits, size_t most) {
  std::vector<Share> likely = Largest(std::vector<double>(logits.begin(), logits.end()), most);
  const double log_sum = engine::LogSumExp(logits);
  for (Share& token : likely) token.share = std::exp(token.share - log_sum);
  return likely;
}

// Records a pass layer by layer.
class Watcher : public engine::PassObserver {
 public:
  // Recomputes weights from the query and the cached keys: the kernels never keep all weights.
  void Attended(const engine::TracedAttention& a) override {
    const size_t first = kernels::FirstVisible(a.position, a.params.window);
    const size_t n = a.position + 1 - first, length = a.cache.key_length;
    const size_t group = a.n_heads / a.cache.n_kv_heads;
    std::vector<float> keys(n * length);
    for (size_t head = 0; head < a.n_heads; ++head) {
      if (head % group == 0) {
        for (size_t i = 0; i < n; ++i) {
          kernels::ReadCachedKey(a.cache, head / group, first + i, keys.data() + i * length);
        }
      }
      kernels::AttentionWeights(a.q + head * length, keys.data(), n, length, length, a.params,
                                a.params.sinks != nullptr ? a.params.sinks + head : nullptr,
                                now_.heads.emplace_back(a.position + 1).data() + first,
                                a.params.slopes != nullptr ? double{a.params.slopes[head]} : 0,
                                n - 1);
    }
  }

  void Routed(std::span<const uint32_t> chosen, std::span<const float> shares) override {
    now_.experts.clear();
    for (size_t i = 0; i < chosen.size(); ++i) now_.experts.push_back({chosen[i], shares[i]});
  }

  void EndLayer(std::span<const float> x) override {
    double squares = 0;
    for (const float number : x) squares += double{number} * number;
    now_.norm = std::sqrt(squares);
    layers.push_back(std::exchange(now_, {}));
    streams.insert(streams.end(), x.begin(), x.end());
  }

  std::vector<LayerValues> layers;
  std::vector<float> streams;  // [n_layers][embedding_length] after each layer

 private:
  LayerValues now_;
};

// A batch of at most this size gives the same bits as single tokens (attention.h).
constexpr size_t kLensBatch = kernels::kMaxInvariantTokens;

// The prediction after one layer of up to kLensBatch tokens: streams[i] belongs to tokens[i].
class Lens {
 public:
  explicit Lens(engine::Session& session)
      : model_(session.model()),
        pool_(session.pool()),
        scratch_(model_.config, kLensBatch, pool_.max_size()),
        logits_(kLensBatch * model_.config.vocab_size) {}

  void Look(size_t layer, std::span<const std::vector<float>> streams,
            std::span<TokenValues> tokens) {
    const size_t width = model_.config.embedding_length;
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::copy_n(streams[i].data() + layer * width, width, scratch_.x + i * width);
    }
    pool_.Run([&] { engine::Logits(model_, 0, tokens.size(), scratch_, pool_, logits_.data()); });
    for (size_t i = 0; i < tokens.size(); ++i) {
      const float* const row = logits_.data() + i * model_.config.vocab_size;
      tokens[i].layers[layer].next = MostLikely({row, model_.tokenizer->vocab().size()}, kMaxLens);
    }
  }

 private:
  const engine::Model& model_;
  kernels::ThreadPool& pool_;
  engine::Scratch scratch_;
  std::vector<float> logits_;  // [kLensBatch][vocab_size]
};

}  // namespace

std::vector<Share> Largest(std::span<const double> shares, size_t most) {
  std::vector<Share> all;
  all.reserve(shares.size());
  for (const double share : shares) all.push_back({all.size(), share});
  const size_t n = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(),
                    [](const Share& a, const Share& b) {
                      return a.share != b.share ? a.share > b.share : a.of < b.of;
                    });
  all.resize(n);
  return all;
}

std::vector<double> MeanOfHeads(const LayerValues& layer) {
  std::vector<double> mean(layer.heads.empty() ? 0 : layer.heads[0].size());
  for (const std::vector<double>& head : layer.heads) {
    for (size_t i = 0; i < mean.size(); ++i) {
      mean[i] += head[i] / static_cast<double>(layer.heads.size());
    }
  }
  return mean;
}

std::vector<TokenValues> WatchTokens(engine::Session& session,
                                     std::span<const tokenizer::TokenId> tokens) {
  const engine::Config& config = session.model().config;
  std::vector<TokenValues> values(tokens.size());
  std::vector<std::vector<float>> streams;  // [tokens][n_layers][embedding_length]
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (session.has_logits()) {
      const std::span<const float> logits = session.logits();
      values[i].probability = std::exp(logits[tokens[i]] - engine::LogSumExp(logits));
    }
    Watcher watcher;
    engine::Trace trace = {.observer = &watcher};
    session.TraceTo(&trace);
    session.Decode(tokens[i]);
    session.TraceTo(nullptr);
    values[i].layers = std::move(watcher.layers);
    values[i].next = MostLikely(session.logits(), kMaxNext);
    streams.push_back(std::move(watcher.streams));
  }
  if (config.n_residual_streams > 0) return values;
  Lens lens(session);
  for (size_t begin = 0; begin < tokens.size(); begin += kLensBatch) {
    const size_t n = std::min(kLensBatch, tokens.size() - begin);
    for (size_t layer = 0; layer < config.n_layers(); ++layer) {
      lens.Look(layer, std::span(streams).subspan(begin, n), std::span(values).subspan(begin, n));
    }
  }
  return values;
}

}  // namespace cli
