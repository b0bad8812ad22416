// DeepSeek-V2 (2024) and V3 (2024), and models built like them (R1, Kimi K2, GLM 4.7 Flash): latent
// attention, and routed experts beside a shared one, chosen in groups with a bias. Kimi Linear
// (Moonshot AI 2025) has delta nets in three layers of four, and no rope.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"
#include "kernels/recurrence/recurrence.h"

namespace engine {
namespace {

using enum Order;

// ---- What a file means.

constexpr size_t kGlmFlashVocabulary = 154880;
constexpr uint64_t kMaxLatentLength = 1u << 12;  // real files have 512

// Attention on latent vectors. All heads share n numbers of their keys.
void SetLatent(const Keys& keys, size_t n, LayerPlan& layer) {
  layer.latent_length = keys.Count("attention.kv_lora_rank", kMaxLatentLength);
  layer.head_key_length = keys.Count("attention.key_length_mla", kMaxStateHeads);
  layer.head_value_length = keys.Count("attention.value_length_mla", kMaxStateHeads);
  layer.n_kv_heads = 1;
  layer.key_length = layer.latent_length + n;
  layer.value_length = layer.latent_length;
  layer.values_in_keys = true;
}

// The vectors are expanded to keys and values of each head.
void SetExpanded(const Keys& keys, LayerPlan& layer) {
  layer.latent_length = keys.Count("attention.kv_lora_rank", kMaxLatentLength);
  layer.head_key_length = layer.key_length;
  layer.head_value_length = layer.value_length;
  layer.n_kv_heads = layer.n_heads;
}

void CheckHeadKey(const Keys& keys, size_t n, const LayerPlan& layer) {
  if (layer.head_key_length > n) return;
  keys.Fail("rope.dimension_count", "expected less than a head's ", layer.head_key_length,
            ", found ", n);
}

void DeepSeek2(const Keys& keys, Config& config) {
  RopeConfig& rope = config.ropes[0];
  const bool absorbed = keys.Has("attention.key_length_mla");
  const double scale = keys.PositiveUnlessZero("attention.scale", 0);
  double growth = 1;  // growth of the attention scale beyond the trained context
  const double multiplier = std::exchange(rope.log_multiplier, 0);
  if (rope.scaling == RopeScaling::kYarn && rope.factor > 1 && scale == 0) {
    growth += 0.1 * (multiplier > 0 ? 10 * multiplier : 1) * std::log(rope.factor);
    rope.log_multiplier = multiplier > 0 ? 1 : 0;  // cosines and sines then do not grow
  }
  if (rope.attention_factor != 1 && scale == 0) {  // unknown whether the scale includes it
    keys.Fail("rope.scaling.attn_factor", "expected 1, found ", rope.attention_factor);
  }
  const size_t query_rank = keys.UintOr("attention.q_lora_rank", 0, kMaxLength);
  for (LayerPlan& layer : config.layers) {
    layer.mixer = Mixer::kLatentAttention;
    layer.query_rank = query_rank;
    if (absorbed) {
      SetLatent(keys, rope.n_dims, layer);
    } else {
      SetExpanded(keys, layer);
    }
    CheckHeadKey(keys, rope.n_dims, layer);
    layer.rope_offset = layer.key_length - rope.n_dims;
    const double by_length =
        growth * growth / std::sqrt(static_cast<double>(layer.head_key_length));
    layer.score_scale = static_cast<float>(scale != 0 ? scale : by_length);
  }
  // GLM 4.7 Flash was first published without a key for its gate.
  const size_t n_blocks = config.n_layers();
  if ((n_blocks == 47 || n_blocks == 48) && config.vocab_size == kGlmFlashVocabulary) {
    if (!keys.Has("expert_gating_func")) config.router.gate = kernels::Router::Gate::kSigmoid;
  }
}

// MiniCPM3 (OpenBMB 2024) has the scales of its only published model unless keys say otherwise.
constexpr double kMiniCpmEmbedding = 12, kMiniCpmDepth = 1.4, kMiniCpmBase = 256;

void MiniCpm3(const Keys& keys, Config& config) {
  const auto n_layers = static_cast<double>(config.n_layers());
  const auto width = static_cast<double>(config.embedding_length);
  const auto scale = [&](const char* key, double fallback) {
    return static_cast<float>(keys.PositiveOr(key, fallback));
  };
  config.embedding_scale = scale("embedding_scale", kMiniCpmEmbedding);
  config.residual_scale = scale("residual_scale", kMiniCpmDepth / std::sqrt(n_layers));
  config.logit_scale = scale("logit_scale", kMiniCpmBase / width);
  const size_t query_rank = keys.UintOr("attention.q_lora_rank", 0, kMaxLength);
  for (LayerPlan& layer : config.layers) {
    layer.mixer = Mixer::kLatentAttention;
    layer.query_rank = query_rank;
    SetExpanded(keys, layer);
    CheckHeadKey(keys, config.ropes[0].n_dims, layer);
    layer.rope_offset = layer.key_length - config.ropes[0].n_dims;
  }
}

// Without key-value heads a layer is a delta net that decays by channel, else latent attention.
RecurrentPlan ReadDeltaNets(const Keys& keys) {
  RecurrentPlan delta;
  delta.n_taps = keys.Count("ssm.conv_kernel", kernels::kMaxTaps);
  delta.key_length = delta.value_length = keys.Count("kda.head_dim", kMaxStateLength);
  delta.decay_by_channel = true;
  return delta;
}
void SetDeltaNets(const Keys& keys, RecurrentPlan delta, Config& config) {
  const size_t n_shared = config.ropes[0].n_dims;  // numbers of a head's key
  const std::vector<size_t> n_heads =
      keys.PerLayer("attention.head_count", config.n_layers(), 1, kMaxStateHeads);
  for (size_t i = 0; i < config.n_layers(); ++i) {
    LayerPlan& layer = config.layers[i];
    if (layer.mixer == Mixer::kDeltaNet) {
      delta.n_key_heads = delta.n_value_heads = delta.n_beta = n_heads[i];
      delta.n_alpha = delta.width();
      delta.channels = 3 * delta.width();
      SetMixer(Mixer::kDeltaNet, delta, layer);
      continue;
    }
    layer.mixer = Mixer::kLatentAttention;
    SetLatent(keys, n_shared, layer);
    CheckHeadKey(keys, n_shared, layer);
    layer.rope_offset = layer.latent_length;
    layer.score_scale = 1 / std::sqrt(static_cast<float>(layer.head_key_length));
  }
  // If all layers are delta nets, these keys have no effect.
  keys.Ignore("attention.key_length", "attention.value_length", "attention.kv_lora_rank",
              "attention.key_length_mla", "attention.value_length_mla");
}

void KimiLinear(const Keys& keys, Config& config) {
  RecurrentPlan delta = ReadDeltaNets(keys);
  delta.rank = delta.key_length;
  SetDeltaNets(keys, delta, config);
  LeaveOutRope(config);
}

// Ling 3 (inclusionAI 2026): decays have a least value, and attention heads have a gate.
void BailingMoe3(const Keys& keys, Config& config) {
  RecurrentPlan delta = ReadDeltaNets(keys);
  const double lowest = keys.Number("kda.gate_lower_bound");
  if (!(lowest < 0 && lowest >= -100))
    keys.Fail("kda.gate_lower_bound", "expected a number from -100 to 0, found ", lowest);
  if (keys.BoolOr("kda.safe_gate", true)) delta.lowest_decay = static_cast<float>(lowest);
  SetDeltaNets(keys, delta, config);
  const size_t query_rank = keys.UintOr("attention.q_lora_rank", 0, kMaxLength);
  for (LayerPlan& layer : config.layers) layer.query_rank = query_rank;
}

// ---- What a folder means.

constexpr TensorRule kLatent[] = {
    {".self_attn.q_a_proj", ".attn_q_a"},
    {".self_attn.q_a_layernorm", ".attn_q_a_norm"},
    {".self_attn.q_b_proj", ".attn_q_b"},
    {".self_attn.kv_a_proj_with_mqa", ".attn_kv_a_mqa"},
    {".self_attn.kv_a_layernorm", ".attn_kv_a_norm"},
    {".self_attn.kv_b_proj", ".attn_k_b", kKeyB},
    {".self_attn.kv_b_proj", ".attn_v_b", kValueB},
};
constexpr TensorRule kMiniCpm3[] = {{".self_attn.kv_b_proj", ".attn_kv_b"}};
constexpr TensorRule kKimiLinear[] = {
    {".self_attn.q_conv1d", ".ssm_conv1d_q", kTapsApart},
    {".self_attn.k_conv1d", ".ssm_conv1d_k", kTapsApart},
    {".self_attn.v_conv1d", ".ssm_conv1d_v", kTapsApart},
    {".self_attn.f_a_proj", ".ssm_f_a"},
    {".self_attn.f_b_proj", ".ssm_f_b"},
    {".self_attn.g_a_proj", ".ssm_g_a"},
    {".self_attn.g_b_proj", ".ssm_g_b"},
    {".self_attn.b_proj", ".ssm_beta"},
    {".self_attn.A_log", ".ssm_a", kColumn, Change::kMinusExp},
    {".self_attn.dt_bias", ".ssm_dt.bias", kVector},
    {".self_attn.o_norm", ".ssm_norm"},
};

constexpr std::string_view kLatentLayer = ".attention.kv_b_proj", kDeltaLayer = ".attention.f_proj";
// Decays without a least value: the file's rates are negative, otherwise positive.
constexpr TensorRule kUnboundedDecay[] = {
    {".attention.A_log", ".ssm_a", kColumn, Change::kMinusExp}};
constexpr TensorRule kBailing3[] = {
    {"model.word_embeddings", "token_embd"},
    {".attention.dense", ".attn_output"},
    {".attention.q_proj", ".attn_q"},
    {".attention.k_proj", ".attn_k"},
    {".attention.v_proj", ".attn_v"},
    {".attention.q_a_proj", ".attn_q_a"},
    {".attention.q_a_layernorm", ".attn_q_a_norm"},
    {".attention.q_b_proj", ".attn_q_b"},
    {".attention.kv_a_proj_with_mqa", ".attn_kv_a_mqa"},
    {".attention.kv_a_layernorm", ".attn_kv_a_norm"},
    {".attention.kv_b_proj", ".attn_k_b", kKeyB},
    {".attention.kv_b_proj", ".attn_v_b", kValueB},
    {".attention.g_proj", ".attn_gate", kSame, Change::kNone, kLatentLayer},
    {".attention.g_proj", ".ssm_g_a", kSame, Change::kNone, kDeltaLayer},
    {".attention.f_proj", ".ssm_f_a"},
    {".attention.b_proj", ".ssm_beta"},
    {".attention.q_conv1d", ".ssm_conv1d_q", kTapsApart},
    {".attention.k_conv1d", ".ssm_conv1d_k", kTapsApart},
    {".attention.v_conv1d", ".ssm_conv1d_v", kTapsApart},
    {".attention.A_log", ".ssm_a", kColumn, Change::kExp},
    {".attention.dt_bias", ".ssm_dt.bias", kVector},
    {".attention.o_norm", ".ssm_norm"},
    {".mlp.gate.expert_bias", ".exp_probs_b.bias"},
};

constexpr KeyRule kLatentKeys[] = {
    {"q_lora_rank", "attention.q_lora_rank"},
    {"kv_lora_rank", "attention.kv_lora_rank"},
    {"num_experts_per_token", "expert_used_count"},
    {"num_expert_group", "expert_group_count"},
};

constexpr KeyRule kBailing3Keys[] = {
    {"short_conv_kernel_size", "ssm.conv_kernel"},
    {"kda_lower_bound", "kda.gate_lower_bound", KeyKind::kFloat},
    {"moe_renormalize", "expert_weights_norm", KeyKind::kBool},
};
constexpr KeyValue kBailing3Only[] = {{"attention_bias", 0}};
constexpr KeyValue kBailing3Defaults[] = {
    {"short_conv_kernel_size", 4},
    {"kda_lower_bound", -5},
    {"routed_scaling_factor", 2.5},
    {"num_shared_experts", 1},
    {"first_k_dense_replace", 2},
    {"num_expert_group", 8},
    {"topk_group", 4},
    {"num_experts_per_token", 8},
    {"num_experts", 512},
    {"kv_lora_rank", 512},
    {"qk_rope_head_dim", 64},
    {"qk_nope_head_dim", 128},
    {"v_head_dim", 128},
    {"moe_intermediate_size", 768},
    {"rms_norm_eps", 1e-6},
};

constexpr KeyValue kDeepSeek2Only[] = {{"rope_interleave", 1}};
constexpr KeyValue kDeepSeek3Defaults[] = {{"norm_topk_prob", 1}, {"routed_scaling_factor", 2.5}};
constexpr KeyValue kGlmLiteDefaults[] = {{"norm_topk_prob", 1}, {"routed_scaling_factor", 1.8}};
constexpr KeyValue kMiniCpm3Defaults[] = {{"rms_norm_eps", 1e-5}};
constexpr KeyValue kKimiLinearOnly[] = {{"mla_use_nope", 1}, {"moe_renormalize", 1}};
constexpr KeyValue kKimiLinearDefaults[] = {{"routed_scaling_factor", 2.446}};
constexpr std::pair<std::string_view, std::string_view> kKimiLinearNames[] = {
    {"model_max_length", "max_position_embeddings"}};

void AddLatent(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t rotated = config.Count("qk_rope_head_dim"), latent = config.Count("kv_lora_rank");
  model.shapes.head_plain = config.Count("qk_nope_head_dim");
  model.shapes.head_value = config.Count("v_head_dim");
  model.Uint("rope.dimension_count", rotated);
  model.shapes.n_kv_heads = 1;
  model.Uint("attention.key_length", latent + rotated);
  model.Uint("attention.value_length", latent);
  model.Uint("attention.key_length_mla", model.shapes.head_plain + rotated);
  model.Uint("attention.value_length_mla", model.shapes.head_value);
}

void DeepSeek2(OutModel& model) {
  const Fields& config = model.config;
  AddLatent(model);
  // The default if the key is missing: only experts chosen by sigmoid have such a bias.
  const bool biased = std::ranges::any_of(model.folder.tensors(), [](const auto& tensor) {
    return tensor.first.ends_with(".e_score_correction_bias");
  });
  const bool sigmoid = AddGating(biased, model);
  if (!sigmoid && config.CountOr("n_group", 1) > 1) {
    model.notes.push_back(
        "groups of experts are chosen by their two best experts, as all readers "
        "of such files do; the original takes the best one alone");
  }
  const Fields rope = model.rope();
  const std::string type = rope.TextOr("rope_type", rope.TextOr("type", "default"));
  if (type == "default") return;
  const double all = rope.NumberOr("mscale_all_dim", 0), factor = rope.NumberOr("factor", 1);
  if (type == "yarn" && all != 0 && rope.NumberOr("mscale", 0) == all &&
      !rope.Has("attention_factor")) {
    model.log_multiplier = 1;
    model.Float("rope.scaling.yarn_log_multiplier", 0.1 * all);
    return;
  }
  // Readers compute the scale of scores from the other keys, except for this key of ours.
  const double growth = factor > 1 ? 1 + 0.1 * all * std::log(factor) : 1;
  const double length = static_cast<double>(config.Count("qk_rope_head_dim")) +
                        static_cast<double>(config.Count("qk_nope_head_dim"));
  model.Float("attention.scale", growth * growth / std::sqrt(length));
  model.notes.push_back(
      "the key deepseek2.attention.scale has the scale of its scores: programs "
      "that do not know that key compute something else");
}

void MiniCpm3(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t rotated = config.Count("qk_rope_head_dim"), width = config.Count("hidden_size");
  const auto n_layers = static_cast<double>(model.n_layers());
  model.shapes.n_kv_heads = model.shapes.n_heads;
  model.Uint("rope.dimension_count", rotated);
  model.Uint("attention.key_length", config.Count("qk_nope_head_dim") + rotated);
  model.Uint("attention.value_length", config.CountOr("v_head_dim", width / model.shapes.n_heads));
  const auto add = [&](const char* key, double found, double fallback) {
    if (found == fallback) return;
    model.Float(key, found);
    model.notes.push_back("the key minicpm3." + std::string(key) +
                          " has a scale: programs that do not know it compute something else");
  };
  const auto base = static_cast<double>(width);
  add("embedding_scale", config.NumberOr("scale_emb", kMiniCpmEmbedding), kMiniCpmEmbedding);
  add("residual_scale", config.NumberOr("scale_depth", kMiniCpmDepth) / std::sqrt(n_layers),
      kMiniCpmDepth / std::sqrt(n_layers));
  add("logit_scale", config.NumberOr("dim_model_base", kMiniCpmBase) / base, kMiniCpmBase / base);
}

// Layers are counted from 1 here.
void KimiLinear(OutModel& model) {
  const Fields& config = model.config;
  const Fields delta = config.Object("linear_attn_config");
  AddLatent(model);
  std::vector<bool> attends = LayersOfType(model, "full_attention");
  attends.resize(model.n_layers());
  for (const double layer : delta.Numbers("full_attn_layers")) {
    if (layer >= 1 && layer <= static_cast<double>(attends.size()))
      attends[static_cast<size_t>(layer) - 1] = true;
  }
  AddHeads(attends, model);
  if (delta.is_there()) {
    model.Uint("kda.head_dim", delta.Count("head_dim"));
    model.Uint("ssm.conv_kernel", delta.Count("short_conv_kernel_size"));
  } else {
    model.Uint("kda.head_dim", config.Count("linear_head_dim"));
    model.Uint("ssm.conv_kernel", config.CountOr("linear_conv_kernel_dim", 4));
    if (config.Count("linear_num_heads") != model.shapes.n_heads)
      config.Fail("linear_num_heads", "expected as num_attention_heads");
  }
}

// The last layer of each group has attention.
void BailingMoe3(OutModel& model) {
  const Fields& config = model.config;
  AddLatent(model);
  std::vector<bool> attends = LayersOfType(model, "full_attention");
  const uint64_t period = config.CountOr("layer_group_size", 6);
  for (uint64_t i = attends.size(); i < model.n_layers(); ++i)
    attends.push_back(i % period == period - 1);
  AddHeads(attends, model);
  // transformers writes the length of the rotated part as head_dim.
  model.Uint("kda.head_dim", config.CountOr("linear_head_dim", config.CountOr("head_dim", 128)));
  if (!config.BoolOr("kda_safe_gate", true)) {
    model.Bool("kda.safe_gate", false);
    model.first_rules = kUnboundedDecay;
  }
  if (!config.Has("moe_renormalize"))
    model.Bool("expert_weights_norm", config.BoolOr("norm_topk_prob", true));
  const std::string type = model.rope().TextOr("rope_type", "default");
  if (type != "default") model.rope().Fail("rope_type", "expected default");
}

constexpr HfClass DeepSeek2Class(std::string_view name, std::span<const KeyValue> defaults,
                                 bool tied = false) {
  return {.names = {name},
          .tied = tied,
          .tensors = {kLatent},
          .keys = {kLatentKeys},
          .only = kDeepSeek2Only,
          .defaults = defaults,
          .add_keys = DeepSeek2};
}
// DeepSeek-V3, GLM 4.7 Flash and, without experts, Youtu.
constexpr HfClass kDeepSeek2Classes[] = {
    DeepSeek2Class("DeepseekV3ForCausalLM", kDeepSeek3Defaults),
    DeepSeek2Class("Glm4MoeLiteForCausalLM", kGlmLiteDefaults),
    DeepSeek2Class("YoutuForCausalLM", {}, true)};

constexpr Family kDeepSeekRows[] = {
    {.name = "deepseek2",
     .rope_pairs = kernels::RopePairs::kAdjacent,
     .nextn = true,
     .router = kByKeys,
     .router_bias = Presence::kOptional,
     .dense_layers = DenseLayers::kLeading,
     .n_shared_experts = 1,
     .complete_config = DeepSeek2,
     .hf = DeepSeek2Class("DeepseekV2ForCausalLM", {}),
     .others = kDeepSeek2Classes},
    {.name = "minicpm3",
     .complete_config = MiniCpm3,
     .hf = {.names = {"MiniCPM3ForCausalLM"},
            .tied = true,
            .tensors = {kMiniCpm3, kLatent},
            .keys = {kLatentKeys},
            .defaults = kMiniCpm3Defaults,
            .add_keys = MiniCpm3}},
    {.name = "kimi-linear",
     .traits = {.output = OutputMatrix::kOutputTensor},
     .without_heads = Mixer::kDeltaNet,
     .router = kSigmoid,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .n_shared_experts = 0,
     .complete_config = KimiLinear,
     .hf = {.names = {"KimiLinearForCausalLM", "KimiLinearModel"},
            .chooses_by_sigmoid = true,
            .tensors = {kLatent, kKimiLinear},
            .keys = {kLatentKeys},
            .only = kKimiLinearOnly,
            .defaults = kKimiLinearDefaults,
            .renamed = kKimiLinearNames,
            .add_keys = KimiLinear}},
    {.name = "bailingmoe3",
     .rope_pairs = kernels::RopePairs::kAdjacent,
     .traits = {.attention_gate = AttentionGate::kSeparateMatrix,
                .output = OutputMatrix::kOutputTensor},
     .without_heads = Mixer::kDeltaNet,
     .router = kSigmoidByKeys,
     .router_bias = Presence::kRequired,
     .dense_layers = DenseLayers::kLeading,
     .n_shared_experts = 0,
     .complete_config = BailingMoe3,
     .hf = {.names = {"BailingHybridForCausalLM"},
            .chooses_by_sigmoid = true,
            .rope_theta = 6e6,
            .tensors = {kBailing3},
            .keys = {kBailing3Keys, kLatentKeys},
            .only = kBailing3Only,
            .defaults = kBailing3Defaults,
            .renamed = kKimiLinearNames,
            .add_keys = BailingMoe3}},
};

}  // namespace

std::span<const Family> DeepSeekLineage() { return kDeepSeekRows; }

}  // namespace engine
