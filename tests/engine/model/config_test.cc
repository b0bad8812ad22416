// Files that Config and Weights refuse, each with a message that names the key or tensor.
#include "engine/model/config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/model/weights.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

using ConfigValue = std::variant<uint32_t, float, std::string, std::vector<uint32_t>>;

// A llama of one layer, in which tests change single keys and tensors.
struct SmallModel {
  std::map<std::string, ConfigValue> keys = {
      {"general.architecture", "llama"},     {"llama.context_length", 64u},
      {"llama.embedding_length", 32u},       {"llama.block_count", 1u},
      {"llama.feed_forward_length", 64u},    {"llama.attention.head_count", 4u},
      {"llama.attention.head_count_kv", 2u}, {"llama.attention.layer_norm_rms_epsilon", 1e-5f},
  };
  std::map<std::string, std::vector<uint64_t>> tensors = {
      {"token_embd.weight", {32, 10}},        {"output_norm.weight", {32}},
      {"blk.0.attn_norm.weight", {32}},       {"blk.0.attn_q.weight", {32, 32}},
      {"blk.0.attn_k.weight", {32, 16}},      {"blk.0.attn_v.weight", {32, 16}},
      {"blk.0.attn_output.weight", {32, 32}}, {"blk.0.ffn_norm.weight", {32}},
      {"blk.0.ffn_gate.weight", {32, 64}},    {"blk.0.ffn_up.weight", {32, 64}},
      {"blk.0.ffn_down.weight", {64, 32}},
  };
  std::map<std::string, gguf::DType> types;  // by tensor; a tensor without a type here is F32

  // Writes, opens and reads the model. Returns the message of an exception.
  std::string Error() const {
    return test::ErrorOf([&] { Read([](const Config&, const Weights&) {}); });
  }

  void Read(const std::function<void(const Config&, const Weights&)>& check) const {
    const test::TempDir dir;
    gguf::Writer writer;
    for (const auto& [key, setting] : keys) {
      const auto add = [&writer, &key = key](const auto& value) {
        if constexpr (requires { writer.Add(key, value); }) {
          writer.Add(key, value);
        } else {
          writer.AddArray(key, std::span(value));
        }
      };
      std::visit(add, setting);
    }
    const std::vector<std::byte> zeros(64 * 64 * sizeof(float));
    for (const auto& [name, dims] : tensors) {
      const auto type = types.find(name);
      const gguf::DType dtype = type == types.end() ? gguf::DType::kF32 : type->second;
      uint64_t n = 1;
      for (const uint64_t dim : dims) n *= dim;
      writer.AddTensor(name, dtype, dims, std::span(zeros).first(gguf::RowBytes(dtype, n)));
    }
    const std::string path = dir.Path("model.gguf");
    writer.WriteFile(path);
    const gguf::File file = gguf::File::Open(path);
    const Config config = Config::Read(file);
    check(config, Weights::Bind(file, config, false));
  }
};

TEST(Config, ReadsWhatIsThere) {
  SmallModel model;
  model.keys["llama.rope.scaling.type"] = "linear";
  model.keys["llama.rope.scaling.factor"] = 2.0f;
  model.Read([](const Config& c, const Weights& w) {
    EXPECT_EQ(c.architecture, "llama");
    EXPECT_EQ(c.vocab_size, 10u);
    EXPECT_EQ(c.layers[0].key_length, 8u);  // 32 / 4
    EXPECT_EQ(c.layers[0].value_length, 8u);
    EXPECT_EQ(c.ropes[0].n_dims, 8u);
    EXPECT_EQ(c.ropes[0].base, 10000.0);
    EXPECT_EQ(c.ropes[0].scaling, RopeScaling::kLinear);
    EXPECT_EQ(c.ropes[0].factor, 2.0);
    EXPECT_EQ(w.output.data, w.token_embd.data);  // tied
    EXPECT_EQ(w.rope_freqs, nullptr);
    EXPECT_EQ(w.layers[0].attn_q.bias, nullptr);
  });
}

TEST(Config, HeadsAreThoseOfQueriesWhereKvHeadsAreAbsent) {
  SmallModel model;
  model.keys.erase("llama.attention.head_count_kv");
  model.tensors["blk.0.attn_k.weight"] = {32, 32};
  model.tensors["blk.0.attn_v.weight"] = {32, 32};
  model.Read([](const Config& c, const Weights&) { EXPECT_EQ(c.layers[0].n_kv_heads, 4u); });
}

TEST(Config, AFactorAloneMeansLinear) {
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    SCOPED_TRACE(key);
    SmallModel model;
    model.keys[key] = 4.0f;
    model.Read([](const Config& c, const Weights&) {
      EXPECT_EQ(c.ropes[0].scaling, RopeScaling::kLinear);
      EXPECT_EQ(c.ropes[0].factor, 4.0);
    });
    model.keys["llama.rope.scaling.type"] = "yarn";
    model.Read([](const Config& c, const Weights&) {
      EXPECT_EQ(c.ropes[0].scaling, RopeScaling::kYarn);
      EXPECT_EQ(c.ropes[0].factor, 4.0);
    });
    model.keys["llama.rope.scaling.type"] = "none";
    model.Read([](const Config& c, const Weights&) { EXPECT_EQ(c.ropes[0].factor, 1.0); });
  }
  SmallModel both;
  both.keys["llama.rope.scaling.factor"] = 4.0f;
  both.keys["llama.rope.scale_linear"] = 2.0f;
  both.Read([](const Config& c, const Weights&) { EXPECT_EQ(c.ropes[0].factor, 4.0); });
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct BadKey {
  const char* key;
  ConfigValue value;
  const char* message;  // part of the message
};

class ConfigRefuses : public testing::TestWithParam<BadKey> {};

TEST_P(ConfigRefuses, WithTheKeyInTheMessage) {
  SmallModel model;
  ASSERT_EQ(model.Error(), "");
  model.keys[GetParam().key] = GetParam().value;
  const std::string message = model.Error();
  EXPECT_TRUE(test::Has(message, GetParam().message));
  EXPECT_TRUE(test::Has(message, GetParam().key));
  EXPECT_FALSE(test::Has(message, "\n"));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigRefuses,
    testing::Values(
        BadKey{"general.architecture", "rwkv6", "not supported"},
        BadKey{"llama.block_count", 0x80000000u, "from 0 to 4096, found 2147483648"},
        BadKey{"llama.block_count", 0u, "must not be 0"},
        BadKey{"llama.context_length", 0u, "must not be 0"},
        BadKey{"llama.embedding_length", 0u, "must not be 0"},
        BadKey{"llama.embedding_length", 0xFFFFFFFFu, "from 0 to 16777216, found 4294967295"},
        BadKey{"llama.feed_forward_length", 0u, "must not be 0"},
        BadKey{"llama.attention.head_count", 0u, "must not be 0"},
        BadKey{"llama.attention.head_count", 6u, "divisor"},
        BadKey{"llama.attention.head_count_kv", 3u, "divisor"},
        BadKey{"llama.attention.head_count_kv", 0u, "must not be 0"},
        BadKey{"llama.attention.key_length", 7u, "even"},
        BadKey{"llama.attention.layer_norm_rms_epsilon", -1e-5f, "positive"},
        BadKey{"llama.attention.layer_norm_rms_epsilon", kNan, "positive"},
        BadKey{"llama.rope.dimension_count", 10u, "up to the head dimension"},
        BadKey{"llama.rope.dimension_count", 3u, "even"},
        BadKey{"llama.rope.freq_base", 0.0f, "positive"},
        BadKey{"llama.rope.freq_base", kNan, "positive"},
        BadKey{"llama.rope.freq_base", kInfinity, "positive"},
        BadKey{"llama.rope.dimension_count", 0u, "must not be 0"},
        BadKey{"llama.attention.layer_norm_rms_epsilon", kInfinity, "positive"},
        BadKey{"llama.attention.layer_norm_rms_epsilon", 0.0f, "positive"},
        BadKey{"llama.attention.head_count", 0x80000000u, "from 0 to 16384"},
        BadKey{"llama.attention.key_length", 8192u, "from 0 to 4096"},
        BadKey{"llama.attention.head_count", 1.5f, "expected an integer"},
        BadKey{"general.architecture", 7u, "expected a string, found u32"},
        BadKey{"general.architecture", "\x1b[2J\n", "\"\\x1b[2J\\n\""},
        BadKey{"llama.rope.scaling.type", "\x1b[2J", "found \"\\x1b[2J\""},
        BadKey{"llama.rope.scaling.type", "ntk", "none, linear, yarn or longrope"},
        BadKey{"llama.rope.scaling.type", "dynamic", "the trained length run with type none"},
        BadKey{"llama.classifier.output_labels", 2u,
               "this is a reranker, or a classifier, whose scores need pooling_type 4"},
        BadKey{"llama.pooling_type", 5u, "from 0 to 4, found 5"},
        BadKey{"llama.rope.scale_linear", -1.0f, "positive"},
        BadKey{"llama.expert_count", 0xFFFFFFFFu, "from 0 to 65536"},
        BadKey{"llama.expert_used_count", 2u, "at most the expert_count of 0, found 2"}));

// Keys that change the arithmetic in other architectures, or in future ones.
TEST(Config, NoKeyIsIgnored) {
  const std::map<std::string, ConfigValue> keys = {
      {"logit_scale", 2.0f},           {"attention.causal", 0u},
      {"use_parallel_residual", 1u},   {"attention.max_alibi_bias", 8.0f},
      {"rope.scaling.alpha", 1000.0f}, {"nextn_predict_layers", 1u}};
  for (const auto& [key, value] : keys) {
    SmallModel model;
    model.keys["llama." + key] = value;
    EXPECT_TRUE(test::Has(model.Error(), "key \"llama." + key + "\": expected "));
  }
  SmallModel unknown;
  unknown.keys["llama.attention.new_idea"] = 1u;
  EXPECT_TRUE(test::Has(unknown.Error(), "key \"llama.attention.new_idea\": may change what"));
}

// In every family.
TEST(Config, ScalesAreFollowed) {
  SmallModel model;
  model.keys["llama.attention.scale"] = 0.5f;
  model.keys["llama.attn_logit_softcapping"] = 50.0f;
  model.keys["llama.final_logit_softcapping"] = 30.0f;
  model.keys["llama.residual_scale"] = 0.25f;
  model.keys["llama.embedding_scale"] = 2.0f;
  model.keys["llama.attention.clamp_kqv"] = 8.0f;
  model.keys["llama.attention.temperature_scale"] = 0.125f;
  model.Read([](const Config& c, const Weights&) {
    EXPECT_EQ(c.layers[0].score_scale, 0.5f);
    EXPECT_EQ(c.attention_softcap, 50.0f);
    EXPECT_EQ(c.logit_softcap, 30.0f);
    EXPECT_EQ(c.residual_scale, 0.25f);
    EXPECT_EQ(c.embedding_scale, 2.0f);
    EXPECT_EQ(c.clamp_qkv, 8.0f);
    EXPECT_EQ(c.attention_temperature_scale, 0.125f);
  });
}

TEST(Config, KeysThatSayWhatIsUsual) {
  SmallModel model;
  model.keys["llama.attention.causal"] = 1u;
  model.keys["llama.logit_scale"] = 1.0f;
  model.keys["llama.residual_scale"] = 0.0f;
  model.keys["llama.attention.sliding_window"] = 0u;
  model.keys["llama.vocab_size"] = 10u;
  model.keys["llama.rope.scaling.yarn_beta_fast"] = 5.0f;  // read by mistral3 alone
  model.keys["qwen2.attention.scale"] = 0.5f;              // another architecture's
  EXPECT_EQ(model.Error(), "");
}

TEST(Config, AWindowOfAllLayers) {
  SmallModel model;
  model.keys["llama.attention.sliding_window"] = 4096u;
  model.Read([](const Config& c, const Weights&) { EXPECT_EQ(c.layers[0].window, 4096u); });
}

// Encoders of images and sound are ignored, and Config says that they exist.
TEST(Config, PassesOverEncoders) {
  SmallModel model;
  model.Read([](const Config& c, const Weights& w) {
    EXPECT_FALSE(c.has_encoders);
    EXPECT_EQ(w.encoder_bytes, 0u);
  });
  for (const char* key : {"vision.block_count", "audio.embedding_length", "mm.tokens_per_image",
                          "projector.stack_factor", "deepstack_mapping", "n_deepstack_layers"}) {
    SmallModel with = model;
    with.keys[std::string("llama.") + key] = 7u;
    with.Read([](const Config& c, const Weights&) { EXPECT_TRUE(c.has_encoders); });
  }
  model.tensors["v.blk.0.attn_q.weight"] = model.tensors["a.conv.weight"] = {32};
  model.tensors["mm.0.weight"] = {32, 2};
  model.Read([](const Config&, const Weights& w) {
    EXPECT_EQ(w.encoder_bytes, 128u * sizeof(float));
    EXPECT_EQ(w.skipped_bytes, w.encoder_bytes);
  });
}

TEST(Config, OneNumberForEachLayer) {
  SmallModel model;
  model.keys["llama.feed_forward_length"] = std::vector<uint32_t>{64};
  model.keys["llama.attention.head_count_kv"] = std::vector<uint32_t>{2};
  EXPECT_EQ(model.Error(), "");
  model.keys["llama.feed_forward_length"] = std::vector<uint32_t>{64, 64};
  EXPECT_TRUE(test::Has(model.Error(), "for each of 1 layers, found 2"));
  model.keys["llama.feed_forward_length"] = std::vector<uint32_t>{0};
  EXPECT_TRUE(test::Has(model.Error(), "from 1 to 16777216, found 0"));
}

TEST(Config, ArchitecturesWithoutExperts) {
  SmallModel model;
  std::map<std::string, ConfigValue> keys;
  for (const auto& [key, value] : model.keys) {
    keys[key.starts_with("llama.") ? "qwen2" + key.substr(5) : key] = value;
  }
  model.keys = keys;
  model.keys["general.architecture"] = "qwen2";
  ASSERT_EQ(model.Error(), "");
  model.keys["qwen2.expert_count"] = 4u;
  EXPECT_TRUE(test::Has(model.Error(), "have no experts, found 4"));
}

TEST(Config, ExpertsOfWhichThereAreNone) {
  SmallModel model;
  model.keys["llama.expert_count"] = 0u;
  model.keys["llama.expert_used_count"] = 0u;
  EXPECT_EQ(model.Error(), "");
  model.keys["llama.expert_count"] = 8u;
  EXPECT_TRUE(test::Has(model.Error(), "must not be 0 where there are experts"));
  model.keys["llama.expert_used_count"] = 9u;
  EXPECT_TRUE(test::Has(model.Error(),
                        "expert_used_count\": expected at most the expert_count of 8, found 9"));
}

TEST(Weights, MissingTensor) {
  SmallModel model;
  model.tensors.erase("blk.0.ffn_up.weight");
  const std::string message = model.Error();
  EXPECT_TRUE(test::Has(message, "blk.0.ffn_up.weight"));
  EXPECT_TRUE(test::Has(message, "missing"));
}

TEST(Weights, TensorsThatNobodyUses) {
  for (const std::string name :
       {"blk.0.attn_sinks.weight", "blk.1.attn_norm.weight", "token_embd.bias",
        "blk.0.attn_q_norm.weight", "token_embd_norm.weight"}) {
    SmallModel model;
    model.tensors[name] = {32};
    EXPECT_TRUE(test::Has(model.Error(), "tensor \"" + name + "\" has no place"));
  }
  SmallModel all;  // with every optional tensor
  all.tensors["rope_freqs.weight"] = {4};
  all.tensors["output.weight"] = {32, 10};
  all.tensors["blk.0.attn_q.bias"] = all.tensors["blk.0.attn_output.bias"] = {32};
  all.tensors["blk.0.attn_k.bias"] = all.tensors["blk.0.attn_v.bias"] = {16};
  EXPECT_EQ(all.Error(), "");
}

TEST(Weights, WrongShape) {
  SmallModel model;
  model.tensors["blk.0.attn_k.weight"] = {32, 32};
  EXPECT_TRUE(
      test::Has(model.Error(), "blk.0.attn_k.weight: expected shape [32, 16], found [32, 32]"));
}

TEST(Weights, WrongTypes) {
  SmallModel norm;
  norm.types["blk.0.attn_norm.weight"] = gguf::DType::kF16;
  EXPECT_TRUE(test::Has(norm.Error(), "expected type F32, found F16"));
  SmallModel matrix;
  matrix.types["blk.0.attn_q.weight"] = gguf::DType::kI32;
  EXPECT_TRUE(test::Has(matrix.Error(), "I32 cannot hold weights"));
}

TEST(Weights, VocabularyOnlyFile) {
  SmallModel model;
  model.tensors.clear();
  EXPECT_TRUE(test::Has(model.Error(), "no weights"));
}

}  // namespace
}  // namespace engine
