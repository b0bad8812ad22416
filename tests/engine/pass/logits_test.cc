// The logits of small models against those of an independent engine (tests/data/tiny, and where the
// shared folder exists a trained model too).
#include "tests/support/logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"
#include "tests/support/data.h"

namespace engine {
namespace {

using test::AllLogits;
using test::Nmse;
using tokenizer::TokenId;

const std::vector<TokenId> kTinyIds = {1, 300, 12, 45, 99, 319, 7, 263, 264, 265, 300, 301};

SessionOptions LogitsOptions(kernels::KvTypes kv, int threads, size_t batch) {
  return {.batch = batch, .n_threads = threads, .kv_type = kv};
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
    EXPECT_LT(
        Nmse(AllLogits(model, kTinyIds, LogitsOptions(kernels::KvType::kF32, 1, batch)), expected),
        1e-9)
        << "batch " << batch;
    EXPECT_LT(
        Nmse(AllLogits(model, kTinyIds, LogitsOptions(kernels::KvType::kF16, 1, batch)), expected),
        1e-6)
        << "batch " << batch;
  }
}

TEST_P(TinyModel, SameBitsForAnyNumberOfThreads) {
  const Model model = Model::Load(test::DataPath(std::string("tiny/") + GetParam() + ".gguf"));
  const auto logits = [&](int threads) {
    return AllLogits(model, kTinyIds, LogitsOptions(kernels::KvType::kF16, threads, 512));
  };
  const std::vector<float> one = logits(1);
  EXPECT_EQ(one, logits(2));
  EXPECT_EQ(one, logits(3));
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel,
                         testing::Values("llama", "llama-tied-ropefreqs", "llama-linear",
                                         "llama-yarn", "qwen2", "qwen3"),
                         [](const auto& tested) { return test::TestName(tested.param); });

// 80 tokens of a story that the model tells. (Ids at random leave nearly everything open to a model
// that has learned to copy, and the differences below are then six to ten times as large.)
std::vector<TokenId> StoryIds(const Model& model) {
  auto ids = model.tokenizer->Encode(test::ReadText(test::DataPath("default.greedy.txt")));
  ids.resize(80);
  return ids;
}

// A cache of int8 rounds keys and values to 1/254 of the largest of 32, about 2.4e-5 of their
// energy (kernels/README.md). Each of the model's layers adds that twice, and scores, whose errors
// are those of keys times the length of queries, turn it into errors of weights: 1e-3 for this
// story. Three times that is allowed; a wrong scale or sign is above 1e-2.
TEST(DefaultModel, HardlyChangesWithACacheOfInt8) {
  const Model model = Model::Load(test::kDefault);
  const std::vector<TokenId> ids = StoryIds(model);
  const std::vector<float> expected =
      AllLogits(model, ids, LogitsOptions(kernels::KvType::kF32, 2, 512));
  const double batch =
      Nmse(AllLogits(model, ids, LogitsOptions(kernels::KvType::kQ8_0, 2, 512)), expected);
  const double single =
      Nmse(AllLogits(model, ids, LogitsOptions(kernels::KvType::kQ8_0, 2, 1)), expected);
  EXPECT_LT(batch, 3e-3);
  EXPECT_GT(batch, 1e-8);  // batches do differ
  EXPECT_LT(single, 3e-3);
}

// The model that ships is quantized, so batches and single tokens take different products; both
// round the same activations to int8 and differ by the order of float additions alone. That may
// flip the rounding of a later activation, by 1/254 of its block's maximum: 2.9e-4 with SSE4, where
// rounding itself costs 3.5e-4, and a wrong scale more than 1e-2. Of what rounding leaves in the
// input of values a batch multiplies only what is large, which makes it 5.4e-4. AMX multiplies a
// batch in BF16: the difference is then the errors of both, 3.5e-4 of single tokens' int8 and
// 1.1e-4 of BF16 (kernels/NOTEBOOK.md).
TEST(DefaultModel, ReadsTheSameInBatchesOfAnySize) {
  const Model model = Model::Load(test::kDefault);
  const std::vector<TokenId> ids = StoryIds(model);
  const std::vector<float> expected =
      AllLogits(model, ids, LogitsOptions(kernels::KvType::kF32, 2, 1));
  const size_t n_vocab = expected.size() / ids.size();
  const double allowed = 1e-3;
  for (const size_t batch : {7u, 8u, 33u, 512u}) {
    const std::vector<float> logits =
        AllLogits(model, ids, LogitsOptions(kernels::KvType::kF32, 2, batch));
    EXPECT_LT(Nmse(logits, expected), allowed) << "batch " << batch;
    for (size_t i = 0; i < logits.size(); i += n_vocab) {
      const auto best = [i, n_vocab](const std::vector<float>& rows) {
        const auto row = rows.begin() + static_cast<ptrdiff_t>(i);
        return std::max_element(row, row + static_cast<ptrdiff_t>(n_vocab)) - row;
      };
      // The best token may differ between the two only where two are nearly equal. Logits
      // have a deviation of 3.2, their errors one of 3.2 * sqrt(allowed), the difference of two
      // errors sqrt(2) times as much: four times that is allowed.
      const float gap = expected[i + static_cast<size_t>(best(expected))] -
                        expected[i + static_cast<size_t>(best(logits))];
      EXPECT_LT(gap, 4 * 3.2 * std::sqrt(2 * allowed))
          << "batch " << batch << ", token " << i / n_vocab;
    }
  }
}

// Up to 16 tokens have the bits of single tokens, with any cache type and depth.
TEST(DefaultModel, GivesATokenTheSameBitsInAFewAsAlone) {
  const Model model = Model::Load(test::kDefault);
  const std::vector<TokenId> ids = StoryIds(model);
  for (const kernels::KvTypes kv :
       {kernels::KvTypes(kernels::KvType::kF32), kernels::KvTypes(kernels::KvType::kF16),
        kernels::KvTypes(kernels::KvType::kQ8_0), kernels::KvTypes(kernels::KvType::kQ4_0),
        kernels::KvTypes(kernels::KvType::kQ8_0, kernels::KvType::kQ4_0),
        kernels::KvTypes(kernels::KvType::kF16, kernels::KvType::kQ8_0)}) {
    const std::vector<float> alone = AllLogits(model, ids, LogitsOptions(kv, 2, 1));
    for (const size_t batch : {2u, 3u, 8u, 16u}) {
      SCOPED_TRACE(batch);
      EXPECT_EQ(alone, AllLogits(model, ids, LogitsOptions(kv, 2, batch)));
    }
  }
}

TEST(TrainedModel, EqualsTheReference) {
  const std::string path = test::SharedPath("models/stories260K.gguf");
  if (path.empty()) GTEST_SKIP() << "the tiny models above are checked everywhere";
  const Model model = Model::Load(path);
  const std::vector<float> expected =
      test::ReadFloats(test::SharedPath("golden/logits/stories260K.f32"));
  const std::vector<TokenId> ids = {1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315,
                                    421, 395, 317, 426, 338, 401, 396, 267, 337, 410, 408, 419,
                                    292, 411, 322, 265, 262, 379, 419, 415, 271, 411, 426};
  EXPECT_LT(Nmse(AllLogits(model, ids, LogitsOptions(kernels::KvType::kF32, 2, 512)), expected),
            1e-9);
  EXPECT_LT(Nmse(AllLogits(model, ids, LogitsOptions(kernels::KvType::kF16, 2, 512)), expected),
            1e-6);
}

}  // namespace
}  // namespace engine
