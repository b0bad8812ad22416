// Encoders: BERT (Devlin et al. 2019), its relatives with rope (Jina v3, Sturua et al. 2024) and a
// gated network (Nomic Embed, Nussbaum et al. 2024) or experts (2025), ModernBERT (Warner et al.
// 2024), whose windows are in two layers of three, and EuroBERT (Boizard et al. 2025), a Llama.
// Their attention is bidirectional, and all norms but EuroBERT's are LayerNorm.
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

using enum Order;

// ---- What a file means.

void Encoder(const Keys& keys, Config& config) {
  SeeBothWays(keys, config);
  config.n_token_types = keys.Of("tokenizer.ggml").Count("token_type_count", kMaxLength);
}

void Bert(const Keys& keys, Config& config) {
  LeaveOutRope(config);
  Encoder(keys, config);
}

// Every n-th layer has experts, beginning with the second.
void NomicBertMoe(const Keys& keys, Config& config) {
  Encoder(keys, config);
  const size_t every = keys.UintOr("moe_every_n_layers", 0, kMaxLength);
  for (size_t i = 0; i < config.n_layers(); ++i) {
    if ((config.layers[i].n_experts > 0) == (every > 0 && i % every == 1)) continue;
    keys.Fail("moe_every_n_layers", "the tensors of layer ", i, " are not of this period, found ",
              every);
  }
}

void NomicBert(const Keys& keys, Config& config) {
  Encoder(keys, config);
  keys.UintOr("moe_every_n_layers", 0, 0);
}

void ModernBert(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  const size_t period = keys.CountOr("attention.sliding_window_pattern", 3, kMaxLength);
  for (size_t i = 0; window > 0 && i < config.n_layers(); ++i) {
    if (i % period != 0) config.layers[i].window = window / 2 + 1;
  }
  SetLocalBase(keys, Unscaled(config.ropes[0]), 10000, config);
  SeeBothWays(keys, config);
  // "gelu" is the form with tanh, as llama.cpp computes it. Our converter has another name for
  // exact GELU.
  const std::string_view name = keys.StringOr("hidden_activation", "");
  const bool is_silu = name == "silu" || name == "swish" || name == "swiglu";
  const bool is_erf = name == "gelu_erf";
  config.activation = is_erf    ? kernels::Activation::kGatedGeluErf
                      : is_silu ? kernels::Activation::kSilu
                                : kernels::Activation::kGelu;
  config.rank.exact_gelu = is_erf;
}

constexpr NormRoles kNormsOfSums = {.attn = "",
                                    .attn_sum = "attn_output_norm",
                                    .ffn = "",
                                    .ffn_sum = "layer_output_norm",
                                    .output = "",
                                    .embedding = "token_embd_norm"};
constexpr NormRoles kModernNorms = {.embedding = "token_embd_norm"};

// ---- What a folder means.

constexpr TensorRule kBert[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd", kAfterPadding},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.position_ids", ""},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {".attention.self.query", ".attn_q"},
    {".attention.self.key", ".attn_k"},
    {".attention.self.value", ".attn_v"},
    {".attention.output.dense", ".attn_output"},
    {".attention.output.LayerNorm", ".attn_output_norm"},
    {".intermediate.dense", ".ffn_up"},
    {".output.dense", ".ffn_down"},
    {".output.LayerNorm", ".layer_output_norm"},
    {"pooler.dense", ""},
    {"lm_head", ""},
    {"lm_head.dense", ""},
    {"lm_head.layer_norm", ""},
    {"lm_head.decoder", ""},
    // Nomic's names.
    {"emb_ln", "token_embd_norm"},
    {".attn.Wqkv", ".attn_qkv"},
    {".attn.out_proj", ".attn_output"},
    {".norm1", ".attn_output_norm"},
    {".norm2", ".layer_output_norm"},
    {".mlp.fc1", ".ffn_up"},
    {".mlp.fc11", ".ffn_up"},
    {".mlp.fc12", ".ffn_gate"},
    {".mlp.fc2", ".ffn_down"},
    // Jina's names.
    {".mixer.Wqkv", ".attn_qkv"},
    {".mixer.out_proj", ".attn_output"},
    {".mlp.router.layer", ".ffn_gate_inp"},
    {".mlp.experts.mlp.w1", ".ffn_up_exps.weight", kByExpert},
    {".mlp.experts.mlp.w2", ".ffn_down_exps.weight", kByExpertTransposed},
    {".mlp.experts.bias", ""},  // readers lack it
    // ModernBERT's names.
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.norm", "token_embd_norm"},
    {".attn_norm", ".attn_norm"},
    {".attn.Wo", ".attn_output"},
    {".mlp_norm", ".ffn_norm"},
    {".mlp.Wi", ".ffn_up"},
    {".mlp.Wo", ".ffn_down"},
    {"final_norm", "output_norm"},
};
constexpr TensorRule kEuroBert[] = {{"lm_head", ""}};
constexpr TensorRule kRank[] = {
    {"pooler.dense", "cls"}, {"classifier.dense", "cls"}, {"classifier.out_proj", "cls.output"},
    {"head.dense", "cls"},   {"head.norm", "cls.norm"},   {"classifier", "cls.output"}};

constexpr KeyRule kBertKeys[] = {
    {"rotary_emb_base global_rope_theta", "rope.freq_base", KeyKind::kFloat},
    {"moe_every_n_layers", "moe_every_n_layers"},
    {"local_attention", "attention.sliding_window"},
    {"global_attn_every_n_layers", "attention.sliding_window_pattern"},
};
constexpr KeyValue kBertOnly[] = {{"is_decoder", 0}};
constexpr KeyValue kModernDefaults[] = {{"local_attention", 128}};
constexpr KeyValue kNomicOnly[] = {
    {"prenorm", 0}, {"rotary_emb_fraction", 1}, {"rotary_emb_interleaved", 0}};

constexpr std::pair<std::string_view, std::string_view> kNomicNames[] = {
    {"n_positions", "max_position_embeddings"}, {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},           {"n_head", "num_attention_heads"},
    {"n_inner", "intermediate_size"},
};

// A model with a classifier scores texts.
void Encoder(OutModel& model) {
  model.Bool("attention.causal", false);
  model.Without("attention.head_count_kv");
  const char* const last = model.folder.tensors().contains("classifier.out_proj.weight")
                               ? "classifier.out_proj.weight"
                               : "classifier.weight";
  if (!model.folder.tensors().contains(last)) return;
  const Fields names = model.config.Object("id2label");
  const uint64_t n = model.RowsOf(last);
  if (n > UINT16_MAX) model.Need(last).Fail("expected fewer labels");
  std::vector<std::string> labels(n);
  for (size_t i = 0; i < n; ++i)
    labels[i] = names.TextOr(std::to_string(i), "LABEL_" + std::to_string(i));
  model.first_rules = kRank;
  model.Rank(labels);
}

// Common to the encoders with token types.
void WithTypes(OutModel& model) {
  Encoder(model);
  model.keys.Add("tokenizer.ggml.token_type_count",
                 static_cast<uint32_t>(model.config.CountOr("type_vocab_size", 1)));
}

void Bert(OutModel& model) {
  WithTypes(model);
  const Fields& config = model.config;
  // Its first text position is after the padding's number.
  const std::string type = config.TextOr("model_type", "");
  if (type.ends_with("roberta") || type == "camembert") {
    model.shapes.padding = config.UintOr("pad_token_id", 1) + 1;
    const uint64_t n = config.Count("max_position_embeddings");
    if (n <= model.shapes.padding) config.Fail("max_position_embeddings", "too few positions");
    model.Uint("context_length", n - model.shapes.padding);
  }
  model.Without("rope.dimension_count");
}

void EuroBert(OutModel& model) { model.Bool("attention.causal", false); }

// Its authors' config.json has four times the positions of the training; transformers' does not.
void Nomic(OutModel& model) {
  const Fields& config = model.config;
  WithTypes(model);
  if (config.Has("n_positions")) {
    model.Uint("context_length", config.Count("n_positions") / 4);
  } else {
    model.default_theta = 1000;
    model.Float("rope.freq_base", model.rope_theta());
  }
  model.Without("rope.dimension_count");
  model.shapes.n_experts = config.CountOr("num_experts", 1);
  if (model.architecture == "nomic-bert-moe") return;
  for (const char* const key : {"activation_function", "hidden_act"}) {
    const std::string name = config.TextOr(key, "silu");
    if (name != "silu" && name != "swiglu")
      config.Fail(key, "expected swiglu, found ", gguf::Quoted(name, 40));
  }
}

void ModernBert(OutModel& model) {
  const Fields& config = model.config;
  ExpectPeriod(model, config.CountOr("global_attn_every_n_layers", 3), true);
  Encoder(model);
  if (model.Gives("pooling_type") && config.TextOr("classifier_pooling", "cls") != "mean")
    config.Fail("classifier_pooling", "expected mean in a model that scores texts");
  model.Float("rope.freq_base_swa", LocalBase(config, "local_rope_theta"));
  // Readers take "gelu" and unknown activations for GELU's form with tanh.
  const std::string name = config.TextOr("hidden_activation", "gelu");
  const bool is_tanh = name == "gelu_new" || name == "gelu_pytorch_tanh";
  if (!is_tanh && name != "gelu" && name != "silu") {
    config.Fail("hidden_activation", "expected gelu, gelu_pytorch_tanh or silu, found ",
                gguf::Quoted(name, 40));
  }
  model.Text("hidden_activation", is_tanh ? "gelu" : name == "gelu" ? "gelu_erf" : name);
  if (!model.Gives("pooling_type")) return;
  // Scores use the layers' GELU or, if layers use SiLU, its form with tanh, which is 1e-7 off.
  const std::string of_scores = config.TextOr("classifier_activation", "gelu");
  if (!of_scores.starts_with("gelu") || (name != "silu" && of_scores != name))
    config.Fail("classifier_activation", "expected ", name == "silu" ? "gelu" : name);
}

constexpr KeyValue kGeluDefault[] = {{"hidden_act", 0, "gelu"}};

// GELU of networks without a gate is the form with tanh if no key says otherwise.
constexpr Traits kSumNorms = {.norms = kNormsOfSums, .layer_norm = true},
                 kSumNormsUngated = {.norms = kNormsOfSums,
                                     .layer_norm = true,
                                     .activation = kernels::Activation::kGeluAlone};

constexpr Family kBertRows[] = {
    {.name = "bert",
     .traits = {.norms = kNormsOfSums,
                .layer_norm = true,
                .activation = kernels::Activation::kGeluAlone,
                .learned_positions = true},
     .complete_config = Bert,
     .hf = {.names = {"BertModel", "BertForSequenceClassification", "XLMRobertaModel",
                      "XLMRobertaForSequenceClassification", "RobertaModel", "RobertaForMaskedLM",
                      "RobertaForSequenceClassification", "BertForMaskedLM",
                      "XLMRobertaForMaskedLM", "CamembertModel"},
            .tensors = {kBert},
            .keys = {kBertKeys},
            .only = kBertOnly,
            .defaults = kGeluDefault,
            .add_keys = Bert}},
    {.name = "nomic-bert",
     .traits = kSumNorms,
     .complete_config = NomicBert,
     .hf = {.names = {"NomicBertModel"},
            .experts = HasExperts::kNone,
            .activation = "",  // it has one of two names
            .tensors = {kBert},
            .keys = {kBertKeys},
            .only = kNomicOnly,
            .renamed = kNomicNames,
            .add_keys = Nomic}},
    {.name = "nomic-bert-moe",
     .traits = kSumNormsUngated,
     .router = kByKeys,
     .dense_layers = DenseLayers::kWithoutRouter,
     .complete_config = NomicBertMoe,
     .hf = {.names = {"NomicBertModel"},
            .experts = HasExperts::kSome,
            .tensors = {kBert},
            .keys = {kBertKeys},
            .only = kNomicOnly,
            .defaults = kGeluDefault,
            .renamed = kNomicNames,
            .add_keys = Nomic}},
    {.name = "jina-bert-v3",
     .traits = kSumNormsUngated,
     .complete_config = Encoder,
     .hf = {.names = {"JinaEmbeddingsV3Model"},
            .rope_theta = 20000,
            .tensors = {kBert},
            .keys = {kBertKeys},
            .defaults = kGeluDefault,
            .add_keys = WithTypes}},
    {.name = "eurobert",
     .complete_config = SeeBothWays,
     .hf = {.names = {"EuroBertModel", "EuroBertForMaskedLM"},
            .tensors = {kEuroBert},
            .add_keys = EuroBert}},
    {.name = "modern-bert",
     .traits = {.norms = kModernNorms,
                .layer_norm = true,
                .has_first_norm = false,
                .rank = {.from = Pooling::kMean, .uses_gelu = true}},
     .complete_config = ModernBert,
     .hf = {.names = {"ModernBertModel", "ModernBertForSequenceClassification"},
            .rope_theta = 160000,
            .activation = "",  // it has one of several names
            .tensors = {kBert},
            .keys = {kBertKeys},
            .defaults = kModernDefaults,
            .add_keys = ModernBert}},
};

}  // namespace

std::span<const Family> BertLineage() { return kBertRows; }

}  // namespace engine
