// Every encoder: errors on trained weights next to llama.cpp's, blocks that are reproduced,
// importance, and weights that a type cannot hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "gguf/file.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/grid.h"
#include "kernels/matmul/reference.h"
#include "kernels/types/shared/tables.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"
#include "tests/support/data.h"

namespace kernels {
namespace {

using gguf::DType;

constexpr size_t kTypesBlock = 256;  // a multiple of every block

// Relative squared errors of llama.cpp 0.7.0 (llama-quantize --pure) on the matrix of
// TrainedWeights(): without an importance matrix (for IQ1, IQ2 and IQ3_XXS, which need one, with a
// matrix of ones), and with Importance(), where 0 means that no figure is known.
struct Golden {
  DType dtype;
  double plain, weighted;
};
constexpr Golden kGolden[] = {
    {DType::kQ1_0, 3.6808e-01, 0},
    {DType::kQ2_0, 5.2353e-01, 0},
    {DType::kQ4_0, 7.4070e-03, 6.3618e-03},
    {DType::kQ4_1, 6.0923e-03, 4.5534e-03},
    {DType::kQ5_0, 1.8182e-03, 1.5623e-03},
    {DType::kQ5_1, 1.4223e-03, 1.0737e-03},
    {DType::kMXFP4, 1.3646e-02, 0},
    {DType::kNVFP4, 9.1492e-03, 0},
    {DType::kTQ1_0, 6.6855e-01, 0},
    {DType::kTQ2_0, 6.6855e-01, 0},
    {DType::kQ2_K, 8.7987e-02, 6.5623e-02},
    {DType::kQ3_K, 2.2600e-02, 1.9608e-02},
    {DType::kQ4_K, 5.0856e-03, 4.6823e-03},
    {DType::kQ5_K, 1.3047e-03, 1.2000e-03},
    {DType::kQ6_K, 3.1740e-04, 2.8702e-04},
    {DType::kIQ4_NL, 5.7952e-03, 5.3477e-03},
    {DType::kIQ4_XS, 5.8910e-03, 5.4588e-03},
    {DType::kIQ3_XXS, 3.2873e-02, 2.6699e-02},
    {DType::kIQ3_S, 2.7477e-02, 1.6025e-02},
    {DType::kIQ2_XXS, 1.1779e-01, 9.9653e-02},
    {DType::kIQ2_XS, 8.9256e-02, 7.5263e-02},
    {DType::kIQ2_S, 6.2027e-02, 5.5250e-02},
    {DType::kIQ1_S, 2.3521e-01, 2.1334e-01},
    {DType::kIQ1_M, 2.0340e-01, 1.7467e-01},
};

// [256][256], attn_output of the third layer of the first default model, in Q8_0: a file of its
// own, so that the golden figures outlive a better default model.
std::vector<float> TrainedWeights() {
  const gguf::File file = gguf::File::Open(test::DataPath("trained.gguf").string());
  const gguf::TensorView& tensor = file.tensors()[0];
  std::vector<float> weights(tensor.elements());
  DequantizeRow(tensor.dtype, tensor.data, weights.size(), weights.data());
  return weights;
}

// The importance of the 256 columns, spread as in real texts.
std::vector<float> Importance() {
  std::vector<float> importance(kTypesBlock);
  for (size_t i = 0; i < kTypesBlock; ++i) {
    importance[i] = 0.05f + static_cast<float>(37 * i % 64) / 16;
  }
  return importance;
}

// The squared errors of the weights in a type, with importance or without (null), as shares of the
// squares: plain, and weighted by Importance().
struct Errors {
  double plain, weighted;
};
Errors ErrorsOf(DType dtype, std::span<const float> x, const float* importance) {
  const std::vector<float> weights = Importance();
  std::vector<std::byte> row(gguf::RowBytes(dtype, kTypesBlock));
  std::vector<float> found(kTypesBlock);
  double plain = 0, plain_all = 0, weighted = 0, weighted_all = 0;
  for (size_t at = 0; at < x.size(); at += kTypesBlock) {
    EXPECT_TRUE(EncodeRow(dtype, &x[at], kTypesBlock, row.data(), importance));
    DequantizeRow(dtype, row.data(), kTypesBlock, found.data());
    for (size_t i = 0; i < kTypesBlock; ++i) {
      const double error = std::pow(double{found[i]} - x[at + i], 2);
      const double square = std::pow(double{x[at + i]}, 2);
      plain += error;
      plain_all += square;
      weighted += weights[i] * error;
      weighted_all += weights[i] * square;
    }
  }
  return {plain / plain_all, weighted / weighted_all};
}

// Every type that quantizes and is encoded.
std::vector<DType> EncodedTypes() {
  std::vector<DType> types;
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (info.block_size > 1 && CanEncode(info.type)) types.push_back(info.type);
  }
  return types;
}

// An encoded block, and the weights that other bytes would give.
class EncodedBlock {
 public:
  using Weights = std::bitset<kTypesBlock>;

  EncodedBlock(DType dtype, const float* x)
      : dtype_(dtype),
        n_(gguf::Info(dtype).block_size),
        x_(x),
        bytes_(gguf::Info(dtype).block_bytes),
        before_(n_),
        after_(n_) {
    EXPECT_TRUE(EncodeRow(dtype, x, n_, bytes_.data()));
    DequantizeRow(dtype, bytes_.data(), n_, before_.data());
    for (size_t i = 0; i < n_; ++i) energy_ += std::pow(double{x_[i]}, 2);
    for (const float v : before_) largest_ = std::max(largest_, std::fabs(v));
    for (size_t bit = 0; bit < 8 * bytes_.size(); ++bit) {
      Flip(bit);
      uses_.push_back(Changed());
      Flip(bit);
    }
  }

  size_t n_bits() const { return uses_.size(); }
  void Flip(size_t bit) { bytes_[bit / 8] ^= static_cast<std::byte>(1 << bit % 8); }
  // The weights that depend on a bit, and on any bit of its byte.
  const Weights& Uses(size_t bit) const { return uses_[bit]; }
  Weights ByteUses(size_t byte) const {
    Weights all;
    for (size_t bit = 0; bit < 8; ++bit) all |= uses_[8 * byte + bit];
    return all;
  }
  // The decrease of the squared error, as a share of the squares, by the best other value of a byte
  // of up to eight weights (a byte that changes more weights is a scale).
  double BestGain(size_t byte) {
    const std::byte old = bytes_[byte];
    double best = 0;
    for (int value = 0; value < 256; ++value) {
      bytes_[byte] = static_cast<std::byte>(value);
      if (Changed().count() <= 8) best = std::max(best, gain_ / energy_);
    }
    bytes_[byte] = old;
    return best;
  }

 private:
  // Compares the weights with the weights of the encoder's bytes.
  Weights Changed() {
    Weights changed;
    gain_ = 0;
    DequantizeRow(dtype_, bytes_.data(), n_, after_.data());
    for (size_t i = 0; i < n_; ++i) {
      if (after_[i] == before_[i]) continue;
      changed[i] = true;
      // TQ2_0 has no fourth digit.
      if (dtype_ == DType::kTQ2_0 && std::fabs(after_[i]) > largest_) gain_ = -INFINITY;
      const double was = double{before_[i]} - x_[i], is = double{after_[i]} - x_[i];
      gain_ += was * was - is * is;
    }
    return changed;
  }

  const DType dtype_;
  const size_t n_;
  const float* const x_;
  std::vector<std::byte> bytes_;
  std::vector<float> before_, after_;
  std::vector<Weights> uses_;
  double energy_ = 0, gain_ = 0;
  float largest_ = 0;
};

// Returns by how much other codes are nearer to the weights. Tries all values of each byte and,
// with `in_pairs`, all values with each bit of another byte that belongs to the same weights, since
// codes may be spread over two bytes.
double BestGain(EncodedBlock block, bool in_pairs) {
  double best = 0;
  for (size_t byte = 0; byte < block.n_bits() / 8; ++byte) {
    best = std::max(best, block.BestGain(byte));
    const EncodedBlock::Weights weights = block.ByteUses(byte);
    if (!in_pairs || weights.count() > 16) continue;
    for (size_t bit = 0; bit < block.n_bits(); ++bit) {
      const EncodedBlock::Weights& uses = block.Uses(bit);
      if (bit / 8 == byte || uses.count() > 8 || (uses & weights).none()) continue;
      block.Flip(bit);
      best = std::max(best, block.BestGain(byte));
      block.Flip(bit);
    }
  }
  return best;
}

// At a tie rounding decides: 1e-6 of the squares is allowed. In Q8_0, the finest type, a code that
// is wrong by one costs about 1e-5. The points of grids are the best only for the signs that are
// chosen first, and for scales near the first scale (points.h).
TEST(EncodeTypes, NoOtherCodesAreNearer) {
  std::vector<std::vector<float>> kinds(4, NormalFloats(kTypesBlock, 7));
  for (float& v : kinds[1]) v = std::fabs(v) + 0.5f;
  kinds[2][77] = -50.0f;
  for (float& v : kinds[3]) v *= 1e-5f;  // scales are denormal f16s
  for (const DType dtype : EncodedTypes()) {
    const std::string name(gguf::Info(dtype).name);
    const bool has_grid = name.starts_with("IQ") && !name.starts_with("IQ4");
    for (const std::vector<float>& x : kinds) {
      const bool in_pairs = &x == kinds.data();
      const double gain = BestGain(EncodedBlock(dtype, x.data()), in_pairs);
      EXPECT_LE(gain, has_grid ? 2e-3 : 1e-6) << name << " kind " << &x - kinds.data();
    }
  }
}

TEST(EncodeTypes, ErrorsAreNoLargerThanLlamaCppsOnTrainedWeights) {
  const std::vector<float> x = TrainedWeights(), importance = Importance();
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(gguf::Info(golden.dtype).name);
    const Errors plain = ErrorsOf(golden.dtype, x, nullptr);
    const Errors weighted = ErrorsOf(golden.dtype, x, importance.data());
    EXPECT_LE(plain.plain, 1.02 * golden.plain);
    if (golden.weighted > 0) {
      // Large weights count more here than their columns say.
      EXPECT_LE(weighted.weighted, 1.05 * golden.weighted);
    }
    // Columns that count more get better at the cost of other columns.
    EXPECT_LE(weighted.weighted, 1.001 * plain.weighted);
    EXPECT_GE(1.001 * weighted.plain, plain.plain);
  }
}

// The text may have used no column, or only some.
TEST(EncodeTypes, ImportanceOfNothingIsThatOfAll) {
  const std::vector<float> x = NormalFloats(4 * kTypesBlock, 9);
  const std::vector<float> zeros(kTypesBlock), many(kTypesBlock, 1e30f);
  std::vector<float> half = zeros;
  for (size_t i = 0; i < kTypesBlock; i += 2) half[i] = 3.0f;
  for (const DType dtype : EncodedTypes()) {
    SCOPED_TRACE(gguf::Info(dtype).name);
    const double plain = ErrorsOf(dtype, x, nullptr).plain;
    EXPECT_EQ(ErrorsOf(dtype, x, zeros.data()).plain, plain);
    EXPECT_EQ(ErrorsOf(dtype, x, many.data()).plain, plain);
    // Columns without importance are still nearer to the weights than zeros.
    EXPECT_LT(ErrorsOf(dtype, x, half.data()).plain, 1.0);
  }
}

// Weights decoded from a block have a block without error. The search need not find it, but comes
// nearer than to other weights.
TEST(EncodeTypes, BlocksComeBack) {
  constexpr size_t kRows = 64;
  const std::vector<float> normal = NormalFloats(kRows * kTypesBlock, 5);
  for (const DType dtype : EncodedTypes()) {
    if (dtype == DType::kTQ2_0) continue;  // random bytes have invalid digits
    SCOPED_TRACE(gguf::Info(dtype).name);
    const RandomMatrix blocks(dtype, kRows, kTypesBlock, 3);
    std::vector<float> x(kRows * kTypesBlock);
    for (size_t r = 0; r < kRows; ++r) {
      DequantizeRow(dtype, blocks.view().row(r), kTypesBlock, &x[r * kTypesBlock]);
    }
    EXPECT_LE(ErrorsOf(dtype, x, nullptr).plain, 0.5 * ErrorsOf(dtype, normal, nullptr).plain);
  }
}

// Small, large, one-sided and lonely weights: never worse than zeros in their place, and finite.
TEST(EncodeTypes, AnyWeightsAreHeld) {
  constexpr float kMax = 65504.0f;
  std::vector<std::vector<float>> rows(7, NormalFloats(kTypesBlock, 4));
  for (float& v : rows[0]) v *= 1e-5f;
  for (float& v : rows[1]) v *= 1e-30f;
  for (float& v : rows[2]) v = std::clamp(v * 1e5f, -kMax, kMax);
  for (float& v : rows[3]) v = std::fabs(v) + 1;
  for (float& v : rows[4]) v = -std::fabs(v) - 1;
  std::fill(rows[5].begin(), rows[5].end(), 0.0f);
  rows[5][200] = -3.0f;
  for (size_t i = 0; i < kTypesBlock; ++i) rows[6][i] = i % 2 == 0 ? kMax : -kMax;
  for (const DType dtype : EncodedTypes()) {
    std::vector<std::byte> row(gguf::RowBytes(dtype, kTypesBlock));
    std::vector<float> found(kTypesBlock);
    for (size_t r = 0; r < rows.size(); ++r) {
      SCOPED_TRACE(std::string(gguf::Info(dtype).name) + " row " + std::to_string(r));
      ASSERT_TRUE(EncodeRow(dtype, rows[r].data(), kTypesBlock, row.data()));
      DequantizeRow(dtype, row.data(), kTypesBlock, found.data());
      double error = 0, all = 0;
      for (size_t i = 0; i < kTypesBlock; ++i) {
        ASSERT_TRUE(std::isfinite(found[i]));
        error += std::pow(double{found[i]} - rows[r][i], 2);
        all += std::pow(double{rows[r][i]}, 2);
      }
      // Scales below 2^-14 have few bits, and scales below 2^-25 are 0.
      EXPECT_LE(error, all * 1.001 + kTypesBlock * 0x1p-50);
    }
    const std::vector<float> zeros(kTypesBlock);
    ASSERT_TRUE(EncodeRow(dtype, zeros.data(), kTypesBlock, row.data()));
    DequantizeRow(dtype, row.data(), kTypesBlock, found.data());
    EXPECT_EQ(found, zeros) << gguf::Info(dtype).name;
    for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity(), 65505.0f}) {
      std::vector<float> x(kTypesBlock, 1.0f);
      x[77] = -wrong;
      EXPECT_FALSE(EncodeRow(dtype, x.data(), kTypesBlock, row.data()))
          << gguf::Info(dtype).name << " " << wrong;
    }
  }
}

// Types that are only read belong to models that were trained in them.
TEST(EncodeTypes, EveryTypeOfMatricesIsThere) {
  const std::set<DType> for_activations = {DType::kQ8_1, DType::kQ8_K};
  const std::set<DType> only_read = {DType::kI2_S, DType::kPQ2_0, DType::kPTQ1_0};
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    EXPECT_EQ(CanEncode(info.type), IsWeightType(info.type) &&
                                        !for_activations.contains(info.type) &&
                                        !only_read.contains(info.type))
        << info.name;
  }
}

// For each scale the envelope has a point that no other point of the grid beats.
TEST(EncodeGrid, EnvelopesHaveTheBestPoints) {
  constexpr size_t n = kIq3sGrid.size(), kDims = 4, kParts = 64;
  std::vector<float> values(n * kDims);
  for (size_t p = 0; p < n; ++p) {
    for (size_t i = 0; i < kDims; ++i) {
      values[i * n + p] =
          kIq3sLevels[static_cast<size_t>(LevelOf4(kIq3sGrid[p], static_cast<int>(i)))];
    }
  }
  std::vector<float> x = NormalFloats(kParts * kDims, 1), w = NormalFloats(kParts * kDims, 2);
  for (float& v : x) v = std::fabs(v);
  for (float& v : w) v *= v;
  const std::vector<float> low(kParts, 0.08f), high(kParts, 0.25f);
  ForEachTarget([&] {
    std::vector<Envelope> envelopes(kParts);
    FindEnvelopes({values.data(), n, kDims}, {x.data(), w.data()}, kParts, low.data(), high.data(),
                  envelopes.data());
    for (size_t part = 0; part < kParts; ++part) {
      for (float scale = 0.08f; scale <= 0.25f; scale *= 1.05f) {
        double max_gain = -std::numeric_limits<double>::infinity(), size = 0;
        for (size_t p = 0; p < n; ++p) {
          double gain = 0;
          for (size_t i = 0; i < kDims; ++i) {
            const double v = values[i * n + p], at = x[part * kDims + i];
            gain += w[part * kDims + i] * scale * v * (2 * at - scale * v);
          }
          max_gain = std::max(max_gain, gain);
        }
        for (size_t i = 0; i < kDims; ++i) {
          size += double{w[part * kDims + i]} * x[part * kDims + i] * x[part * kDims + i];
        }
        const Envelope::Choice& choice = envelopes[part].Best(scale);
        // An omitted point may be better by 1e-5 of a sum; sums are of squares up to 15 x 0.25 = 4
        // times as large as weights of 1.
        ASSERT_GE(choice.sums.Gain(scale), max_gain - 1e-4 * (size + std::fabs(max_gain)))
            << part << " " << scale;
      }
    }
  });
}

}  // namespace
}  // namespace kernels
