#include <algorithm>
#include <cmath>
#include <string>

#include "convert/families/families.h"
#include "gguf/error.h"

namespace convert {

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
  bool sigmoid = fallback;
  for (const char* const key : {"scoring_func", "score_func", "score_function",
                                "moe_router_activation", "moe_router_activation_func"}) {
    if (!model.config.Has(key)) continue;
    const std::string name = model.config.Text(key);
    sigmoid = name == "sigmoid" || name == "noaux_tc";  // as dots.llm1 calls it
    if (!sigmoid && name != "softmax") {
      model.config.Fail(key, "expected softmax or sigmoid, found ", gguf::Quoted(name, 40));
    }
  }
  model.Uint("expert_gating_func", sigmoid ? 2 : 1);
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

void AddWindows(size_t period, OutModel& model) {
  if (!model.config.Has("sliding_window")) return;
  const std::vector<bool> local = LayersOfType(model, "sliding_attention");
  bool is_usual = true;
  for (size_t i = 0; i < local.size(); ++i)
    is_usual &= local[i] == (period == 0 || i % period != period - 1);
  if (is_usual) return;
  model.PerLayer("attention.sliding_window_pattern", local);
  model.notes.push_back("layers with a window are not those that are usual in architecture " +
                        model.architecture +
                        ": programs that do not read the list compute "
                        "something else");
}

void AddWindowsAsList(OutModel& model) {
  const Fields& config = model.config;
  std::vector<bool> local = LayersOfType(model, "sliding_attention");
  if (!config.Has("sliding_window")) return;
  if (local.empty()) local.resize(model.n_layers(), true);
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

void AddActivation(std::string_view key, std::string_view fallback, std::string_view usual,
                   OutModel& model) {
  constexpr std::string_view kTanh[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"};
  const Fields& config = model.config;
  std::string name = config.TextOr(key, std::string(fallback));
  for (const std::string_view tanh : kTanh) {
    if (name == tanh) name = "gelu_new";
  }
  if (name != "gelu" && name != "gelu_new" && name != "relu" && name != "relu2") {
    config.Fail(key, "expected gelu, gelu_new, gelu_pytorch_tanh, relu or relu2, found ",
                gguf::Quoted(name, 40));
  }
  if (name != usual) model.Text("hidden_activation", name);
}

}  // namespace convert
