// The order of the sampling steps, distributions, biases and masks.
#include "engine/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/error.h"
#include "tests/support/allocations.h"

namespace engine {
namespace {

using tokenizer::TokenId;

using Text = std::vector<TokenId>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// No step cuts.
Sampling Uncut(int64_t seed, float temperature = 1) {
  return {.seed = seed, .temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0};
}

// The logits of tokens with these odds.
std::vector<float> Logarithms(const std::vector<double>& odds) {
  std::vector<float> logits;
  for (const double one : odds) logits.push_back(static_cast<float>(std::log(one)));
  return logits;
}

// The most likely of three tokens with logits 1, 5 and 4 after this text.
TokenId Next(const Sampling& options, const Text& text) {
  return Sampler(options).Sample(std::vector<float>{1, 5, 4}, {}, text);
}

// Draws n tokens after a text and returns chi-squared against the expected probabilities.
double ChiSquared(const Sampling& options, const std::vector<float>& logits,
                  const std::vector<double>& expected, int n, const Text& text = {}) {
  Sampler sampler(options);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < n; ++i) ++counts[static_cast<size_t>(sampler.Sample(logits, {}, text))];
  double chi = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " should have been cut";
      continue;
    }
    const double mean = expected[i] * n;
    chi += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  return chi;
}

// 99.99% of chi-squared samples with 3 degrees of freedom lie under 21.1 (with 2: 18.4, with
// 1: 15.1). The seeds are fixed, so these tests do not fail by chance.
constexpr double kLimit3 = 21.1;
constexpr double kLimit2 = 18.4;
constexpr double kLimit1 = 15.1;

TEST(Sampler, DrawsFromTheSoftmax) {
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  EXPECT_LT(ChiSquared(Uncut(1), Logarithms(p), p, 100000), kLimit3);
  // The test can fail: another distribution is far outside.
  EXPECT_GT(ChiSquared(Uncut(1), Logarithms(p), {0.11, 0.19, 0.3, 0.4}, 100000), kLimit3);
}

TEST(Sampler, TemperatureReshapes) {
  // Squares the odds: 1 : 4 becomes 1 : 16.
  EXPECT_LT(ChiSquared(Uncut(2, 0.5f), Logarithms({1, 4}), {1.0 / 17, 16.0 / 17}, 100000), kLimit1);
}

// llama.cpp's order: top-k first, so that top-p sees the renormalized rest.
TEST(Sampler, StepsFollowTheDefaultOrder) {
  Sampling options = {.seed = 3, .temperature = 1, .min_p = 0};
  options.top_k = 2;     // leaves 0.4 and 0.3: 4/7 = 0.571 and 3/7
  options.top_p = 0.5f;  // of those, 0.571 is enough; of all four, 0.4 would not have been
  const std::vector<float> logits = Logarithms({0.1, 0.2, 0.3, 0.4});
  EXPECT_LT(ChiSquared(options, logits, {0, 0, 0, 1}, 1000), kLimit1);
  options.steps = {SamplerStep::kTopP, SamplerStep::kTopK, SamplerStep::kTemperature};
  EXPECT_LT(ChiSquared(options, logits, {0, 0, 3.0 / 7, 4.0 / 7}, 10000), kLimit1);
}

TEST(Sampler, SameSeedSameTokens) {
  const std::vector<float> logits(100, 0.0f);
  Sampling options = {.seed = 42};
  Sampler a(options), b(options);
  options.seed = 43;
  Sampler c(options);
  std::vector<TokenId> from_a, from_b, from_c;
  for (int i = 0; i < 50; ++i) {
    from_a.push_back(a.Sample(logits));
    from_b.push_back(b.Sample(logits));
    from_c.push_back(c.Sample(logits));
  }
  EXPECT_EQ(from_a, from_b);
  EXPECT_NE(from_a, from_c);
}

TEST(Sampler, GreedyTakesTheMostLikelyAfterPenalties) {
  Sampling options = {.temperature = 0, .presence_penalty = 2};
  EXPECT_EQ(Next(options, {}), 1);
  EXPECT_EQ(Next(options, {1}), 2);
  EXPECT_EQ(Next(options, {1, 2}), 1) << "5 - 2 is still more than 4 - 2";
  Text text(10000, 0);
  text[0] = 1;
  EXPECT_EQ(Next(options, text), 1) << "penalties forget old tokens";
  options.repeat_last_n = 2;
  EXPECT_EQ(Next(options, {1, 0, 0}), 1);
  options.repeat_last_n = -1;
  EXPECT_EQ(Next(options, text), 2);
}

TEST(Sampler, TheTextMayChange) {
  Sampler sampler(Sampling{.temperature = 0, .presence_penalty = 2});
  const std::vector<float> logits = {1, 5, 4};
  EXPECT_EQ(sampler.Sample(logits, {}, Text{1}), 2);
  EXPECT_EQ(sampler.Sample(logits, {}, Text{2}), 1);
  EXPECT_EQ(sampler.Sample(logits, {}, Text{1}), 2);
}

// The whole chain on eight tokens, worked out by hand. Probabilities in 64ths: 32 16 8 4 1 1 1 1.
TEST(Sampler, EveryStepInTurn) {
  Sampling options = {.seed = 11};
  // The penalty halves token 0's odds (its logit falls by log 2): 16 16 8 4 1 1 1 1.
  options.presence_penalty = std::log(2.0f);
  options.top_k = 6;  // 16 16 8 4 1 1, of 46
  options.typical_p = 1.0f;
  options.top_p = 0.93f;       // 16 + 16 + 8 of 46 is 0.87, with the 4 it is 0.957
  options.min_p = 0.3f;        // of 16: 4.8, so the 4 goes
  options.temperature = 0.5f;  // squares the odds: 256 256 64 of 576
  const Text text = {0};
  EXPECT_LT(ChiSquared(options, Logarithms({32, 16, 8, 4, 1, 1, 1, 1}),
                       {4.0 / 9, 4.0 / 9, 1.0 / 9, 0, 0, 0, 0, 0}, 200000, text),
            kLimit2);
}

// Odds 8 4 2 1 1: the entropy is (8*1 + 4*2 + 2*3 + 2*4)/16 = 1.875 bits; surprisals are 1 2 3 4 4
// bits, their distances 0.875 0.125 1.125 2.125. So 0.7 takes token 1 (0.25), then 0 (0.5).
TEST(Sampler, TypicalDistribution) {
  Sampling options = Uncut(12);
  options.typical_p = 0.7f;
  EXPECT_LT(ChiSquared(options, Logarithms({8, 4, 2, 1, 1}), {2.0 / 3, 1.0 / 3, 0, 0, 0}, 100000),
            kLimit1);
}

TEST(Sampler, AlmostColdIsCold) {
  EXPECT_EQ(Sampler({.temperature = 1e-40f}).Sample(std::vector<float>{1, 5, 4.999f}), 1);
}

TEST(Sampler, LogitBiasComesFirst) {
  Sampling options = {.temperature = 0};
  options.logit_bias = {{1, -kInf}, {0, 10.0f}, {77, 1.0f}};  // 77 is outside: no effect
  EXPECT_EQ(Next(options, {}), 0);
}

TEST(Sampler, WhatIsNotANumberIsNeverPicked) {
  Sampling options;
  for (const float temperature : {0.0f, 1.0f}) {
    options.temperature = temperature;
    Sampler sampler(options);
    EXPECT_EQ(sampler.Sample(std::vector<float>{kNotANumber, kInf, -1e30f, -kInf}), 2);
    EXPECT_THROW(sampler.Sample(std::vector<float>{kNotANumber, kNotANumber}), Error);
  }
}

// XTC in half of the draws: of odds 4 3 2 1 the first two go then, and it is 2 : 1.
TEST(Sampler, XtcNowAndThen) {
  Sampling options = Uncut(21);
  options.xtc_probability = 0.5f;
  options.xtc_threshold = 0.15f;
  EXPECT_LT(ChiSquared(options, Logarithms({4, 3, 2, 1}),
                       {0.2, 0.15, 0.1 + 1.0 / 3, 0.05 + 1.0 / 6}, 100000),
            kLimit3);
}

TEST(Sampler, DryKeepsFromRepeating) {
  const Sampling options = {.temperature = 0, .dry = {.multiplier = 2}};
  EXPECT_EQ(Next(options, {0, 2, 1, 0, 2}), 2) << "0 2 1 once more";
  EXPECT_EQ(Next(options, {0, 2, 1, 0}), 1) << "one token may repeat";
}

// The paper's algorithm, written down once more: odds of 2^10 to 1, a target of 3 bits.
TEST(Sampler, MirostatKeepsTheSurprisal) {
  Sampling options = {.seed = 5, .temperature = 1};
  options.top_k = 1;  // has no effect: Mirostat takes the place of the steps that cut
  options.mirostat = {.version = 2, .tau = 3.0f, .eta = 0.1f};
  std::vector<float> logits;
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    logits.push_back(static_cast<float>(-std::log(1.0 + i)));
    sum += 1.0 / (1.0 + i);
  }
  Sampler sampler(options);
  double mu = 6, total = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const TokenId id = sampler.Sample(logits);
    const double surprisal = std::log2((1.0 + id) * sum);
    EXPECT_TRUE(surprisal <= mu + 1e-4 || id == 0) << surprisal << " bits, and mu is " << mu;
    mu -= 0.1 * (surprisal - 3);
    total += surprisal;
  }
  // Summed up, mu moved by eta * (n * tau - total): the mean is off by as little as mu moved.
  EXPECT_NEAR(total / kDraws, 3, std::abs(mu - 6) / (0.1 * kDraws) + 1e-3);
  EXPECT_NEAR(total / kDraws, 3, 0.1);
}

TEST(Sampler, OptionsCanChange) {
  Sampling options = {.temperature = 0};
  Sampler sampler(options);
  const std::vector<float> logits = {1, 5, 4};
  options.presence_penalty = 2;
  sampler.SetOptions(options);
  EXPECT_EQ(sampler.Sample(logits, {}, Text{1}), 2);
}

// What is not allowed does not exist: for top-k, for biases, for the probabilities.
TEST(Sampler, OnlyWhatIsAllowed) {
  const std::vector<float> logits = {9, 1, 8, 2, 7, 0};
  const std::vector<uint64_t> allowed = {0b101010};
  Sampling options = {.temperature = 1, .top_k = 2, .top_p = 1, .min_p = 0};
  options.logit_bias = {{0, 100.0f}, {5, 1.5f}};  // 5 becomes likelier than 1
  Sampler sampler(options);
  int n3 = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const TokenId id = sampler.Sample(logits, allowed);
    EXPECT_TRUE(id == 3 || id == 5) << id;
    n3 += id == 3 ? 1 : 0;
  }
  const double p = 1 / (1 + std::exp(-0.5));
  EXPECT_NEAR(n3, p * kDraws, 4 * std::sqrt(kDraws * p * (1 - p)));
  options.temperature = 0;
  EXPECT_EQ(Sampler(options).Sample(logits, allowed), 3);
  options.logit_bias = {{1, -kInf}, {3, -kInf}, {5, -kInf}};
  EXPECT_THROW(Sampler(options).Sample(logits, allowed), Error);
  // Bits beyond the logits mean nothing.
  EXPECT_EQ(Sampler({}).Sample(logits, std::vector<uint64_t>{uint64_t{1} << 63 | 2, 1}), 1);
}

// Also with a penalty of next to nothing, which changes logits.
TEST(Sampler, TheLikeliestIsThatOfAPlainSearch) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const size_t n = 1 + random() % 400;
    std::vector<float> logits(n);
    for (float& logit : logits) {  // few different ones, so that many are equal
      logit = static_cast<float>(random() % 50);
      if (round % 4 == 3 && random() % 30 == 0) logit = random() % 2 == 0 ? kNotANumber : kInf;
    }
    Sampling options = {.temperature = 0};
    for (size_t i = 0; i < random() % 6; ++i) {
      const float bias = random() % 3 == 0 ? -kInf : static_cast<float>(random() % 20) - 10;
      options.logit_bias.emplace_back(static_cast<TokenId>(random() % (n + 5)), bias);
    }
    std::vector<uint64_t> allowed((round % 3 == 0 ? 0 : n + 63) / 64);
    for (uint64_t& word : allowed) {
      word = (uint64_t{random()} << 32 | random()) & (random() % 2 == 0 ? random() : ~uint64_t{0});
      if (random() % 4 == 0) word = ~uint64_t{0};
    }
    TokenId best = -1;
    float max_logit = 0;
    size_t n_allowed = 0;
    bool has_bad_logits = false;
    for (size_t id = 0; id < n; ++id) {
      if (!allowed.empty() && (allowed[id / 64] >> id % 64 & 1) == 0) continue;
      ++n_allowed;
      float logit = logits[id];
      has_bad_logits |= !std::isfinite(logit);
      for (const auto& [biased, bias] : options.logit_bias) {
        if (biased == static_cast<TokenId>(id)) logit += bias;
      }
      if (!std::isfinite(logit) || (best >= 0 && logit <= max_logit)) continue;
      best = static_cast<TokenId>(id);
      max_logit = logit;
    }
    if (best < 0 || n_allowed < 2) continue;
    Sampler sampler(options);
    EXPECT_EQ(sampler.Sample(logits, allowed), best) << round;
    EXPECT_EQ(sampler.has_met_bad_logits(), has_bad_logits) << round;
    options.presence_penalty = 1e-9f;
    EXPECT_EQ(Sampler(options).Sample(logits, allowed), best) << round;
  }
}

// A large vocabulary, of which nothing is copied.
TEST(Sampler, TheLikeliestTakesNoMemory) {
  std::vector<float> logits(262'144, 1);
  logits[200'001] = 2;
  std::vector<uint64_t> allowed(logits.size() / 64, ~uint64_t{0});
  allowed[200'001 / 64] = 0;
  logits[77] = 1.5f;
  Sampler sampler({.temperature = 0, .logit_bias = {{5, 0.2f}, {200'000, -kInf}}});
  test::ResetPeak();
  const test::Allocations before = test::CountAllocations();
  const TokenId free = sampler.Sample(logits), masked = sampler.Sample(logits, allowed);
  EXPECT_EQ(test::CountAllocations().count, before.count);
  EXPECT_EQ(free, 200'001);
  EXPECT_EQ(masked, 77);
}

// All allowed is as without a mask; where there is no choice, no random number is taken.
TEST(Sampler, RemembersLogitsThatAreNoNumbers) {
  for (const float broken : {kNotANumber, kInf, -kInf}) {
    Sampler sampler(Uncut(1, 0));
    EXPECT_EQ(sampler.Sample(std::vector<float>{1, 5, 4}), 1);
    EXPECT_FALSE(sampler.has_met_bad_logits());
    EXPECT_EQ(sampler.Sample(std::vector<float>{1, broken, 4}), 2);
    EXPECT_TRUE(sampler.has_met_bad_logits());
    const std::vector<uint64_t> only = {0b010};
    for (const float temperature : {0.0f, 1.0f}) {
      Sampler forced({.temperature = temperature});
      EXPECT_EQ(forced.Sample(std::vector<float>{1, broken, 4}, only), 1);
      EXPECT_TRUE(forced.has_met_bad_logits());
    }
  }
}

TEST(Sampler, AllowedAndRandomNumbers) {
  const std::vector<float> logits = {1, 2, 1.5f, 0.5f, 1, 1};
  const std::vector<uint64_t> all = {0b111111}, one = {0b1000};
  Sampling options = {.seed = 7, .temperature = 2};
  Sampler free(options), masked(options);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(masked.Sample(logits, one), 3);
    EXPECT_EQ(masked.Sample(logits, all), free.Sample(logits));
  }
}

TEST(Sampler, StepNames) {
  EXPECT_EQ(SamplerStepNames().substr(0, 28), "penalties, dry, top_n_sigma,");
  EXPECT_EQ(FindSamplerStep("xtc"), SamplerStep::kXtc);
  EXPECT_EQ(FindSamplerStep("top_p"), SamplerStep::kTopP);
  EXPECT_EQ(FindSamplerStep("topp"), std::nullopt);
}

}  // namespace
}  // namespace engine
