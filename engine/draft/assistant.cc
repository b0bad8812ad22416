// The pass of an assistant: its own layers over the large model's keys and values.
#include "engine/draft/assistant.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/draft/controller.h"
#include "engine/error.h"
#include "engine/pass/forward.h"
#include "engine/pass/pass.h"
#include "kernels/ops/ops.h"

namespace engine {
namespace {

using tokenizer::TokenId;

void Expect(const char* what, size_t expected, size_t found) {
  if (expected == found) return;
  throw Error("the draft model is an assistant of another model: expected ", what, " ", expected,
              ", found ", (found == SIZE_MAX ? "none" : std::to_string(found)));
}

// The assistant's config, with the layers of `model` whose keys and values it reads.
Config Fitted(const Config& model, Config config) {
  Expect("an embedding_length of", config.backbone_length, model.embedding_length);
  for (LayerPlan& layer : config.layers) {
    const auto is_like = [&](const LayerPlan& l) {
      return l.mixer == Mixer::kAttention && (l.window > 0) == (layer.window > 0);
    };
    const auto last = std::find_if(model.layers.rbegin(), model.layers.rend(), is_like);
    Expect("attention with a window of", layer.window,
           last != model.layers.rend() ? last->window : SIZE_MAX);
    Expect("a head_count_kv of", layer.n_kv_heads, last->n_kv_heads);
    Expect("a key_length of", layer.key_length, last->key_length);
    Expect("a value_length of", layer.value_length, last->value_length);
    const auto own = static_cast<size_t>(model.layers.rend() - last) - 1;
    layer.kv_layer = std::min(own, last->kv_layer);
    if (layer.window > 1) --layer.window;  // the position itself has no key
  }
  return config;
}

}  // namespace

AssistantDrafter::AssistantDrafter(const Model& model, const Model& assistant, SequenceState& state,
                                   kernels::ThreadPool& pool)
    : model_(model),
      assistant_(assistant),
      state_(state),
      pool_(pool),
      config_(Fitted(model.config, assistant.config)),
      ropes_(MakeRopes(config_, assistant.weights.rope_freqs)),
      scratch_(config_, 1, pool.max_size()),
      logits_(config_.vocab_size),
      last_(kMaxDecodeTokens * model.config.embedding_length) {}

double AssistantDrafter::cost() const {
  return static_cast<double>(assistant_.BytesPerToken()) /
         static_cast<double>(model_.BytesPerToken());
}

void AssistantDrafter::Observe(std::span<const TokenId> tokens, size_t first, const float* x) {
  const size_t width = model_.config.embedding_length;
  n_rows_ = std::min(tokens.size(), kMaxDecodeTokens);
  begin_ = first + tokens.size() - n_rows_;
  std::copy_n(x + (begin_ - first) * width, n_rows_ * width, last_.begin());
}

void AssistantDrafter::Truncate(size_t n) { n_rows_ = std::min(n_rows_, n - std::min(n, begin_)); }

std::optional<size_t> AssistantDrafter::FindDrafts(std::span<const TokenId> text) {
  if (text.size() < begin_ + 2 || text.size() > begin_ + n_rows_ + 1) return {};
  return 0;
}

void AssistantDrafter::Draft(std::span<const TokenId> text, size_t n,
                             std::vector<TokenId>& drafts) {
  const size_t width = model_.config.embedding_length, position = text.size() - 1;
  const SequenceSlice here = {ropes_, state_, position, 1},
                      before = {ropes_, state_, position - 1, 1};
  const Weights& w = assistant_.weights;
  Scratch& s = scratch_;
  float *const embedding = s.temp, *const hidden = embedding + width;
  kernels::RmsNorm(last_.data() + (position - 1 - begin_) * width, model_.weights.output_norm,
                   model_.config.norm_eps, width, hidden);
  const size_t n_common = std::min(assistant_.tokenizer->vocab().size(), model_.config.vocab_size);
  for (TokenId id = text.back(); n > 0; --n) {
    pool_.Run([&] {
      Pass input(model_.config, 1, s, pool_, {&here, 1});
      input.Embed(model_.weights.token_embd, {&id, 1}, embedding);
      input.FillRopeAngles();
      Pass pass(config_, 1, s, pool_, {&before, 1});
      pass.MatMul(embedding, {{w.pre_projection, s.x}});
      Layers(w, pass);
      const float* const out = pass.Normed(s.x, w.output_norm, config_.embedding_length, s.normed);
      pass.MatMul(out, {{w.output, logits_.data()}, {w.post_projection, hidden}});
    });
    id = LikeliestOf(std::span(logits_).first(n_common));
    drafts.push_back(id);
    if (n > 1 && wants_more && !wants_more(ProbabilityOf(logits_, id))) return;
  }
}

}  // namespace engine
