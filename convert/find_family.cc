// Which family a folder is of, see family.h.
#include <algorithm>
#include <array>
#include <string>

#include "convert/family.h"
#include "gguf/error.h"

namespace convert {
namespace {

// Models that see or hear around a text model of one of several families: config.json's text_config
// says of which.
constexpr std::array<std::string_view, 9> kWrappers = {
    "Mistral3ForConditionalGeneration",  "LlavaForConditionalGeneration",
    "LlavaNextForConditionalGeneration", "Idefics3ForConditionalGeneration",
    "SmolVLMForConditionalGeneration",   "InternVLForConditionalGeneration",
    "Lfm2VlForConditionalGeneration",    "VoxtralForConditionalGeneration",
    "LightOnOCRForConditionalGeneration"};

struct TextModel {
  std::string_view type, name;
};
constexpr std::array kTextModels = {
    TextModel{"llama", "LlamaForCausalLM"},        TextModel{"mistral", "MistralForCausalLM"},
    TextModel{"mixtral", "MixtralForCausalLM"},    TextModel{"ministral3", "Ministral3ForCausalLM"},
    TextModel{"qwen2", "Qwen2ForCausalLM"},        TextModel{"qwen3", "Qwen3ForCausalLM"},
    TextModel{"qwen3_moe", "Qwen3MoeForCausalLM"}, TextModel{"granite", "GraniteForCausalLM"},
    TextModel{"smollm3", "SmolLM3ForCausalLM"},    TextModel{"gpt_oss", "GptOssForCausalLM"},
    TextModel{"lfm2", "Lfm2ForCausalLM"},          TextModel{"lfm2_moe", "Lfm2MoeForCausalLM"}};

// config.json's name for the text model.
std::string NameOf(const Fields& config, const std::string& outer) {
  if (std::ranges::find(kWrappers, outer) == kWrappers.end()) return outer;
  const Fields text = config.Object("text_config");
  // What libraries leave out, as it is usual.
  const std::string type =
      text.TextOr("model_type", outer.starts_with("Mistral3") ? "mistral" : "llama");
  for (const TextModel& model : kTextModels) {
    if (type == model.type) return std::string(model.name);
  }
  text.Fail("model_type", "a text model of type " + gguf::Quoted(type, 60) +
                              " cannot be converted from " + outer);
}

}  // namespace

const Family& FindFamily(const Fields& config) {
  const std::vector<std::string> found = config.Texts("architectures");
  if (found.size() != 1) {
    config.Fail("architectures", "expected one name, found " + std::to_string(found.size()));
  }
  const std::string name = NameOf(config, found[0]);
  const Fields text = TextConfig(config);
  const bool has_experts =
      text.UintOr("num_local_experts", 0) + text.UintOr("n_routed_experts", 0) > 0;
  std::string known;
  for (const std::span<const Family> families : {Families(), HybridFamilies()}) {
    for (const Family& family : families) {
      if (family.experts != Experts::kEither && (family.experts == Experts::kSome) != has_experts) {
        continue;
      }
      for (const std::string_view hf : family.hf) {
        if (hf == name) return family;
        known += (known.empty() ? "" : ", ") + std::string(hf);
      }
    }
  }
  for (const std::string_view wrapper : kWrappers) known += ", " + std::string(wrapper);
  config.Fail("architectures", "architecture " + gguf::Quoted(found[0], 60) +
                                   " cannot be converted (this program converts " + known + ")");
}

Fields TextConfig(const Fields& config) {
  return config.IsObject("text_config") ? config.Object("text_config").Over(config) : config;
}

}  // namespace convert
