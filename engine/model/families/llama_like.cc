// Families that differ from Llama in a step or two, a row for each author: Phi-3 (Abdin et al.
// 2024), gpt-oss (OpenAI 2025), OLMo 2 and 3 (OLMo et al. 2025), GLM-4 (GLM et al. 2024), BitNet
// (Ma et al. 2025), ERNIE 4.5 (Baidu 2025), Hunyuan dense (Tencent 2025), EXAONE 4 (LG AI Research
// 2025), Seed-OSS (ByteDance 2025), Command R7B, A and A+ (Cohere 2024 to 2026), Apertus (Swiss AI
// 2025).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"
#include "gguf/error.h"

namespace engine {
namespace {

using enum kernels::RopePairs;
using enum Order;

// ---- What a file means.

// In models that also read images (GLM-4.6V-Flash), q and k have their rows in the order of halves.
void Glm4(const Keys& keys, Config& config) {
  if (CheckSections(keys)) config.ropes[0].pairs = kHalves;
}

void Ernie45(const Keys& keys, Config&) { CheckSections(keys); }

// Models older than 2B4T lack this key; bitnet.cpp has other names for newer models.
void BitNet(const Keys& keys, Config& config) {
  const char* const fallback = config.architecture == "bitnet" ? "silu" : "relu2";
  const std::string_view activation = keys.StringOr("hidden_activation", fallback);
  if (activation == "relu2") {
    config.activation = kernels::Activation::kGatedReluSquared;
  } else if (activation != "silu") {
    keys.Fail("hidden_activation", "expected silu or relu2, found ", gguf::Quoted(activation, 40));
  }
}

void Hunyuan(const Keys& keys, Config& config) {
  const auto length = static_cast<double>(config.layers[0].key_length);
  const double alpha = keys.PositiveUnlessZero("rope.scaling.alpha", 1);
  keys.Ignore("expert_shared_count");  // related families with experts have this key
  if (length > 2) config.ropes[0].base *= std::pow(alpha, length / (length - 2));
}

// The activation's parameters have keys without the architecture's name.
void Apertus(const Keys& of_architecture, Config& config) {
  const Keys keys = of_architecture.Of("xielu");
  const size_t n = config.n_layers();
  const auto numbers = [&](const char* key) {
    std::vector<double> found = keys.Numbers(key, n);
    for (const double x : found) {
      if (!std::isfinite(x)) keys.Fail(key, "expected finite numbers, found ", x);
    }
    return found;
  };
  const auto alpha_n = numbers("alpha_n"), alpha_p = numbers("alpha_p");
  const auto beta = numbers("beta"), eps = numbers("eps");
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  for (size_t i = 0; i < n; ++i) {
    config.layers[i].xielu = {.positive = static_cast<float>(softplus(alpha_p[i])),
                              .negative = static_cast<float>(beta[i] + softplus(alpha_n[i])),
                              .beta = static_cast<float>(beta[i]),
                              .eps = static_cast<float>(eps[i])};
  }
}

// Only the models of 64 layers, or with a list, have windows; their other layers have no rope.
void Exaone4(const Keys& keys, Config& config) {
  CheckSections(keys);
  const size_t n_next = keys.UintOr("nextn_predict_layers", 0, config.layers.size() - 1);
  const bool listed = keys.Length("attention.sliding_window_pattern") > 0;
  const size_t window = keys.CountOr("attention.sliding_window", 4096, kMaxWindow);
  if (config.layers.size() - n_next != 64 && !listed) return;
  SetWindows(keys, window, 4, config);
  RotateInWindowsOnly(config);
}

void Cohere2(const Keys& keys, Config& config) {
  config.logit_scale = static_cast<float>(keys.Positive("logit_scale"));
}

// Command A+ (Cohere 2026): dense layers at the beginning always rotate, and norms may be RMSNorm.
void Cohere2Moe(const Keys& keys, Config& config) {
  Cohere2(keys, config);
  config.layer_norm = keys.Has("attention.layer_norm_epsilon");
  for (LayerPlan& layer : config.layers) {
    if (layer.n_experts > 0) break;
    layer.rope = 0;
  }
}

void HunyuanMoe(const Keys&, Config& config) { SetSharedExperts(1, config); }

// ---- What a folder means.

constexpr KeyRule kPhi3Keys[] = {
    {"original_max_position_embeddings", "rope.scaling.original_context_length"},
};
constexpr KeyValue kGptOssOnly[] = {{"swiglu_limit", 7}, {"swiglu_alpha", 1.702}};
constexpr KeyValue kGlmDefaults[] = {
    {"num_key_value_heads", 2}, {"head_dim", 128}, {"rms_norm_eps", 1.5625e-07}};
constexpr KeyValue kNanoChatDefaults[] = {{"rms_norm_eps", 1e-6}, {"final_logit_softcapping", 15}};
constexpr KeyValue kHunyuanOnly[] = {{"use_cla", 0}};
constexpr KeyValue kCohere2Only[] = {
    {"use_qk_norm", 0}, {"use_parallel_block", 1}, {"use_gated_activation", 1}, {"rotary_pct", 1}};

constexpr KeyValue kCohere2MoeDefaults[] = {
    {"layer_norm_eps", 1e-5}, {"logit_scale", 0.0625}, {"head_dim", 128}};

constexpr TensorRule kPhi3[] = {
    {".self_attn.qkv_proj", ".attn_qkv"},
    {".mlp.gate_up_proj", ".ffn_up"},
};

constexpr TensorRule kGptOss[] = {
    {".self_attn.sinks", ".attn_sinks.weight"},
    {".mlp.router", ".ffn_gate_inp"},
    {".mlp.experts.gate_up_proj_blocks", ".ffn_gate_exps.weight", kEven},
    {".mlp.experts.gate_up_proj_blocks", ".ffn_up_exps.weight", kOdd},
    {".mlp.experts.down_proj_blocks", ".ffn_down_exps.weight"},
    {".mlp.experts.gate_up_proj", ".ffn_gate_exps.weight", kEvenTransposed},
    {".mlp.experts.gate_up_proj", ".ffn_up_exps.weight", kOddTransposed},
    {".mlp.experts.down_proj", ".ffn_down_exps.weight", kTransposed},
    {".mlp.experts.gate_up_proj_bias", ".ffn_gate_exps.bias", kEven},
    {".mlp.experts.gate_up_proj_bias", ".ffn_up_exps.bias", kOdd},
    {".mlp.experts.down_proj_bias", ".ffn_down_exps.bias"},
};
constexpr KeyRule kGptOssKeys[] = {
    {"intermediate_size", "expert_feed_forward_length"},
};

constexpr TensorRule kGlm4[] = {
    {".post_self_attn_layernorm", ".post_attention_norm"},
    {".post_attention_layernorm", ".ffn_norm"},
    {".post_mlp_layernorm", ".post_ffw_norm"},
    {".mlp.gate_up_proj", ".ffn_up"},
};

constexpr TensorRule kExaone[] = {
    {"model.wte", "token_embd"},
    {"model.ln_f", "output_norm"},
    {".ln_1", ".attn_norm"},
    {".ln_2", ".ffn_norm"},
    {".attn.attention.q_proj", ".attn_q"},
    {".attn.attention.k_proj", ".attn_k"},
    {".attn.attention.v_proj", ".attn_v"},
    {".attn.attention.out_proj", ".attn_output"},
    {".mlp.c_fc_0", ".ffn_gate"},
    {".mlp.c_fc_1", ".ffn_up"},
    {".mlp.c_proj", ".ffn_down"},
    {"model.rotary.inv_freq", ""},
    {".attn.attention.rotary.inv_freq", ""},
};
constexpr std::pair<std::string_view, std::string_view> kExaoneNames[] = {
    {"num_layers", "num_hidden_layers"}};

// PLaMo orders queries by the position in their group; in files, neighbours share a key-value head.
void Plamo(OutModel& model) {
  Shapes& shapes = model.shapes;
  const uint64_t n_shared = model.config.Count("n_shared_head");
  if (shapes.n_heads % n_shared != 0)
    model.config.Fail("n_shared_head", "expected a divisor of num_attention_heads");
  shapes.n_kv_heads = shapes.n_heads / n_shared;
  shapes.n_value_heads = shapes.n_heads;
  shapes.n_key_heads = n_shared;
  shapes.state = model.head_dim();
}

constexpr TensorRule kPlamo[] = {
    {".norm", ".attn_norm"},
    {".self_attn.q_proj", ".attn_q", kValueHeads},
    {".self_attn.o_proj", ".attn_output", kValueHeadColumns},
};

// It rotates by negative angles, which equals exchanging the halves of heads.
void NanoChat(OutModel& model) { model.shapes.head = model.head_dim(); }

constexpr TensorRule kNanoChat[] = {
    {".self_attn.q_proj", ".attn_q", kOtherHalfFirst},
    {".self_attn.k_proj", ".attn_k", kOtherHalfFirst},
    {".mlp.fc1", ".ffn_up"},
    {".mlp.fc2", ".ffn_down"},
};
constexpr TensorRule kBitNet[] = {
    {".self_attn.attn_sub_norm", ".attn_sub_norm"},
    {".mlp.ffn_sub_norm", ".ffn_sub_norm"},
    // Older names.
    {".self_attn.inner_attn_ln", ".attn_sub_norm"},
    {".mlp.ffn_layernorm", ".ffn_sub_norm"},
};
constexpr TensorRule kHunyuan[] = {
    {".self_attn.query_layernorm", ".attn_q_norm"},
    {".self_attn.key_layernorm", ".attn_k_norm"},
    {".mlp.gate.wg", ".ffn_gate_inp"},
    {".mlp.shared_mlp.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_mlp.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_mlp.down_proj", ".ffn_down_shexp"},
};

constexpr TensorRule kApertus[] = {
    {".attention_layernorm", ".attn_norm"}, {".feedforward_layernorm", ".ffn_norm"},
    {".mlp.act_fn.alpha_n", kInKeys},       {".mlp.act_fn.alpha_p", kInKeys},
    {".mlp.act_fn.beta", kInKeys},          {".mlp.act_fn.eps", kInKeys},
};

void BitNet(OutModel& model) {
  const std::string activation = model.config.TextOr("hidden_act", "relu2");
  if (activation == "relu2") {
    model.Text("hidden_activation", activation);
    model.notes.push_back(
        "its activation is relu2, as the key bitnet.hidden_activation says: "
        "programs that do not know that key compute something else");
  } else if (activation != "silu") {
    model.config.Fail("hidden_act", "expected relu2 or silu, found ", gguf::Quoted(activation, 40));
  }
  if (!model.config.BoolOr("tie_word_embeddings", false) &&
      model.folder.tensors().contains("lm_head.weight")) {
    model.config.Fail("tie_word_embeddings", "expected true in a model of architecture bitnet");
  }
}

// Its rope's alpha becomes a larger base.
void Hunyuan(OutModel& model) {
  const Fields rope = model.rope();
  const std::string type = rope.TextOr("rope_type", rope.TextOr("type", "default"));
  if (!rope.Has("alpha") || type != "dynamic") return;
  const auto length = static_cast<double>(model.head_dim());
  const double base = model.rope_theta() * std::pow(rope.Number("alpha"), length / (length - 2));
  model.Float("rope.freq_base", base);
  model.Text("rope.scaling.type", "none");
  model.Float("rope.scaling.factor", 1);
}

// A number, or a list with this number for each layer.
uint64_t SameInAll(const Fields& config, std::string_view key) {
  const std::vector<double> found = config.Numbers(key);
  const bool same = std::ranges::adjacent_find(found, std::ranges::not_equal_to()) == found.end();
  if (found.empty() || !same || !(found[0] >= 0 && found[0] <= UINT16_MAX)) {
    config.Fail(key, "expected a number up to 65535, the same one for all layers");
  }
  return static_cast<uint64_t>(found[0]);
}

void HunyuanMoe(OutModel& model) {
  const Fields& config = model.config;
  Hunyuan(model);
  const uint64_t n_shared = SameInAll(config, "num_shared_expert");
  model.Uint("expert_used_count", SameInAll(config, "moe_topk"));
  const char* const width =
      config.Has("moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size";
  model.Uint("expert_feed_forward_length", SameInAll(config, width));
  model.Uint("expert_shared_count", n_shared);
  model.Uint("expert_shared_feed_forward_length", n_shared * config.Count("intermediate_size"));
}

// The activation's parameters become keys without the architecture's name.
void Apertus(OutModel& model) {
  for (const char* const name : {"alpha_n", "alpha_p", "beta", "eps"}) {
    std::vector<float> values;
    for (uint64_t i = 0; i < model.n_layers(); ++i) {
      const SafeTensor& tensor =
          model.Need("model.layers." + std::to_string(i) + ".mlp.act_fn." + name);
      if (tensor.elements != 1 || !tensor.is_weights()) {
        tensor.Fail("expected a number, found ", tensor.dtype, " ", ShapeText(tensor.shape));
      }
      values.push_back(NumberAt(tensor, 0));
    }
    model.keys.AddArray("xielu." + std::string(name), std::span<const float>(values));
  }
}

// Only the large model has windows; readers assume them in three of four layers.
void Exaone4(OutModel& model) {
  const bool has_window = model.config.UintOr("sliding_window", 0) > 0;
  if (!has_window && model.n_layers() == 64)
    model.config.Fail("sliding_window", "expected one in a model of 64 layers");
  if (!has_window) return ExpectPeriod(model, 1);
  if (model.n_layers() != 64) {
    if (LayersOfType(model, "full_attention").empty())
      model.config.Fail("layer_types", "expected a name for each layer");
    return AddWindowsAsList(model);
  }
  AddWindows({.period = 4}, model);
}

// The intermediate_size of config.json is the experts'.
void Cohere2Moe(OutModel& model) {
  const Fields& config = model.config;
  const uint64_t length = config.Count("intermediate_size"),
                 n_shared = config.UintOr("num_shared_experts", 0);
  AddLeadingDense(model);
  const bool has_dense = std::ranges::count(config.Texts("mlp_layer_types"), "dense") > 0 ||
                         config.UintOr("first_k_dense_replace", 0) > 0;
  if (has_dense) {
    model.Uint("feed_forward_length", config.CountOr("prefix_dense_intermediate_size", length));
    if (config.UintOr("prefix_dense_sliding_window_pattern", 1) != 1)
      config.Fail("prefix_dense_sliding_window_pattern", "expected 1");
  }
  model.Uint("expert_feed_forward_length", length);
  model.Uint("expert_shared_feed_forward_length", n_shared * length);
  model.Uint("expert_count", config.CountOr("num_experts", 8));
  model.Uint("expert_used_count", config.CountOr("num_experts_per_tok", 2));
  const std::string gate = config.TextOr("expert_selection_fn", "softmax"),
                    sum = config.TextOr("shared_expert_combination_strategy", "average");
  if (gate != "softmax" && gate != "sigmoid")
    config.Fail("expert_selection_fn", "expected softmax or sigmoid");
  if (n_shared > 0 && sum != "average")
    config.Fail("shared_expert_combination_strategy", "expected average");
  model.Uint("expert_gating_func", gate == "softmax" ? 1 : 2);
  model.Bool("expert_weights_norm", gate == "softmax" || config.BoolOr("norm_topk_prob", true));
  std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (local.empty()) config.Fail("layer_types", "expected a name for each layer");
  model.Uint("attention.sliding_window", config.CountOr("sliding_window", 4096));
  model.PerLayer("attention.sliding_window_pattern", local);
  if (config.Has("rms_norm_eps")) {
    model.Float("attention.layer_norm_rms_epsilon", config.Number("rms_norm_eps"));
    model.Without("attention.layer_norm_epsilon");
  }
}

constexpr HfClass kOlmo3Class[] = {{.names = {"Olmo3ForCausalLM"}, .rope_theta = 5e5}};

constexpr Family kLlamaLikeRows[] = {
    // llama.cpp's files name a window, which no program uses.
    {.name = "phi3",
     .windows = {Windows::When::kIfListed},
     .hf = {.names = {"Phi3ForCausalLM"}, .tensors = {kPhi3}, .keys = {kPhi3Keys}}},
    // The published models do not round YaRN's two dimensions, but llama.cpp's files do not say so.
    {.name = "gpt-oss",
     .traits = {.norms = kFfnNormIsPostAttention,
                .activation = kernels::Activation::kSwigluOai,
                .sinks = Presence::kRequired,
                .requires_biases = true},
     .rounds_yarn_ramp = false,
     .windows = {Windows::When::kAlways, 2, Windows::Rope::kOwnBase},
     .router = kSoftmax,
     .hf = {.names = {"GptOssForCausalLM"},
            .says_rope = true,
            .rope_theta = 150000,
            .tensors = {kGptOss},
            .keys = {kGptOssKeys},
            .only = kGptOssOnly}},
    // OLMo 2 has no window; OLMo 3 has one.
    {.name = "olmo2",
     .traits = {.norms = kPostNorms,
                .qk_norm = QkNorm::kAllBeforeRope,
                .output = OutputMatrix::kOutputTensor},
     .windows = {Windows::When::kIfGiven, 4, Windows::Rope::kUnscaled},
     .hf = {.names = {"Olmo2ForCausalLM"}},
     .others = kOlmo3Class},
    {.name = "glm4",
     .rope_pairs = kAdjacent,
     .traits = {.norms = kSandwichNorms},
     .nextn = true,
     .complete_config = Glm4,
     .hf = {.names = {"Glm4ForCausalLM"}, .rotary_part = 0.5, .tensors = {kGlm4}}},
    {.name = "chatglm",
     .rope_pairs = kAdjacent,
     .hf = {.names = {"GlmForCausalLM"},
            .rotary_part = 0.5,
            .tensors = {kGlm4},
            .defaults = kGlmDefaults}},
    // Orion (OrionStar 2024): LayerNorm with biases.
    {.name = "orion", .traits = {.layer_norm = true}, .hf = {.names = {"OrionForCausalLM"}}},
    // PLaMo (Preferred Networks 2023): network and attention read the stream side by side.
    {.name = "plamo",
     .traits = {.norms = {.ffn = ""}, .parallel_residual = true},
     .hf = {.names = {"PlamoForCausalLM"}, .tensors = {kPlamo}, .add_keys = Plamo}},
    {.name = "exaone",
     .hf = {.names = {"ExaoneForCausalLM"},
            .rope_theta = 5e5,
            .tensors = {kExaone},
            .renamed = kExaoneNames}},
    // nanochat (Karpathy 2025): norms have no weights; the embedding has a norm, too.
    {.name = "nanochat",
     .traits = {.norms = {.embedding = "token_embd_norm"},
                .norms_have_weights = false,
                .qk_norm = QkNorm::kHeadAfterRope,
                .activation = kernels::Activation::kReluSquared},
     .hf = {.names = {"NanoChatForCausalLM"},
            .tensors = {kNanoChat},
            .defaults = kNanoChatDefaults,
            .add_keys = NanoChat}},
    {.name = "bitnet",
     .other_names = {"bitnet-b1.58", "bitnet-25"},
     .traits = {.has_sub_norms = true, .output = OutputMatrix::kEmbedding},
     .complete_config = BitNet,
     .hf = {.names = {"BitNetForCausalLM", "BitnetForCausalLM"},
            .rope_theta = 5e5,
            .activation = "",  // one of two
            .tensors = {kBitNet},
            .add_keys = BitNet}},
    {.name = "ernie4_5",
     .rope_pairs = kAdjacent,
     .complete_config = Ernie45,
     .hf = {.names = {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"}, .rope_theta = 5e5}},
    {.name = "hunyuan-dense",
     .traits = {.qk_norm = QkNorm::kHeadAfterRope},
     .complete_config = Hunyuan,
     .hf = {.names = {"HunYuanDenseV1ForCausalLM"}, .tensors = {kHunyuan}, .add_keys = Hunyuan}},
    {.name = "hunyuan-moe",
     .traits = {.qk_norm = QkNorm::kHeadAfterRope},
     .router = kSoftmax,
     .router_keys = false,
     .complete_config = HunyuanMoe,
     .hf = {.names = {"HunYuanMoEV1ForCausalLM"},
            .tensors = {kHunyuan},
            .only = kHunyuanOnly,
            .add_keys = HunyuanMoe}},
    {.name = "exaone4",
     .traits = {.norms = kPostNorms, .qk_norm = QkNorm::kHeadBeforeRope},
     .nextn = true,
     .complete_config = Exaone4,
     .hf = {.names = {"Exaone4ForCausalLM"}, .add_keys = Exaone4}},
    {.name = "seed_oss",
     .traits = {.norms = kFfnNormIsPostAttention},
     .hf = {.names = {"SeedOssForCausalLM"}}},
    {.name = "cohere2",
     .rope_pairs = kAdjacent,
     .traits = {.norms = {.ffn = ""},
                .layer_norm = true,
                .parallel_residual = true,
                .output = OutputMatrix::kEmbedding},
     .windows = {Windows::When::kAlways, 4, Windows::Rope::kOnlyThere},
     .complete_config = Cohere2,
     .hf = {.names = {"Cohere2ForCausalLM"}, .only = kCohere2Only}},
    {.name = "cohere2moe",
     .rope_pairs = kAdjacent,
     .traits = {.norms = {.ffn = ""},
                .layer_norm = true,
                .parallel_residual = true,
                .halves_experts = true},
     .windows = {Windows::When::kAlways, 4, Windows::Rope::kOnlyThere},
     .router = kSigmoidByKeys,
     .dense_layers = DenseLayers::kLeading,
     .complete_config = Cohere2Moe,
     .hf = {.names = {"Cohere2MoeForCausalLM"},
            .has_windows = false,  // Cohere2Moe() reads them
            .tied = true,
            .defaults = kCohere2MoeDefaults,
            .add_keys = Cohere2Moe}},
    {.name = "apertus",
     .traits = {.qk_norm = QkNorm::kHeadBeforeRope, .output = OutputMatrix::kOutputTensor},
     .complete_config = Apertus,
     .hf = {.names = {"ApertusForCausalLM"},
            .says_rope = true,
            .rope_theta = 12e6,
            .activation = "xielu",
            .tensors = {kApertus},
            .add_keys = Apertus}},
};

}  // namespace

std::span<const Family> LlamaLikeLineages() { return kLlamaLikeRows; }

}  // namespace engine
