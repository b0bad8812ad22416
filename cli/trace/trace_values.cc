#include "cli/trace/trace_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/loss/text_windows.h"
#include "engine/pass/forward.h"
#include "engine/pass/scratch.h"
#include "kernels/attention/reference.h"
#include "kernels/machine/team.h"

namespace cli {
namespace {

constexpr size_t kMaxPositions = 6, kMaxChoices = 5;

// The largest, at most `most`. shares[i] belongs to `first` + i.
std::vector<Share> Largest(std::span<const double> shares, size_t first, size_t most) {
  std::vector<Share> all;
  all.reserve(shares.size());
  for (const double share : shares) all.push_back({first++, share});
  const size_t n = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(),
                    [](const Share& a, const Share& b) {
                      return a.share != b.share ? a.share > b.share : a.of < b.of;
                    });
  all.resize(n);
  return all;
}

std::vector<Share> MostLikely(std::span<const float> logits) {
  const double log_sum = LogSumExp(logits);
  std::vector<double> probabilities;
  for (const float logit : logits) probabilities.push_back(std::exp(logit - log_sum));
  return Largest(probabilities, 0, kMaxChoices);
}

// Records a pass layer by layer.
class Watcher : public engine::PassObserver {
 public:
  // Attention's weights are recomputed from the query and the cached keys by the scalar definition:
  // the kernels never keep all of them.
  void Attended(const engine::TracedAttention& a) override {
    const size_t first = kernels::FirstVisible(a.position, a.params.window);
    const size_t n = a.position + 1 - first, length = a.cache.key_length;
    const size_t group = a.n_heads / a.cache.n_kv_heads;
    std::vector<float> keys(n * length);
    std::vector<double> weights(n), mean(n);
    for (size_t head = 0; head < a.n_heads; ++head) {
      if (head % group == 0) {
        for (size_t i = 0; i < n; ++i) {
          kernels::ReadCachedKey(a.cache, head / group, first + i, keys.data() + i * length);
        }
      }
      kernels::AttentionWeights(a.q + head * length, keys.data(), n, length, length, a.params,
                                a.params.sinks != nullptr ? a.params.sinks + head : nullptr,
                                weights.data());
      now_.heads.push_back(Largest(weights, first, kMaxPositions));
      for (size_t i = 0; i < n; ++i) mean[i] += weights[i] / static_cast<double>(a.n_heads);
    }
    now_.attention = Largest(mean, first, kMaxPositions);
    now_.attention_sum = 0;
    for (const double weight : mean) now_.attention_sum += weight;
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
    streams.emplace_back(x.begin(), x.end());
  }

  std::vector<LayerValues> layers;
  std::vector<std::vector<float>> streams;  // after each layer

 private:
  LayerValues now_;
};

}  // namespace

std::vector<LayerValues> WatchToken(engine::Session& session, tokenizer::TokenId id) {
  const engine::Model& model = session.model();
  Watcher watcher;
  engine::Trace trace;
  trace.observer = &watcher;
  session.TraceTo(&trace);
  session.Decode(id);
  session.TraceTo(nullptr);
  if (model.config.n_streams > 0) return watcher.layers;

  kernels::Team team(static_cast<int>(session.n_threads()));
  engine::Scratch scratch(model.config, /*max_tokens=*/1, team.size());
  std::vector<float> logits(model.config.vocab_size);
  for (size_t i = 0; i < watcher.layers.size(); ++i) {
    std::copy(watcher.streams[i].begin(), watcher.streams[i].end(), scratch.x.get());
    team.Run([&] { engine::Logits(model, 0, 1, scratch, team, logits.data()); });
    watcher.layers[i].next = MostLikely(std::span(logits).first(model.tokenizer->vocab().size()));
  }
  return watcher.layers;
}

}  // namespace cli
