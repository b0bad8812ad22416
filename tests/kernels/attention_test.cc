// Attention on every instruction set against softmax in double.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/half.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

struct Shape {
  size_t n_heads, n_kv_heads, key_length, value_length, first_pos, n_tokens;
};

// One and many tokens, odd group sizes, lengths that fill no vector, keys that fill no tile.
const std::vector<Shape> kShapes = {
    {1, 1, 2, 2, 0, 1},     {4, 4, 64, 64, 0, 1},    {4, 2, 64, 64, 63, 1},
    {8, 1, 32, 32, 64, 1},  {5, 1, 80, 80, 199, 1},  {6, 2, 48, 20, 129, 1},
    {40, 2, 16, 16, 70, 1}, {4, 2, 64, 64, 0, 70},   {3, 3, 18, 34, 60, 9},
    {8, 4, 128, 128, 5, 3}, {140, 2, 16, 16, 66, 5}, {8, 2, 96, 136, 190, 40},
};

class Attended {
 public:
  Attended(const Shape& s, KvType type, float spread) : s_(s), type_(type) {
    const size_t n_keys = s.first_pos + s.n_tokens;
    q_ = NormalFloats(s.n_tokens * s.n_heads * s.key_length, 1);
    for (float& v : q_) v *= spread;
    k_ = NormalFloats(n_keys * s.n_kv_heads * s.key_length, 2);
    v_ = NormalFloats(n_keys * s.n_kv_heads * s.value_length, 3);
    const size_t capacity = n_keys + 3;
    k_bytes_.resize(s.n_kv_heads * capacity * KvBytes(type, s.key_length));
    v_bytes_.resize(s.n_kv_heads * capacity * KvBytes(type, s.value_length));
    cache_ = {type,     k_bytes_.data(), v_bytes_.data(), s.n_kv_heads,
              capacity, s.key_length,    s.value_length};
  }

  std::vector<float> Run(int threads) {
    // In two parts, as a prompt and what follows are.
    const size_t split = s_.first_pos;
    StoreKv(cache_, 0, split, k_.data(), v_.data());
    StoreKv(cache_, split, s_.n_tokens, k_.data() + split * s_.n_kv_heads * s_.key_length,
            v_.data() + split * s_.n_kv_heads * s_.value_length);
    std::vector<float> out(s_.n_tokens * s_.n_heads * s_.value_length, NAN);
    Team team(threads);
    team.Run([&] {
      Attention(team, cache_, q_.data(), s_.n_heads, s_.n_tokens, s_.first_pos, 0.125f, out.data());
    });
    return out;
  }

  void SpoilFirstKey(bool in_values) { (in_values ? v_ : k_)[3] = NAN; }

  // What a head of a token should give, from the numbers as the cache holds them.
  std::vector<double> Expected(size_t token, size_t head) const {
    const size_t kv_head = head / (s_.n_heads / s_.n_kv_heads);
    const size_t n_keys = s_.first_pos + token + 1;
    std::vector<double> scores(n_keys);
    for (size_t p = 0; p < n_keys; ++p) {
      for (size_t i = 0; i < s_.key_length; ++i) {
        scores[p] += 0.125 * q_[(token * s_.n_heads + head) * s_.key_length + i] *
                     Cached(k_, (p * s_.n_kv_heads + kv_head) * s_.key_length, s_.key_length, i);
      }
    }
    const double max = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - max);
    std::vector<double> out(s_.value_length);
    for (size_t p = 0; p < n_keys; ++p) {
      for (size_t i = 0; i < s_.value_length; ++i) {
        out[i] += scores[p] / sum *
                  Cached(v_, (p * s_.n_kv_heads + kv_head) * s_.value_length, s_.value_length, i);
      }
    }
    return out;
  }

 private:
  // Number i of the vector of `length` at x[first], as the cache holds it.
  double Cached(const std::vector<float>& x, size_t first, size_t length, size_t i) const {
    const float number = x[first + i];
    if (type_ == KvType::kF32) return number;
    if (type_ == KvType::kF16) return F16ToF32(F32ToF16(number));
    const size_t block = i / 32 * 32;
    float max = 0;
    for (size_t k = block; k < std::min(block + 32, length); ++k) {
      max = std::max(max, std::abs(x[first + k]));
    }
    return std::nearbyint(number * (127.0f / max)) * F16ToF32(F32ToF16(max / 127.0f));
  }

  Shape s_;
  KvType type_;
  std::vector<float> q_, k_, v_;
  std::vector<std::byte> k_bytes_, v_bytes_;
  KvLayer cache_;
};

TEST(Attention, IsTheWeightedMeanOfValues) {
  for (const Shape& shape : kShapes) {
    for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kQ8_0}) {
      for (const float spread : {1.0f, 20.0f}) {  // gentle, and one key far above the others
        Attended attended(shape, type, spread);
        SCOPED_TRACE(testing::Message()
                     << "heads " << shape.n_heads << "/" << shape.n_kv_heads << ", length "
                     << shape.key_length << ", tokens " << shape.n_tokens << ", spread " << spread);
        ForEachTarget([&] {
          const std::vector<float> out = attended.Run(1);
          double difference = 0, error = 0, power = 0;
          for (size_t t = 0; t < shape.n_tokens; ++t) {
            for (size_t h = 0; h < shape.n_heads; ++h) {
              const std::vector<double> expected = attended.Expected(t, h);
              for (size_t i = 0; i < shape.value_length; ++i) {
                const double e =
                    out[(t * shape.n_heads + h) * shape.value_length + i] - expected[i];
                difference = std::max(difference, std::abs(e));
                error += e * e;
                power += expected[i] * expected[i];
              }
            }
          }
          const double length = static_cast<double>(shape.key_length);
          if (shape.n_tokens < 8 || type == KvType::kF32) {
            // A score is a sum of key_length products of about 0.125 * spread each, whose rounding
            // errors (eps / 2 of the sum of magnitudes) become relative errors of the weights;
            // values are below 5.
            EXPECT_LT(difference, 5 * (6e-8 * 0.125 * spread * length * 4 + 1e-6));
          } else {
            // Batches may round to int16. A query's length is spread * sqrt(key_length), a step
            // 1 / 46300 of that, and the variance of its error 1 / 12 of a step's square; likewise
            // for keys, each with the other's length. Weights and values err by less than 1e-8.
            const double score = 0.125 * spread * length / 46300;
            EXPECT_LT(error / power, 2 * score * score / 12 * 2 + 4e-8);
          }
        });
      }
    }
  }
}

// What is not a number stays that, so that whoever samples can say so.
TEST(Attention, KeepsNaNs) {
  const Shape shape = {4, 2, 64, 64, 30, 20};
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    for (const bool in_values : {false, true}) {
      Attended attended(shape, type, 1.0f);
      attended.SpoilFirstKey(in_values);
      ForEachTarget([&] {
        // Where Highway converts f16 by arithmetic, a NaN is a large number.
        if (CpuTarget() == "sse4" && type == KvType::kF16) return;
        const std::vector<float> out = attended.Run(1);
        for (size_t t = 0; t < shape.n_tokens; ++t) {
          // Number 3 of the values of the first key-value head; or, by way of a score, all of them.
          EXPECT_TRUE(std::isnan(out[t * 4 * 64 + 3])) << t;
          EXPECT_FALSE(std::isnan(out[t * 4 * 64 + 3 * 64])) << t;  // the other key-value head
        }
      });
    }
  }
}

TEST(Attention, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const Shape& shape : kShapes) {
    for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
      Attended attended(shape, type, 1.0f);
      ForEachTarget([&] {
        const std::vector<float> expected = attended.Run(1);
        EXPECT_EQ(attended.Run(2), expected);
        EXPECT_EQ(attended.Run(3), expected);
      });
    }
  }
}

TEST(StoreKv, RoundsToTheNearestF16OnEveryTarget) {
  constexpr size_t kLength = 37;
  const std::vector<float> x = NormalFloats(kLength, 1);
  ForEachTarget([&] {
    std::vector<std::byte> k(KvBytes(KvType::kF16, kLength)), v = k;
    const KvLayer cache{KvType::kF16, k.data(), v.data(), 1, 1, kLength, kLength};
    StoreKv(cache, 0, 1, x.data(), x.data());
    for (size_t i = 0; i < kLength; ++i) {
      uint16_t stored;
      std::memcpy(&stored, &k[2 * i], 2);
      EXPECT_EQ(stored, F32ToF16(x[i]));
    }
    EXPECT_EQ(k, v);
  });
}

}  // namespace
}  // namespace kernels
