// Compares the plain pass (engine/plain.cc) with the engine, and with the reference logits.
#include "engine/plain.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"

namespace engine {
namespace {

using test::AllLogits;
using test::Nmse;
using tokenizer::TokenId;

const std::vector<TokenId> kPlainIds = {1, 300, 12, 45, 99, 319, 7, 263, 264, 265, 300, 301};

SessionOptions WithCache(kernels::KvType kv) {
  return {.batch = kernels::kMaxInvariantTokens, .n_threads = 1, .kv_type = kv};
}

std::vector<float> PlainLogits(const Model& model, const std::vector<TokenId>& ids) {
  const Rows logits = PlainModel(model).Forward(ids);
  return {logits.values.begin(), logits.values.end()};
}

// With float weights and a float cache only floats are rounded, about 1e-12 here; a wrong formula
// gives more than 1e-6.
TEST(Plain, EqualsTheEngineWithFloatWeights) {
  for (const char* const name : {"llama", "llama-tied-ropefreqs", "qwen2", "qwen3"}) {
    SCOPED_TRACE(name);
    const std::string path = test::DataPath(std::string("tiny/") + name).string();
    const Model model = Model::Load(path + ".gguf");
    const std::vector<float> plain = PlainLogits(model, kPlainIds);
    EXPECT_LT(Nmse(AllLogits(model, kPlainIds, WithCache(kernels::KvType::kF32)), plain), 1e-9);
    EXPECT_LT(Nmse(test::ReadFloats(path + ".f32"), plain), 1e-9);
  }
}

// The cache changes no bit: all sums have the same order.
TEST(Plain, ReadsTokenByTokenAsAllAtOnce) {
  const Model model = Model::Load(test::DataPath("tiny/llama.gguf"));
  const Rows all = PlainModel(model).Forward(kPlainIds);
  PlainModel plain(model);
  std::vector<double> one_by_one;
  for (const TokenId id : kPlainIds) {
    const Rows logits = plain.Forward({&id, 1});
    one_by_one.insert(one_by_one.end(), logits.values.begin(), logits.values.end());
  }
  EXPECT_EQ(one_by_one, all.values);
}

// The default model's weights are Q8_0, for which the engine rounds activations to int8: an error
// of 2.4e-5 of a product's power (kernels/README.md). Its layers add up to about 3.5e-4 of the
// logits' energy (kernels/NOTEBOOK.md); three times that is allowed. Wrongly read weights would
// differ by more than 1e-2.
TEST(Plain, EqualsTheEngineWithPackedWeightsButForInt8) {
  const Model model = Model::Load(test::kDefault);
  const std::string story = test::ReadText(test::DataPath("default.greedy.txt"));
  std::vector<TokenId> ids = model.tokenizer->Encode(story);
  ids.resize(40);
  const double error =
      Nmse(AllLogits(model, ids, WithCache(kernels::KvType::kF32)), PlainLogits(model, ids));
  EXPECT_LT(error, 1e-3);
  EXPECT_GT(error, 1e-8);  // the engine rounds

  // plain.cc and the engine tell the same story. "Once upon a time, there lived a boy" is the
  // prompt.
  const std::vector<TokenId> prompt(ids.begin(), ids.begin() + 10);
  EXPECT_EQ(PlainModel(model).Continue(prompt, ids.size() - prompt.size()), ids);
}

TEST(Plain, ShowsEveryOperation) {
  const Model model = Model::Load(test::DataPath("tiny/llama.gguf"));
  const LayerPlan& plan = model.config.layers[1];
  std::map<std::string, Rows, std::less<>> seen;  // of layer 1
  size_t n_seen = 0, n_outside = 0;
  PlainModel plain(model, [&](std::string_view name, size_t layer, const Rows& out) {
    ++n_seen;
    if (layer == PlainModel::kNoLayer) ++n_outside;
    if (layer == 1) seen.emplace(name, out);
  });
  const Rows logits = plain.Forward(kPlainIds);
  EXPECT_EQ(n_outside, 3u);  // token_embd, output_norm, output
  EXPECT_EQ(n_seen, n_outside + seen.size() * model.config.n_layers());
  const auto expect_shape = [&](const char* name, size_t rows, size_t cols) {
    ASSERT_TRUE(seen.contains(name)) << name;
    EXPECT_EQ(seen.at(name).rows, rows) << name;
    EXPECT_EQ(seen.at(name).cols, cols) << name;
    EXPECT_EQ(seen.at(name).values.size(), rows * cols) << name;
  };
  const size_t n = kPlainIds.size(), width = model.config.embedding_length;
  expect_shape("attn_q_rope", n, plan.n_heads * plan.key_length);
  expect_shape("attn_k_rope", n, plan.n_kv_heads * plan.key_length);
  expect_shape("attn_mean", n, plan.n_heads * plan.key_length);
  expect_shape("attn_output", n, width);
  expect_shape("ffn_swiglu", n, plan.ffn_length);
  expect_shape("ffn_residual", n, width);
  expect_shape("attn_softmax", n * plan.n_heads, n);
  const Rows& probabilities = seen.at("attn_softmax");
  for (size_t row = 0; row < probabilities.rows; ++row) {
    double sum = 0;
    for (size_t p = 0; p < n; ++p) {
      sum += probabilities[row][p];
      EXPECT_EQ(probabilities[row][p] > 0, p <= row / plan.n_heads)
          << "row " << row << ", position " << p;
    }
    EXPECT_NEAR(sum, 1, 1e-14);
  }
}

TEST(Plain, RefusesWhatItDoesNotKnow) {
  using Changes = std::function<void(gguf::Metadata&)>;
  const auto load = [](const std::string& name, const Changes& change) {
    gguf::File file = gguf::File::Open(test::DataPath(name));
    change(file.metadata());
    return Model::From(std::move(file));
  };
  const auto expect_refusal = [](const Model& model, const std::string& has) {
    EXPECT_TRUE(
        test::Has(test::ErrorOf<Error>([&] { PlainModel plain(model); }), "this model " + has));
  };
  const Changes none = [](auto&) {};
  expect_refusal(load("families/gemma3.gguf", none), "is of the family gemma3");
  expect_refusal(load("tiny/llama-yarn.gguf", none), "stretches its context");
  expect_refusal(load("tiny/llama-linear.gguf", none), "stretches its context");
  expect_refusal(load("families/mixtral.gguf", none), "has experts");
  const Changes window = [](auto& meta) { meta.SetInt("llama.attention.sliding_window", 4); };
  expect_refusal(load("tiny/llama.gguf", window), "has a window");
  const int32_t id = 5;
  const Changes suppressed = [&](auto& meta) {
    meta.Set("tokenizer.ggml.suppress_tokens", {.type = gguf::ValueType::kArray,
                                                .element_type = gguf::ValueType::kI32,
                                                .data = std::as_bytes(std::span(&id, 1)).data(),
                                                .bytes = sizeof(id)});
  };
  expect_refusal(load("tiny/llama.gguf", suppressed), "has tokens that must never be chosen");
  // Numbers that any family may have.
  for (const char* key :
       {"attention.scale", "embedding_scale", "residual_scale", "attention.clamp_kqv",
        "attn_logit_softcapping", "final_logit_softcapping", "attention.temperature_scale"}) {
    SCOPED_TRACE(key);
    const float number = 0.5f;
    const Changes changed = [&](auto& meta) {
      meta.Set("llama." + std::string(key), {.type = gguf::ValueType::kF32,
                                             .data = std::as_bytes(std::span(&number, 1)).data(),
                                             .bytes = sizeof(number)});
    };
    expect_refusal(load("tiny/llama.gguf", changed), "scales or limits queries");
  }
  Model scaled = load("tiny/llama.gguf", none);
  const float scale = 2;
  scaled.weights.layers[1].layer_output_scale = &scale;
  expect_refusal(scaled, "scales the outputs of layers");
}

}  // namespace
}  // namespace engine
