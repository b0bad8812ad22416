// Writes the keys that several lineages derive from config.json in the same way.
#include "engine/model/families/folders.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gguf/error.h"

namespace engine {

std::vector<bool> LayersOfType(const OutModel& model, std::string_view type) {
  std::vector<bool> of_type;
  for (const std::string& name : model.config.Texts("layer_types")) of_type.push_back(name == type);
  if (!of_type.empty() && of_type.size() != model.n_layers()) {
    model.config.Fail("layer_types", "expected ", model.n_layers(),
                      " names, one for each layer, found ", of_type.size());
  }
  return of_type;
}

double LocalBase(const Fields& config, std::string_view key) {
  const Fields rope = config.Object("rope_parameters").Object("sliding_attention");
  return config.NumberOr(key, rope.NumberOr("rope_theta", 10000));
}

void ExpectPeriod(const OutModel& model, size_t period, bool first) {
  const std::vector<bool> full = LayersOfType(model, "full_attention");
  for (size_t i = 0; i < full.size(); ++i) {
    if (full[i] == (i % period == (first ? 0 : period - 1))) continue;
    model.config.Fail("layer_types", "expected full_attention in the ", first ? "first" : "last",
                      " of every ", period, " layers, found something else in layer ", i);
  }
}

bool AddGating(bool fallback, OutModel& model) {
  bool sigmoid = fallback, is_said = false;
  for (const char* const key : {"scoring_func", "score_func", "score_function",
                                "moe_router_activation", "moe_router_activation_func"}) {
    if (!model.config.Has(key)) continue;
    const std::string name = model.config.Text(key);
    is_said = true;
    sigmoid = name == "sigmoid" || name == "noaux_tc";  // dots.llm1's name
    if (!sigmoid && name != "softmax") {
      model.config.Fail(key, "expected softmax or sigmoid, found ", gguf::Quoted(name, 40));
    }
  }
  if (sigmoid || is_said) model.Uint("expert_gating_func", sigmoid ? 2 : 1);
  return sigmoid;
}

void AddNextn(OutModel& model) {
  const auto& tensors = model.folder.tensors();
  const auto has = [&](const char* part, uint64_t i) {
    return tensors.contains(part + std::to_string(i) + ".eh_proj.weight");
  };
  const bool one = model.config.UintOr("mtp_num_hidden_layers", 1) == 1;
  uint64_t n = one && tensors.contains("mtp.fc.weight") ? 1 : 0;
  while (has("model.layers.", model.n_layers() + n) || has("model.mtp.layers.", n)) ++n;
  if (n == 0) return;
  model.n_nextn = n;
  model.Uint("nextn_predict_layers", n);
  model.Uint("block_count", model.n_layers() + n);
}

// Layers with a window. config.json may say only where the first one is.
std::vector<bool> LocalLayers(const OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (!local.empty()) return local;
  const size_t first = config.UintOr("max_window_layers", 0);
  for (size_t i = 0; i < model.n_layers(); ++i) local.push_back(i >= first);
  return local;
}

// Writes the base of RoPE in layers with a window, if it differs from the readers' default.
void AddLocalBase(const Windows& windows, OutModel& model) {
  if (windows.rope != Windows::Rope::kOwnBase && windows.rope != Windows::Rope::kUnscaled) return;
  const Fields rope = model.config.Object("rope_parameters").Object("sliding_attention");
  for (const char* const key : {"rope_type", "partial_rotary_factor"}) {
    const bool is_default = key[0] == 'r'
                                ? rope.TextOr(key, "default") == "default"
                                : rope.NumberOr(key, model.rotary_part) == model.rotary_part;
    if (!is_default) rope.Fail(key, "expected none in layers with a window");
  }
  const double fallback = windows.base != 0 ? windows.base : model.rope_theta();
  const double base =
      model.config.NumberOr("rope_local_base_freq", rope.NumberOr("rope_theta", fallback));
  if (base != fallback) model.Float("rope.freq_base_swa", base);
}

void AddWindows(const Windows& windows, OutModel& model) {
  const Fields& config = model.config;
  if (!config.Has("sliding_window") || !config.BoolOr("use_sliding_window", true)) return;
  const uint64_t length = config.Count("sliding_window");
  if (windows.period == 0) {
    if (length < config.Count("max_position_embeddings")) AddWindowsAsList(model);
    return;
  }
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  model.Uint("attention.sliding_window", length);
  AddLocalBase(windows, model);
  const uint64_t period = config.UintOr("sliding_window_pattern",
                                        config.UintOr("_sliding_window_pattern", windows.period));
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  bool is_usual = true;
  for (size_t i = 0; i < local.size(); ++i)
    is_usual &= local[i] == (period == 0 || i % period != period - 1);
  if (is_usual && period != windows.period) model.Uint(kPattern, period);
  if (is_usual) return;
  model.PerLayer(kPattern, local);
  model.notes.push_back("layers with a window are not those that are usual in architecture " +
                        model.architecture +
                        ": programs that do not read the list compute something else");
}

void AddWindowsAsList(OutModel& model) {
  const Fields& config = model.config;
  const std::vector<bool> local = LocalLayers(model);
  if (std::ranges::count(local, true) == 0) return;
  model.Uint("attention.sliding_window", config.Count("sliding_window"));
  model.PerLayer("attention.sliding_window_pattern", local);
  model.notes.push_back("its windows of " + std::to_string(config.Count("sliding_window")) +
                        " tokens are in keys that other programs do not read");
}

void AddLeadingDense(OutModel& model) {
  const std::vector<std::string> kinds = model.config.Texts("mlp_layer_types");
  if (kinds.empty()) return;
  const auto sparse = std::ranges::find(kinds, "sparse");
  if (std::ranges::count(kinds, "dense") != sparse - kinds.begin()) {
    model.config.Fail("mlp_layer_types", "expected dense in the first layers and nowhere else");
  }
  model.Uint("leading_dense_block_count", static_cast<uint64_t>(sparse - kinds.begin()));
}

void AddByLayer(std::string_view key, const std::vector<bool>& chosen, uint64_t of_chosen,
                uint64_t of_others, OutModel& model) {
  std::vector<int32_t> numbers;
  numbers.reserve(chosen.size());
  for (const bool is_one : chosen)
    numbers.push_back(static_cast<int32_t>(is_one ? of_chosen : of_others));
  model.PerLayer(key, numbers);
}

void AddHeads(const std::vector<bool>& is_attention, OutModel& model) {
  AddByLayer("attention.head_count_kv", is_attention, model.shapes.n_kv_heads, 0, model);
}

std::vector<int32_t> WholeNumbers(const Fields& config, std::string_view key, size_t n) {
  std::vector<int32_t> whole;
  for (const double number : config.Numbers(key)) {
    if (!(number >= 0 && number <= INT32_MAX && number == std::floor(number))) break;
    whole.push_back(static_cast<int32_t>(number));
  }
  if (whole.size() != n || config.Numbers(key).size() != n) {
    config.Fail(key, "expected ", n, " whole numbers from 0 on");
  }
  return whole;
}

}  // namespace engine
