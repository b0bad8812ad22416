// The lineages of models, and what several of them share. Everything specific to a family is in its
// lineage's file.
#ifndef PRONK_CONVERT_FAMILIES_FAMILIES_H_
#define PRONK_CONVERT_FAMILIES_FAMILIES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "convert/family.h"

namespace convert {

// The rows of each lineage.
std::span<const Family> LlamaLineage();
std::span<const Family> QwenLineage();
std::span<const Family> GraniteLineage();
std::span<const Family> GemmaLineage();
std::span<const Family> SingleLineages();
std::span<const Family> Lfm2Lineage();
std::span<const Family> DeepSeekLineage();
std::span<const Family> NemotronLineage();

// Sandwich norms (Gemma).
inline constexpr TensorRule kSandwichNorms[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".pre_feedforward_layernorm", ".ffn_norm"},
    {".post_feedforward_layernorm", ".post_ffw_norm"},
};
// Post norms (OLMo 2, EXAONE 4).
inline constexpr TensorRule kPostNorms[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".post_feedforward_layernorm", ".post_ffw_norm"},
};
inline constexpr KeyRule kWindowKeys[] = {{"sliding_window", "attention.sliding_window"}};

// For each layer, whether layer_types gives it this name; empty if config.json has no such list.
// Throws gguf::Error if the list has another length.
std::vector<bool> LayersOfType(const OutModel& model, std::string_view type);
// Throws gguf::Error unless only the last of every `period` layers sees all positions.
void ExpectPeriod(const OutModel& model, size_t period);
// Notes that files of this architecture have no window, like the published files.
void LeaveOutWindow(OutModel& model);
// Key-value heads of layers with attention, 0 for the others.
void AddHeads(const std::vector<bool>& is_attention, OutModel& model);
// A list of n non-negative integers. Throws gguf::Error.
std::vector<int32_t> WholeNumbers(const Fields& config, std::string_view key, size_t n);

}  // namespace convert

#endif  // PRONK_CONVERT_FAMILIES_FAMILIES_H_
