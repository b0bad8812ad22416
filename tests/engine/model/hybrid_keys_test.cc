// The keys of families whose layers are not all plain attention. Each key in the families'
// definitions is honoured or refused, unless it has no effect. The tests set one key in the models
// of tests/data/hybrids.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"

namespace engine {
namespace {

using Numbers = std::vector<int32_t>;
// std::monostate: no such key.
using KeySetting =
    std::variant<std::monostate, uint32_t, float, bool, std::string, Numbers, std::vector<float>>;

struct KeyChange {
  std::string key;
  KeySetting value;
};

void Add(gguf::Writer& writer, const std::string& key, const KeySetting& setting) {
  const auto add = [&]<class T>(const T& value) {
    if constexpr (requires { writer.Add(key, value); }) {
      writer.Add(key, value);
    } else if constexpr (!std::is_same_v<T, std::monostate>) {
      writer.AddArray(key, std::span(value));
    }
  };
  std::visit(add, setting);
}

// The model with these keys of its architecture changed, and with one tensor removed or renamed.
struct Variant {
  std::string model;
  std::vector<KeyChange> changes;
  std::string tensor = "", renamed = "";
};

gguf::File Make(const Variant& variant) {
  const gguf::File good = gguf::File::Open(test::DataPath("hybrids/" + variant.model + ".gguf"));
  const std::string prefix = std::string(good.metadata().GetString("general.architecture")) + ".";
  gguf::Writer writer;
  const auto is_changed = [&](std::string_view key) {
    return std::any_of(variant.changes.begin(), variant.changes.end(),
                       [&](const KeyChange& change) { return prefix + change.key == key; });
  };
  for (const gguf::Metadata::Entry& entry : good.metadata().entries()) {
    if (!is_changed(entry.key)) writer.Add(entry);
  }
  for (const KeyChange& change : variant.changes) Add(writer, prefix + change.key, change.value);
  for (gguf::TensorView t : good.tensors()) {
    if (t.name == variant.tensor) t.name = variant.renamed;
    if (!t.name.empty()) writer.AddTensor(t);
  }
  static std::vector<std::byte> bytes;
  bytes = writer.ToBytes();
  return gguf::File::Parse("f.gguf", bytes);
}

std::vector<float> LogitsWith(const Model& model) {
  SessionOptions options = {.context = 64, .n_threads = 1, .kv_type = kernels::KvType::kF32};
  return test::AllLogits(model, {1, 30, 12, 9, 36, 7, 26, 27, 30, 17}, options);
}

std::vector<float> LogitsWith(const Variant& variant) {
  return LogitsWith(Model::From(Make(variant)));
}

std::string ErrorOf(const Variant& variant) {
  return test::ErrorOf([&] { Model::From(Make(variant)); });
}

TEST(HybridKeys, Count) {
  for (const auto& [model, change] : std::vector<std::pair<std::string, KeyChange>>{
           {"lfm2-window", {"attention.sliding_window", 2u}},
           {"lfm2-window", {"attention.sliding_window", {}}},
           {"lfm2-window", {"attention.sliding_window", 0u}},
           {"lfm2", {"rope.freq_base", 100.0f}},
           {"lfm2", {"attention.layer_norm_rms_epsilon", 0.5f}},
           {"lfm2moe", {"expert_used_count", 2u}},
           {"lfm2moe", {"expert_gating_func", 1u}},
           {"qwen35", {"rope.freq_base", {}}},
           {"qwen35", {"rope.dimension_count", 2u}},
           {"qwen35", {"rope.dimension_sections", Numbers{1, 0, 1, 0}}},
           {"qwen35moe", {"rope.dimension_sections", Numbers{1, 0, 0, 2}}},
           {"qwen3next", {"rope.dimension_count", 8u}},
           {"qwen3next", {"expert_used_count", 2u}},
           {"gemma4", {"final_logit_softcapping", {}}},
           {"gemma4", {"final_logit_softcapping", 0.0f}},
           {"gemma4", {"attention.sliding_window", 5u}},
           {"gemma4", {"rope.freq_base_swa", {}}},
           {"gemma4", {"rope.freq_base", 100.0f}},
           {"gemma4", {"rope.dimension_count_swa", 4u}},
           {"gemma4-moe", {"expert_used_count", 1u}},
           {"deepseek2", {"rope.scaling.type", {}}},
           {"deepseek2", {"rope.scaling.factor", 4.0f}},
           {"deepseek2", {"rope.scaling.original_context_length", 64u}},
           {"deepseek2", {"rope.scaling.yarn_log_multiplier", {}}},
           {"deepseek2", {"expert_group_used_count", 3u}},
           {"deepseek2", {"expert_group_used_count", 1u}},
           {"deepseek2", {"expert_weights_norm", false}},
           {"deepseek2", {"expert_weights_scale", {}}},
           {"deepseek2", {"expert_weights_scale", 0.0f}},
           {"deepseek2", {"expert_gating_func", 1u}},
           {"deepseek2-legacy", {"rope.scaling.yarn_log_multiplier", 0.1f}},
           {"deepseek2-legacy", {"expert_gating_func", 2u}},
           {"granitehybrid", {"embedding_scale", {}}},
           {"granitehybrid", {"residual_scale", 0.0f}},
           {"granitehybrid", {"logit_scale", {}}},
           {"granitehybrid", {"attention.scale", {}}},
           {"granitehybrid", {"rope.scaling.finetuned", {}}},
           {"granitehybrid-dense", {"rope.scaling.finetuned", false}},
           {"nemotron_h_moe", {"expert_weights_norm", {}}},
           {"nemotron_h_moe", {"expert_weights_scale", {}}},
           {"falcon-h1", {"rope.freq_base", {}}},
           {"falcon-h1", {"rope.dimension_count", 4u}},
           {"falcon-mamba", {"ssm.dt_b_c_rms", {}}},
           {"jamba", {"expert_used_count", 2u}},
           {"kimi-linear", {"expert_weights_scale", {}}},
           {"kimi-linear", {"expert_group_used_count", 2u}},
           {"kimi-linear", {"expert_gating_func", 1u}},
           {"gemma3n", {"attention.sliding_window", 2u}},
           {"gemma3n", {"rope.freq_base_swa", {}}}}) {
    SCOPED_TRACE(model + " " + change.key);
    EXPECT_NE(LogitsWith({model, {}}), LogitsWith({model, {change}}));
  }
}

TEST(HybridKeys, WithoutEffectChangeNoBit) {
  for (const auto& [model, change] : std::vector<std::pair<std::string, KeyChange>>{
           {"lfm2", {"vocab_size", 7u}},
           {"lfm2", {"context_length", 100u}},
           {"lfm2", {"attention.head_count", Numbers{0, 3, 0}}},
           {"lfm2moe", {"leading_dense_block_count", 1u}},
           {"qwen35", {"full_attention_interval", 3u}},
           {"qwen35", {"attention.recurrent_layers", Numbers{1, 1, 0}}},
           {"qwen35", {"rope.dimension_sections", Numbers{5, 5, 5, 5}}},
           {"qwen35", {"rope.dimension_sections", Numbers{1, 1, 0}}},
           {"qwen3next", {"feed_forward_length", 5u}},
           {"gemma4", {"attention.value_length_swa", {}}},
           {"deepseek2", {"attention.value_length", 3u}},
           {"deepseek2", {"rope.scaling.yarn_beta_fast", 2.0f}},
           {"deepseek2-lite", {"expert_weights_scale", 0.0f}},
           {"nemotron_h", {"rope.dimension_count", 2u}},
           {"nemotron_h", {"rope.freq_base", 3.0f}},
           {"nemotron_h", {"attention.layer_norm_epsilon", 0.5f}},
           {"gemma3n", {"attention.shared_kv_layers", {}}},
           {"gemma3n", {"activation_sparsity_scale", {}}}}) {
    SCOPED_TRACE(model + " " + change.key);
    EXPECT_EQ(LogitsWith({model, {}}), LogitsWith({model, {change}}));
  }
}

// GLM 4.7 Flash was published without a key for its gate, which is a sigmoid. It is recognized by
// its number of blocks and its vocabulary; other files without the key have a softmax.
TEST(HybridKeys, TheGateOfGlmFlash) {
  using Gate = kernels::Router::Gate;
  const auto gate_of = [](uint32_t n_blocks, uint64_t vocabulary, std::optional<uint32_t> gate) {
    const gguf::File good = gguf::File::Open(test::DataPath("hybrids/deepseek2.gguf"));
    gguf::Writer writer;
    for (const auto& entry : good.metadata().entries()) {
      if (entry.key.ends_with(".block_count") || entry.key.ends_with(".expert_gating_func"))
        continue;
      writer.Add(entry);
    }
    writer.Add("deepseek2.block_count", n_blocks);
    if (gate) writer.Add("deepseek2.expert_gating_func", *gate);
    const std::vector<float> rows(vocabulary);
    writer.AddTensor("token_embd.weight", gguf::DType::kF32, {1, vocabulary},
                     std::as_bytes(std::span(rows)));
    std::vector<std::byte> bytes = writer.ToBytes();
    const gguf::File file = gguf::File::Parse("f.gguf", bytes);
    return Config::Read(file).router.gate;
  };
  for (const uint32_t n : {47u, 48u}) {
    EXPECT_EQ(gate_of(n, 154880, {}), Gate::kSigmoid);
    EXPECT_EQ(gate_of(n, 154880, 1), Gate::kSoftmax);  // the key decides where there is one
    EXPECT_EQ(gate_of(n, 102400, {}), Gate::kSoftmax);
    EXPECT_EQ(gate_of(n, 102400, 2), Gate::kSigmoid);
  }
  EXPECT_EQ(gate_of(27, 154880, {}), Gate::kSoftmax);
}

// Temperature scaling in latent attention, of both forms (Mistral Large 3): with a span of 1 the
// query at position 1 is scaled by 1 + s ln 2. The first token sees itself alone at any scale.
TEST(HybridKeys, TemperatureOfLatentAttention) {
  constexpr float kScale = 0.7f;
  for (const std::string name : {"deepseek2", "deepseek2-legacy"}) {
    SCOPED_TRACE(name);
    const auto logits = [](const Model& model) {
      SessionOptions options = {.context = 64, .n_threads = 1, .kv_type = kernels::KvType::kF32};
      return test::AllLogits(model, {1, 30}, options);
    };
    Model expected = Model::From(Make({name, {}}));
    const std::vector<float> bare = logits(expected);
    for (LayerPlan& layer : expected.config.layers) {
      layer.score_scale *= 1 + kScale * std::log(2.0f);
    }
    const std::vector<float> scaled = logits(expected);
    EXPECT_GT(test::Nmse(scaled, bare), 1e-5);
    const Variant variant = {
        name, {{"attention.temperature_scale", kScale}, {"attention.temperature_length", 1u}}};
    EXPECT_LT(test::Nmse(logits(Model::From(Make(variant))), scaled), 1e-10);
    const Variant later = {
        name, {{"attention.temperature_scale", kScale}, {"attention.temperature_length", 2u}}};
    EXPECT_EQ(logits(Model::From(Make(later))), bare);
  }
}

// A model without shared experts is one whose shared experts add nothing.
TEST(HybridKeys, NoSharedExpertsInDeepSeek) {
  const gguf::File good = gguf::File::Open(test::DataPath("hybrids/deepseek2.gguf"));
  std::array<std::vector<float>, 2> logits;
  for (const bool has_shared : {false, true}) {
    gguf::Writer writer;
    for (const gguf::Metadata::Entry& entry : good.metadata().entries()) {
      if (has_shared || entry.key != "deepseek2.expert_shared_count") writer.Add(entry);
    }
    if (!has_shared) writer.Add("deepseek2.expert_shared_count", uint32_t{0});
    const std::vector<std::byte> zeros(100'000);
    size_t n_shared = 0;
    for (gguf::TensorView t : good.tensors()) {
      const bool is_shared = t.name.find("_shexp.") != std::string_view::npos;
      n_shared += is_shared ? 1 : 0;
      if (is_shared) t.data = zeros.data();
      if (has_shared || !is_shared) writer.AddTensor(t);
    }
    ASSERT_GT(n_shared, 0u);
    const std::vector<std::byte> bytes = writer.ToBytes();
    logits[has_shared ? 1 : 0] = LogitsWith(Model::From(gguf::File::Parse("f.gguf", bytes)));
  }
  EXPECT_EQ(logits[0], logits[1]);
}

// Flags override the interval.
TEST(HybridKeys, FlagsOfRecurrentLayersGoBeforeTheInterval) {
  const KeyChange flags = {"attention.recurrent_layers", Numbers{1, 1, 0}};
  EXPECT_EQ(LogitsWith({"qwen35", {}}),
            LogitsWith({"qwen35", {flags, {"full_attention_interval", 2u}}}));
}

TEST(HybridKeys, AreRefusedByName) {
  struct Case {
    std::string model;
    KeyChange change;
    std::string message;
  };
  for (const auto& [model, change, message] : std::vector<Case>{
           {"lfm2", {"shortconv.l_cache", {}}, "found no such key"},
           {"lfm2", {"shortconv.l_cache", 0u}, "must not be 0"},
           {"lfm2", {"shortconv.l_cache", 9u}, "found 9"},
           {"lfm2", {"attention.head_count_kv", Numbers{0, 1}}, "each of 3 layers, found 2"},
           {"lfm2", {"attention.head_count_kv", Numbers{0, -1, 0}}, "found -1"},
           {"lfm2", {"attention.head_count", Numbers{3, 0, 3}}, "must not be 0"},
           {"lfm2", {"attention.head_count", 20000u}, "found 20000"},
           {"lfm2moe", {"expert_gating_func", 3u}, "found 3"},
           {"qwen35", {"full_attention_interval", 0u}, "must not be 0"},
           {"qwen35", {"attention.recurrent_layers", Numbers{1, 1}}, "3 layers, found 2"},
           {"qwen35", {"attention.recurrent_layers", Numbers{1, 2, 0}}, "found 2"},
           {"qwen35", {"rope.dimension_sections", {}}, "found no such key"},
           {"qwen35", {"rope.dimension_sections", Numbers{1, 1}}, "expected 4 numbers, found 2"},
           {"qwen35", {"rope.dimension_sections", Numbers{0, 0, 0, 0}}, "above 0"},
           {"qwen35", {"rope.dimension_sections", 1u}, "expected an array"},
           {"qwen35", {"rope.dimension_sections", "1,1,0,0"}, "expected an array"},
           {"qwen35", {"rope.dimension_sections", std::vector<float>(4, 1)}, "expected an array"},
           {"qwen35", {"attention.value_length", 10u}, "key_length 8 numbers, found 10"},
           {"qwen35", {"ssm.group_count", 0u}, "must not be 0"},
           {"qwen35", {"ssm.group_count", 4u}, "divisor of time_step_rank 6, found 4"},
           {"qwen35", {"ssm.time_step_rank", 0u}, "must not be 0"},
           {"qwen35", {"ssm.state_size", 0u}, "must not be 0"},
           {"qwen35", {"ssm.state_size", 3u}, "found 36"},  // of inner_size
           {"qwen35", {"ssm.inner_size", 37u}, "multiple of time_step_rank 6"},
           {"qwen35", {"ssm.conv_kernel", 0u}, "must not be 0"},
           {"qwen35", {"ssm.dt_rms", 1u}, "may change what this model computes"},
           {"qwen35", {"nextn_predict_layers", 3u}, "found 3"},
           {"qwen35moe", {"expert_gating_func", 3u}, "found 3"},
           {"qwen3next", {"expert_weights_scale", -2.0f}, "found -2"},
           {"gemma4", {"attention.sliding_window_pattern", {}}, "found no such key"},
           {"gemma4", {"attention.sliding_window_pattern", Numbers{1, 0, 1}}, "5 layers, found 3"},
           {"gemma4", {"attention.sliding_window_pattern", Numbers{0, 0, 1, 1, 0}}, "found 0"},
           {"gemma4", {"attention.shared_kv_layers", 4u}, "two fewer than layers"},
           {"gemma4", {"attention.shared_kv_layers", 6u}, "found 6"},
           {"gemma4", {"attention.head_count_kv", Numbers{1, 1, 2, 2, 1}}, "expected 2, found 1"},
           {"gemma4", {"attention.key_length_swa", {}}, "found no such key"},
           {"gemma4", {"attention.sliding_window", 0u}, "must not be 0"},
           {"gemma4", {"rope.dimension_count_swa", 8u}, "found 8"},
           {"gemma4", {"feed_forward_length", Numbers{8, 8, 0, 16, 16}}, "found 0"},
           {"gemma4", {"embedding_length_per_layer_input", 16777217u}, "found 16777217"},
           {"deepseek2", {"attention.kv_lora_rank", {}}, "found no such key"},
           {"deepseek2", {"attention.kv_lora_rank", 0u}, "must not be 0"},
           {"deepseek2", {"attention.kv_lora_rank", 5000u}, "found 5000"},
           {"deepseek2", {"attention.key_length_mla", 4u}, "less than a head's 4, found 4"},
           {"deepseek2", {"attention.value_length_mla", {}}, "found no such key"},
           {"deepseek2", {"attention.value_length_mla", 0u}, "must not be 0"},
           {"deepseek2", {"expert_group_count", 4u}, "divisor of expert_count 9, found 4"},
           {"deepseek2", {"expert_group_used_count", 4u}, "found 4"},
           {"deepseek2", {"leading_dense_block_count", 3u}, "found 3"},
           {"deepseek2", {"rope.scaling.attn_factor", 0.8f}, "expected 1, found 0.8"},
           {"deepseek2", {"rope.scaling.yarn_log_multiplier", -1.0f}, "found -1"},
           {"deepseek2-legacy", {"attention.value_length_mla", 6u}, "may change what"},
           {"granitehybrid", {"ssm.inner_size", {}}, "found no such key"},
           {"granitehybrid", {"residual_scale", -1.0f}, "found -1"},
           {"granitehybrid", {"expert_weights_norm", 1.5f}, "expert_weights_norm"},
           {"nemotron_h", {"feed_forward_length", Numbers{0, 0, 20}}, "4 layers, found 3"},
           {"nemotron_h", {"moe_latent_size", 4u}, "may change what"},
           {"nemotron_h_moe", {"expert_gating_func", 3u}, "found 3"},
           {"falcon-h1", {"ssm.inner_size", 21u}, "multiple of time_step_rank 5"},
           {"falcon-h1", {"attention.head_count_kv", 0u}, "must not be 0"},
           {"mamba", {"ssm.state_size", 0u}, "must not be 0"},
           {"mamba", {"ssm.state_size", 2000u}, "found 2000"},
           {"mamba", {"ssm.time_step_rank", {}}, "found no such key"},
           {"mamba", {"ssm.conv_kernel", 9u}, "found 9"},
           {"mamba", {"ssm.group_count", 2u}, "may change what"},
           {"jamba", {"expert_weights_scale", -2.0f}, "found -2"},
           {"kimi-linear", {"kda.head_dim", {}}, "found no such key"},
           {"kimi-linear", {"kda.head_dim", 0u}, "must not be 0"},
           {"kimi-linear", {"attention.head_count", Numbers{0, 2, 2}}, "found 0"},
           {"kimi-linear", {"attention.key_length_mla", 4u}, "less than a head's 4, found 4"},
           {"kimi-linear", {"attention.kv_lora_rank", {}}, "found no such key"},
           {"kimi-linear", {"expert_gating_func", 3u}, "found 3"},
           {"gemma3n", {"embedding_length_per_layer_input", {}}, "found no such key"},
           {"gemma3n", {"feed_forward_length", 1u}, "no standard deviation"},
           {"gemma3n", {"altup.num_inputs", 2u}, "expected 4, found 2"},
           {"gemma3n", {"altup.active_idx", 1u}, "expected 0, found 1"},
           {"gemma3n", {"altup.coef_clip", 1.0f}, "may change what"},
           {"gemma3n", {"final_logit_softcapping", 20.0f}, "expected 30, found 20"},
           {"gemma3n", {"attention.shared_kv_layers", 1u}, "expected 0, found 1"},
           {"gemma3n", {"attention.sliding_window_pattern", Numbers{1, 0}}, "for layer 1"},
           {"gemma3n", {"attention.sliding_window_pattern", Numbers{1}}, "2 layers, found 1"},
           {"gemma3n", {"activation_sparsity_scale", std::vector<float>{0, 0}}, "for layer 0"}}) {
    const std::string error = ErrorOf({model, {change}});
    SCOPED_TRACE(model + " " + change.key);
    EXPECT_TRUE(test::Has(error, message));
    EXPECT_TRUE(error.starts_with("f.gguf: key")) << error;
  }
}

// Buffers have the sizes that the keys give: tensors of the other form must not be used with them.
TEST(HybridTensors, AreThoseOfTheForm) {
  EXPECT_TRUE(
      test::Has(ErrorOf({"deepseek2", {}, "blk.0.attn_k_b.weight", "blk.0.attn_kv_b.weight"}),
                "tensor blk.0.attn_k_b.weight: is missing"));
  EXPECT_TRUE(test::Has(
      ErrorOf({"deepseek2-legacy", {}, "blk.0.attn_kv_b.weight", "blk.0.attn_k_b.weight"}),
      "tensor blk.0.attn_kv_b.weight: is missing"));
  EXPECT_TRUE(test::Has(ErrorOf({"deepseek2", {{"attention.q_lora_rank", {}}}}),
                        "tensor blk.0.attn_q.weight: is missing"));
  // Values are keys only where both are as long, and never in Gemma 3n.
  EXPECT_TRUE(test::Has(ErrorOf({"gemma4-dense", {{"attention.value_length", 4u}}}),
                        "blk.0.attn_v.weight"));
  EXPECT_TRUE(test::Has(ErrorOf({"gemma3n", {}, "blk.0.attn_v.weight"}),
                        "blk.0.attn_v.weight: is missing"));
  // A layer that sees another layer's keys must not store its own there.
  EXPECT_TRUE(test::Has(ErrorOf({"gemma4", {}, "blk.0.ffn_norm.weight", "blk.4.attn_qkv.weight"}),
                        "blk.0.ffn_norm.weight: is missing"));
}

}  // namespace
}  // namespace engine
