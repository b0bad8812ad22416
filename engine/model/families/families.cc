// Reads keys that several lineages share: windows, RoPE, routers, Mamba-2.
#include "engine/model/families/families.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "gguf/error.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {

void SetWindows(const Keys& keys, size_t window, size_t period, Config& config) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  if (keys.Length(kPattern) == config.n_layers() && window > 0)
    return SetListedWindows(keys, config);
  period = keys.NumberUnlessArray(kPattern, period, kMaxLength);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool global = period != 0 && i % period == period - 1;
    config.layers[i].window = global ? 0 : window;
  }
}

void SetListedWindows(const Keys& keys, Config& config) {
  const size_t window = keys.Count("attention.sliding_window", kMaxWindow);
  const auto slides =
      keys.PerLayer("attention.sliding_window_pattern", config.n_layers(), 0, kMaxWindow);
  for (size_t i = 0; i < slides.size(); ++i) config.layers[i].window = slides[i] != 0 ? window : 0;
}

void ReadWindows(const Keys& keys, const Windows& windows, Config& config) {
  constexpr const char *kLength = "attention.sliding_window",
                       *kPattern = "attention.sliding_window_pattern";
  using enum Windows::When;
  using Rope = Windows::Rope;
  if (windows.when == kNever) return;
  if (windows.when == kIfListed) {
    if (keys.Length(kPattern) > 0) return SetListedWindows(keys, config);
    return keys.Ignore(kLength);
  }
  const size_t length = windows.when == kAlways ? keys.Count(kLength, kMaxWindow)
                                                : keys.UintOr(kLength, windows.length, kMaxWindow);
  if (length > 0 || windows.period > 0) SetWindows(keys, length, windows.period, config);
  if (windows.rope == Rope::kOnlyThere) {
    keys.Ignore("rope.freq_base_swa");
    RotateInWindowsOnly(config);
  } else if (windows.rope != Rope::kSame) {
    const RopeConfig& rope = config.ropes[0];
    SetLocalBase(keys, windows.rope == Rope::kUnscaled ? Unscaled(rope) : rope,
                 windows.base != 0 ? windows.base : rope.base, config);
  }
}

void SetLocalBase(const Keys& keys, RopeConfig rope, double fallback, Config& config) {
  rope.base = keys.PositiveOr("rope.freq_base_swa", fallback);
  config.ropes.push_back(rope);
  for (LayerPlan& layer : config.layers) {
    if (layer.window > 0) layer.rope = config.ropes.size() - 1;
  }
}

void RotateInWindowsOnly(Config& config) {
  for (LayerPlan& layer : config.layers) {
    if (layer.window == 0) layer.rope = LayerPlan::kNoRope;
  }
}

void LeaveOutFourthRope(Config& config) {
  for (size_t i = 3; i < config.layers.size(); i += 4) config.layers[i].rope = LayerPlan::kNoRope;
}

void SeeBothWays(const Keys& keys, Config& config) {
  keys.Ignore("attention.causal");
  for (LayerPlan& layer : config.layers) {
    layer.n_keys_ahead = layer.window == 0 ? SIZE_MAX : layer.window - 1;
  }
}

RopeConfig Unscaled(RopeConfig rope) {
  rope.scaling = RopeScaling::kNone;
  rope.attention_factor = 1;
  return rope;
}

void SetAttentionScale(float scale, Config& config) {
  for (LayerPlan& layer : config.layers) layer.score_scale = scale;
}

std::array<size_t, 4> ReadSections(const Keys& keys) {
  const size_t n = keys.Length("rope.dimension_sections") == 3 ? 3 : 4;
  std::array<size_t, 4> sections = {};
  std::ranges::copy(keys.Array("rope.dimension_sections", n, 0, kMaxLength), sections.begin());
  return sections;
}

bool CheckSections(const Keys& keys) {
  if (!keys.Has("rope.dimension_sections")) return false;
  const std::array<size_t, 4> sections = ReadSections(keys);
  if (sections[3] == 0) return true;
  keys.Fail("rope.dimension_sections", "expected 0 as the fourth number, found ", sections[3]);
}

// The heads' slopes are 2^(-bias / n), its square and so on. n is the number of heads; if that is
// no power of two, n is the largest smaller one, and the other slopes lie in between.
void SetSlopes(double bias, Config& config) {
  const size_t n_heads = config.layers[0].n_heads, n = std::bit_floor(n_heads);
  for (size_t i = 0; i < n_heads; ++i) {
    const double step = bias / static_cast<double>(n);
    const double power =
        i < n ? static_cast<double>(i + 1) : static_cast<double>(2 * (i - n) + 1) / 2;
    config.slopes.push_back(static_cast<float>(std::exp2(-step * power)));
  }
  for (LayerPlan& layer : config.layers) layer.rope = LayerPlan::kNoRope;
}

void LeaveOutRope(Config& config) {
  for (LayerPlan& layer : config.layers) layer.rope = LayerPlan::kNoRope;
}

void SkipNextn(const Keys& keys, Config& config) {
  config.n_skipped_layers = keys.UintOr("nextn_predict_layers", 0, config.layers.size() - 1);
  const size_t n = config.layers.size() - config.n_skipped_layers;
  if (config.n_skipped_layers > 0) {
    const LayerPlan& block = config.layers[n];
    const bool attends = block.mixer == Mixer::kAttention || block.mixer == Mixer::kLatentAttention;
    if (attends && config.norms.attn_post.empty()) config.nextn = block;
  }
  config.layers.resize(n);
}

namespace {

// Experts are in groups, and some groups are chosen first.
void ReadGroups(const Keys& keys, Config& config) {
  kernels::Router& router = config.router;
  router.n_groups =
      std::max<size_t>(keys.UintOr("expert_group_count", 1, kernels::kMaxExpertGroups), 1);
  router.n_groups_used =
      std::max<size_t>(keys.UintOr("expert_group_used_count", 1, router.n_groups), 1);
  for (const LayerPlan& layer : config.layers) {
    if (layer.n_experts == 0) continue;
    if (layer.n_experts % router.n_groups != 0) {
      keys.Fail("expert_group_count", "expected a divisor of expert_count ", layer.n_experts,
                ", found ", router.n_groups);
    }
    const size_t eligible = layer.n_experts / router.n_groups * router.n_groups_used;
    if (eligible < config.n_experts_used) {
      keys.Fail("expert_group_used_count", "its groups have ", eligible,
                " experts, and a token uses ", config.n_experts_used);
    }
  }
}

}  // namespace

void ReadRouter(const Keys& keys, const Family& family, Config& config) {
  if (!family.router) return;
  keys.Ignore("expert_gating_func", "expert_weights_norm", "expert_weights_scale",
              "expert_shared_count");
  if (config.n_experts_used == 0) return;
  kernels::Router& router = config.router;
  if (family.router_keys) {
    const size_t gate = keys.UintOr("expert_gating_func", 0, 2);  // 1 softmax, 2 sigmoid
    if (gate == 2) router.gate = kernels::Router::Gate::kSigmoid;
    if (gate == 1) router.gate = kernels::Router::Gate::kSoftmax;
    router.normed = keys.BoolOr("expert_weights_norm", router.normed);
    router.scale = static_cast<float>(keys.PositiveUnlessZero("expert_weights_scale", 1));
  }
  ReadGroups(keys, config);
  if (family.n_shared_experts) {
    SetSharedExperts(keys.UintOr("expert_shared_count", *family.n_shared_experts, kMaxStateHeads),
                     config);
  }
}

void SetSharedExperts(size_t factor, Config& config) {
  for (LayerPlan& layer : config.layers) {
    if (layer.n_experts == 0) continue;
    const size_t each =
        layer.shared_ffn_length != 0 ? layer.shared_ffn_length : layer.expert_length;
    layer.shared_ffn_length = factor * each;
  }
}

RecurrentPlan ReadRecurrent(const Keys& keys, size_t inner_size) {
  RecurrentPlan plan;
  plan.n_taps = keys.Count("ssm.conv_kernel", kernels::kMaxTaps);
  plan.n_key_heads = keys.Count("ssm.group_count", kMaxStateHeads);
  plan.n_value_heads = keys.Count("ssm.time_step_rank", kMaxStateHeads);
  plan.key_length = keys.Count("ssm.state_size", kMaxStateLength);
  plan.value_length = inner_size / plan.n_value_heads;
  if (plan.value_length * plan.n_value_heads != inner_size || plan.value_length > kMaxStateLength) {
    keys.Fail("ssm.inner_size", "expected a multiple of time_step_rank ", plan.n_value_heads,
              ", up to ", kMaxStateLength, " times, found ", inner_size);
  }
  if (plan.n_value_heads % plan.n_key_heads != 0) {
    keys.Fail("ssm.group_count", "expected a divisor of time_step_rank ", plan.n_value_heads,
              ", found ", plan.n_key_heads);
  }
  plan.channels = 2 * plan.n_key_heads * plan.key_length + inner_size;
  plan.n_alpha = plan.n_beta = plan.n_value_heads;
  return plan;
}

RecurrentPlan ReadMamba2(const Keys& keys) {
  RecurrentPlan plan = ReadRecurrent(keys, keys.Count("ssm.inner_size", kMaxLength));
  plan.n_beta = 0;
  return plan;
}

std::vector<bool> ReadRecurrentLayers(const Keys& keys, size_t interval, size_t n) {
  constexpr std::string_view kFlags = "attention.recurrent_layers";
  interval = keys.CountOr("full_attention_interval", interval, kMaxLength);
  std::vector<bool> recurrent;
  for (size_t i = 0; i < n; ++i) recurrent.push_back((i + 1) % interval != 0);
  if (!keys.Has(kFlags)) return recurrent;
  const auto flags = keys.PerLayer(kFlags, n, 0, 1);
  return {flags.begin(), flags.end()};
}

void SetMixer(Mixer mixer, const RecurrentPlan& recurrent, LayerPlan& layer) {
  layer.mixer = mixer;
  layer.recurrent = recurrent;
  layer.n_heads = layer.n_kv_heads = layer.key_length = layer.value_length = 0;
}

void SetMamba2(const Keys& keys, Config& config) {
  const RecurrentPlan mamba = ReadMamba2(keys);
  for (LayerPlan& layer : config.layers) {
    const bool is_mamba = layer.mixer == Mixer::kMamba2 ||
                          (layer.mixer == Mixer::kNone && layer.ffn_length + layer.n_experts == 0);
    if (is_mamba) SetMixer(Mixer::kMamba2, mamba, layer);
  }
}

}  // namespace engine
