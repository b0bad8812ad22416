// Finds the family of a folder, and has the tables that most families share; see source.h.
#include "convert/source.h"

#include <algorithm>

#include "gguf/error.h"

namespace convert {
namespace {

constexpr TensorRule kCommon[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {".input_layernorm", ".attn_norm"},
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
    // Mixtral's names.
    {".mlp.experts.{e}.w1", ".ffn_gate_exps"},
    {".mlp.experts.{e}.w2", ".ffn_down_exps"},
    {".mlp.experts.{e}.w3", ".ffn_up_exps"},
    // The shared expert, and the bias of the experts' choice.
    {".mlp.shared_experts.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_experts.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_experts.down_proj", ".ffn_down_shexp"},
    {".mlp.gate.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mlp.e_score_correction_bias", ".exp_probs_b.bias"},
    {".mlp.expert_bias", ".exp_probs_b.bias"},
    // Blocks after the layers that predict further tokens.
    {".eh_proj", ".nextn.eh_proj"},
    {".enorm", ".nextn.enorm"},
    {".hnorm", ".nextn.hnorm"},
    {".embed_tokens", ".nextn.embed_tokens"},
    {".shared_head.head", ".nextn.shared_head_head"},
    {".shared_head.norm", ".nextn.shared_head_norm"},
    {".transformer.shared_head.output", ".nextn.shared_head_head"},
    {".transformer.shared_head.norm", ".nextn.shared_head_norm"},
    {".final_layernorm", ".layer_output_norm"},
    // Blocks in a separate part, "mtp.".
    {"mtp.fc", ".nextn.eh_proj"},
    {"mtp.pre_fc_norm_embedding", ".nextn.enorm"},
    {"mtp.pre_fc_norm_hidden", ".nextn.hnorm"},
    {"mtp.norm", ".nextn.shared_head_norm"},
    {"mtp.embed_tokens", ".nextn.embed_tokens"},
    {"mtp.lm_head", ".nextn.shared_head_head"},
};

// Models with vision or audio, whose text model's family is named in config.json's text_config.
constexpr std::string_view kWrappers[] = {
    "Mistral3ForConditionalGeneration",  "LlavaForConditionalGeneration",
    "LlavaNextForConditionalGeneration", "Idefics3ForConditionalGeneration",
    "SmolVLMForConditionalGeneration",   "InternVLForConditionalGeneration",
    "Lfm2VlForConditionalGeneration",    "VoxtralForConditionalGeneration",
    "LightOnOCRForConditionalGeneration"};

// Text models by their model_type.
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

std::span<const TensorRule> CommonTensors() { return kCommon; }

Source FindSource(const Fields& config) {
  const std::vector<std::string> found = config.Texts("architectures");
  if (found.size() != 1) config.Fail("architectures", "expected one name, found ", found.size());
  const std::string name = NameOf(config, found[0]);
  // A model that writes text, saved without its output matrix, as models that make vectors are.
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
  const auto is_of = [&](const HfClass& hf) {
    if (hf.experts != HasExperts::kEither && (hf.experts == HasExperts::kSome) != has_experts)
      return false;
    for (const std::string_view each : hf.names) {
      if (each.empty()) break;
      if (each == name || each == causal) return true;
      known += (known.empty() ? "" : ", ") + std::string(each);
    }
    return false;
  };
  for (const Family& family : Families()) {
    if (is_of(family.hf)) return {family, family.hf};
    for (const HfClass& other : family.others) {
      if (is_of(other)) return {family, other};
    }
  }
  for (const std::string_view wrapper : kWrappers) known += ", " + std::string(wrapper);
  config.Fail("architectures", "architecture ", gguf::Quoted(found[0], 60),
              " cannot be converted (this program converts ", known, ")");
}

Fields TextConfig(const Fields& config) {
  return config.IsObject("text_config") ? config.Object("text_config").Over(config) : config;
}

Fields ConfigWithDefaults(const HfClass& hf, const Fields& config) {
  Fields text = TextConfig(config);
  for (const auto& [theirs, name] : hf.renamed) {
    if (text.Has(name) && !text.Has(theirs)) continue;
    text.Set({name, static_cast<double>(text.Count(theirs))});
  }
  if (text.IsList("layers_block_type")) {
    const auto n = static_cast<double>(text.Texts("layers_block_type").size());
    text.SetIfAbsent({"num_hidden_layers", n});
  }
  for (const KeyValue& value : hf.defaults) text.SetIfAbsent(value);
  return text;
}

}  // namespace convert
