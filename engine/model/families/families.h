// Helpers that several lineages share: norm roles, windows, routers, shapes of recurrent layers.
// They throw gguf::Error (file, key, expected, found).
#ifndef PRONK_ENGINE_MODEL_FAMILIES_FAMILIES_H_
#define PRONK_ENGINE_MODEL_FAMILIES_FAMILIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model/architecture.h"
#include "engine/model/config.h"
#include "engine/model/keys.h"

namespace engine {

// The rows of each lineage.
std::span<const Architecture> LlamaLineage();
std::span<const Architecture> QwenLineage();
std::span<const Architecture> GraniteLineage();
std::span<const Architecture> GemmaLineage();
std::span<const Architecture> SingleLineages();
std::span<const Architecture> Lfm2Lineage();
std::span<const Architecture> DeepSeekLineage();
std::span<const Architecture> NemotronLineage();
std::span<const Architecture> MambaLineage();
std::span<const Architecture> ExpertsLineage();
std::span<const Architecture> GptLineage();
std::span<const Architecture> BertLineage();

constexpr uint64_t kMaxWindow = UINT32_MAX;
constexpr uint64_t kMaxStateHeads = 1u << 16;
constexpr uint64_t kMaxStateLength = 1u << 10;  // real files have 64 to 256

// Norms of a block's input and output ("sandwich": Ding et al. 2021, CogView).
constexpr NormRoles kSandwichNorms = {.attn_post = "post_attention_norm",
                                      .ffn_post = "post_ffw_norm"};
// Norms of a block's output alone ("post norm": Liu et al. 2022, Swin v2).
constexpr NormRoles kPostNorms = {
    .attn = "", .attn_post = "post_attention_norm", .ffn = "", .ffn_post = "post_ffw_norm"};
// Pre-norms; the feed-forward network's is named like a post norm.
constexpr NormRoles kFfnNormIsPostAttention = {.ffn = "post_attention_norm"};

// The last layer of every `period` (0: none) sees all keys, the others those in the window. A file
// may name another period, or list the layers that have a window.
void SetWindows(const Keys& keys, size_t window, size_t period, Config& config);
// The layers with a window are those that the file's list has, which it must have.
void SetListedWindows(const Keys& keys, Config& config);
// The same where a file has such a list; without it a window has no effect.
void SetWindowsIfListed(const Keys& keys, Config& config);
// Layers with a window use this rope, with the base that the file has for them.
void SetLocalBase(const Keys& keys, RopeConfig rope, double fallback, Config& config);
RopeConfig Unscaled(RopeConfig rope);
// Layers without a window do not rotate.
void RotateInWindowsOnly(Config& config);
// Nor does the last layer of every four (Yang et al. 2025, "RoPE to NoPE and back again").
void LeaveOutFourthRope(Config& config);
// Tokens see later ones as far as earlier ones, for which windows are set: all, or window - 1.
void SeeBothWays(const Keys& keys, Config& config);
// The activation of a network without a gate, if a key of ours names it.
void ReadActivation(const Keys& keys, Config& config);
void ReadClamp(const Keys& keys, Config& config);
// ALiBi, in place of rope; `bias` is the exponent of the last head's slope.
void SetSlopes(double bias, Config& config);
void LeaveOutRope(Config& config);
void ScaleEmbeddings(Config& config);  // by the root of their length
void SetAttentionScale(float scale, Config& config);
// Queries grow with their position (Config::attention_temperature_scale).
void SetAttentionTemperature(const Keys& keys, Config& config);
// Numbers of pairs for time, height and width of an image (M-RoPE), and for a fourth number, which
// do not rotate in text; a file may lack the fourth.
std::array<size_t, 4> ReadSections(const Keys& keys);
// The same where none belong to a fourth: text has one position for the three, so it rotates as
// without them. Returns whether the file has the key.
bool CheckSections(const Keys& keys);
// The blocks after the layers, which predict further tokens and are not needed for text.
void SkipNextn(const Keys& keys, Config& config);

// How experts are chosen, as the keys specify.
void ReadRouter(const Keys& keys, Config& config);
// The same where only their groups have keys; others are without effect in these families.
void ReadGroups(const Keys& keys, Config& config);
// The shared expert is `factor` times as wide as the file says, or as the others if it does not.
void SetSharedExperts(size_t factor, Config& config);
size_t SharedCount(const Keys& keys, size_t fallback);

// The shape of delta nets and Mamba-2; in its keys "groups" are key heads and "steps" heads.
RecurrentPlan ReadRecurrent(const Keys& keys, size_t inner_size);
RecurrentPlan ReadMamba2(const Keys& keys);
// Makes a layer without attention.
void SetMixer(Mixer mixer, const RecurrentPlan& recurrent, LayerPlan& layer);
// Layers with neither key-value heads nor their own feed-forward network are Mamba-2.
void SetMamba2(const Keys& keys, Config& config);

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_FAMILIES_FAMILIES_H_
