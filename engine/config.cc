#include "engine/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "gguf/error.h"

namespace engine {
namespace {

using gguf::Metadata;
using kernels::RopePairs;

// The only place that knows architectures by name. What differs between them otherwise (biases,
// tied embeddings) is read off the tensors that are there.
struct Architecture {
  std::string_view name;
  RopePairs rope_pairs;
  bool qk_norm;
};
constexpr std::array kArchitectures = {
    Architecture{"llama", RopePairs::kAdjacent, false},
    Architecture{"qwen2", RopePairs::kHalves, false},
    Architecture{"qwen3", RopePairs::kHalves, true},
};

// Far above any model, and small enough that products of a few of them fit in 64 bits.
constexpr uint64_t kMaxLength = 1u << 24;
constexpr uint64_t kMaxLayers = 1u << 12;
constexpr uint64_t kMaxHeadDim = 1u << 12;

const Architecture& FindArchitecture(const Metadata& meta) {
  constexpr std::string_view kKey = "general.architecture";
  const std::string_view name = meta.GetString(kKey);
  std::string known;
  for (const Architecture& arch : kArchitectures) {
    if (arch.name == name) return arch;
    known += (known.empty() ? "" : ", ") + std::string(arch.name);
  }
  meta.Fail(kKey, "architecture " + gguf::Quoted(name, 40) +
                      " is not supported (this program runs " + known + ")");
}

// The keys of one architecture, read with their ranges.
class Keys {
 public:
  Keys(const Metadata& meta, std::string_view arch)
      : meta_(meta), prefix_(std::string(arch) + ".") {}

  bool Has(std::string_view key) const { return meta_.Has(prefix_ + std::string(key)); }

  size_t Count(std::string_view key, uint64_t max) const {
    const std::string full = prefix_ + std::string(key);
    const uint64_t value = meta_.GetUint(full, max);
    if (value == 0) meta_.Fail(full, "must not be 0");
    return value;
  }
  uint64_t UintOr(std::string_view key, uint64_t fallback, uint64_t max) const {
    return meta_.GetUintOr(prefix_ + std::string(key), fallback, max);
  }
  size_t CountOr(std::string_view key, size_t fallback, uint64_t max) const {
    return Has(key) ? Count(key, max) : fallback;
  }
  // A positive, finite number.
  double Positive(std::string_view key) const {
    const std::string full = prefix_ + std::string(key);
    const double value = meta_.GetFloat(full);
    if (!(value > 0) || !std::isfinite(value)) {
      meta_.Fail(full, "expected a positive number, found " + std::to_string(value));
    }
    return value;
  }
  double PositiveOr(std::string_view key, double fallback) const {
    return Has(key) ? Positive(key) : fallback;
  }
  std::string_view StringOr(std::string_view key, std::string_view fallback) const {
    return meta_.GetStringOr(prefix_ + std::string(key), fallback);
  }
  [[noreturn]] void Fail(std::string_view key, const std::string& what) const {
    meta_.Fail(prefix_ + std::string(key), what);
  }

 private:
  const Metadata& meta_;
  std::string prefix_;
};

// Files of models without experts may say so: 0 of 0.
void CheckExperts(const Keys& keys) {
  const uint64_t n_experts = keys.UintOr("expert_count", 0, kMaxLength);
  const uint64_t n_used = keys.UintOr("expert_used_count", 0, kMaxLength);
  if (n_used > n_experts) {
    keys.Fail("expert_used_count", "expected at most the expert_count of " +
                                       std::to_string(n_experts) + ", found " +
                                       std::to_string(n_used));
  }
  if (n_experts > 1) keys.Fail("expert_count", "mixtures of experts are not supported yet");
}

void ReadHeads(const Keys& keys, Config& config) {
  config.n_heads = keys.Count("attention.head_count", kMaxLength);
  config.n_kv_heads = keys.CountOr("attention.head_count_kv", config.n_heads, kMaxLength);
  if (config.n_heads % config.n_kv_heads != 0) {
    keys.Fail("attention.head_count_kv", "expected a divisor of head_count " +
                                             std::to_string(config.n_heads) + ", found " +
                                             std::to_string(config.n_kv_heads));
  }
  const bool explicit_lengths =
      keys.Has("attention.key_length") && keys.Has("attention.value_length");
  if (!explicit_lengths && config.embedding_length % config.n_heads != 0) {
    keys.Fail("attention.head_count", "expected a divisor of embedding_length " +
                                          std::to_string(config.embedding_length) + ", found " +
                                          std::to_string(config.n_heads));
  }
  const size_t head_dim = config.embedding_length / config.n_heads;
  config.key_length = keys.CountOr("attention.key_length", head_dim, kMaxHeadDim);
  config.value_length = keys.CountOr("attention.value_length", head_dim, kMaxHeadDim);
  if (config.key_length % 2 != 0) {
    keys.Fail("attention.key_length",
              "rope needs an even head dimension, found " + std::to_string(config.key_length));
  }
}

RopeConfig ReadRope(const Keys& keys, const Architecture& arch, const Config& config) {
  RopeConfig rope;
  rope.pairs = arch.rope_pairs;
  rope.n_dims = keys.CountOr("rope.dimension_count", config.key_length, kMaxHeadDim);
  if (rope.n_dims > config.key_length || rope.n_dims % 2 != 0) {
    keys.Fail("rope.dimension_count", "expected an even number up to the head dimension " +
                                          std::to_string(config.key_length) + ", found " +
                                          std::to_string(rope.n_dims));
  }
  rope.base = keys.PositiveOr("rope.freq_base", 10000.0);
  // Files of before there were types have a factor alone, older ones under another name.
  const char* const factor_key =
      keys.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const std::string_view scaling =
      keys.StringOr("rope.scaling.type", keys.Has(factor_key) ? "linear" : "none");
  if (scaling == "linear") {
    rope.scaling = RopeScaling::kLinear;
  } else if (scaling == "yarn") {
    rope.scaling = RopeScaling::kYarn;
  } else if (scaling != "none") {
    keys.Fail("rope.scaling.type",
              "expected none, linear or yarn, found " + gguf::Quoted(scaling, 40));
  }
  if (rope.scaling != RopeScaling::kNone) rope.factor = keys.PositiveOr(factor_key, 1.0);
  rope.original_context =
      keys.CountOr("rope.scaling.original_context_length", config.context_length, kMaxLength);
  rope.attention_factor = keys.PositiveOr("rope.scaling.attn_factor", 1.0);
  rope.beta_fast = keys.PositiveOr("rope.scaling.yarn_beta_fast", rope.beta_fast);
  rope.beta_slow = keys.PositiveOr("rope.scaling.yarn_beta_slow", rope.beta_slow);
  return rope;
}

}  // namespace

Config Config::Read(const gguf::File& file) {
  const Metadata& meta = file.metadata();
  const Architecture& arch = FindArchitecture(meta);
  if (file.tensors().empty()) {
    throw gguf::Error(gguf::PrintablePath(file.path()) +
                      ": holds a vocabulary and no weights, so it cannot generate text");
  }
  const Keys keys(meta, arch.name);
  Config config;
  config.architecture = arch.name;
  config.qk_norm = arch.qk_norm;
  CheckExperts(keys);
  config.context_length = keys.Count("context_length", UINT32_MAX);
  config.embedding_length = keys.Count("embedding_length", kMaxLength);
  config.n_layers = keys.Count("block_count", kMaxLayers);
  config.ffn_length = keys.Count("feed_forward_length", kMaxLength);
  ReadHeads(keys, config);
  config.norm_eps = static_cast<float>(keys.Positive("attention.layer_norm_rms_epsilon"));
  config.rope = ReadRope(keys, arch, config);

  const gguf::TensorView* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr)
    throw gguf::Error(gguf::PrintablePath(file.path()) + ": tensor token_embd.weight is missing");
  config.vocab_size = embedding->rows();
  return config;
}

}  // namespace engine
