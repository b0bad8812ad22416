// Encoders: BERT (Devlin et al. 2019), its relatives with rope and a gated network (Nomic Embed,
// Nussbaum et al. 2024) or with experts (2025), and ModernBERT (Warner et al. 2024), whose windows
// are in two layers of three. All see both ways, and their norms are LayerNorm.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"

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
  const std::string_view name = keys.StringOr("hidden_activation", "gelu");
  const bool is_silu = name == "silu" || name == "swish" || name == "swiglu";
  config.activation = is_silu ? kernels::Activation::kSilu : kernels::Activation::kGelu;
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
    {".mlp.router.layer", ".ffn_gate_inp"},
    {".mlp.experts.mlp.w1", ".ffn_up_exps.weight", kByExpert},
    {".mlp.experts.mlp.w2", ".ffn_down_exps.weight", kByExpertTransposed},
    {".mlp.experts.bias", ""},  // which readers do not know
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
constexpr TensorRule kRank[] = {
    {"pooler.dense", "cls"}, {"classifier.dense", "cls"}, {"classifier.out_proj", "cls.output"},
    {"head.dense", "cls"},   {"head.norm", "cls.norm"},   {"classifier", "cls.output"}};

constexpr KeyRule kBertKeys[] = {
    {"rotary_emb_base global_rope_theta", "rope.freq_base", KeyKind::kFloat},
    {"moe_every_n_layers", "moe_every_n_layers"},
    {"local_attention", "attention.sliding_window"},
    {"global_attn_every_n_layers", "attention.sliding_window_pattern"},
};
constexpr Usual kNomicOnly[] = {
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

void Bert(OutModel& model) {
  Encoder(model);
  const Fields& config = model.config;
  // Its first text position is after the padding's number.
  if (config.TextOr("model_type", "").ends_with("roberta")) {
    model.shapes.padding = config.UintOr("pad_token_id", 1) + 1;
    const uint64_t n = config.Count("max_position_embeddings");
    if (n <= model.shapes.padding) config.Fail("max_position_embeddings", "too few positions");
    model.Uint("context_length", n - model.shapes.padding);
  }
  model.Without("rope.dimension_count");
  model.keys.Add("tokenizer.ggml.token_type_count",
                 static_cast<uint32_t>(config.CountOr("type_vocab_size", 1)));
}

// config.json has room for four times the positions of the training.
void Nomic(OutModel& model) {
  model.Uint("context_length", model.config.Count("n_positions") / 4);
  model.shapes.n_experts = model.config.CountOr("num_experts", 1);
  Bert(model);
}

void ModernBert(OutModel& model) {
  const Fields& config = model.config;
  ExpectPeriod(model, config.CountOr("global_attn_every_n_layers", 3), true);
  Encoder(model);
  if (model.Gives("pooling_type") && config.TextOr("classifier_pooling", "cls") != "mean")
    config.Fail("classifier_pooling", "expected mean in a model that scores texts");
  model.Float("rope.freq_base_swa", LocalBase(config, "local_rope_theta"));
  model.Text("hidden_activation", config.TextOr("hidden_activation", "gelu"));
}

constexpr Family kBertRows[] = {
    {.name = "bert",
     .traits = {.norms = kNormsOfSums,
                .layer_norm = true,
                .activation = kernels::Activation::kGeluAlone,
                .learned_positions = true},
     .refine = Bert,
     .hf = {.names = {"BertModel", "BertForSequenceClassification", "XLMRobertaModel",
                      "XLMRobertaForSequenceClassification", "RobertaModel", "RobertaForMaskedLM",
                      "RobertaForSequenceClassification"},
            .activation = "gelu",
            .tensors = {kBert},
            .keys = {kBertKeys},
            .refine = Bert}},
    {.name = "nomic-bert",
     .traits = {.norms = kNormsOfSums, .layer_norm = true},
     .refine = NomicBert,
     .hf = {.names = {"NomicBertModel"},
            .experts = Experts::kNone,
            .activation = "swiglu",
            .tensors = {kBert},
            .keys = {kBertKeys},
            .only = kNomicOnly,
            .renamed = kNomicNames,
            .refine = Nomic}},
    {.name = "nomic-bert-moe",
     .traits = {.norms = kNormsOfSums,
                .layer_norm = true,
                .activation = kernels::Activation::kGeluAlone},
     .router = kByKeys,
     .dense_layers = DenseLayers::kWithoutRouter,
     .refine = NomicBertMoe,
     .hf = {.names = {"NomicBertModel"},
            .experts = Experts::kSome,
            .activation = "gelu",
            .tensors = {kBert},
            .keys = {kBertKeys},
            .only = kNomicOnly,
            .renamed = kNomicNames,
            .refine = Nomic}},
    {.name = "modern-bert",
     .traits = {.norms = kModernNorms,
                .layer_norm = true,
                .first_norm = false,
                .rank = {.from = Pooling::kMean, .gelu = true}},
     .refine = ModernBert,
     .hf = {.names = {"ModernBertModel", "ModernBertForSequenceClassification"},
            .activation = "",  // one of two
            .tensors = {kBert},
            .keys = {kBertKeys},
            .refine = ModernBert}},
};

}  // namespace

std::span<const Family> BertLineage() { return kBertRows; }

}  // namespace engine
