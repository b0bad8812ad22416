// Decoders with LayerNorm, most of them older than Llama: GPT-2 (Radford et al. 2019), GPT-Neo
// (Black et al. 2021), StarCoder (Li et al. 2023), OPT (Zhang et al. 2022) and XGLM (Lin et al.
// 2021) with a vector for each position; BLOOM (2022) and MPT (MosaicML 2023) with ALiBi; GPT-J
// (Wang and Komatsuzaki 2021), GPT-NeoX (Black et al. 2022), Falcon (TII 2023), Persimmon (Adept
// 2023), Phi-2 (Microsoft 2023), StableLM (Stability AI 2023), StarCoder2 (Lozhkov et al. 2024),
// OLMo (Groeneveld et al. 2024), Nemotron (Parmar et al. 2024), Command R (Cohere 2024),
// Phi-3.5-MoE (Abdin et al. 2024) and Jais 2 (2025) with rope.
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"

namespace engine {
namespace {

using enum kernels::RopePairs;
using enum Order;

// ---- What a file means.

// The exponent of the last head's slope in all published models.
constexpr double kAlibiBias = 8;

void Learned(const Keys&, Config& config) { LeaveOutRope(config); }

void Bloom(const Keys& keys, Config& config) {
  SetSlopes(keys.PositiveUnlessZero("attention.max_alibi_bias", kAlibiBias), config);
}

void Mpt(const Keys& keys, Config& config) {
  const double bias = keys.PositiveUnlessZero("attention.max_alibi_bias", 0);
  if (bias > 0) return SetSlopes(bias, config);
  LeaveOutRope(config);
  config.learned_positions = true;
}

// Mixer and network may read the stream side by side.
void GptNeoX(const Keys& keys, Config& config) {
  config.parallel_residual = keys.BoolOr("use_parallel_residual", config.parallel_residual);
}

void CommandR(const Keys& keys, Config& config) {
  config.logit_scale = static_cast<float>(keys.Positive("logit_scale"));
}

constexpr Traits kGpt = {.layer_norm = true, .activation = kernels::Activation::kGeluAlone};
constexpr Traits kGptLearned = {
    .layer_norm = true, .activation = kernels::Activation::kGeluAlone, .learned_positions = true};
constexpr Traits kGptParallel = {
    .layer_norm = true, .parallel_residual = true, .activation = kernels::Activation::kGeluAlone};
// Norms of heads, if the file has them.
constexpr Traits kGptHeadNorms = {.layer_norm = true,
                                  .qk_norm = QkNorm::kHeadBeforeRope,
                                  .qk_norm_optional = true,
                                  .qk_layer_norm = true};

constexpr Traits With(Traits traits, kernels::Activation activation) {
  traits.activation = activation;
  return traits;
}
constexpr Traits Parallel(Traits traits) {
  traits.parallel_residual = true;
  return traits;
}

// ---- What a folder means.

constexpr TensorRule kGpt2[] = {
    {"model.wte", "token_embd"},
    {"model.wpe", "position_embd"},
    {"model.ln_f", "output_norm"},
    {".ln_1", ".attn_norm"},
    {".ln_2", ".ffn_norm"},
    {".attn.c_attn", ".attn_qkv", kTransposed},
    {".attn.c_proj", ".attn_output", kTransposed},
    {".mlp.c_fc", ".ffn_up", kTransposed},
    {".mlp.c_proj", ".ffn_down", kTransposed},
    // Masks.
    {".attn", ""},
    {".attn.masked_bias", ""},
};
// StarCoder names its tensors as GPT-2 does, but its matrices are not transposed.
constexpr TensorRule kStarCoder[] = {
    {".attn.c_attn", ".attn_qkv"},
    {".attn.c_proj", ".attn_output"},
    {".mlp.c_fc", ".ffn_up"},
    {".mlp.c_proj", ".ffn_down"},
};
constexpr TensorRule kStarCoderByHead[] = {{".attn.c_attn", ".attn_qkv", kHeadsTogether}};
constexpr TensorRule kStarCoder2[] = {{".mlp.c_fc", ".ffn_up"}, {".mlp.c_proj", ".ffn_down"}};

constexpr TensorRule kGptJ[] = {
    {".ln_1", ".attn_norm"},
    {".attn.q_proj", ".attn_q"},
    {".attn.k_proj", ".attn_k"},
    {".attn.v_proj", ".attn_v"},
    {".attn.qkv_proj", ".attn_qkv", kHeadsInFour},  // CodeGen
    {".attn.out_proj", ".attn_output"},
    {".mlp.fc_in", ".ffn_up"},
    {".mlp.fc_out", ".ffn_down"},
    {".attn.causal_mask", ""},
};

constexpr TensorRule kGptNeo[] = {
    {".attn.attention.q_proj", ".attn_q"},
    {".attn.attention.k_proj", ".attn_k"},
    {".attn.attention.v_proj", ".attn_v"},
    {".attn.attention.out_proj", ".attn_output"},
    {".mlp.c_fc", ".ffn_up"},
    {".mlp.c_proj", ".ffn_down"},
    {".attn.attention", ""},
    {".attn.attention.masked_bias", ""},
};

constexpr TensorRule kGptNeoX[] = {
    {"model.embed_in", "token_embd"},
    {"embed_out", "output"},
    {"model.final_layer_norm", "output_norm"},
    {".attention.query_key_value", ".attn_qkv", kHeadsTogether},
    {".attention.dense", ".attn_output"},
    {".post_attention_layernorm", ".ffn_norm"},
    {".attention", ""},
    {".attention.masked_bias", ""},
    {".attention.rotary_emb.inv_freq", ""},
};
// BLOOM, Falcon, Persimmon.
constexpr TensorRule kMegatron[] = {
    {"model.word_embeddings", "token_embd"},
    {"model.word_embeddings_layernorm", "token_embd_norm"},
    {"model.ln_f", "output_norm"},
    {"model.final_layernorm", "output_norm"},
    {".self_attention.query_key_value", ".attn_qkv", kHeadsTogether},
    {".self_attention.dense", ".attn_output"},
    {".self_attn.query_key_value", ".attn_qkv", kHeadsTogether},
    {".self_attn.dense", ".attn_output"},
    {".self_attn.q_layernorm", ".attn_q_norm"},
    {".self_attn.k_layernorm", ".attn_k_norm"},
    {".mlp.dense_h_to_4h", ".ffn_up"},
    {".mlp.dense_4h_to_h", ".ffn_down"},
    {".ln_attn", ".attn_norm_2"},
    {".ln_mlp", ".attn_norm"},
};

constexpr TensorRule kMpt[] = {
    {"model.norm_f", "output_norm"},    {".norm_1", ".attn_norm"},
    {".norm_2", ".ffn_norm"},           {".attn.Wqkv", ".attn_qkv"},
    {".attn.out_proj", ".attn_output"}, {".ffn.up_proj", ".ffn_up"},
    {".ffn.down_proj", ".ffn_down"},
};

constexpr TensorRule kOpt[] = {
    {"model.embed_positions", "position_embd", kAfterPadding},
    {"model.final_layer_norm", "output_norm"},
    {"model.layer_norm", "output_norm"},
    {"output_projection", "output"},
    {".self_attn_layer_norm", ".attn_norm"},
    {".final_layer_norm", ".ffn_norm"},
    {".self_attn.out_proj", ".attn_output"},
    {".fc1", ".ffn_up"},
    {".fc2", ".ffn_down"},
};

constexpr TensorRule kPhi2[] = {
    {"model.final_layernorm", "output_norm"},
    {".self_attn.dense", ".attn_output"},
    {".self_attn.q_layernorm", ".attn_q_norm"},
    {".self_attn.k_layernorm", ".attn_k_norm"},
    {".mlp.fc1", ".ffn_up"},
    {".mlp.fc2", ".ffn_down"},
};
constexpr TensorRule kStableLm[] = {
    {".self_attn.q_layernorm.norms.{e}", ".attn_q_norm"},
    {".self_attn.k_layernorm.norms.{e}", ".attn_k_norm"},
};

constexpr std::pair<std::string_view, std::string_view> kGpt2Names[] = {
    {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_positions", "max_position_embeddings"}};
constexpr std::pair<std::string_view, std::string_view> kGptNeoNames[] = {
    {"num_layers", "num_hidden_layers"}, {"num_heads", "num_attention_heads"}};
constexpr std::pair<std::string_view, std::string_view> kBloomNames[] = {
    {"n_embed", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"}};
constexpr std::pair<std::string_view, std::string_view> kMptNames[] = {
    {"d_model", "hidden_size"},
    {"n_layers", "num_hidden_layers"},
    {"n_heads", "num_attention_heads"},
    {"max_seq_len", "max_position_embeddings"}};
constexpr std::pair<std::string_view, std::string_view> kXglmNames[] = {
    {"d_model", "hidden_size"},
    {"num_layers", "num_hidden_layers"},
    {"attention_heads", "num_attention_heads"}};

constexpr KeyValue kGpt2Only[] = {
    {"scale_attn_weights", 1}, {"scale_attn_by_inverse_layer_idx", 0}, {"add_cross_attention", 0}};
constexpr KeyValue kBloomOnly[] = {{"apply_residual_connection_post_layernorm", 0}};
constexpr KeyValue kMptOnly[] = {{"expansion_ratio", 4}};
constexpr KeyValue kOptOnly[] = {{"do_layer_norm_before", 1},
                                 {"enable_bias", 1},
                                 {"layer_norm_elementwise_affine", 1},
                                 {"_remove_final_layer_norm", 0}};
constexpr KeyValue kFalconOnly[] = {{"alibi", 0}, {"parallel_attn", 1}};
constexpr KeyValue kPhiMoeOnly[] = {{"router_jitter_noise", 0.01}};

constexpr KeyValue kNorm5[] = {{"layer_norm_epsilon", 1e-5}};
constexpr KeyValue kNorm5GeluNew[] = {{"layer_norm_epsilon", 1e-5}, {"hidden_act", 0, "gelu_new"}};
constexpr KeyValue kNorm5Relu[] = {{"layer_norm_epsilon", 1e-5}, {"hidden_act", 0, "relu"}};
constexpr KeyValue kNorm5Gelu[] = {{"layer_norm_epsilon", 1e-5}, {"hidden_act", 0, "gelu"}};
constexpr KeyValue kBioGptDefaults[] = {{"layer_norm_eps", 1e-12}, {"hidden_act", 0, "gelu"}};
constexpr KeyValue kBloomDefaults[] = {{"layer_norm_epsilon", 1e-5},
                                       {"max_position_embeddings", 2048}};
constexpr KeyValue kFalconDefaults[] = {
    {"layer_norm_epsilon", 1e-5}, {"max_position_embeddings", 2048}, {"hidden_act", 0, "gelu"}};
constexpr KeyValue kStableLmDefaults[] = {{"layer_norm_eps", 1e-5}, {"num_key_value_heads", 32}};
constexpr KeyValue kStarCoder2Defaults[] = {{"norm_epsilon", 1e-5}, {"num_key_value_heads", 2}};
constexpr KeyValue kCommandRDefaults[] = {{"layer_norm_eps", 1e-5}, {"logit_scale", 0.0625}};
constexpr KeyValue kPhiMoeDefaults[] = {{"rms_norm_eps", 1e-5},
                                        {"num_key_value_heads", 8},
                                        {"num_local_experts", 16},
                                        {"num_experts_per_tok", 2}};

void AddWidth(std::string_view key, OutModel& model) {
  model.Uint("feed_forward_length",
             model.config.CountOr(key, 4 * model.config.Count("hidden_size")));
}

void WithoutRope(OutModel& model) {
  model.Without("rope.dimension_count");
  model.Without("rope.freq_base");
}

void Olmo(OutModel& model) { model.Float("attention.layer_norm_epsilon", 1e-5); }

// The first Command R's max_position_embeddings is smaller than its training context.
void CommandRLength(OutModel& model) {
  if (model.config.Has("model_max_length"))
    model.Uint("context_length", model.config.Count("model_max_length"));
}

void Gpt2(OutModel& model) {
  WithoutRope(model);
  AddWidth("n_inner", model);
}

// Every other layer has a window, and scores have no scale.
void GptNeo(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> local;
  for (const std::string& type : config.Texts("attention_layers")) local.push_back(type == "local");
  if (local.size() != model.n_layers())
    config.Fail("attention_layers", "expected global or local for each layer");
  WithoutRope(model);
  AddWidth("intermediate_size", model);
  model.Float("attention.scale", 1);
  model.Uint("attention.sliding_window", config.CountOr("window_size", 256));
  model.PerLayer("attention.sliding_window_pattern", local);
  model.notes.push_back(
      "its windows, and the scale of its scores, are in keys that other programs do not read");
}

void StarCoder(OutModel& model) {
  const bool shared = model.config.BoolOr("multi_query", true);
  model.shapes.n_kv_heads = shared ? 1 : model.shapes.n_heads;
  if (!shared) model.first_rules = kStarCoderByHead;
  WithoutRope(model);
  AddWidth("n_inner", model);
}

void GptJ(OutModel& model) {
  AddWidth("n_inner", model);
  model.Uint("rope.dimension_count", model.config.CountOr("rotary_dim", 64));
}

void GptNeoX(OutModel& model) {
  if (!model.config.Has("use_parallel_residual")) model.Bool("use_parallel_residual", true);
  if (model.config.Has("rotary_emb_base") && !model.rope().Has("rope_theta"))
    model.Float("rope.freq_base", model.config.Number("rotary_emb_base"));
}

void Bloom(OutModel& model) {
  WithoutRope(model);
  AddWidth("", model);
  model.Float("attention.max_alibi_bias", 8);
}

// Hugging Face's class always has ALiBi, and only the usual softmax_scale, whatever its keys say.
void Mpt(OutModel& model) {
  const Fields attention = model.config.Object("attn_config");
  WithoutRope(model);
  AddWidth("", model);
  model.Float("attention.max_alibi_bias", 8);
  if (attention.Has("clip_qkv")) model.Float("attention.clamp_kqv", attention.Number("clip_qkv"));
  if (attention.Has("softmax_scale")) {
    model.Float("attention.scale", attention.Number("softmax_scale"));
  }
  model.Without("logit_scale");  // the class does not read it either
}

// Positions begin with the third row.
void Opt(OutModel& model) {
  const Fields& config = model.config;
  WithoutRope(model);
  model.shapes.padding = 2;
  AddWidth("ffn_dim", model);
  const uint64_t width = config.Count("hidden_size");
  if (config.CountOr("word_embed_proj_dim", width) != width)
    config.Fail("word_embed_proj_dim", "expected as hidden_size");
}

// Positions are sines and cosines, which become a table as in GPT-2.
void Xglm(OutModel& model) {
  constexpr uint64_t kBefore = 2, kMaxNumbers = uint64_t{1} << 28;
  const Fields& config = model.config;
  const uint64_t width = config.Count("hidden_size"), half = width / 2,
                 n = config.Count("max_position_embeddings");
  if (half < 2 || width % 2 != 0 || n > kMaxNumbers / width)
    config.Fail("d_model", "expected an even number above 2, for a table of positions");
  std::vector<float> table(n * width);
  const uint64_t padding = config.UintOr("pad_token_id", 1);  // its row is zeros
  for (uint64_t p = 0; p < n; ++p) {
    for (uint64_t i = 0; i < half && p + kBefore != padding; ++i) {
      const double step = std::log(10000.0) / static_cast<double>(half - 1);
      const double angle =
          static_cast<double>(p + kBefore) * std::exp(-step * static_cast<double>(i));
      table[p * width + i] = static_cast<float>(std::sin(angle));
      table[p * width + half + i] = static_cast<float>(std::cos(angle));
    }
  }
  model.Computed("position_embd.weight", std::move(table), width);
  WithoutRope(model);
  AddWidth("ffn_dim", model);
  if (config.BoolOr("scale_embedding", true))
    model.Float("embedding_scale", std::sqrt(static_cast<double>(width)));
}

// Positions begin with the third row, as in OPT.
void BioGpt(OutModel& model) {
  const Fields& config = model.config;
  WithoutRope(model);
  model.shapes.padding = 2;
  if (config.BoolOr("scale_embedding", true))
    model.Float("embedding_scale", std::sqrt(static_cast<double>(config.Count("hidden_size"))));
}

void Falcon(OutModel& model) {
  const Fields& config = model.config;
  const bool is_new = config.BoolOr("new_decoder_architecture", false);
  const bool shares = config.BoolOr("multi_query", true);
  model.shapes.n_kv_heads = is_new   ? config.CountOr("num_kv_heads", model.shapes.n_heads)
                            : shares ? 1
                                     : model.shapes.n_heads;
  AddWidth("ffn_hidden_size", model);
}

constexpr HfClass kGptNeoClass[] = {{.names = {"GPTNeoForCausalLM"},
                                     .all_kv_heads = true,
                                     .tied = true,
                                     .tensors = {kGptNeo, kGpt2},
                                     .defaults = kNorm5GeluNew,
                                     .renamed = kGptNeoNames,
                                     .add_keys = GptNeo}};
constexpr HfClass kBioGptClass[] = {{.names = {"BioGptForCausalLM"},
                                     .all_kv_heads = true,
                                     .tied = true,
                                     .tensors = {kOpt},
                                     .defaults = kBioGptDefaults,
                                     .add_keys = BioGpt}};

constexpr Family kGptRows[] = {
    {.name = "gpt2",
     .traits = kGptLearned,
     .windows = {Windows::When::kIfListed},
     .complete_config = Learned,
     .hf = {.names = {"GPT2LMHeadModel"},
            .all_kv_heads = true,
            .tensors = {kGpt2},
            .only = kGpt2Only,
            .defaults = kNorm5GeluNew,
            .renamed = kGpt2Names,
            .add_keys = Gpt2},
     .others = kGptNeoClass},
    {.name = "starcoder",
     .traits = kGptLearned,
     .complete_config = Learned,
     .hf = {.names = {"GPTBigCodeForCausalLM"},
            .tensors = {kStarCoder, kGpt2},
            .only = kGpt2Only,
            .defaults = kNorm5GeluNew,
            .renamed = kGpt2Names,
            .add_keys = StarCoder}},
    {.name = "opt",
     .traits = With(kGptLearned, kernels::Activation::kRelu),
     .complete_config = Learned,
     .hf = {.names = {"OPTForCausalLM"},
            .all_kv_heads = true,
            .tensors = {kOpt},
            .only = kOptOnly,
            .defaults = kNorm5Relu,
            .add_keys = Opt}},
    {.name = "xglm",
     .traits = With(kGptLearned, kernels::Activation::kGeluErf),
     .complete_config = Learned,
     .hf = {.names = {"XGLMForCausalLM"},
            .all_kv_heads = true,
            .tensors = {kOpt},
            .defaults = kNorm5Gelu,
            .renamed = kXglmNames,
            .add_keys = Xglm},
     .others = kBioGptClass},
    {.name = "bloom",
     .traits = {.norms = {.embedding = "token_embd_norm"},
                .layer_norm = true,
                .activation = kernels::Activation::kGeluAlone},
     .complete_config = Bloom,
     .hf = {.names = {"BloomForCausalLM"},
            .all_kv_heads = true,
            .tensors = {kMegatron, kGptNeoX},
            .only = kBloomOnly,
            .defaults = kBloomDefaults,
            .renamed = kBloomNames,
            .add_keys = Bloom}},
    {.name = "mpt",
     .traits = kGpt,
     .complete_config = Mpt,
     .hf = {.names = {"MptForCausalLM", "MPTForCausalLM"},
            .all_kv_heads = true,
            .tensors = {kMpt, kGpt2},
            .only = kMptOnly,
            .defaults = kNorm5Gelu,
            .renamed = kMptNames,
            .add_keys = Mpt}},
    {.name = "gptj",
     .rope_pairs = kAdjacent,
     .traits = kGptParallel,
     .complete_config = GptNeoX,
     .hf = {.names = {"GPTJForCausalLM", "CodeGenForCausalLM"},
            .all_kv_heads = true,
            .tensors = {kGptJ, kGpt2},
            .defaults = kNorm5GeluNew,
            .renamed = kGpt2Names,
            .add_keys = GptJ}},
    {.name = "gptneox",
     .traits = kGptParallel,
     .complete_config = GptNeoX,
     .hf = {.names = {"GPTNeoXForCausalLM"},
            .all_kv_heads = true,
            .rotary_part = 0.25,
            .tensors = {kGptNeoX, kMegatron},
            .defaults = kNorm5Gelu,
            .add_keys = GptNeoX}},
    {.name = "falcon",
     .traits = {.norms = {.attn = "attn_norm_2", .ffn = "attn_norm"},
                .layer_norm = true,
                .parallel_residual = true,
                .activation = kernels::Activation::kGeluAlone},
     .complete_config = GptNeoX,
     .hf = {.names = {"FalconForCausalLM"},
            .tensors = {kMegatron},
            .only = kFalconOnly,
            .defaults = kFalconDefaults,
            .add_keys = Falcon}},
    {.name = "persimmon",
     .traits = With(kGptHeadNorms, kernels::Activation::kReluSquared),
     .hf = {.names = {"PersimmonForCausalLM"},
            .all_kv_heads = true,
            .rotary_part = 0.5,
            .tensors = {kMegatron},
            .defaults = kNorm5}},
    {.name = "phi2",
     .traits = Parallel(With(kGptHeadNorms, kernels::Activation::kGeluAlone)),
     .complete_config = GptNeoX,
     .hf =
         {.names = {"PhiForCausalLM"}, .rotary_part = 0.5, .tensors = {kPhi2}, .defaults = kNorm5}},
    {.name = "stablelm",
     .traits = kGptHeadNorms,
     .complete_config = GptNeoX,
     .hf = {.names = {"StableLmForCausalLM", "StableLMEpochForCausalLM"},
            .rotary_part = 0.25,
            .tensors = {kStableLm},
            .defaults = kStableLmDefaults}},
    {.name = "starcoder2",
     .traits = kGpt,
     .windows = {Windows::When::kIfGiven},
     .hf = {.names = {"Starcoder2ForCausalLM"},
            .tensors = {kStarCoder2},
            .defaults = kStarCoder2Defaults}},
    {.name = "nemotron",
     .traits = With(kGpt, kernels::Activation::kReluSquared),
     .hf = {.names = {"NemotronForCausalLM"},
            .norms_plus_one = true,
            .rotary_part = 0.5,
            .defaults = kNorm5}},
    {.name = "jais2",
     .traits = With(kGpt, kernels::Activation::kReluSquared),
     .hf = {.names = {"Jais2ForCausalLM"}, .defaults = kNorm5}},
    {.name = "olmo",
     .rope_pairs = kAdjacent,
     .traits = {.layer_norm = true, .norms_have_weights = false},
     .hf = {.names = {"OlmoForCausalLM", "OLMoForCausalLM"},
            .pairs_halves = true,
            .add_keys = Olmo}},
    {.name = "command-r",
     .rope_pairs = kAdjacent,
     .traits = Parallel(kGptHeadNorms),
     .complete_config = CommandR,
     .hf = {.names = {"CohereForCausalLM"},
            .rope_theta = 500000,
            .defaults = kCommandRDefaults,
            .add_keys = CommandRLength}},
    {.name = "phimoe",
     .traits = {.layer_norm = true},
     .windows = {Windows::When::kIfListed},
     .router = kernels::Router{.gate = kernels::Router::Gate::kSparseMixer, .normed = false},
     .hf = {.names = {"PhimoeForCausalLM", "PhiMoEForCausalLM"},
            .rope_theta = 1e6,
            .only = kPhiMoeOnly,
            .defaults = kPhiMoeDefaults}},
};

}  // namespace

std::span<const Family> GptLineage() { return kGptRows; }

}  // namespace engine
