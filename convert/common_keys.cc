// Turns config.json into the keys that all families share, especially those of RoPE; see source.h.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "convert/source.h"
#include "engine/model/families/folders.h"
#include "gguf/error.h"

namespace convert {
namespace {

constexpr KeyRule kCommonKeys[] = {
    {"max_position_embeddings", "context_length"},
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"num_attention_heads", "attention.head_count"},
    {"vocab_size", "vocab_size"},
    {"intermediate_size", "feed_forward_length"},
    {"head_dim", "attention.key_length"},
    {"head_dim", "attention.value_length"},
    {"attn_logit_softcapping", "attn_logit_softcapping", KeyKind::kFloat},
    {"final_logit_softcapping", "final_logit_softcapping", KeyKind::kFloat},
    {"clip_qkv", "attention.clamp_kqv", KeyKind::kFloat},
    {"logit_scale", "logit_scale", KeyKind::kFloat},
    {"use_parallel_residual", "use_parallel_residual", KeyKind::kBool},
};
constexpr std::string_view kNormEps =
    "layer_norm_epsilon layer_norm_eps layernorm_epsilon norm_epsilon norm_eps block_norm_eps "
    "rms_norm_eps";

// Experts' sizes, under the names that families have for them; how they are chosen and weighted,
// and which layers have them.
constexpr KeyRule kExpertKeys[] = {
    {"num_experts n_routed_experts num_local_experts moe_num_experts", "expert_count"},
    {"num_experts_per_tok moe_k moe_top_k top_k_experts", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"moe_shared_expert_intermediate_size shared_expert_intermediate_size share_expert_dim",
     "expert_shared_feed_forward_length"},
    {"n_shared_experts num_shared_experts", "expert_shared_count"},
    {"first_k_dense_replace num_dense_layers moe_layer_start_index", "leading_dense_block_count"},
    {"routed_scaling_factor route_scale moe_routed_scaling_factor moe_router_scaling_factor "
     "router_scaling_factor",
     "expert_weights_scale", KeyKind::kFloat},
    {"norm_topk_prob route_norm norm_expert_weight", "expert_weights_norm", KeyKind::kBool},
    {"n_group", "expert_group_count"},
    {"topk_group", "expert_group_used_count"},
};

void AddKey(const KeyRule& rule, OutModel& model) {
  const Fields& config = model.config;
  std::istringstream names{std::string(rule.hf)};
  for (std::string hf; names >> hf;) {
    if (!config.Has(hf) || model.Gives(rule.gguf)) continue;
    if (rule.kind == KeyKind::kUint) model.Uint(rule.gguf, config.UintOr(hf, 0));
    if (rule.kind == KeyKind::kFloat) model.Float(rule.gguf, config.Number(hf));
    if (rule.kind == KeyKind::kBool) model.Bool(rule.gguf, config.BoolOr(hf, false));
  }
}

void CheckOnly(const Source& source, const Fields& config) {
  for (const KeyValue& only : source.hf.only) {
    if (!config.Has(only.key)) continue;
    const bool is_flag = config.IsBool(only.key);
    const double found =
        is_flag ? (config.BoolOr(only.key, false) ? 1 : 0) : config.Number(only.key);
    if (found == only.number) continue;
    const std::string expected =
        is_flag ? (only.number != 0 ? "true" : "false") : std::to_string(only.number);
    config.Fail(only.key, "expected ", expected, " in a model of architecture ",
                source.family.name);
  }
}

// The prefix that an activation's name in config.json must have in a family with a gate.
std::string_view GatedName(const Source& source) {
  if (source.hf.activation) return *source.hf.activation;
  return source.family.traits.activation == kernels::Activation::kGelu ? "gelu" : "silu";
}

// A key of ours names the activation of a network without a gate, if it is not the family's.
void AddActivation(const Source& source, OutModel& model) {
  const Fields& config = model.config;
  const kernels::Activation usual = source.family.traits.activation;
  for (const char* const key :
       {"hidden_activation", "activation_function", "activation", "mlp_hidden_act", "hidden_act"}) {
    if (!config.Has(key)) continue;
    const std::string found = config.Text(key);
    if (source.hf.activation || kernels::IsGated(usual)) {
      const std::string_view expected = GatedName(source);
      if (found.starts_with(expected)) return;
      config.Fail(key, "expected ", expected, " in a model of architecture ", source.family.name,
                  ", found ", gguf::Quoted(found, 40));
    }
    const auto activation = engine::UngatedActivation(found);
    if (!activation) {
      config.Fail(key, "expected gelu, gelu_new, gelu_pytorch_tanh, relu or relu2, found ",
                  gguf::Quoted(found, 40));
    }
    if (*activation != usual) model.Text("hidden_activation", found);
    return;
  }
}

// Llama 3.1's scaling of low frequencies: a divisor for each pair.
void AddLlama3Factors(const Fields& rope, size_t n, OutModel& model) {
  const double factor = rope.Number("factor"), low = rope.Number("low_freq_factor"),
               high = rope.Number("high_freq_factor"),
               context = rope.Number("original_max_position_embeddings");
  const double base = model.rope_theta();
  if (high <= low || factor <= 0)
    rope.Fail("high_freq_factor", "expected more than low_freq_factor");
  std::vector<float> divisors;
  for (size_t i = 0; i < n; i += 2) {
    const double inverse = std::pow(base, static_cast<double>(i) / static_cast<double>(n));
    const double length = 2 * std::numbers::pi * inverse;  // positions in a full rotation
    const double mix = std::clamp((context / length - low) / (high - low), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - mix) / factor + mix)));
  }
  divisors.resize(std::max<size_t>(divisors.size(), model.n_rope_freqs), 1);
  model.Computed("rope_freqs.weight", std::move(divisors));
}

// Phi-3's scaling: divisors for short and for long contexts.
void AddLongRope(const Fields& rope, OutModel& model) {
  const auto n_pairs = static_cast<size_t>(model.head_dim()) / 2;
  const bool is_outside = model.config.Has("original_max_position_embeddings");
  const uint64_t original =
      (is_outside ? model.config : rope).Count("original_max_position_embeddings");
  for (const char* const length : {"long", "short"}) {
    const std::vector<double> found = rope.Numbers(std::string(length) + "_factor");
    if (found.empty() || found.size() > n_pairs) {
      rope.Fail(std::string(length) + "_factor", "expected a number for each pair that rotates");
    }
    model.Computed("rope_factors_" + std::string(length) + ".weight",
                   std::vector<float>(found.begin(), found.end()));
  }
  const auto before = static_cast<double>(original);
  const double longer =
      rope.NumberOr("factor", model.config.Number("max_position_embeddings") / before);
  const double growth = longer > 1 ? std::sqrt(1 + std::log(longer) / std::log(before)) : 1;
  model.Float("rope.scaling.attn_factor", rope.NumberOr("attention_factor", growth));
  model.Uint("rope.scaling.original_context_length", original);
}

// YaRN's scale of cosines and sines, with the paper's 0.1 multiplied by `multiplier`.
double YarnGrowth(double factor, double multiplier) {
  return factor > 1 ? 1 + 0.1 * multiplier * std::log(factor) : 1;
}

void AddYarn(const Fields& rope, OutModel& model) {
  const uint64_t context = model.config.Count("max_position_embeddings");
  const uint64_t original = rope.CountOr("original_max_position_embeddings", context);
  const double factor = rope.Has("factor")
                            ? rope.Number("factor")
                            : static_cast<double>(context) / static_cast<double>(original);
  model.Text("rope.scaling.type", "yarn");
  model.Float("rope.scaling.factor", factor);
  model.Uint("rope.scaling.original_context_length", original);
  for (const char* const beta : {"beta_fast", "beta_slow"}) {
    const double number = rope.NumberOr(beta, 0);
    if (number != 0) model.Float("rope.scaling.yarn_" + std::string(beta), number);
  }
  const bool truncates = rope.BoolOr("truncate", true);
  if (truncates != model.rounds_yarn_ramp) {
    model.Bool("rope.scaling.yarn_truncate", truncates);
    model.notes.push_back(
        "the key rope.scaling.yarn_truncate says how far RoPE is stretched: "
        "programs that do not know that key compute something else");
  }
  // GGUF's readers scale cosines and sines by `usual`, times attn_factor.
  const double growth = YarnGrowth(factor, 1);
  const double usual = growth / YarnGrowth(factor, model.log_multiplier);
  const double one = rope.NumberOr("mscale", 0), all = rope.NumberOr("mscale_all_dim", 0);
  const bool has_both = one != 0 && all != 0;
  const double by_scales = has_both ? YarnGrowth(factor, one) / YarnGrowth(factor, all) : growth;
  const double wanted = rope.NumberOr("attention_factor", by_scales);
  if (std::abs(wanted - usual) > 1e-6) model.Float("rope.scaling.attn_factor", wanted / usual);
}

// Beyond the trained context rope's base grows with the text, so that earlier keys would have to be
// computed again. Within it nothing is scaled.
void AddDynamic(OutModel& model) {
  const Fields rope = model.rope();
  if (rope.NumberOr("alpha", 1) != 1)
    rope.Fail("alpha", "expected 1 in a model of architecture ", model.architecture);
  model.Text("rope.scaling.type", "none");
  model.notes.push_back(
      "its RoPE is scaled by the length of texts of more than " +
      std::to_string(model.config.Count("max_position_embeddings")) +
      " tokens, which files cannot say: longer ones would be computed without it");
}

void AddRope(const HfClass& hf, OutModel& model) {
  const Fields rope = model.rope();
  if (hf.says_rope && !rope.is_there())
    model.config.Fail("rope_parameters", "expected how RoPE is scaled, found nothing");
  const bool says = model.config.Has("rope_theta") || rope.Has("rope_theta");
  if (says || hf.rope_theta != 10000) model.Float("rope.freq_base", model.rope_theta());
  double part = model.rotary_part;
  for (const Fields& from : {rope, model.config}) {  // the latter takes precedence
    for (const char* const key : {"partial_rotary_factor", "rotary_pct", "rope_pct"})
      part = from.ShareOr(key, part);
  }
  const auto n_rotated = static_cast<uint64_t>(static_cast<double>(model.head_dim()) * part);
  model.Uint("rope.dimension_count", n_rotated);
  if (n_rotated < model.head_dim()) model.shapes.n_rotated = n_rotated;
  if (model.Gives("rope.scaling.type")) return;
  const std::string type = rope.TextOr("rope_type", rope.TextOr("type", "default"));
  if (type == "linear") {
    model.Text("rope.scaling.type", "linear");
    model.Float("rope.scaling.factor", rope.Number("factor"));
  } else if (type == "yarn") {
    AddYarn(rope, model);
  } else if (type == "llama3") {
    AddLlama3Factors(rope, n_rotated, model);
  } else if (type == "longrope" || type == "su") {
    AddLongRope(rope, model);
  } else if (type == "dynamic") {
    AddDynamic(model);
  } else if (type != "default" && type != "none" && type != "mrope") {
    rope.Fail("rope_type", "expected default, linear, dynamic, yarn, llama3 or longrope, found ",
              gguf::Quoted(type, 40));
  }
}

// These numbers determine allocations before any tensor is checked.
void CheckSizes(const OutModel& model) {
  constexpr uint64_t kMaxLayers = 4096, kMaxOfHead = 65536;
  const auto check = [&](const char* key, uint64_t value, uint64_t most) {
    if (value > most) model.config.Fail(key, "expected at most ", most);
  };
  check("num_hidden_layers", model.n_layers(), kMaxLayers);
  check("global_head_dim", model.config.UintOr("global_head_dim", 0), kMaxOfHead);
  check(model.config.Has("head_dim") ? "head_dim" : "hidden_size", model.head_dim(), kMaxOfHead);
}

// Products of three sizes fit into 64 bits (out_tensor.cc).
void CheckShapes(const OutModel& model) {
  constexpr uint64_t kMax = 65536;
  const Shapes& s = model.shapes;
  for (const uint64_t n : {s.n_heads, s.n_kv_heads, s.n_key_heads, s.n_value_heads, s.state,
                           s.n_groups, s.head_plain, s.head_value}) {
    if (n <= kMax) continue;
    gguf::Fail(model.config.file(), "expected heads, groups and their lengths of at most ", kMax,
               ", found ", n);
  }
}

}  // namespace

void AddKeys(const Source& source, OutModel& model) {
  const Family& family = source.family;
  const Fields& config = model.config;
  for (const char* const key : {"max_position_embeddings", "hidden_size", "num_hidden_layers",
                                "num_attention_heads", "vocab_size"}) {
    config.Count(key);
  }
  CheckSizes(model);
  model.shapes.n_heads = config.Count("num_attention_heads");
  model.shapes.n_kv_heads = config.CountOr("num_key_value_heads", model.shapes.n_heads);
  if (source.hf.all_kv_heads) model.shapes.n_kv_heads = model.shapes.n_heads;
  CheckOnly(source, config);
  model.rotary_part = source.hf.rotary_part;
  model.default_theta = source.hf.rope_theta;
  model.rounds_yarn_ramp = family.rounds_yarn_ramp;
  AddActivation(source, model);
  if (family.nextn) engine::AddNextn(model);
  if (source.hf.add_keys != nullptr) source.hf.add_keys(model);
  CheckShapes(model);
  if (family.windows.when != engine::Windows::When::kNever && source.hf.has_windows)
    engine::AddWindows(family.windows, model);
  for (const std::span<const KeyRule> rules : source.hf.keys) {
    for (const KeyRule& rule : rules) AddKey(rule, model);
  }
  if (family.router && source.hf.experts != HasExperts::kNone) {
    if (family.dense_layers == engine::DenseLayers::kLeading) engine::AddLeadingDense(model);
    engine::AddGating(source.hf.chooses_by_sigmoid, model);
    for (const KeyRule& rule : kExpertKeys) AddKey(rule, model);
  }
  for (const KeyRule& rule : kCommonKeys) AddKey(rule, model);
  const bool layer_norm = family.traits.layer_norm;
  AddKey(
      {kNormEps, layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
       KeyKind::kFloat},
      model);
  model.Uint("attention.head_count_kv", model.shapes.n_kv_heads);
  AddRope(source.hf, model);
  AddPooling(model);
}

}  // namespace convert
