// Attention on every instruction set against its definition. Results must not depend on threads, on
// batches of a few tokens, or on where the ring buffer begins.
#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/reference.h"
#include "kernels/attention/round_to_q4.h"
#include "kernels/half.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/reference.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

constexpr KvTypes kTypes[] = {
    KvType::kF32,
    KvType::kF16,
    KvType::kQ8_0,
    {KvType::kQ8_0, KvType::kQ4_0},
    {KvType::kQ4_0, KvType::kF16},
};

std::string Name(KvTypes type) {
  return std::to_string(static_cast<int>(type.k)) + "/" + std::to_string(static_cast<int>(type.v));
}

struct Case {
  AttentionShape shape;
  size_t first_position, n_tokens;
  size_t window = 0;
  float softcap = 0;
  bool sinks = false;
  size_t capacity = 0;  // 0: for all positions and some more
  bool values_in_keys = false;
  size_t ahead = 0;
  bool slopes = false;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << "heads " << c.shape.n_heads << "/" << c.shape.n_kv_heads << ", lengths "
               << c.shape.key_length << ", " << c.shape.value_length << ", " << c.n_tokens
               << " tokens from " << c.first_position << ", window " << c.window << ", softcap "
               << c.softcap << ", sinks " << c.sinks << ", capacity " << c.capacity
               << ", values in keys " << c.values_in_keys << ", ahead " << c.ahead << ", slopes "
               << c.slopes;
  }
};

// One token, a few, kMaxInvariantTokens, and more; odd group sizes, more heads than a query tile
// has queries, lengths that fill no vector, keys that fill no tile, several spans of keys.
const std::vector<Case> kPlain = {
    {{1, 1, 2, 2}, 0, 1},       {{4, 4, 64, 64}, 0, 1},      {{4, 2, 64, 64}, 63, 1},
    {{8, 1, 32, 32}, 64, 1},    {{5, 1, 80, 80}, 199, 1},    {{6, 2, 48, 20}, 129, 1},
    {{40, 2, 16, 16}, 70, 1},   {{4, 2, 64, 64}, 0, 70},     {{3, 3, 18, 34}, 60, 17},
    {{8, 4, 128, 128}, 5, 7},   {{140, 2, 16, 16}, 66, 16},  {{600, 2, 16, 16}, 66, 17},
    {{8, 2, 96, 136}, 190, 40}, {{4, 1, 256, 256}, 1500, 1}, {{4, 1, 256, 256}, 505, 16},
    {{3, 1, 24, 24}, 1020, 7},  {{4, 1, 576, 512}, 130, 16}, {{4, 1, 576, 512}, 600, 1},
    {{3, 1, 64, 64}, 300, 17},  // 51 queries, which no number in registers divides
    {{2, 2, 700, 24}, 100, 9},  // keys too long for a panel
};

// ALiBi: fractions of powers of two for heads, as models have.
const std::vector<Case> kSloped = {
    {{4, 4, 64, 64}, 0, 1, 0, 0, false, 0, false, 0, true},
    {{12, 2, 48, 20}, 129, 7, 0, 0, false, 0, false, 0, true},
    {{8, 2, 96, 136}, 190, 40, 0, 0, false, 0, false, 0, true},
    {{4, 1, 64, 64}, 700, 16, 0, 0, true, 0, false, 0, true},
    {{5, 5, 32, 32}, 300, 30, 100, 9, true, 0, false, 0, true},
};

// Cases with all parameters of a layer; positions within a ring buffer, at its end, beyond it.
const std::vector<Case> kAll = {
    {{4, 2, 64, 64}, 200, 1, 1},
    {{4, 2, 64, 64}, 200, 7, 5, 0, true},
    {{4, 2, 24, 24}, 300, 16, 100, 30, true, 128},
    {{4, 2, 24, 24}, 127, 1, 128, 0, false, 128},
    {{4, 2, 24, 24}, 128, 1, 128, 0, false, 128},
    {{8, 2, 80, 80}, 1000, 16, 130, 0, false, 256},
    {{8, 2, 80, 80}, 1000, 17, 130, 0, false, 256},
    {{6, 3, 96, 96}, 1300, 40, 64, 50, false, 128},
    {{6, 3, 96, 96}, 1300, 1, 64, 50, false, 128},
    {{4, 4, 128, 128}, 700, 300, 100, 0, true, 512},
    {{4, 1, 256, 256}, 1500, 7, 1024, 0, true, 1152},
    {{4, 1, 256, 256}, 1500, 17, 1024, 20, true, 1152},
    {{2, 1, 576, 512}, 250, 7, 0, 0, true},
    {{64, 8, 64, 64}, 90, 40, 128, 0, true, 256},
    {{1, 1, 64, 64}, 1000, 40, 3, 0, false, 128},
    {{5, 1, 64, 64}, 0, 40, 8, 10, true, 128},
};

Case WithValuesInKeys(Case c) {
  c.values_in_keys = true;
  return c;
}

// Values that are the first numbers of keys: latent attention's shape, and other shapes.
const std::vector<Case> kInKeys = {
    WithValuesInKeys({{16, 1, 576, 512}, 130, 1}),
    WithValuesInKeys({{16, 1, 576, 512}, 30, 40}),
    WithValuesInKeys({{128, 1, 576, 512}, 520, 1}),
    WithValuesInKeys({{2, 1, 700, 512}, 100, 9}),
    WithValuesInKeys({{6, 2, 48, 20}, 129, 1}),
    WithValuesInKeys({{6, 2, 48, 20}, 129, 16}),
    WithValuesInKeys({{6, 2, 48, 20}, 129, 17}),
    WithValuesInKeys({{3, 3, 34, 34}, 10, 5}),
    WithValuesInKeys({{4, 2, 96, 32}, 300, 16, 100, 30, true, 128}),
    WithValuesInKeys({{6, 3, 96, 64}, 1300, 40, 64, 50, true, 128}),
};

Case WithAhead(Case c, size_t ahead) {
  c.ahead = ahead;
  return c;
}

// Tokens that see later tokens: every token, or as many as they see before them.
const std::vector<Case> kBothWays = {
    WithAhead({{1, 1, 2, 2}, 0, 1}, SIZE_MAX),
    WithAhead({{4, 2, 24, 24}, 0, 9}, SIZE_MAX),
    WithAhead({{4, 2, 64, 64}, 0, 16, 3}, 2),
    WithAhead({{4, 2, 64, 64}, 1020, 11, 6}, 5),       // the keys are in two spans
    WithAhead({{600, 2, 120, 100}, 0, 15}, SIZE_MAX),  // more than fits in scratch
    WithAhead({{3, 3, 64, 64}, 0, 300}, SIZE_MAX),
    WithAhead({{6, 2, 48, 20}, 0, 290, 65, 30}, 64),
    WithAhead({{5, 1, 32, 32}, 0, 140, 4, 0, true}, 130),
};

// True if queries are rounded to int8.
bool RoundsQueries(KvTypes type) {
  return IsBlocks(type.k) && IsBlocks(type.v) && !CpuTarget().starts_with("neon");
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Queries, and a cache with the positions before them; the rest of the cache is NaN.
class Attended {
 public:
  Attended(const Case& c, KvTypes type, float spread = 1)
      : c_(c), type_(type.k, c.values_in_keys ? type.k : type.v) {
    const AttentionShape& s = c.shape;
    const size_t n_keys = c.first_position + c.n_tokens;
    q_ = NormalFloats(c.n_tokens * s.n_heads * s.key_length, 1);
    for (float& v : q_) v *= spread;
    k_ = NormalFloats(n_keys * s.n_kv_heads * s.key_length, 2);
    v_ = NormalFloats(n_keys * s.n_kv_heads * s.value_length, 3);
    for (size_t i = 0; c.values_in_keys && i < v_.size(); ++i) {
      v_[i] = k_[i / s.value_length * s.key_length + i % s.value_length];
    }
    sinks_ = NormalFloats(s.n_heads, 4);
    for (size_t i = 0; i < s.n_heads; ++i) {
      const double power = 8 * static_cast<double>(i + 1) / static_cast<double>(s.n_heads);
      slopes_.push_back(static_cast<float>(std::exp2(-power)));
    }
    k_bytes_.assign(s.n_kv_heads * capacity() * KvBytes(type_.k, s.key_length), std::byte{0xFF});
    v_bytes_.assign(s.n_kv_heads * capacity() * KvBytes(type_.v, s.value_length), std::byte{0xFF});
    ThreadPool pool(1);
    Store(pool, 0, c.first_position);
  }

  // Attends in batches of n tokens.
  std::vector<float> Run(int threads, size_t n) {
    const AttentionShape& s = c_.shape;
    const size_t width = s.n_heads * s.value_length;
    std::vector<float> out(c_.n_tokens * width, NAN);
    ThreadPool pool(threads);
    for (size_t t = 0; t < c_.n_tokens; t += n) {
      const size_t count = std::min(n, c_.n_tokens - t);
      pool.Run([&] {
        Store(pool, c_.first_position + t, count);
        Attend(pool, cache(), q_.data() + t * s.n_heads * s.key_length, s.n_heads, count,
               c_.first_position + t, params(), out.data() + t * width);
      });
    }
    return out;
  }
  std::vector<float> Run(int threads = 1) { return Run(threads, c_.n_tokens); }

  // The exact result for the cached keys and values.
  std::vector<double> Expected(bool rounds_queries) const {
    return Expected(type_, rounds_queries);
  }
  std::vector<double> Expected(KvTypes type, bool rounds_queries) const {
    std::vector<double> out(c_.n_tokens * c_.shape.n_heads * c_.shape.value_length);
    const std::vector<float> k = Cached(type.k, k_, c_.shape.key_length);
    const std::vector<float> v = Cached(type.v, v_, c_.shape.value_length);
    const std::vector<float> q = rounds_queries ? RoundedTo127(q_, c_.shape.key_length, false) : q_;
    AttentionReference(c_.shape, q.data(), k.data(), c_.values_in_keys ? nullptr : v.data(),
                       c_.n_tokens, c_.first_position, params(), out.data());
    return out;
  }

  // Moves the values out of the keys' memory.
  void KeepValuesApart() {
    c_.values_in_keys = false;
    ThreadPool pool(1);
    Store(pool, 0, c_.first_position);
  }

  // Multiplies the values of each position.
  template <class Factor>
  void ScaleValues(Factor factor) {
    const size_t width = c_.shape.n_kv_heads * c_.shape.value_length;
    for (size_t i = 0; i < v_.size(); ++i) v_[i] *= factor(i / width);
    ThreadPool pool(1);
    Store(pool, 0, c_.first_position);
  }

  // Sets number 3 of the first query (0), key (1) or value (2) to `nan`.
  void Spoil(int which, float nan) {
    (which == 0 ? q_ : which == 1 ? k_ : v_)[3] = nan;
    ThreadPool pool(1);
    Store(pool, 0, c_.first_position);
  }

 private:
  AttentionParams params() const {
    return {0.125f,
            c_.window,
            c_.ahead,
            c_.softcap,
            c_.sinks ? sinks_.data() : nullptr,
            c_.slopes ? slopes_.data() : nullptr};
  }

  size_t capacity() const {
    return c_.capacity == 0 ? c_.first_position + c_.n_tokens + 3 : c_.capacity;
  }

  KvLayer cache() {
    return {type_,
            k_bytes_.data(),
            c_.values_in_keys ? nullptr : v_bytes_.data(),
            c_.shape.n_kv_heads,
            capacity(),
            c_.shape.key_length,
            c_.shape.value_length};
  }

  void Store(ThreadPool& pool, size_t first, size_t n) {
    const size_t row = first * c_.shape.n_kv_heads;
    StoreKv(pool, cache(), first, n, k_.data() + row * c_.shape.key_length,
            c_.values_in_keys ? nullptr : v_.data() + row * c_.shape.value_length);
  }

  // Vectors of `length` as the cache holds them.
  static std::vector<float> Cached(KvType type, std::vector<float> x, size_t length) {
    if (type == KvType::kF16) {
      for (float& number : x) number = F16ToF32(F32ToF16(number));
    }
    if (type == KvType::kQ4_0) return RoundedToQ4(std::move(x), length);
    return type == KvType::kQ8_0 ? RoundedTo127(std::move(x), length, true) : x;
  }

  // Rounds by the code that stores numbers, and decodes by the definition of Q4_0.
  static std::vector<float> RoundedToQ4(std::vector<float> x, size_t length) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (i % length % 32 != 0) continue;
      const size_t n = std::min<size_t>(32, length - i % length);
      float numbers[32] = {};
      std::copy_n(&x[i], n, numbers);
      gguf::BlockQ4_0 block;
      RoundToQ4(numbers, block);
      DequantizeRow(gguf::DType::kQ4_0, reinterpret_cast<const std::byte*>(&block), 32, numbers);
      std::copy_n(numbers, n, &x[i]);
    }
    return x;
  }

  // Rounds to steps of 1/127 of the largest of each 32 numbers.
  static std::vector<float> RoundedTo127(std::vector<float> x, size_t length, bool f16_scale) {
    for (size_t row = 0; row < x.size(); row += length) {
      for (size_t i = 0; i < length; i += 32) {
        float* const block = &x[row + i];
        const size_t n = std::min<size_t>(32, length - i);
        float max = 0;
        for (size_t j = 0; j < n; ++j) max = std::max(max, std::abs(block[j]));
        const float scale = f16_scale ? F16ToF32(F32ToF16(max / 127.0f)) : max / 127.0f;
        for (size_t j = 0; j < n; ++j) block[j] = std::nearbyint(block[j] * (127.0f / max)) * scale;
      }
    }
    return x;
  }

  Case c_;
  KvTypes type_;
  std::vector<float> q_, k_, v_, sinks_, slopes_;
  std::vector<std::byte> k_bytes_, v_bytes_;
};

void ExpectNear(const Case& c, KvTypes type, float spread, const std::vector<float>& out,
                const std::vector<double>& expected) {
  double difference = 0, error = 0, power = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double e = out[i] - expected[i];
    if (!(std::abs(e) <= difference)) difference = std::abs(e);  // or a NaN
    error += e * e;
    power += expected[i] * expected[i];
  }
  const double length = static_cast<double>(c.shape.key_length);
  // tanh errs by 3e-7, the division before it and the product after it by 6e-8 each.
  const double cap = 4.2e-7 * c.softcap;
  if (RoundsQueries(type)) {
    // Queries are rounded in the expected result, too. Weights are in steps of 1 / 32767 of the
    // largest, or of half that where blocks of values have other scales. With VNNI they are in
    // steps of 1 / 255 of a tile's largest, 1.3e-6 of its square, where many are alike: that is 20
    // times the mean square if scores have variance 1, and up to 40 in some tiles. So are the
    // factors of values' scales, which adds a 20th.
    const std::string cpu = CpuTarget();
    const bool coarse = cpu.ends_with("vnni") || cpu == "avx512bf16" || cpu == "amx";
    const double steps = coarse && (spread == 1 || cap != 0) ? 5.5e-5 : 4e-8;
    EXPECT_LT(error / power, steps + cap * cap + std::pow(6e-8 * 0.125 * spread * length * 4, 2));
  } else if (c.n_tokens <= kMaxInvariantTokens || type != KvType::kF16) {
    // A score is a sum of key_length products of about 0.125 * spread each, whose rounding errors
    // (eps / 2 of the sum of magnitudes) become relative errors of the weights; values are below 5.
    // Exponentials err by 2e-7, and sums of n keys are chains of 64 + n / 64 additions, whose
    // errors add up like a random walk: 6e-8 * sqrt(64 + 1500 / 64).
    EXPECT_LT(difference, 5 * (6e-8 * 0.125 * spread * length * 4 + cap + 1e-6));
  } else {
    // Batches may round to int16. The length of a query or of a key is spread * sqrt(key_length), a
    // step is 1 / 46300 of it, and the variance of an error is 1 / 12 of a step's square. In the
    // score, the query's error is multiplied by the key's length, and the key's by the query's.
    // Weights and values err by less than 1e-8.
    const double score = 0.125 * spread * length / 46300;
    EXPECT_LT(error / power, 2 * score * score / 12 * 2 + cap * cap + 4e-8);
  }
}

TEST(Attention, IsTheWeightedMeanOfValues) {
  for (const std::vector<Case>* cases : {&kPlain, &kAll, &kInKeys, &kBothWays, &kSloped}) {
    for (const Case& c : *cases) {
      for (const KvTypes listed : kTypes) {
        const KvTypes type = c.values_in_keys ? KvTypes(listed.k) : listed;
        for (const float spread : {1.0f, 20.0f}) {  // gentle, and one key far above the rest
          SCOPED_TRACE(testing::Message() << c << ", type " << Name(type) << ", spread " << spread);
          Attended attended(c, type, spread);
          const std::vector<double> expected = attended.Expected(false);
          const std::vector<double> of_rounded =
              IsBlocks(type.k) ? attended.Expected(true) : expected;
          ForEachTarget([&] {
            ExpectNear(c, type, spread, attended.Run(),
                       RoundsQueries(type) ? of_rounded : expected);
          });
        }
      }
    }
  }
}

// Compares with the exact result of unrounded numbers: rounding queries to int8 adds no more error
// than the cache has.
TEST(Attention, AddsLittleToTheErrorOfTheCache) {
  for (const Case& c : {Case{{8, 2, 64, 64}, 700, 2}, Case{{4, 4, 128, 128}, 300, 20}}) {
    Attended attended(c, KvType::kQ8_0);
    const std::vector<double> exact = attended.Expected(KvType::kF32, false);
    const std::vector<double> cached = attended.Expected(KvType::kQ8_0, false);
    const auto error = [&](const auto& out) {
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += (out[i] - exact[i]) * (out[i] - exact[i]);
      return sum;
    };
    ForEachTarget([&] { EXPECT_LT(error(attended.Run()), 2 * error(cached)); });
  }
}

// kMaxInvariantTokens' promise. For tokens that come one by one, the cache ends with their own
// position.
TEST(Attention, GivesATokenTheSameBitsInAFewAsAlone) {
  for (const std::vector<Case>* cases : {&kPlain, &kAll, &kInKeys, &kSloped}) {
    for (Case c : *cases) {
      c.n_tokens = kMaxInvariantTokens;
      if (c.capacity != 0 && c.capacity < c.window + kMaxInvariantTokens - 1)
        c.capacity += kTileKeys;
      SCOPED_TRACE(testing::Message() << c);
      for (const KvTypes type : kTypes) {
        // Unseen values, and values of later tokens, are larger than all earlier values.
        Attended before(c, type, 0.1f);
        before.ScaleValues([&](size_t position) {
          const bool is_unseen = c.window != 0 && position + c.window <= c.first_position;
          return is_unseen ? 64
                           : 2 + static_cast<float>(std::max(position, c.first_position)) -
                                 static_cast<float>(c.first_position);
        });
        ForEachTarget([&] {
          const std::vector<float> alone = Attended(before).Run(1, 1);
          for (const size_t n : {2, 5, 16}) {
            EXPECT_TRUE(SameBits(Attended(before).Run(1, n), alone)) << n << " tokens";
          }
        });
      }
    }
  }
}

// How threads divide the work does not depend on the instruction set, so each case has one.
TEST(Attention, GivesTheSameBitsForAnyNumberOfThreads) {
  size_t n = 0;  // cases
  for (const std::vector<Case>* cases : {&kPlain, &kAll, &kInKeys, &kBothWays}) {
    for (const Case& c : *cases) {
      SCOPED_TRACE(testing::Message() << c);
      ++n;
      for (size_t t = 0; t < std::size(kTypes); ++t) {
        Attended attended(c, kTypes[t]);
        ForATarget(n + t, [&] {
          const std::vector<float> expected = attended.Run(1);
          EXPECT_TRUE(SameBits(attended.Run(3), expected));
        });
      }
    }
  }
}

TEST(Attention, GivesTheSameBitsInARing) {
  for (const Case& c : kAll) {
    if (c.capacity == 0) continue;
    SCOPED_TRACE(testing::Message() << c);
    Case straight = c;
    straight.capacity = 0;
    for (const KvTypes type : kTypes) {
      ForEachTarget(
          [&] { EXPECT_TRUE(SameBits(Attended(c, type).Run(), Attended(straight, type).Run())); });
    }
  }
}

TEST(Attention, GivesTheSameBitsWhereValuesAreInKeys) {
  for (const Case& c : kInKeys) {
    SCOPED_TRACE(testing::Message() << c);
    for (const KvTypes type : kTypes) {
      // Where a value ends within a block, its own last block has another scale.
      if (IsBlocks(type.k) && c.shape.value_length % 32 != 0 &&
          c.shape.value_length != c.shape.key_length) {
        continue;
      }
      ForEachTarget([&] {
        Attended in_keys(c, type), apart(c, type);
        apart.KeepValuesApart();
        EXPECT_TRUE(SameBits(in_keys.Run(), apart.Run()));
      });
    }
  }
}

// A sink far above all scores takes all the weight; a sink far below takes no weight.
TEST(Attention, LeavesToSinksWhatIsTheirs) {
  constexpr size_t kHeads = 2, kLength = 32, kTokens = 20;
  const std::vector<float> x = NormalFloats(kTokens * kHeads * kLength, 1);
  std::vector<float> k(kTokens * kLength), v = k;
  const KvLayer cache{KvType::kF32,
                      reinterpret_cast<std::byte*>(k.data()),
                      reinterpret_cast<std::byte*>(v.data()),
                      1,
                      kTokens,
                      kLength,
                      kLength};
  ThreadPool pool(1);
  StoreKv(pool, cache, 0, kTokens, x.data(), x.data());
  const float sinks[kHeads] = {60, -std::numeric_limits<float>::infinity()};
  ForEachTarget([&] {
    for (const size_t n_tokens : {size_t{1}, kTokens}) {
      std::vector<float> out(n_tokens * kHeads * kLength), without = out;
      const size_t first = kTokens - n_tokens;
      Attend(pool, cache, x.data(), kHeads, n_tokens, first, {.scale = 0.1f, .sinks = sinks},
             out.data());
      Attend(pool, cache, x.data(), kHeads, n_tokens, first, {.scale = 0.1f}, without.data());
      for (size_t i = 0; i < out.size(); ++i) {
        if (i / kLength % kHeads == 0) {
          EXPECT_LT(std::abs(out[i]), 1e-20f);  // e^-60 of a value, or a score of 10 more
        } else {
          EXPECT_EQ(out[i], without[i]);
        }
      }
    }
  });
}

// Two keys with scores x and 0, and the values (1, 0) and (0, 1): the logarithm of the ratio of the
// results is the capped score. Caps from far above the scores, where only tanh's slope at 0 counts,
// to below them.
TEST(Attention, CapsScoresToAFloatsPrecision) {
  constexpr size_t kPositions = 64, kQueries = 40;  // many heads for blocks, many tokens for tiles
  ForEachTarget([&] {
    for (const size_t n_tokens : {size_t{1}, kQueries}) {
      const size_t n_heads = kQueries / n_tokens;
      std::vector<float> k(2 * kPositions, 0.0f), v(2 * kPositions, 0.0f), q(2 * kQueries, 0.0f);
      k[0] = v[0] = v[3] = 1;
      const KvLayer cache{KvType::kF32,
                          reinterpret_cast<std::byte*>(k.data()),
                          reinterpret_cast<std::byte*>(v.data()),
                          1,
                          kPositions,
                          2,
                          2};
      for (const float cap : {1e5f, 1000.0f, 100.0f, 30.0f, 10.0f, 3.0f}) {
        for (size_t i = 0; i < kQueries; ++i) {
          q[2 * i] = static_cast<float>(i) - 20.3f;
        }
        std::vector<float> out(2 * kQueries);
        ThreadPool pool(1);
        for (size_t i = 0; i < kQueries; i += n_tokens) {
          // Keys past the second have no value: they take part of the weights, but not of the
          // ratio.
          Attend(pool, cache, &q[2 * i], 1, n_tokens, kPositions - n_tokens, {.softcap = cap},
                 &out[2 * i]);
        }
        for (size_t i = 0; i < kQueries; ++i) {
          const double expected = cap * std::tanh(static_cast<double>(q[2 * i]) / cap);
          const double capped = std::log(static_cast<double>(out[2 * i]) / out[2 * i + 1]);
          // tanh 3e-7, its division and product; two exponentials of 2e-7, whose arguments are
          // rounded, and a few roundings of sums.
          EXPECT_NEAR(capped, expected, 4.8e-7 * std::abs(expected) + 6e-7)
              << q[2 * i] << " capped at " << cap << ", " << n_heads << " heads";
        }
      }
    }
  });
}

// Any NaN stays a NaN, so that the sampler can report it.
TEST(Attention, KeepsNaNs) {
  enum Spoiled { kQuery, kKey, kValue };
  constexpr uint32_t kInfinity = 0x7F800000;
  for (const size_t n_tokens : {1, 3, 16, 20}) {
    const Case c = {{4, 2, 64, 64}, 30, n_tokens};
    for (const KvTypes type : kTypes) {
      for (const Spoiled spoiled : {kQuery, kKey, kValue}) {
        for (const uint32_t bits : {0x7FC00000u, 0x7FC00080u, 0xFFFFFFFFu, kInfinity}) {
          if (bits == kInfinity && spoiled != kValue) continue;  // a weight may be zero
          Attended attended(c, type);
          attended.Spoil(spoiled, std::bit_cast<float>(bits));
          ForEachTarget([&] {
            // Where Highway converts f16 by arithmetic, a NaN is a large number.
            if (CpuTarget() == "sse4" && type != KvType::kF32 && spoiled != kQuery) return;
            const std::vector<float> out = attended.Run();
            for (size_t t = 0; t < (spoiled == kQuery ? 1 : n_tokens); ++t) {
              // Number 3 of the first head's query or of the values of the first key-value head;
              // through a score, all.
              EXPECT_FALSE(std::isfinite(out[t * 4 * 64 + 3])) << t;
              EXPECT_FALSE(std::isnan(out[t * 4 * 64 + 3 * 64])) << t;  // the other key-value head
            }
          });
        }
      }
    }
  }
}

// A text whose cache is the end of another text's cache: under AddressSanitizer this finds reads
// beyond it.
TEST(Attention, OfATextAtTheEndOfACache) {
  constexpr size_t kCapacity = 100, kFirst = 95, kTokens = 5, kLength = 64;
  const std::vector<float> x = NormalFloats(kTokens * kLength, 1);
  for (const KvTypes type : kTypes) {
    std::vector<std::byte> k(kCapacity * KvBytes(type.k, kLength)), k2 = k;
    std::vector<std::byte> v(kCapacity * KvBytes(type.v, kLength)), v2 = v;
    const KvLayer all = {type, k.data(), v.data(), 1, kCapacity, kLength, kLength};
    const KvLayer own = {type, k2.data(), v2.data(), 1, kCapacity, kLength, kLength};
    ForEachTarget([&] {
      for (const size_t n_tokens : {size_t{1}, kTokens}) {
        std::vector<float> out(n_tokens * kLength), expected = out;
        ThreadPool pool(1);
        pool.Run([&] {
          for (const auto& [cache, to] : {std::pair(all.From(kFirst), &out), {own, &expected}}) {
            StoreKv(pool, cache, 0, kTokens, x.data(), x.data());
            Attend(pool, cache, x.data(), 1, n_tokens, kTokens - n_tokens, {}, to->data());
          }
        });
        EXPECT_TRUE(SameBits(out, expected));
      }
    });
  }
}

TEST(StoreKv, RoundsToTheNearestF16OnEveryTarget) {
  constexpr size_t kLength = 37;
  const std::vector<float> x = NormalFloats(kLength, 1);
  ForEachTarget([&] {
    std::vector<std::byte> k(KvBytes(KvType::kF16, kLength)), v = k;
    const KvLayer cache{KvType::kF16, k.data(), v.data(), 1, 1, kLength, kLength};
    ThreadPool pool(1);
    StoreKv(pool, cache, 0, 1, x.data(), x.data());
    for (size_t i = 0; i < kLength; ++i) {
      uint16_t stored;
      std::memcpy(&stored, &k[2 * i], 2);
      EXPECT_EQ(stored, F32ToF16(x[i]));
    }
    EXPECT_EQ(k, v);
  });
}

// The reference reads stored keys back from a ring buffer.
TEST(ReadCachedKey, OfEveryTypeAndSlot) {
  constexpr size_t kLength = 48, kHeads = 2, kCapacity = kTileKeys, kFirst = 200, kTokens = 100;
  const std::vector<float> keys = NormalFloats(kTokens * kHeads * kLength, 1);
  for (const KvTypes type : kTypes) {
    std::vector<std::byte> k(kHeads * kCapacity * KvBytes(type.k, kLength));
    std::vector<std::byte> v(kHeads * kCapacity * KvBytes(type.v, kLength));
    const KvLayer cache{type, k.data(), v.data(), kHeads, kCapacity, kLength, kLength};
    ThreadPool pool(3);
    pool.Run([&] { StoreKv(pool, cache, kFirst, kTokens, keys.data(), keys.data()); });
    for (size_t i = 0; i < kTokens * kHeads; ++i) {
      const float* const key = keys.data() + i * kLength;
      std::vector<float> found(kLength);
      ReadCachedKey(cache, i % kHeads, kFirst + i / kHeads, found.data());
      for (size_t j = 0; j < kLength; ++j) {
        float largest = 0;  // in the block of 32
        for (size_t n = j / 32 * 32; n < std::min(kLength, j / 32 * 32 + 32); ++n) {
          largest = std::max(largest, std::abs(key[n]));
        }
        // Half a step of f16, of a number and, with int8, of the scale of 127 steps.
        // With 4 bits the largest number is at least 6.5 steps, and may be cut off by 1.5 of 9.5.
        const float tolerance = type.k == KvType::kF32    ? 0
                                : type.k == KvType::kF16  ? std::abs(key[j]) / 2048 + 6e-8f
                                : type.k == KvType::kQ8_0 ? largest / 254 + largest / 2048
                                                          : largest * 0.2f;
        EXPECT_NEAR(found[j], key[j], tolerance);
      }
    }
  }
}

// Compares with llama.cpp's rounding to Q4_0, where the largest number is -8 steps.
TEST(RoundToQ4, ErrsLessThanByTheLargestNumber) {
  constexpr size_t kBlocks = 400;
  const std::vector<float> x = NormalFloats(kBlocks * 32, 1);
  ForEachTarget([&] {
    double all = 0, all_usual = 0, power = 0;
    for (size_t b = 0; b < kBlocks; ++b) {
      const float* const numbers = &x[b * 32];
      gguf::BlockQ4_0 block;
      RoundToQ4(numbers, block);
      float found[32];
      DequantizeRow(gguf::DType::kQ4_0, reinterpret_cast<const std::byte*>(&block), 32, found);
      const double largest = *std::max_element(
          numbers, numbers + 32, [](float a, float c) { return std::abs(a) < std::abs(c); });
      const double step = largest / -8;
      double error = 0, usual = 0;
      for (size_t i = 0; i < 32; ++i) {
        const double q = std::min(std::nearbyint(numbers[i] / step), 7.0);
        error += std::pow(found[i] - numbers[i], 2);
        usual += std::pow(q * step - numbers[i], 2);
        power += std::pow(numbers[i], 2);
      }
      EXPECT_LT(error, 1.01 * usual) << b;  // a scale in f16
      all += error;
      all_usual += usual;
    }
    EXPECT_LT(all, 0.92 * all_usual);
    EXPECT_LT(all, 0.007 * power);
  });
}

TEST(AttentionWeights, SumUpToOneWithTheSink) {
  constexpr size_t kLength = 16, kKeys = 37;
  const std::vector<float> q = NormalFloats(kLength, 1), keys = NormalFloats(kKeys * kLength, 2);
  AttentionParams params = {.scale = 0.25f};
  std::vector<double> plain(kKeys), with_sink(kKeys);
  const float sink = 0.5f;
  AttentionWeights(q.data(), keys.data(), kKeys, kLength, kLength, params, nullptr, plain.data());
  AttentionWeights(q.data(), keys.data(), kKeys, kLength, kLength, params, &sink, with_sink.data());
  double sum = 0, sum_with_sink = 0, exps = 0;
  for (size_t p = 0; p < kKeys; ++p) {
    sum += plain[p];
    sum_with_sink += with_sink[p];
    double score = 0;
    for (size_t i = 0; i < kLength; ++i) score += double{q[i]} * keys[p * kLength + i];
    exps += std::exp(0.25 * score);
  }
  EXPECT_NEAR(sum, 1, kKeys * 1e-16);
  EXPECT_NEAR(sum_with_sink, exps / (exps + std::exp(0.5)), 1e-13);
}

}  // namespace
}  // namespace kernels
