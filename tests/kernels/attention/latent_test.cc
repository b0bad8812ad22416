// Latent attention with keys and values of each head against the definition, in doubles, and
// against the absorbed form; with any number of threads and in any amount of memory it has the
// same bits.
#include "kernels/attention/latent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <vector>

#include "kernels/attention/head_products.h"
#include "kernels/attention/reference.h"
#include "kernels/matmul/reference.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using gguf::DType;

struct LatentCase {
  DType dtype;
  KvType kv;
  size_t n_heads, latent, n_rotated, plain, value;
  size_t first_position, n_tokens;
  double error;  // as a share of the result's power
  size_t window = 0;
  size_t capacity = 0;  // 0: for all positions

  size_t key() const { return plain + n_rotated; }
  size_t cached() const { return latent + n_rotated; }
  size_t end() const { return first_position + n_tokens; }
  friend std::ostream& operator<<(std::ostream& out, const LatentCase& c) {
    return out << gguf::Info(c.dtype).name << ", " << c.n_heads << " heads, latent " << c.latent
               << ", " << c.n_tokens << " tokens from " << c.first_position << ", window "
               << c.window;
  }
};

// Floats are exact but for sums. Keys and values in f16 are rounded once more, by 2e-8 to 1e-7 of
// their power; vectors, and K where it is transposed, to int8, by 2.4e-5 each.
constexpr double kFloat = 1e-11, kHalf = 1e-6, kInt8 = 2e-4;
const std::vector<LatentCase> kCases = {
    {DType::kF32, KvType::kF32, 3, 24, 6, 10, 7, 0, 17, kFloat},
    {DType::kF32, KvType::kF16, 5, 40, 16, 33, 20, 70, 40, kHalf},
    {DType::kF16, KvType::kF32, 2, 30, 4, 16, 40, 200, 30, kHalf},
    {DType::kQ8_0, KvType::kF16, 6, 96, 16, 32, 24, 0, 210, kInt8},
    {DType::kQ4_0, KvType::kF16, 4, 512, 64, 128, 128, 130, 60, kInt8},
    {DType::kQ8_0, KvType::kQ8_0, 3, 64, 16, 64, 32, 300, 40, kInt8, 150},
    {DType::kQ8_0, KvType::kQ4_0, 3, 64, 16, 64, 32, 300, 40, kInt8, 150},
    {DType::kQ8_0, KvType::kF16, 2, 64, 32, 32, 48, 700, 33, kInt8, 100, 256},
};

class Latents {
 public:
  explicit Latents(const LatentCase& shape)
      : c(shape),
        k(c.dtype, c.n_heads * c.latent, c.plain, 1),
        v(c.dtype, c.n_heads * c.value, c.latent, 2),
        k_scales(NormalFloats(c.n_heads, 3)),
        v_bias(NormalFloats(c.n_heads * c.value, 4)),
        q(NormalFloats(c.n_tokens * c.n_heads * c.key(), 5)),
        x(NormalFloats(c.end() * c.cached(), 6)) {
    const size_t capacity = c.capacity != 0 ? c.capacity : c.end();
    bytes.assign(capacity * KvBytes(c.kv, c.cached()), std::byte{0xFF});
    cache = {c.kv, bytes.data(), nullptr, 1, capacity, c.cached(), c.latent};
    ThreadPool pool(1);
    for (size_t p = 0; p < c.end(); ++p) StoreKv(pool, cache, p, 1, &x[p * c.cached()], nullptr);
    k_stack = {{c.dtype, k.view().data, c.latent, c.plain}, c.n_heads, k_scales.data()};
    v_stack = {{c.dtype, v.view().data, c.value, c.latent}, c.n_heads, nullptr, v_bias.data()};
    // Scores of about 1, so that many keys count.
    std::vector<float> row(c.plain);
    DequantizeRow(c.dtype, k.view().data, c.plain, row.data());
    double power = 0;
    for (const float w : row) power += double{w} * double{w} / static_cast<double>(c.plain);
    params.scale =
        static_cast<float>(1 / std::sqrt(power * static_cast<double>(c.latent * c.key())));
    params.window = c.window;
  }

  std::vector<float> Run(int threads, size_t bytes_per_thread) const {
    ThreadPool pool(threads);
    LatentScratch scratch(pool.size(), bytes_per_thread);
    HeadScratch products(c.n_tokens, std::max(c.latent, c.plain), pool.size());
    std::vector<float> out(c.n_tokens * c.n_heads * c.value, NAN);
    pool.Run([&] {
      AttendToLatents(pool, cache, {k_stack, v_stack}, q.data(), c.n_tokens, c.first_position,
                      params, scratch, products, out.data());
    });
    return out;
  }

  std::vector<float> Absorbed() const {
    ThreadPool pool(1);
    HeadScratch scratch(c.n_tokens, std::max(c.latent, c.plain), 1);
    const size_t n = c.n_tokens * c.n_heads;
    std::vector<float> wide(n * c.cached()), means(n * c.latent), out(n * c.value);
    HeadProducts(pool, k_stack, {q.data(), c.key(), c.n_heads * c.key()}, c.n_tokens,
                 {wide.data(), c.cached(), c.n_heads * c.cached()}, scratch);
    for (size_t i = 0; i < n; ++i) {
      std::copy_n(&q[i * c.key() + c.plain], c.n_rotated, &wide[i * c.cached() + c.latent]);
    }
    Attend(pool, cache, wide.data(), c.n_heads, c.n_tokens, c.first_position, params, means.data());
    HeadProducts(pool, v_stack, {means.data(), c.latent, c.n_heads * c.latent}, c.n_tokens,
                 {out.data(), c.value, c.n_heads * c.value}, scratch);
    return out;
  }

  // out = V of the mean latent vector, weighted by scores with keys [K latent, rotated].
  std::vector<double> Definition() const {
    std::vector<float> keys(c.end() * c.cached()), made(c.end() * c.key()), row(c.latent);
    const size_t seen = FirstVisible(c.first_position, c.window);
    for (size_t p = seen; p < c.end(); ++p) ReadCachedKey(cache, 0, p, &keys[p * c.cached()]);
    std::vector<double> out, weights(c.end());
    std::vector<float> weight(std::max(c.plain, c.latent));
    out.resize(c.n_tokens * c.n_heads * c.value);
    for (size_t h = 0; h < c.n_heads; ++h) {
      std::vector<double> plain(c.plain);
      for (size_t p = seen; p < c.end(); ++p) {
        const float* const key = &keys[p * c.cached()];
        std::fill(plain.begin(), plain.end(), 0.0);
        for (size_t l = 0; l < c.latent; ++l) {
          DequantizeRow(c.dtype, k_stack.expert(h).row(l), c.plain, weight.data());
          for (size_t i = 0; i < c.plain; ++i) plain[i] += double{weight[i]} * double{key[l]};
        }
        for (size_t i = 0; i < c.plain; ++i) {
          made[p * c.key() + i] = static_cast<float>(plain[i] * double{k_scales[h]});
        }
        std::copy_n(key + c.latent, c.n_rotated, &made[p * c.key() + c.plain]);
      }
      for (size_t t = 0; t < c.n_tokens; ++t) {
        const size_t pos = c.first_position + t, first = FirstVisible(pos, c.window);
        AttentionWeights(&q[(t * c.n_heads + h) * c.key()], &made[first * c.key()], pos + 1 - first,
                         c.key(), c.key(), params, nullptr, weights.data());
        std::vector<double> mean(c.latent);
        for (size_t p = first; p <= pos; ++p) {
          for (size_t l = 0; l < c.latent; ++l) {
            mean[l] += weights[p - first] * double{keys[p * c.cached() + l]};
          }
        }
        for (size_t i = 0; i < c.value; ++i) {
          DequantizeRow(c.dtype, v_stack.expert(h).row(i), c.latent, weight.data());
          double sum = v_bias[h * c.value + i];
          for (size_t l = 0; l < c.latent; ++l) sum += double{weight[l]} * mean[l];
          out[(t * c.n_heads + h) * c.value + i] = sum;
        }
      }
    }
    return out;
  }

  LatentCase c;
  RandomMatrix k, v;
  std::vector<float> k_scales, v_bias, q, x;
  std::vector<std::byte> bytes;
  KvLayer cache;
  ExpertStack k_stack, v_stack;
  AttentionParams params;
};

template <class T>
double ErrorShare(const std::vector<float>& a, const std::vector<T>& b) {
  double error = 0, power = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    error += difference * difference;
    power += double{b[i]} * double{b[i]};
  }
  return error / power;
}

TEST(AttendToLatents, IsTheDefinitionAndTheAbsorbedForm) {
  for (const LatentCase& c : kCases) {
    SCOPED_TRACE(c);
    const Latents latents(c);
    const std::vector<double> expected = latents.Definition();
    ForEachTarget([&] {
      const std::vector<float> out = latents.Run(1, LatentScratch::kBytesPerThread);
      EXPECT_LT(ErrorShare(out, expected), c.error);
      EXPECT_LT(ErrorShare(out, latents.Absorbed()), 2 * c.error);
    });
  }
}

TEST(AttendToLatents, HasTheSameBitsWithAnyThreadsAndMemory) {
  for (const LatentCase& c : kCases) {
    SCOPED_TRACE(c);
    const Latents latents(c);
    ForEachTarget([&] {
      const std::vector<float> out = latents.Run(1, LatentScratch::kBytesPerThread);
      EXPECT_EQ(latents.Run(1, 60'000), out);  // a few heads at a time
      EXPECT_EQ(latents.Run(3, 0), out);       // one
    });
  }
}

// DeepSeek-V2-Lite: a prompt pays for keys and values, a few tokens far into a text do not.
TEST(AttendToLatents, SavesOperationsOfManyTokens) {
  const KvLayer cache = {KvType::kF16, nullptr, nullptr, 1, 1 << 15, 576, 512};
  const ExpertStack k = {{DType::kQ4_0, nullptr, 512, 128}, 16};
  const ExpertStack v = {{DType::kQ4_0, nullptr, 128, 512}, 16};
  const auto saved = [&](size_t first_position, size_t n, size_t window = 0) {
    return SavedByHeads(cache, {k, v}, n, first_position, {.window = window});
  };
  EXPECT_GT(saved(0, 512), 0);
  EXPECT_GT(saved(16384, 512), 0);
  EXPECT_LT(saved(0, 20), 0);
  EXPECT_LT(saved(4096, 64), 0);
  EXPECT_LT(saved(4096, 20, 64), 0);
}

}  // namespace
}  // namespace kernels
