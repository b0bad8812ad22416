// What the families' own keys say, and what no key says: a function for each, named by the table
// (architecture.cc). They complete a config that holds all that the common keys say, and throw
// gguf::Error (file, key, expected, found).
#ifndef PRONK_ENGINE_MODEL_FAMILIES_H_
#define PRONK_ENGINE_MODEL_FAMILIES_H_

#include <cstdint>

#include "engine/model/config.h"
#include "engine/model/keys.h"

namespace engine {

void QwenExperts(const Keys& keys, Config& config);
void Qwen2Moe(const Keys& keys, Config& config);
void Phi3(const Keys& keys, Config& config);
void Granite(const Keys& keys, Config& config);
void SmolLm3(const Keys& keys, Config& config);
void Mistral3(const Keys& keys, Config& config);
void Gemma2(const Keys& keys, Config& config);
void Gemma3(const Keys& keys, Config& config);
void GptOss(const Keys& keys, Config& config);
void Olmo2(const Keys& keys, Config& config);
void Glm4(const Keys& keys, Config& config);
void BitNet(const Keys& keys, Config& config);
void Hunyuan(const Keys& keys, Config& config);
void Exaone4(const Keys& keys, Config& config);

// Layers that are not all plain attention (families_hybrid.cc).
void Lfm2(const Keys& keys, Config& config);
void Lfm2Moe(const Keys& keys, Config& config);
void Qwen35(const Keys& keys, Config& config);
void Qwen3Next(const Keys& keys, Config& config);
void Gemma3n(const Keys& keys, Config& config);
void Gemma4(const Keys& keys, Config& config);
void DeepSeek2(const Keys& keys, Config& config);
void GraniteHybrid(const Keys& keys, Config& config);
void NemotronH(const Keys& keys, Config& config);

// Shared by families of both files.
constexpr uint64_t kMaxWindow = UINT32_MAX;
constexpr uint64_t kMaxLength = 1u << 24;  // far above any model
// Layers with a window turn by this rope.
void SetLocalRope(const RopeConfig& rope, Config& config);
void SetAttentionScale(float scale, Config& config);
// The factors that Granite has everywhere, and whether its heads are turned.
void SetScales(const Keys& keys, Config& config);
// The blocks behind the layers predict further tokens, and are not run when text is generated.
void SkipNextn(const Keys& keys, Config& config);

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_FAMILIES_H_
