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

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/pass/trace.h"
#include "engine/plain.h"
#include "gguf/writer.h"
#include "kernels/attention/reference.h"
#include "kernels/ops/hadamard.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
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

// The mean of a bias over the positions at which it is added to keys: rotated as RoPE's paper has
// it, pairs of numbers half a head apart (Qwen), at 4096 positions.
std::vector<double> MeanBias(const Model& model, const float* bias, size_t n, size_t length) {
  std::vector<double> mean(n);
  const double base = model.config.ropes[0].base;
  for (size_t i = 0; i < n; ++i) {
    const size_t in_head = i % length, pair = in_head % (length / 2);
    const double f = std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(length));
    const size_t x = i - in_head + pair, y = x + length / 2;
    for (size_t p = 0; p < 4096; ++p) {
      const double angle = f * (static_cast<double>(p) + 0.5), c = std::cos(angle),
                   s = std::sin(angle);
      const double rotated = in_head < length / 2 ? bias[x] * c - bias[y] * s  //
                                                  : bias[x] * s + bias[y] * c;
      mean[i] += rotated / 4096;
    }
  }
  return mean;
}

// The definition: each number of the plain pass's key without the bias's mean, times the matrix,
// within a step of its block.
TEST(TransformedCache, HoldsKeysTimesTheHadamardMatrix) {
  const test::TempDir dir;
  WriteWithLargeKeys(dir.Path("m.gguf"), 30);
  const Model model = Model::Load(dir.Path("m.gguf"));
  const std::vector<tokenizer::TokenId> ids = Ids(model, 40);
  std::vector<float> plain;
  PlainModel reference(model, [&](std::string_view name, size_t layer, const Rows& out) {
    if (name == "attn_k_rope" && layer == 0) plain.assign(out.values.begin(), out.values.end());
  });
  reference.Forward(ids);
  const size_t length = model.config.layers[0].key_length;
  const size_t width = model.config.layers[0].n_kv_heads * length, rows = length & -length;
  const std::vector<double> bias =
      MeanBias(model, model.weights.layers[0].attn_k.bias, width, length);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] -= static_cast<float>(bias[i % width]);
  for (const kernels::KvType type : {kernels::KvType::kQ8_0, kernels::KvType::kQ4_0}) {
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
        float largest = 0;  // of the block; with 4 bits it may be cut off by 1.5 of 9.5 steps
        for (size_t j = k / 32 * 32; j < std::min(rows, k / 32 * 32 + 32); ++j) {
          largest = std::max(largest, std::abs(rotated[j]));
        }
        const float max_error = type == kernels::KvType::kQ8_0 ? 0.6f / 127 : 0.2f;
        EXPECT_NEAR(seen.keys[i + k], rotated[k], max_error * largest) << i + k;
      }
    }
  }
}

// Compares with a float cache. Without the matrix the errors are 9e-3 and 0.93.
TEST(TransformedCache, LargeChannelsDoNotSpoilOthers) {
  const test::TempDir dir;
  WriteWithLargeKeys(dir.Path("m.gguf"), 30);
  const Model model = Model::Load(dir.Path("m.gguf"));
  const auto logits = [&](kernels::KvType type) {
    return test::AllLogits(model, Ids(model, 48), {.context = 64, .n_threads = 1, .kv_type = type});
  };
  const std::vector<float> exact = logits(kernels::KvType::kF32);
  EXPECT_LT(test::Nmse(logits(kernels::KvType::kQ8_0), exact), 3e-3);
  EXPECT_LT(test::Nmse(logits(kernels::KvType::kQ4_0), exact), 0.4);
}

// Latent vectors, too: absorbed, and (of a long batch) with keys and values of each head. Where
// these are not multiplied back the error is 1.7.
TEST(TransformedCache, OfLatentVectors) {
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
      EXPECT_LT(nmse(kernels::KvType::kQ8_0, batch), 5e-3) << name << ", " << batch;
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
