// What several lineages share to make a file's keys of config.json. Functions throw gguf::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/hf/out_model.h"
#include "engine/model/family.h"

namespace engine {

// Mamba-2.
inline constexpr TensorRule kMixer[] = {
    {".norm", ".attn_norm"},
    {".mixer.in_proj", ".ssm_in"},
    {".mixer.conv1d", ".ssm_conv1d", Order::kTaps},
    {".mixer.dt_bias", ".ssm_dt.bias"},
    {".mixer.A_log", ".ssm_a", Order::kColumn, Change::kMinusExp},
    {".mixer.D", ".ssm_d", Order::kColumn},
    {".mixer.norm", ".ssm_norm", Order::kByGroup},
    {".mixer.out_proj", ".ssm_out"},
};
inline constexpr KeyRule kMixerKeys[] = {
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_n_groups", "ssm.group_count"},
    {"mamba_n_heads", "ssm.time_step_rank"},
};

// Whether layer_types gives each layer this name; empty if config.json has no such list. Throws
// gguf::Error if the list has another length.
std::vector<bool> LayersOfType(const OutModel& model, std::string_view type);
// The base of RoPE in layers with a window, under this key or beside the other layers' base.
double LocalBase(const Fields& config, std::string_view key);
// Throws gguf::Error unless only the last (or first) of every `period` layers sees all positions.
void ExpectPeriod(const OutModel& model, size_t period, bool first = false);
// Writes the window's length, and which layers have it unless readers know that from the family.
void AddWindows(const Windows& windows, OutModel& model);
// Writes that list for readers that assume no windows at all, and says so in a note.
void AddWindowsAsList(OutModel& model);
// Writes how experts are chosen, by softmax or by sigmoid; `fallback` counts if config.json does
// not say. Returns true for sigmoid.
bool AddGating(bool fallback, OutModel& model);
// Adds block_count and n_nextn, the number of blocks after the layers, which config.json may lack.
void AddNextn(OutModel& model);
// Adds the number of dense layers before the layers with experts, if mlp_layer_types lists them.
// Throws gguf::Error if other layers are dense.
void AddLeadingDense(OutModel& model);
// Adds a list: of_chosen for the chosen layers, of_others for other layers.
void AddByLayer(std::string_view key, const std::vector<bool>& chosen, uint64_t of_chosen,
                uint64_t of_others, OutModel& model);
// Adds the numbers of key-value heads: 0 in layers without attention.
void AddHeads(const std::vector<bool>& is_attention, OutModel& model);
// A list of n non-negative integers.
std::vector<int32_t> WholeNumbers(const Fields& config, std::string_view key, size_t n);

}  // namespace engine
