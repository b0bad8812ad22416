// Reads a Config's numbers from metadata keys, and checks each where it is read.
#include "engine/model/config.h"

#include <algorithm>

#include "engine/model/families/families.h"
#include "engine/model/family.h"
#include "engine/model/hadamard_transforms.h"
#include "engine/model/keys.h"
#include "gguf/error.h"

namespace engine {
namespace {

using gguf::Metadata;

// Far above any model's numbers; the product of a few fits in 64 bits.
constexpr uint64_t kMaxLayers = 1u << 12;
constexpr uint64_t kMaxHeadDim = 1u << 12;
constexpr uint64_t kMaxHeads = 1u << 14;  // attention's scratch has two numbers for each
constexpr uint64_t kMaxExperts = 1u << 16;

const Family& FindFamily(const Metadata& meta) {
  constexpr std::string_view kKey = "general.architecture";
  const std::string_view name = meta.GetString(kKey);
  std::string known;
  for (const Family& family : Families()) {
    if (family.name == name || std::ranges::count(family.other_names, name) > 0) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  meta.Fail(kKey, "architecture ", gguf::Quoted(name, 40), " is not supported (this program runs ",
            known, ")");
}

void ReadHeads(const Keys& keys, const Family& family, Config& config) {
  const size_t n_layers = config.n_layers(), width = config.embedding_length;
  const size_t min_heads = family.without_heads == Mixer::kAttention ? 1 : 0;
  const auto n_heads = keys.PerLayer("attention.head_count", n_layers, min_heads, kMaxHeads);
  const auto n_kv_heads =
      keys.Has("attention.head_count_kv")
          ? keys.PerLayer("attention.head_count_kv", n_layers, min_heads, kMaxHeads)
          : n_heads;
  const double scale = keys.PositiveUnlessZero("attention.scale", 0);
  const bool explicit_lengths =
      keys.Has("attention.key_length") && keys.Has("attention.value_length");
  for (size_t i = 0; i < n_layers; ++i) {
    LayerPlan& layer = config.layers[i];
    if (n_kv_heads[i] == 0) {
      layer.mixer = family.without_heads;
      continue;
    }
    layer.n_heads = n_heads[i];
    layer.n_kv_heads = n_kv_heads[i];
    if (layer.n_heads == 0)
      keys.Fail("attention.head_count", "must not be 0 where keys have heads");
    if (layer.n_heads % layer.n_kv_heads != 0) {
      keys.Fail("attention.head_count_kv", "expected a divisor of head_count ", layer.n_heads,
                ", found ", layer.n_kv_heads);
    }
    if (!explicit_lengths && width % layer.n_heads != 0) {
      keys.Fail("attention.head_count", "expected a divisor of embedding_length ", width,
                ", found ", layer.n_heads);
    }
    const size_t head_dim = width / layer.n_heads;
    layer.key_length = keys.CountOr("attention.key_length", head_dim, kMaxHeadDim);
    layer.value_length = keys.CountOr("attention.value_length", head_dim, kMaxHeadDim);
    const double by_length = 1 / std::sqrt(static_cast<double>(layer.key_length));
    layer.score_scale = static_cast<float>(scale > 0 ? scale : by_length);
  }
}

// A value below 0 stands for the default.
void ReadYarn(const Keys& keys, RopeConfig& rope) {
  const auto read = [&](const char* key, double fallback) {
    return keys.PositiveUnlessNegative("rope.scaling.yarn_" + std::string(key), fallback);
  };
  rope.beta_fast = read("beta_fast", rope.beta_fast);
  rope.beta_slow = read("beta_slow", rope.beta_slow);
  rope.log_multiplier = keys.PositiveUnlessZero("rope.scaling.yarn_log_multiplier", 0);
  constexpr std::string_view kExt = "rope.scaling.yarn_ext_factor",
                             kTruncate = "rope.scaling.yarn_truncate";
  if (keys.Has(kExt) && keys.Number(kExt) == 0) {
    rope.ext_factor = 0;
  } else {
    rope.ext_factor = read("ext_factor", 1);
  }
  if (rope.ext_factor > 1) keys.Fail(kExt, "expected at most 1, found ", rope.ext_factor);
  rope.rounds_ramp = keys.BoolOr(kTruncate, rope.rounds_ramp);
}

RopeConfig ReadRope(const Keys& keys, const Family& family, const Config& config) {
  const auto attends = [](const LayerPlan& layer) { return layer.n_heads > 0; };
  const auto first = std::ranges::find_if(config.layers, attends);
  const size_t key_length = first != config.layers.end() ? first->key_length : 2;
  RopeConfig rope;
  rope.rounds_ramp = family.rounds_yarn_ramp;
  rope.pairs = family.rope_pairs;
  rope.n_dims = keys.CountOr("rope.dimension_count", key_length, kMaxHeadDim);
  rope.base = keys.PositiveOr("rope.freq_base", 10000.0);
  const std::string_view scaling = keys.StringOr("rope.scaling.type", "linear");
  if (scaling == "linear" || scaling == "longrope") {  // longrope's divisors are tensors
    rope.scaling = RopeScaling::kLinear;
  } else if (scaling == "yarn") {
    rope.scaling = RopeScaling::kYarn;
  } else if (scaling == "dynamic") {
    keys.Refuse("rope.scaling.type",
                "dynamic scaling changes the base as a text grows, so that earlier keys would have "
                "to be computed again: not supported; texts of the trained length run with type "
                "none",
                "rope.scaling.type=str:none");
  } else if (scaling != "none") {
    keys.Fail("rope.scaling.type", "expected none, linear, yarn or longrope, found ",
              gguf::Quoted(scaling, 40));
  }
  // Older files use another name for the factor.
  const double older = keys.PositiveUnlessZero("rope.scale_linear", 1.0);
  const double factor =
      keys.Has("rope.scaling.factor") ? keys.PositiveUnlessZero("rope.scaling.factor", 1.0) : older;
  if (rope.scaling != RopeScaling::kNone) rope.factor = factor;
  rope.original_context =
      keys.CountOr("rope.scaling.original_context_length", config.context_length, UINT32_MAX);
  rope.attention_factor = keys.PositiveOr("rope.scaling.attn_factor", 1.0) *
                          keys.PositiveUnlessNegative("rope.scaling.yarn_attn_factor", 1.0);
  ReadYarn(keys, rope);
  return rope;
}

// Layers may lack a network or attention. If all have experts, the key may be missing.
void ReadFeedForward(const Keys& keys, const Family& family, Config& config) {
  if (!keys.Has("feed_forward_length") && keys.Has("expert_feed_forward_length")) return;
  const size_t min_length = family.without_heads == Mixer::kAttention ? 1 : 0;
  const auto lengths =
      keys.PerLayer("feed_forward_length", config.n_layers(), min_length, kMaxLength);
  for (size_t i = 0; i < lengths.size(); ++i) config.layers[i].ffn_length = lengths[i];
}

// Files of models without experts may have these keys: 0 of 0.
void ReadExperts(const gguf::File& file, const Keys& keys, const Family& family, Config& config) {
  const size_t n_experts = keys.UintOr("expert_count", 0, kMaxExperts);
  const size_t n_used = keys.UintOr("expert_used_count", 0, kMaxExperts);
  if (n_used > n_experts) {
    keys.Fail("expert_used_count", "expected at most the expert_count of ", n_experts, ", found ",
              n_used);
  }
  if (n_experts == 0 || (n_experts == 1 && !family.router)) return;  // one expert is a network
  if (!family.router) {
    keys.Fail("expert_count", "models of this architecture have no experts, found ", n_experts);
  }
  if (n_used == 0) keys.Fail("expert_used_count", "must not be 0 where there are experts");
  config.router = *family.router;
  config.router_bias = family.router_bias;
  config.n_experts_used = n_used;
  const size_t shared = keys.UintOr("expert_shared_feed_forward_length", 0, kMaxLength);
  const size_t own_length = keys.Has("expert_feed_forward_length")
                                ? keys.Count("expert_feed_forward_length", kMaxLength)
                                : 0;
  const size_t n_dense = family.dense_layers == DenseLayers::kLeading
                             ? keys.UintOr("leading_dense_block_count", 0, config.n_layers())
                             : 0;
  // Blocks that predict further tokens may be dense where layers are not.
  const size_t n_next = file.metadata().GetUintOr(
      std::string(family.name) + ".nextn_predict_layers", 0, config.n_layers());
  for (size_t i = n_dense; i < config.n_layers(); ++i) {
    const bool by_tensor =
        family.dense_layers == DenseLayers::kWithoutRouter || i + n_next >= config.n_layers();
    LayerPlan& layer = config.layers[i];
    if (layer.ffn_length == 0 && keys.Has("feed_forward_length")) continue;  // a mixer alone
    if (by_tensor &&
        file.FindTensor("blk." + std::to_string(i) + ".ffn_gate_inp.weight") == nullptr) {
      continue;
    }
    layer.n_experts = n_experts;
    layer.shared_ffn_length = shared;
    layer.expert_length = own_length != 0 ? own_length : layer.ffn_length;
    layer.ffn_length = 0;
  }
}

// Numbers that each have a key, and a default if the file lacks it.
void ReadScales(const Keys& keys, const Family& family, Config& config) {
  const auto read = [&](const char* key, double fallback) {
    return static_cast<float>(keys.PositiveUnlessZero(key, fallback));
  };
  const double width = static_cast<double>(config.embedding_length);
  config.embedding_scale = read("embedding_scale", family.scales_embeddings ? std::sqrt(width) : 1);
  config.residual_scale = read("residual_scale", 1);
  config.clamp_qkv = read("attention.clamp_kqv", 0);
  config.attention_softcap = read("attn_logit_softcapping", 0);
  config.logit_softcap = read("final_logit_softcapping", 0);
  config.attention_temperature_scale = read("attention.temperature_scale", 0);
  config.attention_temperature_span =
      keys.CountOr("attention.temperature_length", config.ropes[0].original_context, UINT32_MAX);
}

// Reads the activation of a network without a gate from our own key.
void ReadActivation(const Keys& keys, Config& config) {
  constexpr std::string_view kKey = "hidden_activation";
  if (kernels::IsGated(config.activation) || !keys.Has(kKey)) return;
  const std::string_view name = keys.StringOr(kKey, "");
  const auto found = UngatedActivation(name);
  if (!found) {
    keys.Fail(kKey, "expected gelu, gelu_new, relu or relu2, found ", gguf::Quoted(name, 40));
  }
  config.activation = *found;
}

void ReadPooling(const Keys& keys, Config& config) {
  config.pooling = static_cast<Pooling>(keys.UintOr("pooling_type", 0, 4));
  constexpr std::string_view kLabels = "classifier.output_labels";
  if (config.pooling != Pooling::kRank && keys.Has(kLabels)) {
    keys.Refuse(kLabels, "this is a reranker, or a classifier, whose scores need pooling_type 4",
                "pooling_type=int:4");
  }
  const Keys others = keys.Of("sentence_transformers");
  config.normalizes_vectors = others.BoolOr("normalize", true);
  config.max_text_tokens = others.UintOr("max_tokens", 0, kMaxLength);
  if (config.pooling != Pooling::kRank) return;
  config.n_labels = keys.Has(kLabels) ? keys.Length(kLabels) : 1;
  if (config.n_labels == 0) keys.Fail(kLabels, "expected a list with a name for each score");
}

// A layer that uses another layer's keys and values must have as many key-value heads.
void CheckShared(const Keys& keys, const Config& config, const LayerPlan& layer) {
  if (layer.kv_layer == LayerPlan::kOwnCache) return;
  const LayerPlan& source = config.layers[layer.kv_layer];
  if (source.n_kv_heads != layer.n_kv_heads) {
    keys.Fail("attention.head_count_kv", "layer ", layer.kv_layer,
              " keeps keys for others, too: expected ", layer.n_kv_heads, ", found ",
              source.n_kv_heads);
  }
}

// Checks the plan after the family's own keys.
void CheckLayers(const Keys& keys, const Config& config) {
  for (const LayerPlan& layer : config.layers) {
    CheckShared(keys, config, layer);
    const bool attends = layer.mixer == Mixer::kAttention || layer.mixer == Mixer::kLatentAttention;
    if (attends && layer.rope != LayerPlan::kNoRope) {
      const RopeConfig& rope = config.ropes[layer.rope];
      if (layer.key_length % 2 != 0) {
        keys.Fail("attention.key_length", "rope needs an even head dimension, found ",
                  layer.key_length);
      }
      if (rope.n_dims % 2 != 0 || layer.rope_offset + rope.n_dims > layer.key_length) {
        keys.Fail("rope.dimension_count", "expected an even number up to the head dimension ",
                  layer.key_length, ", found ", rope.n_dims);
      }
    }
    if (attends && config.attention_gate == AttentionGate::kInQueries &&
        layer.value_length != layer.key_length) {
      keys.Fail("attention.value_length", "gates have key_length ", layer.key_length,
                " numbers, found ", layer.value_length);
    }
    if (layer.ffn_sparsity > 0 && layer.ffn_length < 2) {
      keys.Fail("feed_forward_length",
                "one number has no standard deviation: expected 2 or more, found ",
                layer.ffn_length);
    }
    if (layer.mixer == Mixer::kNone && layer.ffn_length == 0 && layer.n_experts == 0) {
      keys.Fail("feed_forward_length", "a layer does nothing");
    }
    if (layer.n_experts > 0 && layer.expert_length == 0) {
      keys.Fail("expert_feed_forward_length", "must not be 0 where there are experts");
    }
  }
}

}  // namespace

Config Config::Read(const gguf::File& file) {
  const Metadata& meta = file.metadata();
  const Family& family = FindFamily(meta);
  if (file.tensors().empty()) {
    gguf::Fail(file.path(), "holds a vocabulary and no weights, so it cannot generate text");
  }
  const gguf::TensorView* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr) gguf::Fail(file.path(), "tensor token_embd.weight is missing");
  Config config;
  config.architecture = meta.GetString("general.architecture");
  const Keys keys(meta, config.architecture);
  config.vocab_size = embedding->rows();
  static_cast<Traits&>(config) = family.traits;
  config.context_length = keys.Count("context_length", UINT32_MAX);
  config.embedding_length = keys.Count("embedding_length", kMaxLength);
  config.layers.resize(keys.Count("block_count", kMaxLayers));
  ReadFeedForward(keys, family, config);
  ReadExperts(file, keys, family, config);
  ReadHeads(keys, family, config);
  constexpr const char *kEps = "attention.layer_norm_epsilon",
                       *kRmsEps = "attention.layer_norm_rms_epsilon";
  const bool is_rms = !config.layer_norm || (!keys.Has(kEps) && keys.Has(kRmsEps));
  if (config.layer_norm) keys.Ignore(kRmsEps);  // Phi-3.5-MoE has both keys
  config.norm_eps = static_cast<float>(keys.Positive(is_rms ? kRmsEps : kEps));
  config.ropes = {ReadRope(keys, family, config)};
  ReadScales(keys, family, config);
  ReadActivation(keys, config);
  ReadPooling(keys, config);
  ReadWindows(keys, family.windows, config);
  ReadRouter(keys, family, config);
  config.uses_hadamard = HadamardTransforms::AreIn(file);
  if (family.complete_config != nullptr) family.complete_config(keys, config);
  if (family.nextn) SkipNextn(keys, config);
  CheckLayers(keys, config);
  if (config.nextn) CheckLayers(keys, config.OfNextn());
  config.has_encoders = keys.RequireAllRead();
  return config;
}

bool Config::SeesAhead() const {
  return Widest([](const LayerPlan& layer) { return layer.n_keys_ahead; }) > 0;
}

Config Config::OfNextn() const {
  Config block = *this;
  block.layers = {*nextn};
  block.joins_hidden = true;
  return block;
}

size_t Config::Widest(size_t (*member)(const LayerPlan&)) const {
  size_t widest = 0;
  for (const LayerPlan& layer : layers) widest = std::max(widest, member(layer));
  return widest;
}

}  // namespace engine
