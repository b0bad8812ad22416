// From config.json to the keys of the file: what all families share, see family.h.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <type_traits>
#include <utility>

#include "convert/family.h"
#include "gguf/error.h"

namespace convert {
namespace {

constexpr KeyRule kCommonKeys[] = {
    {"max_position_embeddings", "context_length"},
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"num_attention_heads", "attention.head_count"},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", KeyKind::kFloat},
    {"vocab_size", "vocab_size"},
    {"intermediate_size", "feed_forward_length"},
    {"head_dim", "attention.key_length"},
    {"head_dim", "attention.value_length"},
};

void AddKey(const KeyRule& rule, Draft& draft) {
  if (draft.Gives(rule.gguf) || !draft.config.Has(rule.hf)) return;
  switch (rule.kind) {
    case KeyKind::kUint:
      draft.Uint(rule.gguf, draft.config.UintOr(rule.hf, 0));
      break;
    case KeyKind::kFloat:
      draft.Float(rule.gguf, draft.config.Number(rule.hf));
      break;
    case KeyKind::kBool:
      draft.Bool(rule.gguf, draft.config.BoolOr(rule.hf, false));
      break;
  }
}

// Llama 3.1's stretching of slow turns: a divisor for each pair.
void AddLlama3Factors(const Fields& rope, Draft& draft) {
  const double factor = rope.Number("factor"), low = rope.Number("low_freq_factor"),
               high = rope.Number("high_freq_factor"),
               context = rope.Number("original_max_position_embeddings");
  const double base = draft.rope_theta(10000);
  const auto n = static_cast<size_t>(draft.head_dim());
  if (high <= low || factor <= 0)
    rope.Fail("high_freq_factor", "expected more than low_freq_factor");
  std::vector<float> divisors;
  for (size_t i = 0; i < n; i += 2) {
    const double turn = std::pow(base, static_cast<double>(i) / static_cast<double>(n));
    const double length = 2 * std::numbers::pi * turn;  // positions that a full turn takes
    const double mix = std::clamp((context / length - low) / (high - low), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - mix) / factor + mix)));
  }
  draft.Computed("rope_freqs.weight", std::move(divisors));
}

// Phi-3's: divisors for short and for long contexts.
void AddLongRope(const Fields& rope, Draft& draft) {
  const auto n_pairs = static_cast<size_t>(draft.head_dim()) / 2;
  const bool is_outside = draft.config.Has("original_max_position_embeddings");
  const uint64_t original =
      (is_outside ? draft.config : rope).Count("original_max_position_embeddings");
  for (const char* const length : {"long", "short"}) {
    const std::vector<double> found = rope.Numbers(std::string(length) + "_factor");
    if (found.empty() || found.size() > n_pairs) {
      rope.Fail(std::string(length) + "_factor", "expected a number for each pair that is turned");
    }
    draft.Computed("rope_factors_" + std::string(length) + ".weight",
                   std::vector<float>(found.begin(), found.end()));
  }
  const auto before = static_cast<double>(original);
  const double longer = draft.config.Number("max_position_embeddings") / before;
  const double growth = longer > 1 ? std::sqrt(1 + std::log(longer) / std::log(before)) : 1;
  draft.Float("rope.scaling.attn_factor", rope.NumberOr("attention_factor", growth));
  draft.Uint("rope.scaling.original_context_length", original);
}

void AddYarn(const Fields& rope, Draft& draft) {
  const double factor = rope.Number("factor");
  draft.Text("rope.scaling.type", "yarn");
  draft.Float("rope.scaling.factor", factor);
  if (rope.Has("original_max_position_embeddings")) {
    draft.Uint("rope.scaling.original_context_length",
               rope.Count("original_max_position_embeddings"));
  }
  for (const char* const beta : {"beta_fast", "beta_slow"}) {
    if (rope.Has(beta)) {
      draft.Float("rope.scaling.yarn_" + std::string(beta), rope.Number(beta));
    }
  }
  // By GGUF's definition cosines and sines grow by this, by the folder's only where it does not
  // name another number.
  const double usual = factor > 1 ? 0.1 * std::log(factor) + 1 : 1;
  const double wanted = rope.NumberOr("attention_factor", usual);
  if (std::abs(wanted - usual) > 1e-6) draft.Float("rope.scaling.attn_factor", wanted / usual);
}

void AddRope(Draft& draft) {
  const Fields rope = draft.rope();
  if (draft.config.Has("rope_theta") || rope.Has("rope_theta")) {
    draft.Float("rope.freq_base", draft.rope_theta(0));
  }
  const double part =
      draft.config.NumberOr("partial_rotary_factor", rope.NumberOr("partial_rotary_factor", 1));
  if (!(part > 0 && part <= 1)) draft.config.Fail("partial_rotary_factor", "expected 0 to 1");
  const auto n_turned = static_cast<uint64_t>(static_cast<double>(draft.head_dim()) * part);
  draft.Uint("rope.dimension_count", n_turned);
  if (draft.Gives("rope.scaling.type")) return;
  const std::string type = rope.TextOr("rope_type", rope.TextOr("type", "default"));
  if (type == "linear") {
    draft.Text("rope.scaling.type", "linear");
    draft.Float("rope.scaling.factor", rope.Number("factor"));
  } else if (type == "yarn") {
    AddYarn(rope, draft);
  } else if (type == "llama3") {
    AddLlama3Factors(rope, draft);
  } else if (type == "longrope" || type == "su") {
    AddLongRope(rope, draft);
  } else if (type != "default" && type != "none" && type != "mrope") {
    rope.Fail("rope_type", "expected default, linear, yarn, llama3 or longrope, found " +
                               gguf::Quoted(type, 40));
  }
}

// Memory is taken by these numbers before any tensor is looked at.
void CheckSizes(const Draft& draft) {
  constexpr uint64_t kMaxLayers = 4096, kMaxOfHead = 65536;
  const auto check = [&](const char* key, uint64_t value, uint64_t most) {
    if (value > most) draft.config.Fail(key, "expected at most " + std::to_string(most));
  };
  check("num_hidden_layers", draft.n_layers(), kMaxLayers);
  check("global_head_dim", draft.config.UintOr("global_head_dim", 0), kMaxOfHead);
  check(draft.config.Has("head_dim") ? "head_dim" : "hidden_size", draft.head_dim(), kMaxOfHead);
}

// So that products of three of them, and a few, fit into 64 bits (out_tensor.cc).
void CheckShapes(const Draft& draft) {
  constexpr uint64_t kMax = 65536;
  const Shapes& s = draft.shapes;
  for (const uint64_t n : {s.n_heads, s.n_kv_heads, s.n_key_heads, s.n_value_heads, s.state,
                           s.n_groups, s.head_plain, s.head_value}) {
    if (n <= kMax) continue;
    throw gguf::Error(gguf::PrintablePath(draft.config.file()) +
                      ": expected heads, groups and their lengths of at most " +
                      std::to_string(kMax) + ", found " + std::to_string(n));
  }
}

}  // namespace

void Draft::Without(std::string_view key) { given_.emplace(key); }

template <class T>
void Draft::Add(std::string_view key, const T& value) {
  if (!given_.emplace(key).second) return;
  const std::string full = architecture + "." + std::string(key);
  if constexpr (requires { value.size(); } && !std::is_convertible_v<T, std::string_view>) {
    keys.AddArray(full, value);
  } else {
    keys.Add(full, value);
  }
}

void Draft::Uint(std::string_view key, uint64_t value) { Add(key, static_cast<uint32_t>(value)); }
void Draft::Float(std::string_view key, double value) { Add(key, static_cast<float>(value)); }
void Draft::Bool(std::string_view key, bool value) { Add(key, value); }
void Draft::Text(std::string_view key, std::string_view value) { Add(key, value); }
void Draft::PerLayer(std::string_view key, const std::vector<int32_t>& values) {
  Add(key, std::span<const int32_t>(values));
}
void Draft::PerLayer(std::string_view key, const std::vector<float>& values) {
  Add(key, std::span<const float>(values));
}
void Draft::PerLayer(std::string_view key, const std::vector<bool>& values) {
  const auto flags = std::make_unique<bool[]>(values.size());
  std::copy(values.begin(), values.end(), flags.get());
  Add(key, std::span<const bool>(flags.get(), values.size()));
}

void Draft::Computed(const std::string& name, std::vector<float> values) {
  OutTensor tensor;
  tensor.name = name;
  tensor.dims = {values.size()};
  tensor.values = std::move(values);
  tensors.push_back(std::move(tensor));
}

const SafeTensor& Draft::Need(const std::string& hf_name) const {
  const auto found = folder.tensors().find(hf_name);
  if (found == folder.tensors().end()) {
    throw gguf::Error(gguf::PrintablePath(folder.path()) + ": tensor " + hf_name + " is missing");
  }
  return *found->second;
}

uint64_t Draft::head_dim() const {
  if (config.Has("head_dim")) return config.Count("head_dim");
  return config.Count("hidden_size") / config.Count("num_attention_heads");
}

// Where layers of two kinds turn differently: that of those that see all.
Fields Draft::rope() const {
  if (!config.Has("rope_parameters")) return config.Object("rope_scaling");
  const Fields rope = config.Object("rope_parameters");
  return rope.Has("full_attention") ? rope.Object("full_attention") : rope;
}

double Draft::rope_theta(double fallback) const {
  return config.NumberOr("rope_theta", rope().NumberOr("rope_theta", fallback));
}

void AddKeys(const Family& family, Draft& draft) {
  const Fields& config = draft.config;
  for (const char* const key : {"max_position_embeddings", "hidden_size", "num_hidden_layers",
                                "num_attention_heads", "vocab_size"}) {
    config.Count(key);
  }
  CheckSizes(draft);
  draft.shapes.n_heads = config.Count("num_attention_heads");
  draft.shapes.n_kv_heads = config.CountOr("num_key_value_heads", draft.shapes.n_heads);
  if (family.refine != nullptr) family.refine(draft);
  CheckShapes(draft);
  for (const KeyRule& rule : family.keys) AddKey(rule, draft);
  for (const KeyRule& rule : kCommonKeys) AddKey(rule, draft);
  draft.Uint("attention.head_count_kv", draft.shapes.n_kv_heads);
  AddRope(draft);
}

}  // namespace convert
