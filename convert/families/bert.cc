// BERT, Jina v3, Nomic Embed, ModernBERT and EuroBERT, which make vectors of texts or score them.
#include <string>

#include "convert/families/families.h"
#include "gguf/error.h"

namespace convert {
namespace {

using enum Order;
using enum KeyKind;

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
constexpr TensorRule kEuroBert[] = {{"lm_head", ""}};
constexpr TensorRule kRank[] = {
    {"pooler.dense", "cls"}, {"classifier.dense", "cls"}, {"classifier.out_proj", "cls.output"},
    {"head.dense", "cls"},   {"head.norm", "cls.norm"},   {"classifier", "cls.output"}};

constexpr KeyRule kBertKeys[] = {
    {"layer_norm_eps layer_norm_epsilon norm_eps", "attention.layer_norm_epsilon", kFloat},
    {"rotary_emb_base global_rope_theta", "rope.freq_base", kFloat},
    {"moe_every_n_layers", "moe_every_n_layers"},
    {"local_attention", "attention.sliding_window"},
    {"global_attn_every_n_layers", "attention.sliding_window_pattern"},
};
constexpr UsualValue kBertUsual[] = {{"is_decoder", 0}};
constexpr std::string_view kModernDefaults = R"({"local_attention": 128})";
constexpr UsualValue kNomicUsual[] = {
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

// What the encoders with token types have in common.
void WithTypes(OutModel& model) {
  Encoder(model);
  model.keys.Add("tokenizer.ggml.token_type_count",
                 static_cast<uint32_t>(model.config.CountOr("type_vocab_size", 1)));
}

void Bert(OutModel& model) {
  WithTypes(model);
  AddActivation("hidden_act", "gelu", "gelu_new", model);
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

void JinaBert(OutModel& model) {
  WithTypes(model);
  AddActivation("hidden_act", "gelu", "gelu_new", model);
}

void EuroBert(OutModel& model) { model.Bool("attention.causal", false); }

// Its authors' config.json has room for four times the positions of the training, transformers'
// has not.
void Nomic(OutModel& model) {
  const Fields& config = model.config;
  WithTypes(model);
  if (config.Has("n_positions")) {
    model.Uint("context_length", config.Count("n_positions") / 4);
  } else {
    model.usual_theta = 1000;
    model.Float("rope.freq_base", model.rope_theta());
  }
  model.Without("rope.dimension_count");
  model.shapes.n_experts = config.CountOr("num_experts", 1);
  if (model.architecture == "nomic-bert-moe")
    return AddActivation("activation_function", "gelu", "gelu_new", model);
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
  // Readers take "gelu", and what they do not know, for GELU's form with tanh.
  const std::string name = config.TextOr("hidden_activation", "gelu");
  const bool is_tanh = name == "gelu_new" || name == "gelu_pytorch_tanh";
  if (!is_tanh && name != "gelu" && name != "silu") {
    config.Fail("hidden_activation", "expected gelu, gelu_pytorch_tanh or silu, found ",
                gguf::Quoted(name, 40));
  }
  model.Text("hidden_activation", is_tanh ? "gelu" : name == "gelu" ? "gelu_erf" : name);
  if (!model.Gives("pooling_type")) return;
  // Scores have GELU as the layers have, or in layers with SiLU its form with tanh, 1e-7 off.
  const std::string of_scores = config.TextOr("classifier_activation", "gelu");
  if (!of_scores.starts_with("gelu") || (name != "silu" && of_scores != name))
    config.Fail("classifier_activation", "expected ", name == "silu" ? "gelu" : name);
}

constexpr Family kBertRows[] = {
    {.name = "bert",
     .hf = {"BertModel", "BertForSequenceClassification", "XLMRobertaModel",
            "XLMRobertaForSequenceClassification", "RobertaModel", "RobertaForMaskedLM",
            "RobertaForSequenceClassification", "BertForMaskedLM", "XLMRobertaForMaskedLM",
            "CamembertModel"},
     .activation = "",  // one of several
     .tensors = {kBert},
     .keys = {kBertKeys},
     .usual = kBertUsual,
     .refine = Bert},
    {.name = "nomic-bert",
     .hf = {"NomicBertModel"},
     .experts = Experts::kNone,
     .activation = "",  // under one of two names
     .tensors = {kBert},
     .keys = {kBertKeys},
     .usual = kNomicUsual,
     .refine = Nomic,
     .renamed = kNomicNames},
    {.name = "nomic-bert-moe",
     .hf = {"NomicBertModel"},
     .experts = Experts::kSome,
     .activation = "",
     .tensors = {kBert},
     .keys = {kBertKeys, kExpertSizes, kExpertKeys},
     .usual = kNomicUsual,
     .refine = Nomic,
     .renamed = kNomicNames},
    {.name = "jina-bert-v3",
     .hf = {"JinaEmbeddingsV3Model"},
     .activation = "",
     .tensors = {kBert},
     .keys = {kBertKeys},
     .refine = JinaBert,
     .rope_theta = 20000},
    {.name = "eurobert",
     .hf = {"EuroBertModel", "EuroBertForMaskedLM"},
     .tensors = {kEuroBert},
     .refine = EuroBert},
    {.name = "modern-bert",
     .hf = {"ModernBertModel", "ModernBertForSequenceClassification"},
     .activation = "",  // one of two
     .tensors = {kBert},
     .keys = {kBertKeys},
     .refine = ModernBert,
     .rope_theta = 160000,
     .defaults = kModernDefaults},
};

}  // namespace

std::span<const Family> BertLineage() { return kBertRows; }

}  // namespace convert
