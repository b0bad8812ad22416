#include "engine/model/families.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "gguf/error.h"

namespace engine {
namespace {

// The last layer of every `period` sees all keys, the others as many as the window says. A file may
// name another period; published lists of layers say the same as the family's period.
void SetWindows(const Keys& keys, size_t window, size_t period, Config& config) {
  period = keys.NumberUnlessArray("attention.sliding_window_pattern", period, kMaxLength);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool global = period != 0 && i % period == period - 1;
    config.layers[i].window = global ? 0 : window;
  }
}

RopeConfig Unscaled(RopeConfig rope) {
  rope.scaling = RopeScaling::kNone;
  return rope;
}

// What both of these Gemmas do: attention scale 1 / sqrt(key_length) but in the largest model,
// whose number of layers tells it.
void Gemma(size_t n_layers_of_largest, Config& config) {
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding_length));
  if (config.layers.size() == n_layers_of_largest) {
    const size_t width = config.embedding_length / config.layers[0].n_heads;
    SetAttentionScale(1.0f / std::sqrt(static_cast<float>(width)), config);
  }
}

}  // namespace

void SetLocalRope(const RopeConfig& rope, Config& config) {
  config.ropes.push_back(rope);
  for (LayerPlan& layer : config.layers) {
    if (layer.window > 0) layer.rope = config.ropes.size() - 1;
  }
}

void SetAttentionScale(float scale, Config& config) {
  for (LayerPlan& layer : config.layers) layer.attention_scale = scale;
}

void SkipNextn(const Keys& keys, Config& config) {
  config.n_skipped_layers = keys.UintOr("nextn_predict_layers", 0, config.layers.size() - 1);
  config.layers.resize(config.layers.size() - config.n_skipped_layers);
}

// Where no key says how wide an expert is, those that a token uses are together as wide as a dense
// network.
void QwenExperts(const Keys& keys, Config& config) {
  if (keys.Has("expert_feed_forward_length")) return;
  for (LayerPlan& layer : config.layers)
    layer.expert_length /= std::max<size_t>(config.n_experts_used, 1);
}

void Qwen2Moe(const Keys& keys, Config& config) {
  for (LayerPlan& layer : config.layers) {
    if (layer.shared_ffn_length == 0)
      layer.shared_ffn_length = keys.Count("feed_forward_length", kMaxLength);
  }
  QwenExperts(keys, config);
}

// Published files name a window that the model was not trained to keep to.
void Phi3(const Keys& keys, Config&) { keys.Ignore("attention.sliding_window"); }

void Granite(const Keys& keys, Config& config) {
  keys.Positive("logit_scale");  // such a file must have it
  SetScales(keys, config);
}

void SetScales(const Keys& keys, Config& config) {
  config.embedding_scale = static_cast<float>(keys.PositiveUnlessZero("embedding_scale", 1));
  config.residual_scale = static_cast<float>(keys.PositiveUnlessZero("residual_scale", 1));
  config.logit_scale = static_cast<float>(1 / keys.PositiveUnlessZero("logit_scale", 1));
  const auto scale = static_cast<float>(keys.PositiveUnlessZero("attention.scale", 0));
  if (scale != 0) SetAttentionScale(scale, config);
  if (!keys.BoolOr("rope.scaling.finetuned", true)) {
    for (LayerPlan& layer : config.layers) layer.rope = LayerPlan::kNoRope;
  }
}

// Every fourth layer knows no positions (Yang et al. 2025, "RoPE to NoPE and back again").
void SmolLm3(const Keys&, Config& config) {
  for (size_t i = 3; i < config.layers.size(); i += 4) config.layers[i].rope = LayerPlan::kNoRope;
}

void Mistral3(const Keys& keys, Config& config) {
  RopeConfig& rope = config.ropes[0];
  rope.beta_fast = keys.PositiveOr("rope.scaling.yarn_beta_fast", rope.beta_fast);
  rope.beta_slow = keys.PositiveOr("rope.scaling.yarn_beta_slow", rope.beta_slow);
  rope.log_multiplier = keys.PositiveUnlessZero("rope.scaling.yarn_log_multiplier", 0);
  config.attention_temperature_scale =
      static_cast<float>(keys.PositiveUnlessZero("attention.temperature_scale", 0));
  config.attention_temperature_span = rope.original_context;
}

void Gemma2(const Keys& keys, Config& config) {
  Gemma(46, config);
  config.attention_softcap = static_cast<float>(keys.PositiveOr("attn_logit_softcapping", 50));
  config.logit_softcap = static_cast<float>(keys.PositiveOr("final_logit_softcapping", 30));
  SetWindows(keys, keys.CountOr("attention.sliding_window", 4096, kMaxWindow), 2, config);
  RopeConfig local = config.ropes[0];
  local.base = keys.PositiveOr("rope.freq_base_swa", local.base);
  SetLocalRope(local, config);
}

void Gemma3(const Keys& keys, Config& config) {
  Gemma(62, config);
  config.logit_softcap = static_cast<float>(keys.PositiveUnlessZero("final_logit_softcapping", 0));
  SetWindows(keys, keys.UintOr("attention.sliding_window", 0, kMaxWindow), 6, config);
  RopeConfig local = Unscaled(config.ropes[0]);
  local.base = keys.PositiveOr("rope.freq_base_swa", 10000);
  SetLocalRope(local, config);
}

void GptOss(const Keys& keys, Config& config) {
  SetWindows(keys, keys.Count("attention.sliding_window", kMaxWindow), 2, config);
  RopeConfig local = config.ropes[0];
  local.base = keys.PositiveOr("rope.freq_base_swa", local.base);
  SetLocalRope(local, config);
}

// OLMo 2 has no window, OLMo 3 has one.
void Olmo2(const Keys& keys, Config& config) {
  SetWindows(keys, keys.UintOr("attention.sliding_window", 0, kMaxWindow), 4, config);
  RopeConfig local = Unscaled(config.ropes[0]);
  local.attention_factor = 1;
  SetLocalRope(local, config);
}

void Glm4(const Keys& keys, Config& config) {
  if (keys.Has("rope.dimension_sections")) {
    keys.Fail("rope.dimension_sections", "is that of a model which reads images, too; " +
                                             std::string("only those of text are supported"));
  }
  SkipNextn(keys, config);
}

// Models from before 2B4T have no such key.
void BitNet(const Keys& keys, Config& config) {
  const std::string_view activation = keys.StringOr("hidden_activation", "silu");
  if (activation == "relu2") {
    config.activation = kernels::Activation::kGatedReluSquared;
  } else if (activation != "silu") {
    keys.Fail("hidden_activation", "expected silu or relu2, found " + gguf::Quoted(activation, 40));
  }
}

void Hunyuan(const Keys& keys, Config& config) {
  const auto length = static_cast<double>(config.layers[0].key_length);
  const double alpha = keys.PositiveUnlessZero("rope.scaling.alpha", 1);
  if (length > 2) config.ropes[0].base *= std::pow(alpha, length / (length - 2));
}

// Only the 32B model, told by its layers, has windows; its global layers know no positions.
void Exaone4(const Keys& keys, Config& config) {
  keys.Ignore("attention.sliding_window_pattern");
  const size_t window = keys.CountOr("attention.sliding_window", 4096, kMaxWindow);
  if (config.layers.size() != 64) return;
  SetWindows(keys, window, 4, config);
  for (LayerPlan& layer : config.layers) {
    if (layer.window == 0) layer.rope = LayerPlan::kNoRope;
  }
}

}  // namespace engine
