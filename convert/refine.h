// What the tables of families (family.h) cannot say: a function for each family that needs one.
// Each adds keys before the tables do, whose values then do not count, and refuses what GGUF's
// definition of the family does not hold.
#ifndef PRONK_CONVERT_REFINE_H_
#define PRONK_CONVERT_REFINE_H_

#include "convert/family.h"

namespace convert {

void Llama(Draft& draft);
void Qwen(Draft& draft);
void SmolLm3(Draft& draft);
void Mistral3(Draft& draft);
void Gemma2(Draft& draft);
void Gemma3(Draft& draft);
Fields Gemma3Defaults(const Fields& config);
void GptOss(Draft& draft);
void BitNet(Draft& draft);
void Olmo2(Draft& draft);
void Hunyuan(Draft& draft);
void Exaone4(Draft& draft);

void Lfm2(Draft& draft);
void DeltaNet(Draft& draft);
void Gemma3n(Draft& draft);
void Gemma4(Draft& draft);
void DeepSeek2(Draft& draft);
void GraniteHybrid(Draft& draft);
void NemotronH(Draft& draft);

// For each layer, whether layer_types has this name for it; empty where config.json has no such
// list. Throws gguf::Error where the list has another length.
std::vector<bool> LayersOfType(const Draft& draft, std::string_view type);
// Throws gguf::Error unless, of every `period` layers, the last one alone sees all positions.
void ExpectPeriod(const Draft& draft, size_t period);

}  // namespace convert

#endif  // PRONK_CONVERT_REFINE_H_
