// Families whose layers are not all plain attention, see families.h.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/families.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

constexpr uint64_t kMaxStateHeads = 1u << 16;
constexpr uint64_t kMaxStateLength = 1u << 10;    // real files have 64 to 256
constexpr uint64_t kMaxLatentLength = 1u << 12;   // real files have 512
constexpr uint64_t kMaxTaps = kernels::kMaxTaps;  // real files have 3 or 4

// The shape of delta nets and Mamba-2, in whose keys "groups" are key heads and "steps" heads.
RecurrentPlan ReadRecurrent(const Keys& keys, size_t inner_size) {
  RecurrentPlan plan;
  plan.n_taps = keys.Count("ssm.conv_kernel", kMaxTaps);
  plan.n_key_heads = keys.Count("ssm.group_count", kMaxStateHeads);
  plan.n_value_heads = keys.Count("ssm.time_step_rank", kMaxStateHeads);
  plan.key_length = keys.Count("ssm.state_size", kMaxStateLength);
  plan.value_length = inner_size / plan.n_value_heads;
  if (plan.value_length * plan.n_value_heads != inner_size || plan.value_length > kMaxStateLength) {
    keys.Fail("ssm.inner_size", "expected a multiple of time_step_rank " +
                                    std::to_string(plan.n_value_heads) + ", up to " +
                                    std::to_string(kMaxStateLength) + " times" + Found(inner_size));
  }
  if (plan.n_value_heads % plan.n_key_heads != 0) {
    keys.Fail("ssm.group_count", "expected a divisor of time_step_rank " +
                                     std::to_string(plan.n_value_heads) + Found(plan.n_key_heads));
  }
  plan.channels = 2 * plan.n_key_heads * plan.key_length + inner_size;
  return plan;
}

// Layers that are not attention have no heads.
void SetMixer(Mixer mixer, const RecurrentPlan& recurrent, LayerPlan& layer) {
  layer.mixer = mixer;
  layer.recurrent = recurrent;
  layer.n_heads = layer.n_kv_heads = layer.key_length = layer.value_length = 0;
}

// How experts are chosen, where keys say it.
void ReadRouter(const Keys& keys, Config& config) {
  if (config.n_experts_used == 0) return;
  kernels::Router& router = config.router;
  const size_t gate = keys.UintOr("expert_gating_func", 0, 2);  // 1 softmax, 2 sigmoid
  if (gate == 2) router.gate = kernels::Router::Gate::kSigmoid;
  if (gate == 1) router.gate = kernels::Router::Gate::kSoftmax;
  router.normed = keys.BoolOr("expert_weights_norm", router.normed);
  router.scale = static_cast<float>(keys.PositiveUnlessZero("expert_weights_scale", 1));
  router.n_groups =
      std::max<size_t>(keys.UintOr("expert_group_count", 1, kernels::kMaxExpertGroups), 1);
  router.n_groups_used =
      std::max<size_t>(keys.UintOr("expert_group_used_count", 1, router.n_groups), 1);
  for (const LayerPlan& layer : config.layers) {
    if (layer.n_experts == 0) continue;
    if (layer.n_experts % router.n_groups != 0) {
      keys.Fail("expert_group_count", "expected a divisor of expert_count " +
                                          std::to_string(layer.n_experts) + Found(router.n_groups));
    }
    const size_t eligible = layer.n_experts / router.n_groups * router.n_groups_used;
    if (eligible < config.n_experts_used) {
      keys.Fail("expert_group_used_count", "its groups have " + std::to_string(eligible) +
                                               " experts, and a token uses " +
                                               std::to_string(config.n_experts_used));
    }
  }
}

// For keys of what is constant in a family.
void Expect(const Keys& keys, std::string_view key, size_t value) {
  if (!keys.Has(key) || keys.Number(key) == static_cast<double>(value)) return;
  keys.Fail(key,
            "expected " + std::to_string(value) + ", found " + std::to_string(keys.Number(key)));
}

template <class IsConstant>
void ExpectOfLayers(const Keys& keys, std::string_view key, size_t n_layers,
                    IsConstant is_constant) {
  if (!keys.Has(key)) return;
  const std::vector<double> found = keys.Numbers(key, n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    if (is_constant(i, found[i])) continue;
    keys.Fail(key, "expected what models of this architecture have, found " +
                       std::to_string(found[i]) + " for layer " + std::to_string(i));
  }
}

// The last layer of every `full_attention_interval` is attention. Where a file has a flag for each
// layer, that decides.
void SetDeltaNets(const Keys& keys, Config& config) {
  const size_t inner_size = keys.Count("ssm.inner_size", kMaxLength);
  const RecurrentPlan delta = ReadRecurrent(keys, inner_size);
  if (delta.value_length != delta.key_length) {
    keys.Fail("ssm.inner_size", "expected time_step_rank times state_size" + Found(inner_size));
  }
  const LayerPlan attention = config.layers.back();
  const size_t interval = keys.CountOr("full_attention_interval", 4, kMaxLength);
  std::vector<size_t> flags;
  if (keys.Has("attention.recurrent_layers")) {
    flags = keys.PerLayer("attention.recurrent_layers", config.n_layers(), 0, 1);
  }
  for (size_t i = 0; i < config.n_layers(); ++i) {
    const bool recurrent = flags.empty() ? (i + 1) % interval != 0 : flags[i] != 0;
    if (recurrent) SetMixer(Mixer::kDeltaNet, delta, config.layers[i]);
  }
  SkipNextn(keys, config);
  if (config.n_skipped_layers == 1) config.nextn = attention;
}

void SetMamba2(const Keys& keys, Config& config) {
  const RecurrentPlan mamba = ReadRecurrent(keys, keys.Count("ssm.inner_size", kMaxLength));
  for (LayerPlan& layer : config.layers) {
    const bool is_mamba = layer.mixer == Mixer::kMamba2 ||
                          (layer.mixer == Mixer::kNone && layer.ffn_length + layer.n_experts == 0);
    if (is_mamba) SetMixer(Mixer::kMamba2, mamba, layer);
  }
}

}  // namespace

void Lfm2(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  RecurrentPlan conv;
  conv.n_taps = keys.Count("shortconv.l_cache", kMaxTaps);
  conv.channels = config.embedding_length;
  for (LayerPlan& layer : config.layers) {
    if (layer.mixer == Mixer::kShortConv) {
      SetMixer(Mixer::kShortConv, conv, layer);
    } else {
      layer.window = window;
    }
  }
}

void Lfm2Moe(const Keys& keys, Config& config) {
  Lfm2(keys, config);
  keys.Count("expert_gating_func", 2);
  ReadRouter(keys, config);
}

// Text has one position for time, height and width; but pairs that belong to none are not turned.
void Qwen35(const Keys& keys, Config& config) {
  const std::vector<size_t> sections = keys.Array("rope.dimension_sections", 4, 0, kMaxLength);
  std::copy(sections.begin(), sections.end(), config.ropes[0].sections.begin());
  if (sections == std::vector<size_t>(4)) {
    keys.Fail("rope.dimension_sections", "expected a number above 0, found none");
  }
  SetDeltaNets(keys, config);
}

void Qwen3Next(const Keys& keys, Config& config) { SetDeltaNets(keys, config); }

void Gemma3n(const Keys& keys, Config& config) {
  constexpr size_t kPeriod = 5, kFirstShared = 20, kSparse = 10;
  constexpr float kSparsity = 1.6448533535f;  // above it are 5% of a normal distribution
  const size_t n_layers = config.n_layers();
  // Files have keys that say what is constant here, and what the engines that made them do not
  // read.
  Expect(keys, "altup.active_idx", 0);
  Expect(keys, "altup.num_inputs", 4);
  Expect(keys, "attention.shared_kv_layers", n_layers - std::min(n_layers, kFirstShared));
  Expect(keys, "final_logit_softcapping", 30);
  ExpectOfLayers(keys, "attention.sliding_window_pattern", n_layers, [](size_t i, double found) {
    return (found != 0) == (i % kPeriod != kPeriod - 1);
  });
  ExpectOfLayers(keys, "activation_sparsity_scale", n_layers, [](size_t i, double found) {
    return i < kSparse ? std::abs(found - kSparsity) < 1e-4 : !(found > 0);
  });
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding_length));
  config.logit_softcap = 30;
  config.n_streams = 4;
  config.laurel_length = 64;
  config.per_layer_length = keys.Count("embedding_length_per_layer_input", kMaxLength);
  const size_t window = keys.Count("attention.sliding_window", kMaxWindow);
  for (size_t i = 0; i < config.n_layers(); ++i) {
    LayerPlan& layer = config.layers[i];
    const bool slides = i % kPeriod != kPeriod - 1;
    layer.attention_scale = 1;
    if (slides) layer.window = window;
    if (i < kSparse) layer.ffn_sparsity = kSparsity;
    if (i >= kFirstShared) layer.kv_layer = slides ? kFirstShared - 2 : kFirstShared - 1;
  }
  RopeConfig local = config.ropes[0];
  local.base = keys.PositiveOr("rope.freq_base_swa", 10000);
  SetLocalRope(local, config);
}

// Full layers and sliding ones differ in everything; some sliding and full layers at the end see
// what the last ones before them have kept.
void Gemma4(const Keys& keys, Config& config) {
  const size_t n_layers = config.n_layers();
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding_length));
  config.logit_softcap =
      keys.Has("final_logit_softcapping")
          ? static_cast<float>(keys.PositiveUnlessZero("final_logit_softcapping", 0))
          : 30.0f;
  const size_t window = keys.Count("attention.sliding_window", kMaxWindow);
  config.keys_as_values = true;
  const auto slides = keys.PerLayer("attention.sliding_window_pattern", n_layers, 0, 1);
  const size_t key_length = keys.Count("attention.key_length_swa", kMaxStateLength);
  const size_t value_length =
      keys.CountOr("attention.value_length_swa", key_length, kMaxStateLength);
  const size_t n_shared = keys.UintOr("attention.shared_kv_layers", 0, n_layers);
  const size_t n_own = n_layers - n_shared;
  if (n_shared > 0 && n_own < 2) {
    keys.Fail("attention.shared_kv_layers",
              "expected two fewer than layers at most" + Found(n_shared));
  }
  for (size_t i = 0; i < n_layers; ++i) {
    LayerPlan& layer = config.layers[i];
    layer.attention_scale = 1;
    if (slides[i] != 0) {
      layer.window = window;
      layer.key_length = key_length;
      layer.value_length = value_length;
    }
    if (layer.n_experts > 0) layer.ffn_length = keys.Count("feed_forward_length", kMaxLength);
    if (i < n_own) continue;
    layer.kv_layer = slides[i] != 0 ? n_own - 2 : n_own - 1;
    if (slides[layer.kv_layer] != slides[i]) {
      keys.Fail("attention.sliding_window_pattern",
                "layer " + std::to_string(i) + " uses what layer " +
                    std::to_string(layer.kv_layer) + " keeps: expected " +
                    std::to_string(slides[i]) + " for that" + Found(slides[layer.kv_layer]));
    }
  }
  RopeConfig local = config.ropes[0];
  local.n_dims = keys.CountOr("rope.dimension_count_swa", local.n_dims, kMaxStateLength);
  local.base = keys.PositiveOr("rope.freq_base_swa", 10000);
  local.divided = false;
  SetLocalRope(local, config);
  config.per_layer_length = keys.UintOr("embedding_length_per_layer_input", 0, kMaxLength);
}

void DeepSeek2(const Keys& keys, Config& config) {
  RopeConfig& rope = config.ropes[0];
  const bool absorbed = keys.Has("attention.key_length_mla");
  const size_t latent_length = keys.Count("attention.kv_lora_rank", kMaxLatentLength);
  double growth = 1;  // of attention's scale for contexts beyond the trained one
  if (rope.scaling == RopeScaling::kYarn && rope.factor > 1) {
    const double multiplier = keys.PositiveUnlessZero("rope.scaling.yarn_log_multiplier", 0);
    growth += 0.1 * (multiplier > 0 ? 10 * multiplier : 1) * std::log(rope.factor);
    rope.log_multiplier = multiplier > 0 ? 1 : 0;  // then cosines and sines do not grow
  }
  if (rope.attention_factor != 1) {  // whether it counts for the scale as well, nothing says
    keys.Fail("rope.scaling.attn_factor",
              "expected 1, found " + std::to_string(rope.attention_factor));
  }
  const size_t query_rank = keys.UintOr("attention.q_lora_rank", 0, kMaxLength);
  const size_t n_shared = keys.CountOr("expert_shared_count", 1, kMaxStateHeads);
  for (LayerPlan& layer : config.layers) {
    layer.mixer = Mixer::kLatentAttention;
    layer.latent_length = latent_length;
    layer.query_rank = query_rank;
    layer.head_key_length =
        absorbed ? keys.Count("attention.key_length_mla", kMaxStateHeads) : layer.key_length;
    layer.head_value_length =
        absorbed ? keys.Count("attention.value_length_mla", kMaxStateHeads) : layer.value_length;
    if (layer.head_key_length <= rope.n_dims) {
      keys.Fail("rope.dimension_count", "expected less than a head's " +
                                            std::to_string(layer.head_key_length) +
                                            Found(rope.n_dims));
    }
    if (absorbed) {
      layer.n_kv_heads = 1;
      layer.key_length = latent_length + rope.n_dims;
      layer.value_length = latent_length;
      layer.values_in_keys = true;
    } else {
      layer.n_kv_heads = layer.n_heads;
    }
    layer.rope_offset = layer.key_length - rope.n_dims;
    layer.attention_scale =
        static_cast<float>(growth * growth / std::sqrt(static_cast<double>(layer.head_key_length)));
    if (layer.n_experts > 0) layer.shared_ffn_length = n_shared * layer.expert_length;
  }
  ReadRouter(keys, config);
  SkipNextn(keys, config);
}

void GraniteHybrid(const Keys& keys, Config& config) {
  SetMamba2(keys, config);
  SetScales(keys, config);
  if (config.n_experts_used > 0) {
    const size_t expert_length = keys.Count("feed_forward_length", kMaxLength);
    for (LayerPlan& layer : config.layers) layer.expert_length = expert_length;
  }
}

void NemotronH(const Keys& keys, Config& config) {
  SetMamba2(keys, config);
  for (LayerPlan& layer : config.layers) layer.rope = LayerPlan::kNoRope;
  if (config.n_experts_used == 0) return;
  keys.Ignore("expert_shared_count");  // their width is that of all together
  ReadRouter(keys, config);
  config.expert_width = keys.UintOr("moe_latent_size", 0, kMaxLength);
}

}  // namespace engine
