// From config.json to a file's keys: what several lineages share. They throw gguf::Error.
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

// For each layer, whether layer_types gives it this name; empty if config.json has no such list.
// Throws gguf::Error if the list has another length.
std::vector<bool> LayersOfType(const OutModel& model, std::string_view type);
// The base of rope in layers with a window, under this key or with that of the others.
double LocalBase(const Fields& config, std::string_view key);
// Throws gguf::Error unless only the last (or first) of every `period` layers sees all positions.
void ExpectPeriod(const OutModel& model, size_t period, bool first = false);
// Writes the window's length, and which layers have it unless readers take that from the family.
void AddWindows(const Windows& windows, OutModel& model);
// Writes that list for readers that assume no windows at all, and says so in a note.
void AddWindowsAsList(OutModel& model);
// How experts are chosen: by softmax or by sigmoid, as `fallback` says where config.json does not.
// True for sigmoid.
bool AddGating(bool fallback, OutModel& model);
// The number of blocks after the layers, which config.json does not always have. Adds block_count.
void AddNextn(OutModel& model);
// The number of dense layers before those with experts, if mlp_layer_types lists them. Throws
// gguf::Error if others are dense.
void AddLeadingDense(OutModel& model);
// A number for the layers that are chosen, and one for the others.
void AddByLayer(std::string_view key, const std::vector<bool>& chosen, uint64_t of_chosen,
                uint64_t of_others, OutModel& model);
// Key-value heads of layers with attention, 0 for the others.
void AddHeads(const std::vector<bool>& is_attention, OutModel& model);
// A list of n non-negative integers.
std::vector<int32_t> WholeNumbers(const Fields& config, std::string_view key, size_t n);

}  // namespace engine
