// The cache of blocks: heads are multiplied by a Hadamard matrix before they are rounded, since
// keys of trained models have a few large channels, which would cost their neighbours their
// precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/pass/trace.h"
#include "engine/plain.h"
#include "gguf/writer.h"
#include "kernels/attention/reference.h"
#include "kernels/ops/hadamard.h"
#include "tests/support/data.h"
#include "tests/support/logits.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

std::vector<tokenizer::TokenId> Ids(const Model& model, int n) {
  std::vector<tokenizer::TokenId> ids;
  for (int i = 0; i < n; ++i) {
    ids.push_back((i * i * 7 + i) % static_cast<int>(model.config.vocab_size));
  }
  return ids;
}

// The small model with a bias of this size in one channel of each 16 of its keys, which is the same
// for all keys but for RoPE, as in Qwen 2.5.
void WriteWithLargeKeys(const std::string& path, float size) {
  const gguf::File file = gguf::File::Open(test::DataPath("tiny/qwen2.gguf"));
  gguf::Writer writer;
  for (const auto& entry : file.metadata().entries()) writer.Add(entry);
  std::vector<std::vector<float>> biases;
  biases.reserve(file.tensors().size());
  for (const gguf::TensorView& tensor : file.tensors()) {
    if (!tensor.name.ends_with("attn_k.bias")) {
      writer.AddTensor(tensor);
      continue;
    }
    std::vector<float>& bias = biases.emplace_back(tensor.elements());
    std::memcpy(bias.data(), tensor.data, tensor.bytes);
    for (size_t i = 5; i < bias.size(); i += 16) bias[i] += size;
    writer.AddTensor(tensor.name, tensor.dtype, {bias.size()}, std::as_bytes(std::span(bias)));
  }
  ASSERT_FALSE(biases.empty());
  writer.WriteFile(path);
}

// The cached keys of the first layer, [positions][heads][length].
class FirstKeys : public PassObserver {
 public:
  void Attended(const TracedAttention& attention) override {
    if (!keys.empty()) return;
    const kernels::KvLayer& cache = attention.cache;
    keys.resize((attention.position + 1) * cache.n_kv_heads * cache.key_length);
    for (size_t row = 0; row < keys.size() / cache.key_length; ++row) {
      kernels::ReadCachedKey(cache, row % cache.n_kv_heads, row / cache.n_kv_heads,
                             &keys[row * cache.key_length]);
    }
  }
  void Routed(std::span<const uint32_t> /*chosen*/, std::span<const float> /*shares*/) override {}
  void EndLayer(std::span<const float> /*x*/) override {}

  std::vector<float> keys;
};

// The definition: each number of the plain pass's key, times the matrix, within a step of its
// block.
TEST(RotatedCache, HoldsKeysTimesTheHadamardMatrix) {
  const test::TempDir dir;
  WriteWithLargeKeys(dir.Path("m.gguf"), 30);
  const Model model = Model::Load(dir.Path("m.gguf"));
  const std::vector<tokenizer::TokenId> ids = Ids(model, 40);
  std::vector<float> plain;
  PlainLlama reference(model, [&](std::string_view name, size_t layer, const Rows& out) {
    if (name == "attn_k_rope" && layer == 0) plain.assign(out.values.begin(), out.values.end());
  });
  reference.Forward(ids);
  const size_t length = model.config.layers[0].key_length, rows = length & -length;
  for (const auto& [type, steps] :
       {std::pair(kernels::KvType::kQ8_0, 127.0f), std::pair(kernels::KvType::kQ4_0, 6.5f)}) {
    Session session(model, {.context = 64, .n_threads = 1, .kv_type = type});
    FirstKeys seen;
    Trace trace;
    trace.observer = &seen;
    session.TraceTo(&trace);
    session.Prefill(ids);
    ASSERT_EQ(seen.keys.size(), plain.size());
    for (size_t i = 0; i < plain.size(); i += rows) {
      std::vector<float> rotated;
      for (size_t k = 0; k < rows; ++k) {
        rotated.push_back(static_cast<float>(kernels::HadamardReference(&plain[i], rows, k)));
      }
      for (size_t k = 0; k < rows; ++k) {
        float largest =
            0;  // of the block of 32; those of 4 bits may cut it off by 1.5 of 9.5 steps
        for (size_t j = k / 32 * 32; j < std::min(rows, k / 32 * 32 + 32); ++j) {
          largest = std::max(largest, std::abs(rotated[j]));
        }
        const float most = steps > 100 ? 0.6f / steps : 0.2f;
        EXPECT_NEAR(seen.keys[i + k], rotated[k], most * largest) << i + k;
      }
    }
  }
}

// Against a cache of floats. Without the matrix the errors are @Q8@ and @Q4@.
TEST(RotatedCache, LargeChannelsDoNotSpoilOthers) {
  const test::TempDir dir;
  WriteWithLargeKeys(dir.Path("m.gguf"), 30);
  const Model model = Model::Load(dir.Path("m.gguf"));
  const auto logits = [&](kernels::KvType type) {
    return test::AllLogits(model, Ids(model, 48), {.context = 64, .n_threads = 1, .kv_type = type});
  };
  const std::vector<float> exact = logits(kernels::KvType::kF32);
  EXPECT_LT(test::Nmse(logits(kernels::KvType::kQ8_0), exact), 1e-3);
  EXPECT_LT(test::Nmse(logits(kernels::KvType::kQ4_0), exact), 1e-1);
}

// Latent vectors, too: absorbed, and (of a long batch) with keys and values of each head.
TEST(RotatedCache, OfLatentVectors) {
  for (const char* const name : {"hybrids/deepseek2.gguf", "hybrids/deepseek2-lite.gguf"}) {
    const Model model = Model::Load(test::DataPath(name));
    const auto nmse = [&](kernels::KvType type, size_t batch) {
      const auto logits = [&](kernels::KvType kv) {
        return test::AllLogits(model, Ids(model, 300),
                               {.context = 512, .batch = batch, .n_threads = 1, .kv_type = kv});
      };
      return test::Nmse(logits(type), logits(kernels::KvType::kF32));
    };
    for (const size_t batch : {8, 300}) {
      EXPECT_LT(nmse(kernels::KvType::kQ8_0, batch), 1e-3) << name << ", " << batch;
      EXPECT_LT(nmse(kernels::KvType::kQ4_0, batch), 1e-1) << name << ", " << batch;
    }
    EXPECT_EQ(test::ErrorOf<Error>([&] {
                Session(model, {.kv_type = {kernels::KvType::kQ8_0, kernels::KvType::kQ4_0}});
              }).substr(0, 24),
              "--kv: expected one type,");
  }
}

}  // namespace
}  // namespace engine
