// Functions that several lineages share to make a Config of a file's keys. folders.h has the other
// half. They throw gguf::Error (file, key, expected, found).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/family.h"
#include "engine/model/keys.h"

namespace engine {

// The rows of each lineage.
std::span<const Family> LlamaLineage();
std::span<const Family> QwenLineage();
std::span<const Family> GraniteLineage();
std::span<const Family> GemmaLineage();
std::span<const Family> LlamaLikeLineages();
std::span<const Family> Lfm2Lineage();
std::span<const Family> DeepSeekLineage();
std::span<const Family> NemotronLineage();
std::span<const Family> MambaLineage();
std::span<const Family> ExpertsLineage();
std::span<const Family> GptLineage();
std::span<const Family> BertLineage();

constexpr uint64_t kMaxWindow = UINT32_MAX;
constexpr uint64_t kMaxStateHeads = 1u << 16;
constexpr uint64_t kMaxStateLength = 1u << 10;  // real files have 64 to 256

// Norms of a mixer's or network's input and output ("sandwich": Ding et al. 2021, CogView).
constexpr NormRoles kSandwichNorms = {.attn_post = "post_attention_norm",
                                      .ffn_post = "post_ffw_norm"};
// Norms of a mixer's or network's output alone ("post norm": Liu et al. 2022, Swin v2).
constexpr NormRoles kPostNorms = {
    .attn = "", .attn_post = "post_attention_norm", .ffn = "", .ffn_post = "post_ffw_norm"};
// Pre-norms; the feed-forward network's is named like a post norm.
constexpr NormRoles kFfnNormIsPostAttention = {.ffn = "post_attention_norm"};

constexpr kernels::Router kSoftmax{}, kSigmoid{.gate = kernels::Router::Gate::kSigmoid},
    kByKeys{.normed = false},
    kSigmoidByKeys{.gate = kernels::Router::Gate::kSigmoid, .normed = false};

// ---- What Config::Read does for all families, as their rows say.

// Windows, and the RoPE of layers with a window.
void ReadWindows(const Keys& keys, const Windows& windows, Config& config);
// How experts are chosen and weighted, and the shared expert's width.
void ReadRouter(const Keys& keys, const Family& family, Config& config);
// The blocks after the layers, which predict further tokens and are not needed for text.
void SkipNextn(const Keys& keys, Config& config);

// ---- For functions of single families.

// The last layer of every `period` (0: none) sees all keys, the other layers only the keys in the
// window. A file may name another period, or list the layers that have a window.
void SetWindows(const Keys& keys, size_t window, size_t period, Config& config);
// Layers have a window if the file's list says so. The file must have the list.
void SetListedWindows(const Keys& keys, Config& config);
// Layers with a window use this RoPE, with the base that the file has for them.
void SetLocalBase(const Keys& keys, RopeConfig rope, double fallback, Config& config);
RopeConfig Unscaled(RopeConfig rope);
// Layers without a window do not rotate.
void RotateInWindowsOnly(Config& config);
// The last layer of every four does not rotate (Yang et al. 2025, "RoPE to NoPE and back again").
void LeaveOutFourthRope(Config& config);
// Makes attention bidirectional, after windows are set: tokens see as far ahead as back, all or
// window - 1.
void SeeBothWays(const Keys& keys, Config& config);
// ALiBi replaces RoPE; `bias` is the exponent of the last head's slope.
void SetSlopes(double bias, Config& config);
void LeaveOutRope(Config& config);
void SetAttentionScale(float scale, Config& config);
// Numbers of pairs for time, height and width of an image (M-RoPE), and for a fourth number, which
// do not rotate in text; a file may lack the fourth.
std::array<size_t, 4> ReadSections(const Keys& keys);
// Checks that the fourth number is 0: text has one position for the three, so it rotates as
// without them. Returns whether the file has the key.
bool CheckSections(const Keys& keys);

// The shared expert is `factor` times as wide as the file says, otherwise as another expert.
void SetSharedExperts(size_t factor, Config& config);

// The shape of delta nets and Mamba-2; in its keys "groups" are key heads and "steps" heads.
RecurrentPlan ReadRecurrent(const Keys& keys, size_t inner_size);
RecurrentPlan ReadMamba2(const Keys& keys);
// Whether each of n layers is recurrent: all but the last layer of every `interval`. A key may
// replace the interval, and the file may have flags instead.
std::vector<bool> ReadRecurrentLayers(const Keys& keys, size_t interval, size_t n);
// Makes a layer without attention.
void SetMixer(Mixer mixer, const RecurrentPlan& recurrent, LayerPlan& layer);
// Layers with neither key-value heads nor their own feed-forward network are Mamba-2.
void SetMamba2(const Keys& keys, Config& config);

}  // namespace engine
