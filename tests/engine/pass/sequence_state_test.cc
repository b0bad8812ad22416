// The amount that a sequence keeps, and the positions to which it can go back.
#include "engine/pass/sequence_state.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"
#include "tests/support/data.h"
#include "tests/support/logits.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr kernels::KvType kType = kernels::KvType::kF32;

// Two layers, the first with a window.
Config WindowConfig(size_t window) {
  Config config;
  config.layers.resize(2);
  for (LayerPlan& layer : config.layers) {
    layer.n_heads = layer.n_kv_heads = 1;
    layer.key_length = layer.value_length = 4;
  }
  config.layers[0].window = window;
  return config;
}

TEST(SequenceState, AWindowTakesTheMemoryOfTheWindow) {
  constexpr size_t kBytes = 2 * 4 * sizeof(float);  // of a position in a layer
  const Config config = WindowConfig(512);
  // The window and a batch of 64, rounded up to whole tiles.
  EXPECT_EQ(SequenceState::BytesFor(config, {100'000, 64, 0, kType}), (100'000 + 640) * kBytes);
  EXPECT_EQ(SequenceState(config, {100'000, 64, 0, kType}).layer(0).capacity, 640u);
  EXPECT_EQ(SequenceState(config, {100'000, 64, 0, kType}).layer(1).capacity, 100'000u);
  // A ring is never larger than the context.
  EXPECT_EQ(SequenceState::BytesFor(config, {600, 512, 0, kType}), (600 + 600) * kBytes);
  EXPECT_EQ(SequenceState::BytesFor(config, {500, 512, 0, kType}), (500 + 500) * kBytes);
}

TEST(SequenceState, GoesBackAsFarAsTheRingReaches) {
  SequenceState state(WindowConfig(100), {10'000, 13, 0, kType});  // rings of 128
  state.Extend(90);
  EXPECT_EQ(state.Rewind(3), 3u);  // nothing is overwritten yet
  state.Extend(1000);              // 872 to 999 are there, and 15 drafts may take the first's place
  EXPECT_EQ(state.Rewind(990), 990u);
  EXPECT_EQ(state.Rewind(986), 986u);  // its first token sees 887 to 986
  EXPECT_EQ(state.Rewind(985), 0u);
  EXPECT_EQ(state.Rewind(0), 0u);
  state.Extend(50);  // again
  EXPECT_EQ(state.Rewind(20), 20u);
  state.Abandon(1000);  // the positions that it wrote still count
  EXPECT_EQ(state.Rewind(10), 0u);
}

TEST(SequenceState, WithoutWindowsGoesBackAnywhere) {
  SequenceState state(WindowConfig(0), {10'000, 28, 0, kType});
  state.Extend(9'000);
  EXPECT_EQ(state.Rewind(17), 17u);
}

// After a rewind, the logits are, up to rounding, the same as if the tokens had never been read.
TEST(SequenceState, ATextGoesOnFromWhereItWasTakenBack) {
  const Model model = Model::Load(test::DataPath("families/gemma3.gguf"));
  SessionOptions options = {.context = 1024, .batch = 32};
  // A difference in the last bit may round a number of an f16 cache otherwise: 1e-8.
  options.kv_type = kernels::KvType::kF32;
  std::vector<TokenId> ids(700);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(3 + i * i % 50);
  Session session(model, options);
  session.Prefill(ids);
  for (const size_t position : {690u, 640u, 100u}) {
    const size_t reached = session.Rewind(position);
    EXPECT_EQ(reached, position == 100 ? 0 : position);
    session.Prefill(std::span(ids).subspan(reached));
    Session fresh(model, options);
    fresh.Prefill(std::span(ids).first(reached));
    fresh.Prefill(std::span(ids).subspan(reached));
    const auto logits = [](const Session& s) {
      return std::vector<float>(s.logits().begin(), s.logits().end());
    };
    EXPECT_LT(test::Nmse(logits(session), logits(fresh)), 1e-9) << position;
  }
}

}  // namespace
}  // namespace engine
