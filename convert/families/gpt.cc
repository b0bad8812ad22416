// Decoders with LayerNorm: GPT-2, StarCoder, OPT, XGLM, BLOOM, MPT, GPT-J, CodeGen, GPT-NeoX,
// Falcon, Persimmon, Phi-2, Phi-3.5-MoE, StableLM, StarCoder2, OLMo, Nemotron, Command R, Jais 2.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "convert/families/families.h"
#include "gguf/error.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

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
// As GPT-2, but for transposed matrices.
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

constexpr KeyRule kLayerNormKeys[] = {
    {"layer_norm_epsilon layer_norm_eps norm_epsilon norm_eps rms_norm_eps",
     "attention.layer_norm_epsilon", kFloat},
    {"clip_qkv", "attention.clamp_kqv", kFloat},
    {"use_parallel_residual", "use_parallel_residual", kBool},
    {"logit_scale", "logit_scale", kFloat},
    {"sliding_window", "attention.sliding_window"},
};

constexpr std::pair<std::string_view, std::string_view> kGpt2Names[] = {
    {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_positions", "max_position_embeddings"}};
constexpr std::pair<std::string_view, std::string_view> kBloomNames[] = {
    {"n_layer", "num_hidden_layers"}, {"n_head", "num_attention_heads"}};
constexpr std::pair<std::string_view, std::string_view> kMptNames[] = {
    {"d_model", "hidden_size"},
    {"n_layers", "num_hidden_layers"},
    {"n_heads", "num_attention_heads"},
    {"max_seq_len", "max_position_embeddings"}};
constexpr std::pair<std::string_view, std::string_view> kXglmNames[] = {
    {"d_model", "hidden_size"},
    {"num_layers", "num_hidden_layers"},
    {"attention_heads", "num_attention_heads"}};

constexpr UsualValue kGpt2Usual[] = {
    {"scale_attn_weights", 1}, {"scale_attn_by_inverse_layer_idx", 0}, {"add_cross_attention", 0}};
constexpr UsualValue kBloomUsual[] = {{"apply_residual_connection_post_layernorm", 0}};
constexpr UsualValue kMptUsual[] = {{"expansion_ratio", 4}};
constexpr UsualValue kOptUsual[] = {{"do_layer_norm_before", 1},
                                    {"enable_bias", 1},
                                    {"layer_norm_elementwise_affine", 1},
                                    {"_remove_final_layer_norm", 0}};
constexpr UsualValue kFalconUsual[] = {{"alibi", 0}, {"parallel_attn", 1}};
constexpr UsualValue kPhiMoeUsual[] = {{"router_jitter_noise", 0.01}};

// Values of config.json that its class has where it omits them.
constexpr std::string_view kLayerNorm5 = R"({"layer_norm_epsilon": 1e-5})";
constexpr std::string_view kBloomDefaults =
    R"({"layer_norm_epsilon": 1e-5, "max_position_embeddings": 2048})";
constexpr std::string_view kStableLmDefaults =
    R"({"layer_norm_eps": 1e-5, "num_key_value_heads": 32})";
constexpr std::string_view kStarCoder2Defaults =
    R"({"norm_epsilon": 1e-5, "num_key_value_heads": 2})";
constexpr std::string_view kCommandRDefaults = R"({"layer_norm_eps": 1e-5, "logit_scale": 0.0625})";
constexpr std::string_view kPhiMoeDefaults =
    R"({"rms_norm_eps": 1e-5, "num_key_value_heads": 8, "num_local_experts": 16,
        "num_experts_per_tok": 2})";
constexpr std::string_view kFalconDefaults =
    R"({"layer_norm_epsilon": 1e-5, "max_position_embeddings": 2048})";

void AddWidth(std::string_view key, OutModel& model) {
  model.Uint("feed_forward_length",
             model.config.CountOr(key, 4 * model.config.Count("hidden_size")));
}

void WithoutRope(OutModel& model) {
  model.Without("rope.dimension_count");
  model.Without("rope.freq_base");
}

void Gpt2(OutModel& model) {
  model.shapes.n_kv_heads = model.shapes.n_heads;
  WithoutRope(model);
  AddWidth("n_inner", model);
  AddActivation("activation_function", "gelu_new", "gelu_new", model);
}

void StarCoder(OutModel& model) {
  const bool shared = model.config.BoolOr("multi_query", true);
  model.shapes.n_kv_heads = shared ? 1 : model.shapes.n_heads;
  if (!shared) model.first_rules = kStarCoderByHead;
  WithoutRope(model);
  AddWidth("n_inner", model);
  AddActivation("activation_function", "gelu_pytorch_tanh", "gelu_new", model);
}

void GptJ(OutModel& model) {
  model.shapes.n_kv_heads = model.shapes.n_heads;
  AddWidth("n_inner", model);
  model.Uint("rope.dimension_count", model.config.CountOr("rotary_dim", 64));
  AddActivation("activation_function", "gelu_new", "gelu_new", model);
}

void GptNeoX(OutModel& model) {
  model.shapes.n_kv_heads = model.shapes.n_heads;
  if (!model.config.Has("use_parallel_residual")) model.Bool("use_parallel_residual", true);
  if (model.config.Has("rotary_emb_base") && !model.rope().Has("rope_theta"))
    model.Float("rope.freq_base", model.config.Number("rotary_emb_base"));
  AddActivation("hidden_act", "gelu", "gelu_new", model);
}

void Bloom(OutModel& model) {
  model.shapes.n_kv_heads = model.shapes.n_heads;
  WithoutRope(model);
  AddWidth("", model);
  model.Float("attention.max_alibi_bias", 8);
}

// Hugging Face's class has ALiBi whatever its keys say, and no other softmax_scale than usual.
void Mpt(OutModel& model) {
  const Fields attention = model.config.Object("attn_config");
  model.shapes.n_kv_heads = model.shapes.n_heads;
  WithoutRope(model);
  AddWidth("", model);
  model.Float("attention.max_alibi_bias", 8);
  if (attention.Has("clip_qkv")) model.Float("attention.clamp_kqv", attention.Number("clip_qkv"));
  if (attention.Has("softmax_scale")) {
    model.Float("attention.scale", attention.Number("softmax_scale"));
  }
  model.Text("hidden_activation", "gelu");
  model.Without("logit_scale");  // nor is it read there
}

// Positions begin with the third row.
void Opt(OutModel& model) {
  model.shapes.n_kv_heads = model.shapes.n_heads;
  const Fields& config = model.config;
  WithoutRope(model);
  model.shapes.padding = 2;
  AddWidth("ffn_dim", model);
  const uint64_t width = config.Count("hidden_size");
  if (config.CountOr("word_embed_proj_dim", width) != width)
    config.Fail("word_embed_proj_dim", "expected as hidden_size");
  AddActivation("activation_function", "relu", "relu", model);
}

// Positions are sines and cosines, which become a table like that of GPT-2.
void Xglm(OutModel& model) {
  model.shapes.n_kv_heads = model.shapes.n_heads;
  constexpr uint64_t kBefore = 2, kMostNumbers = uint64_t{1} << 28;
  const Fields& config = model.config;
  const uint64_t width = config.Count("hidden_size"), half = width / 2,
                 n = config.Count("max_position_embeddings");
  if (half < 2 || width % 2 != 0 || n > kMostNumbers / width)
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
  AddActivation("activation_function", "gelu", "gelu", model);
}

void Falcon(OutModel& model) {
  const Fields& config = model.config;
  const bool is_new = config.BoolOr("new_decoder_architecture", false);
  const bool shares = config.BoolOr("multi_query", true);
  model.shapes.n_kv_heads = is_new   ? config.CountOr("num_kv_heads", model.shapes.n_heads)
                            : shares ? 1
                                     : model.shapes.n_heads;
  AddWidth("ffn_hidden_size", model);
  AddActivation("activation", "gelu", "gelu_new", model);
}

void Persimmon(OutModel& model) { model.shapes.n_kv_heads = model.shapes.n_heads; }

void Phi2(OutModel& model) { AddActivation("hidden_act", "gelu_new", "gelu_new", model); }

void StarCoder2(OutModel& model) {
  AddActivation("hidden_act", "gelu_pytorch_tanh", "gelu_new", model);
}

void Olmo(OutModel& model) { model.Float("attention.layer_norm_epsilon", 1e-5); }

constexpr Family kGptRows[] = {
    {.name = "gpt2",
     .hf = {"GPT2LMHeadModel"},
     .activation = "",
     .tensors = {kGpt2},
     .keys = {kLayerNormKeys},
     .usual = kGpt2Usual,
     .refine = Gpt2,
     .defaults = kLayerNorm5,
     .renamed = kGpt2Names},
    {.name = "starcoder",
     .hf = {"GPTBigCodeForCausalLM"},
     .activation = "",
     .tensors = {kStarCoder, kGpt2},
     .keys = {kLayerNormKeys},
     .usual = kGpt2Usual,
     .refine = StarCoder,
     .defaults = kLayerNorm5,
     .renamed = kGpt2Names},
    {.name = "opt",
     .hf = {"OPTForCausalLM"},
     .activation = "",
     .tensors = {kOpt},
     .keys = {kLayerNormKeys},
     .usual = kOptUsual,
     .refine = Opt,
     .defaults = kLayerNorm5},
    {.name = "xglm",
     .hf = {"XGLMForCausalLM"},
     .activation = "",
     .tensors = {kOpt},
     .keys = {kLayerNormKeys},
     .refine = Xglm,
     .defaults = kLayerNorm5,
     .renamed = kXglmNames},
    {.name = "bloom",
     .hf = {"BloomForCausalLM"},
     .activation = "",
     .tensors = {kMegatron, kGptNeoX},
     .keys = {kLayerNormKeys},
     .usual = kBloomUsual,
     .refine = Bloom,
     .defaults = kBloomDefaults,
     .renamed = kBloomNames},
    {.name = "mpt",
     .hf = {"MptForCausalLM", "MPTForCausalLM"},
     .activation = "",
     .tensors = {kMpt, kGpt2},
     .keys = {kLayerNormKeys},
     .usual = kMptUsual,
     .refine = Mpt,
     .defaults = kLayerNorm5,
     .renamed = kMptNames},
    {.name = "gptj",
     .hf = {"GPTJForCausalLM", "CodeGenForCausalLM"},
     .activation = "",
     .tensors = {kGptJ, kGpt2},
     .keys = {kLayerNormKeys},
     .refine = GptJ,
     .defaults = kLayerNorm5,
     .renamed = kGpt2Names},
    {.name = "gptneox",
     .hf = {"GPTNeoXForCausalLM"},
     .activation = "",
     .tensors = {kGptNeoX, kMegatron},
     .keys = {kLayerNormKeys},
     .refine = GptNeoX,
     .rotary_part = 0.25,
     .defaults = kLayerNorm5},
    {.name = "falcon",
     .hf = {"FalconForCausalLM"},
     .activation = "",
     .tensors = {kMegatron},
     .keys = {kLayerNormKeys},
     .usual = kFalconUsual,
     .refine = Falcon,
     .defaults = kFalconDefaults},
    {.name = "persimmon",
     .hf = {"PersimmonForCausalLM"},
     .activation = "relu2",
     .tensors = {kMegatron},
     .keys = {kLayerNormKeys},
     .refine = Persimmon,
     .rotary_part = 0.5,
     .defaults = kLayerNorm5},
    {.name = "phi2",
     .hf = {"PhiForCausalLM"},
     .activation = "",
     .tensors = {kPhi2},
     .keys = {kLayerNormKeys},
     .refine = Phi2,
     .rotary_part = 0.5,
     .defaults = kLayerNorm5},
    {.name = "stablelm",
     .hf = {"StableLmForCausalLM", "StableLMEpochForCausalLM"},
     .tensors = {kStableLm},
     .keys = {kLayerNormKeys},
     .rotary_part = 0.25,
     .defaults = kStableLmDefaults},
    {.name = "starcoder2",
     .hf = {"Starcoder2ForCausalLM"},
     .activation = "",
     .tensors = {kStarCoder2},
     .keys = {kLayerNormKeys},
     .refine = StarCoder2,
     .defaults = kStarCoder2Defaults},
    {.name = "nemotron",
     .hf = {"NemotronForCausalLM"},
     .norms_plus_one = true,
     .activation = "relu2",
     .keys = {kLayerNormKeys},
     .rotary_part = 0.5,
     .defaults = kLayerNorm5},
    {.name = "jais2",
     .hf = {"Jais2ForCausalLM"},
     .activation = "relu2",
     .keys = {kLayerNormKeys},
     .defaults = kLayerNorm5},
    {.name = "olmo",
     .hf = {"OlmoForCausalLM", "OLMoForCausalLM"},
     .pairs_neighbours = true,
     .keys = {kLayerNormKeys},
     .refine = Olmo},
    {.name = "command-r",
     .hf = {"CohereForCausalLM"},
     .keys = {kLayerNormKeys},
     .rope_theta = 500000,
     .defaults = kCommandRDefaults},
    {.name = "phimoe",
     .hf = {"PhimoeForCausalLM", "PhiMoEForCausalLM"},
     .tensors = {kBlockSparse},
     .keys = {kLayerNormKeys, kExpertSizes},
     .usual = kPhiMoeUsual,
     .rope_theta = 1e6,
     .defaults = kPhiMoeDefaults},
};

}  // namespace

std::span<const Family> GptLineage() { return kGptRows; }

}  // namespace convert
