// Granite (IBM, 2024 and 2025): llama with four scales (of embeddings, attention, outputs of
// mixers and networks, logits; after Yang et al. 2022, "Tensor Programs V"), dense or with experts.
// In Granite 4 ("hybrid") most layers have Mamba-2 (Dao and Gu 2024), the rest attention without
// RoPE.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"

namespace engine {
namespace {

using enum kernels::RopePairs;
using enum Order;

// ---- What a file means.

void Granite(const Keys& keys, Config& config) {
  config.logit_scale = static_cast<float>(1 / keys.Positive("logit_scale"));
  if (!keys.BoolOr("rope.scaling.finetuned", true)) LeaveOutRope(config);
}

// MiniCPM (Hu et al. 2024) had such scales before Granite; older files have no keys for them.
void MiniCpm(const Keys& keys, Config& config) {
  const auto layers = static_cast<double>(config.n_layers()),
             width = static_cast<double>(config.embedding_length);
  config.embedding_scale = static_cast<float>(keys.PositiveOr("embedding_scale", 12));
  config.residual_scale =
      static_cast<float>(keys.PositiveOr("residual_scale", 1.4 / std::sqrt(layers)));
  config.logit_scale = static_cast<float>(1 / keys.PositiveOr("logit_scale", width / 256));
}

// HyperCLOVA X SEED Think (NAVER 2025): logits are multiplied, and mixers' and networks'
// outputs have norms.
void HyperClovaX(const Keys& keys, Config& config) {
  config.logit_scale = static_cast<float>(keys.PositiveOr("logit_scale", 1));
}

// Granite SWA (2026): windows and sinks; a file may list the layers that rotate.
void GraniteWindows(const Keys& keys, Config& config) {
  Granite(keys, config);
  constexpr std::string_view kRotates = "attention.rope_pattern";
  if (keys.Length(kRotates) == 0) return;
  const auto rotates = keys.PerLayer(kRotates, config.n_layers(), 0, 1);
  for (size_t i = 0; i < rotates.size(); ++i) {
    if (rotates[i] == 0) config.layers[i].rope = LayerPlan::kNoRope;
  }
}

void GraniteHybrid(const Keys& keys, Config& config) {
  SetMamba2(keys, config);
  config.logit_scale = static_cast<float>(1 / keys.PositiveUnlessZero("logit_scale", 1));
  if (!keys.BoolOr("rope.scaling.finetuned", true)) LeaveOutRope(config);
  if (config.n_experts_used > 0) {
    const size_t expert_length = keys.Count("feed_forward_length", kMaxLength);
    for (LayerPlan& layer : config.layers) layer.expert_length = expert_length;
  }
}

// ---- What a folder means.

using enum KeyKind;

// In models with experts, shared_mlp is the shared expert; otherwise it is the whole network.
constexpr TensorRule kGraniteExperts[] = {
    {".mlp.router.layer", ".ffn_gate_inp"},
    {".mlp.input_linear", ".ffn_gate_exps", kFirstHalf},
    {".mlp.input_linear", ".ffn_up_exps", kSecondHalf},
    {".mlp.output_linear", ".ffn_down_exps"},
    {".shared_mlp.input_linear", ".ffn_gate_shexp", kFirstHalf},
    {".shared_mlp.input_linear", ".ffn_up_shexp", kSecondHalf},
    {".shared_mlp.output_linear", ".ffn_down_shexp"},
};
constexpr TensorRule kGraniteDense[] = {
    {".shared_mlp.input_linear", ".ffn_gate", kFirstHalf},
    {".shared_mlp.input_linear", ".ffn_up", kSecondHalf},
    {".shared_mlp.output_linear", ".ffn_down"},
};

// Bamba (IBM 2024) is a Granite 4 with a dense network and RoPE on half of a head.
constexpr TensorRule kBamba[] = {
    {"model.final_layernorm", "output_norm"}, {".pre_ff_layernorm", ".ffn_norm"},
    {".feed_forward.gate_proj", ".ffn_gate"}, {".feed_forward.up_proj", ".ffn_up"},
    {".feed_forward.down_proj", ".ffn_down"},
};

constexpr KeyRule kGraniteKeys[] = {
    {"attention_multiplier", "attention.scale", KeyKind::kFloat},
    {"embedding_multiplier", "embedding_scale", KeyKind::kFloat},
    {"residual_multiplier", "residual_scale", KeyKind::kFloat},
    {"logits_scaling", "logit_scale", KeyKind::kFloat},
    {"shared_intermediate_size", "expert_shared_feed_forward_length"},
};

constexpr KeyValue kGraniteDefaults[] = {{"attention_multiplier", 1},
                                         {"embedding_multiplier", 1},
                                         {"residual_multiplier", 1},
                                         {"logits_scaling", 1}};
constexpr KeyValue kGraniteWindowsDefaults[] = {{"attention_multiplier", 1},
                                                {"embedding_multiplier", 1},
                                                {"residual_multiplier", 1},
                                                {"logits_scaling", 1},
                                                {"rms_norm_eps", 1e-5}};
constexpr KeyValue kBambaDefaults[] = {{"attention_multiplier", 0}, {"logits_scaling", 1},
                                       {"num_key_value_heads", 8},  {"mamba_n_groups", 1},
                                       {"mamba_d_conv", 4},         {"mamba_d_state", 256},
                                       {"mamba_n_heads", 128}};

void AddMamba(const std::vector<bool>& attends, OutModel& model) {
  const Fields& config = model.config;
  AddHeads(attends, model);
  model.shapes.n_groups = config.CountOr("mamba_n_groups", 1);
  model.Uint("ssm.inner_size", config.CountOr("mamba_expand", 2) * config.Count("hidden_size"));
}

void GraniteHybrid(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> attends = LayersOfType(model, "attention");
  if (std::ranges::count(attends, true) == 0) attends = LayersOfType(model, "full_attention");
  if (attends.empty()) config.Fail("layer_types", "expected a name for each layer");
  AddMamba(attends, model);
  const std::string positions = config.TextOr("position_embedding_type", "nope");
  model.Bool("rope.scaling.finetuned", positions == "rope");
  if (config.UintOr("num_local_experts", 0) > 0) return;
  model.Uint("feed_forward_length", config.Count("shared_intermediate_size"));
  model.Without("expert_shared_feed_forward_length");
}

void MiniCpm(OutModel& model) {
  const Fields& config = model.config;
  const auto layers = static_cast<double>(model.n_layers()),
             width = static_cast<double>(config.Count("hidden_size"));
  model.Float("embedding_scale", config.NumberOr("scale_emb", 1));
  model.Float("residual_scale", config.NumberOr("scale_depth", 1) / std::sqrt(layers));
  model.Float("logit_scale", width / config.NumberOr("dim_model_base", 1));
}

void Bamba(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> attends = LayersOfType(model, "full_attention");
  if (attends.empty()) {
    attends.resize(model.n_layers());
    for (const uint64_t i : config.Wholes("attn_layer_indices", attends.size()))
      if (i < attends.size()) attends[i] = true;
  }
  AddMamba(attends, model);
}

// Each layer has its own base in config.json, or 0 if it does not rotate.
void GraniteWindows(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> local = LayersOfType(model, "sliding_attention"), rotates;
  for (size_t i = local.size(); i < model.n_layers(); ++i) local.push_back(i % 4 != 0);
  model.Uint("attention.sliding_window", config.CountOr("sliding_window", 128));
  model.PerLayer("attention.sliding_window_pattern", local);
  double base = 0;
  for (const double theta : config.Numbers("layer_rope_theta")) {
    rotates.push_back(theta != 0);
    if (theta == 0) continue;
    if (base != 0 && theta != base)
      config.Fail("layer_rope_theta", "expected one base for all layers that rotate");
    base = theta;
  }
  if (rotates.empty()) return;
  if (rotates.size() != model.n_layers())
    config.Fail("layer_rope_theta", "expected a number for each layer");
  if (base != 0) model.Float("rope.freq_base", base);
  model.PerLayer("attention.rope_pattern", rotates);
}

constexpr TensorRule kSinks[] = {{".self_attn.sinks", ".attn_sinks.weight"}};
constexpr TensorRule kGraniteInOne[] = {
    {".mlp.router", ".ffn_gate_inp"},
    {".mlp.experts.gate_up_proj", ".ffn_gate_up_exps.weight"},
    {".mlp.experts.down_proj", ".ffn_down_exps.weight"},
    {".shared_mlp.input_linear", ".ffn_up_shexp"},
};

constexpr TensorRule kMiniCpmExperts[] = {
    {".mlp.experts.{e}.w1", ".ffn_gate_exps"},
    {".mlp.experts.{e}.w2", ".ffn_down_exps"},
    {".mlp.experts.{e}.w3", ".ffn_up_exps"},
};
constexpr TensorRule kHyperClovaX[] = {
    {".post_norm1", ".post_attention_norm"},
    {".post_attention_layernorm", ".ffn_norm"},
    {".post_norm2", ".post_ffw_norm"},
};
constexpr KeyValue kHyperClovaXOnly[] = {{"use_post_norm", 1}};

constexpr HfClass kHybridClasses[] = {
    {.names = {"GraniteMoeHybridForCausalLM"},
     .experts = HasExperts::kNone,
     .pairs_halves = true,
     .tensors = {kMixer, kGraniteDense},
     .keys = {kGraniteKeys, kMixerKeys},
     .defaults = kGraniteDefaults,
     .add_keys = GraniteHybrid},
    {.names = {"BambaForCausalLM"},
     .pairs_halves = true,
     .rotary_part = 0.5,
     .tensors = {kBamba, kMixer},
     .keys = {kGraniteKeys, kMixerKeys},
     .defaults = kBambaDefaults,
     .add_keys = Bamba},
};

constexpr HfClass kGraniteWindowsClass = {.names = {"GraniteSWAForCausalLM"},
                                          .pairs_halves = true,
                                          .has_windows = false,  // GraniteWindows() writes them
                                          .tensors = {kSinks},
                                          .keys = {kGraniteKeys},
                                          .defaults = kGraniteWindowsDefaults,
                                          .add_keys = GraniteWindows};
constexpr HfClass kGraniteMoeWindowsClass[] = {{.names = {"GraniteMoeSWAForCausalLM"},
                                                .pairs_halves = true,
                                                .has_windows = false,
                                                .tensors = {kSinks, kGraniteInOne, kGraniteExperts},
                                                .keys = {kGraniteKeys},
                                                .defaults = kGraniteWindowsDefaults,
                                                .add_keys = GraniteWindows}};

constexpr Family kGraniteRows[] = {
    {.name = "granite",
     .rope_pairs = kAdjacent,
     .complete_config = Granite,
     .hf = {.names = {"GraniteForCausalLM"},
            .pairs_halves = true,
            .keys = {kGraniteKeys},
            .defaults = kGraniteDefaults}},
    {.name = "minicpm",
     .rope_pairs = kAdjacent,
     .router = kSoftmax,
     .complete_config = MiniCpm,
     .hf = {.names = {"MiniCPMForCausalLM"},
            .pairs_halves = true,
            .tied = true,
            .tensors = {kMiniCpmExperts},
            .add_keys = MiniCpm}},
    {.name = "hyperclovax",
     .traits = {.norms = kSandwichNorms},
     .complete_config = HyperClovaX,
     .hf = {.names = {"HyperCLOVAXForCausalLM"},
            .tensors = {kHyperClovaX},
            .keys = {kGraniteKeys},
            .only = kHyperClovaXOnly}},
    {.name = "granitemoe",
     .rope_pairs = kAdjacent,
     .router = kSoftmax,
     .complete_config = Granite,
     .hf = {.names = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"},
            .pairs_halves = true,
            .tensors = {kGraniteExperts},
            .keys = {kGraniteKeys},
            .defaults = kGraniteDefaults}},
    {.name = "granite_swa",
     .rope_pairs = kAdjacent,
     .traits = {.sinks = Presence::kRequired},
     .windows = {Windows::When::kIfListed},
     .router = kSoftmax,
     .complete_config = GraniteWindows,
     .hf = kGraniteWindowsClass,
     .others = kGraniteMoeWindowsClass},
    {.name = "granitehybrid",
     .rope_pairs = kAdjacent,
     .without_heads = Mixer::kMamba2,
     .router = kSoftmax,
     .complete_config = GraniteHybrid,
     .hf = {.names = {"GraniteMoeHybridForCausalLM"},
            .experts = HasExperts::kSome,
            .pairs_halves = true,
            .tensors = {kMixer, kGraniteExperts},
            .keys = {kGraniteKeys, kMixerKeys},
            .defaults = kGraniteDefaults,
            .add_keys = GraniteHybrid},
     .others = kHybridClasses},
};

}  // namespace

std::span<const Family> GraniteLineage() { return kGraniteRows; }

}  // namespace engine
