// The logits of small models against those of an independent engine (tests/data/tiny, and where the
// shared folder exists a trained model too).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/data.h"

namespace engine {
namespace {

using tokenizer::TokenId;

const std::vector<TokenId> kTinyIds = {1, 300, 12, 45, 99, 319, 7, 263, 264, 265, 300, 301};

// Energy of the difference over energy of the expected.
double Nmse(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, energy = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double diff = static_cast<double>(actual[i]) - expected[i];
    error += diff * diff;
    energy += static_cast<double>(expected[i]) * expected[i];
  }
  return error / energy;
}

std::vector<float> AllLogits(const Model& model, const std::vector<TokenId>& ids,
                             const SessionOptions& options) {
  Session session(model, options);
  std::vector<float> logits;
  session.PrefillAllLogits(ids, [&](size_t, size_t, std::span<const float> rows) {
    logits.insert(logits.end(), rows.begin(), rows.end());
  });
  return logits;
}

SessionOptions Options(kernels::KvType kv, int threads, size_t batch) {
  SessionOptions options;
  options.kv_type = kv;
  options.n_threads = threads;
  options.batch = batch;
  return options;
}

// One model for each way in which a llama-family model can differ. Float weights and a float cache
// leave only the order of additions: its rounding is around 1e-12 here, and a wrong formula is
// above 1e-6. A cache in f16 rounds keys and values to 2^-11, squared about 2e-7.
class TinyModel : public testing::TestWithParam<const char*> {};

TEST_P(TinyModel, EqualsTheReference) {
  const std::string path = test::DataPath(std::string("tiny/") + GetParam()).string();
  const Model model = Model::Load(path + ".gguf");
  const std::vector<float> expected = test::ReadFloats(path + ".f32");
  for (const size_t batch : {512u, 5u, 1u}) {
    EXPECT_LT(Nmse(AllLogits(model, kTinyIds, Options(kernels::KvType::kF32, 1, batch)), expected),
              1e-9)
        << "batch " << batch;
    EXPECT_LT(Nmse(AllLogits(model, kTinyIds, Options(kernels::KvType::kF16, 1, batch)), expected),
              1e-6)
        << "batch " << batch;
  }
}

TEST_P(TinyModel, SameBitsForAnyNumberOfThreads) {
  const Model model = Model::Load(test::DataPath(std::string("tiny/") + GetParam() + ".gguf"));
  const auto logits = [&](int threads) {
    return AllLogits(model, kTinyIds, Options(kernels::KvType::kF16, threads, 512));
  };
  const std::vector<float> one = logits(1);
  EXPECT_EQ(one, logits(2));
  EXPECT_EQ(one, logits(3));
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel,
                         testing::Values("llama", "llama-tied-ropefreqs", "llama-linear",
                                         "llama-yarn", "qwen2", "qwen3"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TrainedModel, EqualsTheReference) {
  const std::string path = test::SharedPath("models/stories260K.gguf");
  if (path.empty()) GTEST_SKIP() << "the tiny models above are checked everywhere";
  const Model model = Model::Load(path);
  const std::vector<float> expected =
      test::ReadFloats(test::SharedPath("golden/logits/stories260K.f32"));
  const std::vector<TokenId> ids = {1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315,
                                    421, 395, 317, 426, 338, 401, 396, 267, 337, 410, 408, 419,
                                    292, 411, 322, 265, 262, 379, 419, 415, 271, 411, 426};
  EXPECT_LT(Nmse(AllLogits(model, ids, Options(kernels::KvType::kF32, 2, 512)), expected), 1e-9);
  EXPECT_LT(Nmse(AllLogits(model, ids, Options(kernels::KvType::kF16, 2, 512)), expected), 1e-6);
}

}  // namespace
}  // namespace engine
