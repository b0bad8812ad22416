// Recurrent layers on every instruction set against their definitions. Neither threads nor batches
// change a bit.
#include "kernels/recurrence/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/recurrence/reference.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// The relative error of a float operation, at most. Bounds below leave out its square.
constexpr double kRounding = std::numeric_limits<float>::epsilon() / 2;
constexpr float kInf = std::numeric_limits<float>::infinity();

double Norm(const double* x, size_t n, size_t stride = 1) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += x[i * stride] * x[i * stride];
  return std::sqrt(squares);
}

// A layer that has read some tokens.
struct Result {
  Floats out, state;
  bool operator==(const Result& other) const {
    const auto same = [](const Floats& a, const Floats& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
    };
    return same(out, other.out) && same(state, other.state);
  }
};

// Expects equal bits for 1 to 3 threads and any batches. compute(n_threads, batch) reads all
// tokens, `batch` at a time.
template <class Compute>
void ExpectSameBits(const Compute& compute, size_t n_tokens) {
  const Result all = compute(1, n_tokens);
  EXPECT_TRUE(compute(2, n_tokens) == all);
  EXPECT_TRUE(compute(3, n_tokens) == all);
  for (const size_t batch : {1, 2, 7, 32}) {
    EXPECT_TRUE(compute(1, batch) == all) << "batches of " << batch;
    EXPECT_TRUE(compute(3, batch) == all) << "batches of " << batch;
  }
}

// ---- Convolutions

struct ConvInput {
  ConvInput(size_t n_taps, size_t n_channels, size_t tokens, bool with_bias, bool silu)
      : taps(NormalFloats(n_taps * n_channels, 1)),
        bias(NormalFloats(n_channels, 2)),
        history(NormalFloats((n_taps - 1) * n_channels, 3)),
        in(NormalFloats(tokens * n_channels, 4)),
        n_tokens(tokens),
        conv{taps.data(), with_bias ? bias.data() : nullptr, n_taps, n_channels, silu} {}

  Result Compute(int n_threads, size_t batch) const {
    ThreadPool pool(n_threads);
    Result result{Floats(in.size() + 1, kSentinel), history};
    result.state.push_back(kSentinel);
    pool.Run([&] {
      for (size_t t = 0; t < n_tokens; t += batch) {
        Convolve(pool, conv, result.state.data(), in.data() + t * conv.n_channels,
                 std::min(batch, n_tokens - t), result.out.data() + t * conv.n_channels);
      }
    });
    return result;
  }

  // The input of channel c `back` tokens before token t.
  double At(size_t t, size_t back, size_t c) const {
    const size_t row = t + conv.n_taps - 1 - back, n_before = conv.n_taps - 1;
    return row < n_before ? history[row * conv.n_channels + c]
                          : in[(row - n_before) * conv.n_channels + c];
  }

  Floats taps, bias, history, in;
  size_t n_tokens;
  CausalConv conv;
};

void ExpectConvolved(const ConvInput& input, const Result& result) {
  const CausalConv& conv = input.conv;
  for (size_t t = 0; t < input.n_tokens; ++t) {
    for (size_t c = 0; c < conv.n_channels; ++c) {
      Doubles x(conv.n_taps);
      double magnitude = conv.bias != nullptr ? std::abs(conv.bias[c]) : 0;
      for (size_t i = 0; i < conv.n_taps; ++i) {
        x[i] = input.At(t, conv.n_taps - 1 - i, c);
        magnitude += std::abs(double{conv.taps[c * conv.n_taps + i]} * x[i]);
      }
      const double expected = ConvolveReference(conv, c, x.data());
      // A product and a sum for each tap. The slope of silu is at most 1.1; its exponential is
      // right to 4 roundings, and three operations follow.
      double tolerance = kRounding * static_cast<double>(conv.n_taps + 1) * magnitude;
      if (conv.silu) tolerance = 1.1 * tolerance + 7 * kRounding * std::abs(expected);
      ASSERT_NEAR(result.out[t * conv.n_channels + c], expected, tolerance) << t << ", " << c;
    }
  }
  ASSERT_EQ(result.out.back(), kSentinel);
  for (size_t i = 0; i + 1 < conv.n_taps; ++i) {
    for (size_t c = 0; c < conv.n_channels; ++c) {
      ASSERT_EQ(result.state[i * conv.n_channels + c],
                input.At(input.n_tokens - 1, conv.n_taps - 2 - i, c));
    }
  }
  ASSERT_EQ(result.state.back(), kSentinel);
}

TEST(Convolve, IsTheDefinition) {
  ForEachTarget([] {
    for (size_t n_taps = 1; n_taps <= kMaxTaps; ++n_taps) {
      for (const size_t n_channels : {1, 5, 16, 37, 300}) {
        for (const size_t n_tokens : {1, 2, 7, 33}) {
          SCOPED_TRACE(testing::Message() << n_taps << " taps, " << n_channels << " channels, "
                                          << n_tokens << " tokens");
          const bool odd = n_taps % 2 != 0;
          const ConvInput input(n_taps, n_channels, n_tokens, odd, n_channels != 37);
          ExpectConvolved(input, input.Compute(1, n_tokens));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(Convolve, HasTheSameBitsWithAnyThreadsAndBatches) {
  ForEachTarget([] {
    for (const size_t n_taps : {1, 2, 3, 4, 5, 8}) {
      const ConvInput input(n_taps, 300, 39, true, true);
      ExpectSameBits([&](int n, size_t batch) { return input.Compute(n, batch); }, 39);
    }
  });
}

// Channels in three parts with their own taps give the same as one convolution.
TEST(Convolve, IsTheSameInParts) {
  constexpr size_t kTaps = 4, kChannels = 111, kPart = 37, kTokens = 9;
  const ConvInput input(kTaps, kChannels, kTokens, false, true);
  Result parts{Floats(kTokens * kChannels + 1, kSentinel), input.history};
  parts.state.push_back(kSentinel);
  ThreadPool pool(1);
  for (size_t first = 0; first < kChannels; first += kPart) {
    const CausalConv part = {.taps = &input.taps[first * kTaps],
                             .n_taps = kTaps,
                             .n_channels = kPart,
                             .silu = true,
                             .stride = kChannels};
    for (size_t t = 0; t < kTokens; t += 3) {
      const size_t at = t * kChannels + first;
      Convolve(pool, part, &parts.state[first], &input.in[at], 3, &parts.out[at]);
    }
  }
  EXPECT_TRUE(parts == input.Compute(1, kTokens));
}

// ---- Gated delta nets

struct DeltaInput {
  DeltaInput(size_t n_key_heads, size_t per_key_head, size_t length, bool in_turn, size_t tokens,
             bool by_channel = false)
      : n_heads(n_key_heads * per_key_head),
        row((2 * n_key_heads + n_heads) * length),
        n_alpha(n_heads * (by_channel ? length : 1)),
        n_tokens(tokens),
        qkv(NormalFloats(tokens * row, 1)),
        alpha(NormalFloats(tokens * n_alpha, 2)),
        beta(NormalFloats(tokens * n_heads, 3)),
        dt_bias(NormalFloats(n_alpha, 4)),
        a(n_heads),
        state(NormalFloats(n_heads * length * length, 5)) {
    // From a head that forgets almost nothing to a head that forgets almost everything.
    for (size_t j = 0; j < n_heads; ++j) a[j] = -0.01f * std::pow(5.0f, static_cast<float>(j));
    net = {n_key_heads, n_heads, length, in_turn, dt_bias.data(), a.data(), by_channel};
  }

  Result Compute(int n_threads, size_t batch) const {
    ThreadPool pool(n_threads);
    const size_t n_out = n_heads * net.length;
    Result result{Floats(n_tokens * n_out + 1, kSentinel), state};
    result.state.push_back(kSentinel);
    Floats x = qkv, gate = alpha, rate = beta;
    pool.Run([&] {
      for (size_t t = 0; t < n_tokens; t += batch) {
        GatedDeltaNet(pool, net, result.state.data(), &x[t * row], &gate[t * n_alpha],
                      &rate[t * n_heads], std::min(batch, n_tokens - t), &result.out[t * n_out]);
      }
    });
    return result;
  }

  size_t n_heads, row, n_alpha, n_tokens;
  Floats qkv, alpha, beta, dt_bias, a, state;
  DeltaNet net;
};

// The largest error of exp(softplus(x) * a), in roundings: x, a sum, is rounded, and softplus
// passes that on and adds some four; so does the product with a, and exp adds two. As vectors,
// which compute both in fewer steps, softplus adds eight (exp four, a quotient, a series), and exp
// four.
double DecayRoundings(double x, double a, bool vectors = false) {
  return std::abs(a) * (std::abs(x) + (vectors ? 9 : 5) * SoftplusReference(x)) + (vectors ? 4 : 2);
}

// The largest error of exp(lowest * sigmoid(a * x)), in roundings: the sigmoid passes on the
// roundings of its argument, a sum and a product, and adds six.
double BoundedRoundings(double x, double a, double lowest) {
  const double argument = std::abs(a * x), sigmoid = 1 / (1 + std::exp(-a * x));
  return std::abs(lowest) * sigmoid * (2 * argument + 6) + 4;
}

// Head j. Let u be a rounding. A token's change of a column s of the state, N numbers, errs by u
// times the following, in terms of lengths; the lengths of k' and q' are at most 1.
//   k'           N/2 + 3: a sum of N squares under a root, a quotient and a product
//   s . k'       N + 1 for the sum, and the error of k': 1.5 N + 4, times |s|
//   d            as much (1 more if the key was multiplied with decays), and for decay * read, a
//   difference and sigmoid times it (|v| + |s|) times
//                DecayRoundings and 6; sigmoid is right to 4
//   s + k' d     3 |s| and DecayRoundings * |s|, and |d| times the error of k' and 1
// |d| is at most |v| + |s|, so together (2 N + 24 + 2 DecayRoundings) (|v| + |s|). The earlier
// error of the state is multiplied by decay (1 - sigmoid k' k'^T), which makes no column longer. An
// output adds the error of q' and a sum of N: (1.5 N + 5) |s| / sqrt(N).
void ExpectDelta(const DeltaInput& input, size_t j, const Result& result) {
  const DeltaNet& net = input.net;
  const size_t n = net.length;
  const double size = static_cast<double>(n);
  Doubles state(input.state.begin() + static_cast<ptrdiff_t>(j * n * n),
                input.state.begin() + static_cast<ptrdiff_t>((j + 1) * n * n));
  Doubles error(n), q(n), k(n), out(n);
  for (size_t t = 0; t < input.n_tokens; ++t) {
    const float* const heads = &input.qkv[t * input.row];
    const float* const query = heads + net.KeyHead(j) * n;
    const float* const value = heads + (2 * net.n_key_heads + j) * n;
    const size_t gate = t * input.n_heads + j;
    const size_t n_decays = net.decay_by_channel ? n : 1;
    const float* const alpha = &input.alpha[gate * n_decays];
    double decay_roundings = 0;
    for (size_t i = 0; i < n_decays; ++i) {
      const double x = double{alpha[i]} + double{net.dt_bias[j * n_decays + i]};
      const double roundings = net.lowest != 0 ? BoundedRoundings(x, net.a[j], net.lowest)
                                               : DecayRoundings(x, net.a[j], net.decay_by_channel);
      decay_roundings = std::max(decay_roundings, roundings + (n_decays > 1));
    }
    for (size_t c = 0; c < n; ++c) {
      error[c] += kRounding * (2 * size + 24 + 2 * decay_roundings) *
                  (std::abs(value[c]) + Norm(&state[c], n, n));
    }
    DeltaNetReference(net, j, query, query + net.n_key_heads * n, value, alpha,
                      double{input.beta[gate]}, state.data(), q.data(), k.data(), out.data());
    for (size_t c = 0; c < n; ++c) {
      const double tolerance =
          (error[c] + kRounding * (1.5 * size + 5) * Norm(&state[c], n, n)) / std::sqrt(size);
      ASSERT_NEAR(result.out[(t * input.n_heads + j) * n + c], out[c], tolerance)
          << "token " << t << ", head " << j << ", column " << c;
    }
  }
  for (size_t i = 0; i < n * n; ++i) {
    ASSERT_NEAR(result.state[j * n * n + i], state[i], error[i % n]);
  }
}

TEST(GatedDeltaNet, IsTheDefinition) {
  ForEachTarget([] {
    for (const size_t length : {1, 4, 5, 8, 17, 64, 128, 130}) {
      for (const size_t n_tokens : {1, 7, 33}) {
        for (const auto& [in_turn, by_channel] :
             {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
          if (by_channel && (length == 1 || length == 8 || length == 128))
            continue;  // to save time
          const size_t n_key_heads = by_channel ? 6 : length % 3 + 1;
          SCOPED_TRACE(testing::Message()
                       << "length " << length << ", " << n_tokens << " tokens, " << by_channel);
          DeltaInput input(n_key_heads, 6 / n_key_heads, length, in_turn, n_tokens, by_channel);
          if (by_channel && n_tokens == 7) input.net.lowest = -5;
          const Result result = input.Compute(1, n_tokens);
          for (size_t j = 0; j < input.n_heads; ++j) {
            ExpectDelta(input, j, result);
            if (testing::Test::HasFatalFailure()) return;
          }
          ASSERT_EQ(result.out.back(), kSentinel);
          ASSERT_EQ(result.state.back(), kSentinel);
        }
      }
    }
  });
}

TEST(GatedDeltaNet, HasTheSameBitsWithAnyThreadsAndBatches) {
  ForEachTarget([] {
    for (const size_t length : {5, 64, 72, 130}) {
      const bool by_channel = length == 72;
      const DeltaInput input(2, by_channel ? 1 : 2, length, true, 39, by_channel);
      ExpectSameBits([&](int n, size_t batch) { return input.Compute(n, batch); }, 39);
    }
  });
}

// The purpose of the layer: with a gate that keeps everything and sigmoid(beta) = 1, reading with a
// key gives the value that it was last given, whatever was stored under keys at right angles to it.
TEST(GatedDeltaNet, RemembersTheLastValueOfEachKey) {
  ForEachTarget([] {
    constexpr size_t kLength = 4;
    const float zero = 0;
    const DeltaNet net = {1, 1, kLength, false, &zero, &zero};
    Floats state(kLength * kLength), out(4 * kLength);
    // q, k, v of four tokens: the keys are e0, e1, e0, e2, the last asks for e0.
    Floats qkv = {0, 0, 1, 0, 3, 0, 0, 0, 1, 2, 3, 4,  //
                  7, 0, 0, 0, 0, 2, 0, 0, 5, 6, 7, 8,  //
                  0, 4, 0, 0, 1, 0, 0, 0, 9, 8, 7, 6,  //
                  5, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1};
    Floats alpha(4), beta(4, 100.0f);
    ThreadPool pool(1);
    GatedDeltaNet(pool, net, state.data(), qkv.data(), alpha.data(), beta.data(), 4, out.data());
    const Floats expected = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6};
    // kUnitEps makes keys of length 1 shorter by half of it.
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_NEAR(out[i], expected[i] / 2, 9 * 3 * kUnitEps) << i;
  });
}

// Rows of S with equal decays give the same as one decay for all rows.
TEST(GatedDeltaNet, EqualDecaysAreOne) {
  ForEachTarget([] {
    DeltaInput one(2, 1, 20, false, 7), each(2, 1, 20, false, 7, true);
    for (size_t i = 0; i < each.alpha.size(); ++i) each.alpha[i] = one.alpha[i / 20];
    for (size_t i = 0; i < each.dt_bias.size(); ++i) each.dt_bias[i] = one.dt_bias[i / 20];
    const Result of_one = one.Compute(1, 7), of_each = each.Compute(1, 7);
    for (size_t i = 0; i < of_one.out.size(); ++i) {
      EXPECT_NEAR(of_one.out[i], of_each.out[i], 1e-4);  // a wrong row's decay: 0.1 and more
    }
  });
}

// ---- Mamba

struct ScanInput {
  ScanInput(size_t n_channels, size_t length, size_t tokens)
      : n_tokens(tokens),
        u(NormalFloats(tokens * n_channels, 1)),
        dt(NormalFloats(tokens * n_channels, 2)),
        bc(NormalFloats(tokens * 2 * length, 3)),
        a(n_channels * length),
        d(NormalFloats(n_channels, 4)),
        state(NormalFloats(n_channels * length, 5)),
        net{n_channels, length, a.data(), d.data()} {
    for (size_t i = 0; i < a.size(); ++i) a[i] = -0.01f * static_cast<float>(1 + i * i % 400);
  }

  Result Compute(int n_threads, size_t batch) const {
    ThreadPool pool(n_threads);
    const size_t n = net.n_channels;
    Result result{Floats(n_tokens * n + 1, kSentinel), state};
    result.state.push_back(kSentinel);
    pool.Run([&] {
      for (size_t t = 0; t < n_tokens; t += batch) {
        SelectiveScan(pool, net, result.state.data(), &u[t * n], &dt[t * n],
                      &bc[t * 2 * net.state_length], std::min(batch, n_tokens - t),
                      &result.out[t * n]);
      }
    });
    return result;
  }

  size_t n_tokens;
  Floats u, dt, bc, a, d, state;
  Mamba net;
};

// Channel c. The error of a number s of the state is the earlier error times its decay, plus |s|
// times DecayRoundings (without a bias) and 2 for the product and the sum, and |dt' u B| times the
// error of dt' (softplus rounds eight times) and 3. An output adds a sum of N and D u.
void ExpectScanned(const ScanInput& input, size_t c, const Result& result) {
  const Mamba& net = input.net;
  const size_t n = net.state_length;
  const auto first = input.state.begin() + static_cast<ptrdiff_t>(c * n);
  Doubles state(first, first + static_cast<ptrdiff_t>(n)), error(n);
  for (size_t t = 0; t < input.n_tokens; ++t) {
    const float* const b = &input.bc[t * 2 * n];
    const double u = input.u[t * net.n_channels + c], dt = input.dt[t * net.n_channels + c];
    const double step = SoftplusReference(dt);
    for (size_t i = 0; i < n; ++i) {
      const double a = net.a[c * n + i];
      error[i] = std::exp(step * a) * error[i] +
                 kRounding * (DecayRoundings(dt, a, true) + 2) * std::abs(state[i]) +
                 kRounding * 11 * std::abs(step * u * double{b[i]});
    }
    const double out = MambaReference(net, c, u, b, b + n, dt, state.data());
    double tolerance = 2 * kRounding * std::abs(double{net.d[c]} * u);
    for (size_t i = 0; i < n; ++i) {
      const double roundings = kRounding * static_cast<double>(n + 2) * std::abs(state[i]);
      tolerance += (error[i] + roundings) * std::abs(double{b[n + i]});
    }
    ASSERT_NEAR(result.out[t * net.n_channels + c], out, tolerance) << "token " << t;
  }
  for (size_t i = 0; i < n; ++i) ASSERT_NEAR(result.state[c * n + i], state[i], error[i]);
}

TEST(MambaScan, IsTheDefinition) {
  ForEachTarget([] {
    for (const size_t n_channels : {1, 5, 16, 70}) {
      for (const size_t length : {1, 4, 12, 16, 17, 40}) {
        for (const size_t n_tokens : {1, 7}) {
          SCOPED_TRACE(testing::Message() << n_channels << " x " << length << ", " << n_tokens);
          const ScanInput input(n_channels, length, n_tokens);
          const Result result = input.Compute(1, n_tokens);
          for (size_t c = 0; c < n_channels; ++c) {
            ExpectScanned(input, c, result);
            if (testing::Test::HasFatalFailure()) return;
          }
          ASSERT_EQ(result.out.back(), kSentinel);
          ASSERT_EQ(result.state.back(), kSentinel);
        }
      }
    }
  });
}

TEST(MambaScan, HasTheSameBitsWithAnyThreadsAndBatches) {
  ForEachTarget([] {
    for (const size_t length : {5, 16}) {
      const ScanInput input(300, length, 39);
      ExpectSameBits([&](int n, size_t batch) { return input.Compute(n, batch); }, 39);
    }
  });
}

// ---- Mamba-2

struct MambaInput {
  // lightning: without dt_bias and d, which lightning attention lacks.
  MambaInput(size_t n_groups, size_t per_group, size_t state_length, size_t head_length,
             size_t tokens, bool lightning = false)
      : n_heads(n_groups * per_group),
        row(n_heads * head_length + 2 * n_groups * state_length),
        n_tokens(tokens),
        ubc(NormalFloats(tokens * row, 1)),
        dt(NormalFloats(tokens * n_heads, 2)),
        dt_bias(NormalFloats(n_heads, 3)),
        a(n_heads),
        d(NormalFloats(n_heads, 4)),
        state(NormalFloats(n_heads * state_length * head_length, 5)) {
    for (size_t j = 0; j < n_heads; ++j) a[j] = -0.01f * std::pow(5.0f, static_cast<float>(j));
    net = {n_groups, n_heads, state_length, head_length, dt_bias.data(), a.data(), d.data()};
    if (lightning) net.dt_bias = net.d = nullptr;
  }

  Result Compute(int n_threads, size_t batch) const {
    ThreadPool pool(n_threads);
    const size_t n_out = n_heads * net.head_length;
    Result result{Floats(n_tokens * n_out + 1, kSentinel), state};
    result.state.push_back(kSentinel);
    Floats steps = dt;
    pool.Run([&] {
      for (size_t t = 0; t < n_tokens; t += batch) {
        SelectiveScan(pool, net, result.state.data(), &ubc[t * row], &steps[t * n_heads],
                      std::min(batch, n_tokens - t), &result.out[t * n_out]);
      }
    });
    return result;
  }

  size_t n_heads, row, n_tokens;
  Floats ubc, dt, dt_bias, a, d, state;
  Mamba2 net;
};

// Head j. A token decays the error of a column s of the state, and adds, in roundings, |s|
// (DecayRoundings + 3) for the product and the sum, and |dt' u| |B| times the error of dt' (x is
// rounded, and softplus rounds five times) and 3. An output adds a sum of N and D u.
void ExpectMamba(const MambaInput& input, size_t j, const Result& result) {
  const Mamba2& net = input.net;
  const size_t n = net.state_length, n_columns = net.head_length;
  Doubles state(input.state.begin() + static_cast<ptrdiff_t>(j * n * n_columns),
                input.state.begin() + static_cast<ptrdiff_t>((j + 1) * n * n_columns));
  Doubles error(n_columns), out(n_columns);
  for (size_t t = 0; t < input.n_tokens; ++t) {
    const float* const u = &input.ubc[t * input.row + j * n_columns];
    const float* const b =
        &input
             .ubc[t * input.row + input.n_heads * n_columns + j / (net.n_heads / net.n_groups) * n];
    const float* const c = b + net.n_groups * n;
    const Doubles bs(b, b + n), cs(c, c + n);
    const double raw = input.dt[t * input.n_heads + j];
    const double x = net.dt_bias != nullptr ? raw + double{net.dt_bias[j]} : 1;
    const double step = net.dt_bias != nullptr ? SoftplusReference(x) : 1;
    const double decay = std::exp(step * double{net.a[j]});
    for (size_t p = 0; p < n_columns; ++p) {
      error[p] = decay * error[p] +
                 kRounding * (DecayRoundings(x, net.a[j]) + 3) * Norm(&state[p], n, n_columns) +
                 kRounding * (std::abs(x) + 8 * step) * std::abs(u[p]) * Norm(bs.data(), n);
    }
    Mamba2Reference(net, j, u, b, c, raw, state.data(), out.data());
    for (size_t p = 0; p < n_columns; ++p) {
      const double sum = static_cast<double>(n + 2) * Norm(&state[p], n, n_columns);
      const double skip = net.d != nullptr ? 2 * std::abs(double{net.d[j]} * double{u[p]}) : 0;
      const double tolerance = (error[p] + kRounding * sum) * Norm(cs.data(), n) + kRounding * skip;
      ASSERT_NEAR(result.out[(t * input.n_heads + j) * n_columns + p], out[p], tolerance)
          << "token " << t << ", head " << j << ", column " << p;
    }
  }
  for (size_t i = 0; i < n * n_columns; ++i) {
    ASSERT_NEAR(result.state[j * n * n_columns + i], state[i], error[i % n_columns]);
  }
}

TEST(SelectiveScan, IsTheDefinition) {
  struct Shape {
    size_t n_groups, per_group, state_length, head_length;
  };
  ForEachTarget([] {
    for (const Shape& s :
         {Shape{1, 1, 1, 1}, Shape{1, 6, 4, 8}, Shape{2, 3, 8, 5}, Shape{3, 1, 17, 17},
          Shape{1, 3, 5, 64}, Shape{2, 1, 128, 64}, Shape{2, 2, 64, 128}, Shape{1, 1, 256, 80}}) {
      for (const size_t n_tokens : {1, 7, 33}) {
        SCOPED_TRACE(testing::Message()
                     << s.state_length << " x " << s.head_length << ", " << n_tokens << " tokens");
        const MambaInput input(s.n_groups, s.per_group, s.state_length, s.head_length, n_tokens);
        const Result result = input.Compute(1, n_tokens);
        for (size_t j = 0; j < input.n_heads; ++j) {
          ExpectMamba(input, j, result);
          if (testing::Test::HasFatalFailure()) return;
        }
        const MambaInput lightning(s.n_groups, s.per_group, s.state_length, s.head_length, n_tokens,
                                   /*lightning=*/true);
        ExpectMamba(lightning, 0, lightning.Compute(1, n_tokens));
        ASSERT_EQ(result.out.back(), kSentinel);
        ASSERT_EQ(result.state.back(), kSentinel);
      }
    }
  });
}

TEST(SelectiveScan, HasTheSameBitsWithAnyThreadsAndBatches) {
  ForEachTarget([] {
    for (const size_t head_length : {5, 64, 80}) {
      for (const size_t state_length : {8, 128, 200}) {
        const MambaInput input(1, 3, state_length, head_length, 39);
        ExpectSameBits([&](int n, size_t batch) { return input.Compute(n, batch); }, 39);
      }
    }
  });
}

// ---- NaNs

TEST(Recurrence, TakesAnyNumbers) {
  const Floats odd = {NAN, kInf, -kInf, 3e38f, -3e38f, 1e-45f, 0.0f, -0.0f};
  ForEachTarget([&] {
    for (size_t shift = 0; shift < odd.size(); ++shift) {
      const auto spoil = [&](Floats& x) {
        for (size_t i = 0; i < x.size(); i += 3) x[i] = odd[(i + shift) % odd.size()];
      };
      ConvInput conv(4, 20, 7, true, true);
      DeltaInput delta(1, 2, 17, false, 7), by_channel(2, 1, 17, false, 7, true);
      ScanInput scan(20, 17, 7);
      MambaInput mamba(1, 2, 5, 17, 7);
      for (Floats* x :
           {&conv.in,          &conv.taps,        &conv.history, &delta.qkv,   &delta.alpha,
            &delta.beta,       &delta.dt_bias,    &delta.a,      &delta.state, &by_channel.qkv,
            &by_channel.alpha, &by_channel.state, &scan.u,       &scan.dt,     &scan.bc,
            &scan.a,           &scan.state,       &mamba.ubc,    &mamba.dt,    &mamba.a,
            &mamba.d,          &mamba.state}) {
        spoil(*x);
      }
      EXPECT_EQ(conv.Compute(1, 7).out.back(), kSentinel);
      EXPECT_EQ(delta.Compute(1, 7).out.back(), kSentinel);
      EXPECT_EQ(by_channel.Compute(1, 7).out.back(), kSentinel);
      EXPECT_EQ(scan.Compute(1, 7).out.back(), kSentinel);
      EXPECT_EQ(mamba.Compute(1, 7).out.back(), kSentinel);
    }
  });
}

// States without additions fade below the smallest normal float within 200 tokens. They become
// zeros: as denormals, of which the smallest would stay for ever, a token may take CPUs ten times
// as long.
TEST(Recurrence, FadedStatesAreZeros) {
  constexpr size_t kTokens = 400;
  ForEachTarget([] {
    DeltaInput delta(2, 2, 17, false, kTokens), by_channel(2, 1, 17, false, kTokens, true);
    for (DeltaInput* input : {&delta, &by_channel}) {
      std::fill(input->a.begin(), input->a.end(), -0.7f);  // a decay of 0.6
      std::fill(input->alpha.begin(), input->alpha.end(), 0.0f);
      std::fill(input->dt_bias.begin(), input->dt_bias.end(), 0.0f);
      std::fill(input->beta.begin(), input->beta.end(), -kInf);  // nothing is added
    }
    MambaInput mamba(1, 2, 5, 17, kTokens);
    std::fill(mamba.a.begin(), mamba.a.end(), -0.7f);
    std::fill(mamba.dt.begin(), mamba.dt.end(), 0.0f);
    std::fill(mamba.dt_bias.begin(), mamba.dt_bias.end(), 0.0f);
    std::fill(mamba.ubc.begin(), mamba.ubc.end(), 0.0f);
    for (Floats state :
         {delta.Compute(1, 7).state, by_channel.Compute(1, 7).state, mamba.Compute(1, 7).state}) {
      state.pop_back();  // the sentinel
      EXPECT_EQ(state, Floats(state.size()));
    }
  });
}

// A NaN in a token spoils its own head and no other.
TEST(GatedDeltaNet, KeepsNaNInItsHead) {
  ForEachTarget([] {
    DeltaInput input(2, 2, 17, true, 7);
    const Result clean = input.Compute(1, 7);
    input.alpha[3 * input.n_heads + 1] = NAN;
    const Result spoilt = input.Compute(1, 7);
    for (size_t i = 0; i < 7 * input.n_heads * 17; ++i) {
      const size_t token = i / (input.n_heads * 17), head = i / 17 % input.n_heads;
      if (head == 1 && token >= 3) {
        EXPECT_TRUE(std::isnan(spoilt.out[i]));
      } else {
        EXPECT_EQ(spoilt.out[i], clean.out[i]);
      }
    }
  });
}

}  // namespace
}  // namespace kernels
