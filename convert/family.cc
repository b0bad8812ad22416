// Finds the family of a folder, and has the tables that most families share; see family.h.
#include "convert/family.h"

#include <algorithm>

#include "convert/families/families.h"
#include "gguf/error.h"

namespace convert {
namespace {

constexpr TensorRule kCommon[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {".input_layernorm", ".attn_norm"},
    {".post_attention_layernorm", ".ffn_norm"},
    {".self_attn.q_proj", ".attn_q"},
    {".self_attn.k_proj", ".attn_k"},
    {".self_attn.v_proj", ".attn_v"},
    {".self_attn.o_proj", ".attn_output"},
    {".self_attn.q_norm", ".attn_q_norm"},
    {".self_attn.k_norm", ".attn_k_norm"},
    {".mlp.gate_proj", ".ffn_gate"},
    {".mlp.up_proj", ".ffn_up"},
    {".mlp.down_proj", ".ffn_down"},
    // Experts, under their usual names.
    {".mlp.gate", ".ffn_gate_inp"},
    {".mlp.experts.{e}.gate_proj", ".ffn_gate_exps"},
    {".mlp.experts.{e}.up_proj", ".ffn_up_exps"},
    {".mlp.experts.{e}.down_proj", ".ffn_down_exps"},
    // Every reader computes these itself.
    {".self_attn.rotary_emb.inv_freq", ""},
    {"model.rotary_emb.inv_freq", ""},
};

// Models with vision or audio, whose text model's family is named in config.json's text_config.
constexpr std::string_view kWrappers[] = {
    "Mistral3ForConditionalGeneration",  "LlavaForConditionalGeneration",
    "LlavaNextForConditionalGeneration", "Idefics3ForConditionalGeneration",
    "SmolVLMForConditionalGeneration",   "InternVLForConditionalGeneration",
    "Lfm2VlForConditionalGeneration",    "VoxtralForConditionalGeneration",
    "LightOnOCRForConditionalGeneration"};

// By their model_type.
constexpr std::pair<std::string_view, std::string_view> kTextModels[] = {
    {"llama", "LlamaForCausalLM"},        {"mistral", "MistralForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},    {"ministral3", "Ministral3ForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"},        {"qwen3", "Qwen3ForCausalLM"},
    {"qwen3_moe", "Qwen3MoeForCausalLM"}, {"granite", "GraniteForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"},    {"gpt_oss", "GptOssForCausalLM"},
    {"lfm2", "Lfm2ForCausalLM"},          {"lfm2_moe", "Lfm2MoeForCausalLM"}};

// config.json's name for the text model.
std::string NameOf(const Fields& config, const std::string& outer) {
  // transformers computes EXAONE 3 by Llama's class, and keeps the names of its tensors.
  if (outer == "LlamaForCausalLM" && config.TextOr("model_type", "") == "exaone")
    return "ExaoneForCausalLM";
  if (std::ranges::count(kWrappers, outer) == 0) return outer;
  const Fields text = config.Object("text_config");
  // Libraries omit default names.
  const std::string type =
      text.TextOr("model_type", outer.starts_with("Mistral3") ? "mistral" : "llama");
  for (const auto& [known, name] : kTextModels) {
    if (type == known) return std::string(name);
  }
  text.Fail("model_type", "a text model of type ", gguf::Quoted(type, 60),
            " cannot be converted from ", outer);
}

}  // namespace

const std::vector<Family>& Families() {
  static const std::vector<Family> kAll = [] {
    std::vector<Family> all;
    for (const auto lineage :
         {LlamaLineage(), QwenLineage(), GraniteLineage(), GemmaLineage(), SingleLineages(),
          Lfm2Lineage(), DeepSeekLineage(), NemotronLineage(), ExpertsLineage(), MambaLineage(),
          GptLineage(), BertLineage()}) {
      all.insert(all.end(), lineage.begin(), lineage.end());
    }
    return all;
  }();
  return kAll;
}

std::span<const TensorRule> CommonTensors() { return kCommon; }

const Family& FindFamily(const Fields& config) {
  const std::vector<std::string> found = config.Texts("architectures");
  if (found.size() != 1) config.Fail("architectures", "expected one name, found ", found.size());
  const std::string name = NameOf(config, found[0]);
  // A model that writes text, without its output matrix, as those that make vectors are saved.
  const std::string causal =
      name.ends_with("Model") ? name.substr(0, name.size() - 5) + "ForCausalLM" : name;
  const Fields text = TextConfig(config);
  bool has_experts = text.UintOr("num_local_experts", 0) + text.UintOr("n_routed_experts", 0) +
                         text.UintOr("moe_every_n_layers", 0) >
                     0;
  const std::vector<std::string> kinds = text.IsList("layers_block_type")
                                             ? text.Texts("layers_block_type")
                                             : std::vector<std::string>();
  if (!kinds.empty()) has_experts = std::ranges::count(kinds, "moe") > 0;
  std::string known;
  for (const Family& family : Families()) {
    if (family.experts != Experts::kEither && (family.experts == Experts::kSome) != has_experts) {
      continue;
    }
    for (const std::string_view hf : family.hf) {
      if (hf.empty()) break;
      if (hf == name || hf == causal) return family;
      known += (known.empty() ? "" : ", ") + std::string(hf);
    }
  }
  for (const std::string_view wrapper : kWrappers) known += ", " + std::string(wrapper);
  config.Fail("architectures", "architecture ", gguf::Quoted(found[0], 60),
              " cannot be converted (this program converts ", known, ")");
}

Fields TextConfig(const Fields& config) {
  return config.IsObject("text_config") ? config.Object("text_config").Over(config) : config;
}

Fields UsualConfig(const Family& family, const Fields& config) {
  Fields text = TextConfig(config);
  std::string usual;
  for (const auto& [theirs, name] : family.renamed) {
    if (text.Has(name) && !text.Has(theirs)) continue;
    usual += (usual.empty() ? "{\"" : ", \"") + std::string(name) +
             "\": " + std::to_string(text.Count(theirs));
  }
  if (!text.Has("num_hidden_layers") && text.IsList("layers_block_type")) {
    usual += (usual.empty() ? "{\"" : ", \"") + std::string("num_hidden_layers\": ") +
             std::to_string(text.Texts("layers_block_type").size());
  }
  if (!usual.empty()) text = text.Over(ParseObject(config.file(), usual + "}"));
  if (family.defaults.empty()) return text;
  return text.Over(ParseObject(config.file(), std::string(family.defaults)));
}

}  // namespace convert
