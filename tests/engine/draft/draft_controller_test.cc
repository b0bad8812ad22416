// The number of drafts that the controller picks, on simulated costs and acceptances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/draft/controller.h"
#include "tests/support/data.h"

namespace engine {
namespace {

// A simulated machine and text. Times are in milliseconds.
struct World {
  std::string name;
  std::function<double(size_t n_tokens)> pass;  // the time of a pass
  double acceptance;                            // the probability that a draft is right
  double draft_cost;                            // the time of a draft
  double noise;                                 // the largest relative deviation of a pass's time
};

std::ostream& operator<<(std::ostream& out, const World& world) { return out << world.name; }

// Tokens per millisecond with n drafts in every pass, in the long run.
double RateOf(const World& world, size_t n) {
  double tokens = 1;
  for (size_t i = 1; i <= n; ++i) tokens += std::pow(world.acceptance, i);
  return tokens / (world.pass(1 + n) + static_cast<double>(n) * world.draft_cost);
}

double BestRate(const World& world) {
  double best = 0;
  for (size_t n = 0; n <= kMaxDrafts; ++n) best = std::max(best, RateOf(world, n));
  return best;
}

// Generates n_tokens of a text in a world. If drafts are free, the controller also learns of drafts
// that were not read, as from Speculation.
class Simulation {
 public:
  Simulation(uint64_t seed, bool costs_nothing)
      : random_(seed),
        controller_({{.acceptance = 0.6, .costs_nothing = costs_nothing}}, kMaxDrafts) {}

  // Tokens per millisecond.
  double Run(const World& world, size_t n_tokens) {
    double time = 0;
    size_t n = 0;
    while (n < n_tokens) {
      const size_t n_drafts = controller_.Choose(0, kMaxDrafts).n;
      const double drafting = static_cast<double>(n_drafts) * world.draft_cost;
      if (world.draft_cost > 0) controller_.RecordDrafting(0, n_drafts, drafting);
      const double disturbed = 1 + world.noise * (2 * Uniform() - 1);
      const double pass = world.pass(1 + n_drafts) * disturbed;
      controller_.RecordPass(1 + n_drafts, pass);
      size_t right = 0;
      const size_t n_checked = world.draft_cost > 0 ? n_drafts : kMaxDrafts;
      while (right < n_checked) {
        const bool is_right = Uniform() < world.acceptance;
        controller_.RecordCheck(0, right, is_right);
        if (!is_right) break;
        ++right;
      }
      time += drafting + pass;
      n += 1 + std::min(right, n_drafts);
    }
    return static_cast<double>(n) / time;
  }

 private:
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  std::mt19937_64 random_;
  DraftController controller_;
};

// Passes that memory bounds, then arithmetic; passes that cost nearly as much for each token; and
// some where only groups of four are cheap.
double Cheap(size_t n) { return 10 + 0.1 * static_cast<double>(n); }
double Usual(size_t n) { return 10 * std::max(1.0, 0.4 + 0.12 * static_cast<double>(n)); }
double Dear(size_t n) { return 10 * (1 + 0.8 * static_cast<double>(n - 1)); }
double Stepped(size_t n) { return 10 * (0.7 + 0.3 * static_cast<double>((n + 3) / 4)); }

std::vector<World> Worlds() {
  std::vector<World> worlds;
  const auto add = [&](const char* name, double (*pass)(size_t)) {
    for (const double acceptance : {0.02, 0.3, 0.6, 0.8, 0.95, 0.995}) {
      for (const double draft_cost : {0.0, 2.0}) {
        worlds.push_back({std::string(name) + "/" + std::to_string(acceptance) + "/" +
                              std::to_string(draft_cost),
                          pass, acceptance, draft_cost, 0.05});
      }
    }
  };
  add("cheap", Cheap);
  add("usual", Usual);
  add("dear", Dear);
  add("stepped", Stepped);
  return worlds;
}

// The mean of several texts, to average out chance.
template <class Work>
double Mean(Work work) {
  constexpr uint64_t kTexts = 30;
  double sum = 0;
  for (uint64_t seed = 1; seed <= kTexts; ++seed) sum += work(seed);
  return sum / kTexts;
}

class DraftControllerTest : public testing::TestWithParam<World> {};

TEST_P(DraftControllerTest, IsNearTheBestFixedChoiceAfter64Tokens) {
  const double rate = Mean([](uint64_t seed) {
    Simulation simulation(seed, GetParam().draft_cost == 0);
    simulation.Run(GetParam(), 64);
    return simulation.Run(GetParam(), 4000);
  });
  EXPECT_GE(rate, 0.97 * BestRate(GetParam()));
}

TEST_P(DraftControllerTest, ComesBackWhenTheTextChanges) {
  World other = GetParam();
  other.acceptance = 0.95 - 0.93 * std::round(other.acceptance);  // the opposite
  const double rate = Mean([&](uint64_t seed) {
    Simulation simulation(seed, GetParam().draft_cost == 0);
    simulation.Run(other, 1000);
    simulation.Run(GetParam(), 400);
    return simulation.Run(GetParam(), 4000);
  });
  EXPECT_GE(rate, 0.97 * BestRate(GetParam()));
}

// Draft models that do not pay: one as large as the model, one slower than its size, one that is
// wrong, and one that drives the model's weights out of the caches.
TEST(DraftController, ADraftModelThatDoesNotPayCostsNextToNothing) {
  struct DraftModel {
    double acceptance, guessed_cost, cost, slower;
  };
  for (const DraftModel& draft :
       {DraftModel{0.9, 1, 1, 1}, DraftModel{0.7, 0.35, 0.9, 1}, DraftModel{0.02, 0.25, 0.25, 1},
        DraftModel{0.5, 0.2, 0.2, 1.6}}) {
    const double speed = Mean([&](uint64_t seed) {
      std::mt19937_64 random(seed);
      std::uniform_real_distribution<double> uniform(0, 1);
      DraftController controller({{0.6, /*costs_nothing=*/false, draft.guessed_cost}}, kMaxDrafts);
      double time = 0, n_tokens = 0;
      bool has_begun = false;
      for (int pass = 0; n_tokens < 200; ++pass) {
        const size_t n = controller.Choose(0, kMaxDrafts).n;
        // The first draft reads a short prompt.
        const double reading = n > 0 && !std::exchange(has_begun, true) ? 1 : 0;
        const double drafting = (static_cast<double>(n) + reading) * draft.cost;
        controller.RecordDrafting(0, n, drafting);
        const double one = (n > 0 ? draft.slower : 1) * (0.95 + 0.1 * uniform(random));
        const double seconds = (1 + 0.06 * static_cast<double>(n)) * one;
        controller.RecordPass(1 + n, pass == 0 ? 5 * seconds : seconds);  // caches are cold
        size_t right = 0;
        for (bool is_right = true; is_right && right < n; right += is_right ? 1 : 0) {
          is_right = uniform(random) < draft.acceptance;
          controller.RecordCheck(0, right, is_right);
        }
        time += drafting + seconds;
        n_tokens += 1 + static_cast<double>(right);
      }
      return n_tokens / time;
    });
    EXPECT_GE(speed, 0.98) << draft.acceptance << " " << draft.cost;
  }
}

// A model that knows its doubtful drafts: a chain that ends there beats every fixed number of
// drafts. A model that is sure of wrong drafts is detected.
TEST(DraftController, EndsAChainWhereItIsDoubtful) {
  constexpr double kDraft = 0.25;
  const auto pass = [](size_t n) { return 1 + 0.06 * static_cast<double>(n - 1); };
  for (const bool lies : {false, true}) {
    const double rate = Mean([&](uint64_t seed) {
      std::mt19937_64 random(seed);
      std::uniform_real_distribution<double> uniform(0, 1);
      DraftController controller({{0.6, /*costs_nothing=*/false, kDraft}}, kMaxDrafts);
      double time = 0, n_tokens = 0;
      while (n_tokens < 3000) {
        const DraftController::Choice choice = controller.Choose(0, kMaxDrafts);
        DraftController::Chain chain = {0, 1, choice.tokens_per_s};
        std::vector<double> shares, chances;
        for (size_t n = 0; n < std::max(choice.n, choice.max_n); ++n) {
          const bool is_sure = uniform(random) < 0.7;
          chances.push_back(is_sure ? 0.95 : 0.2);
          shares.push_back(lies ? 0.9 : chances.back());
          if (!controller.WantsMore(chain, shares.back())) break;
        }
        const double drafting = kDraft * static_cast<double>(chances.size());
        controller.RecordDrafting(0, chances.size(), drafting);
        const size_t n_read = controller.WorthReading(chain);
        const double seconds = pass(1 + n_read);
        controller.RecordPass(1 + n_read, seconds);
        size_t right = 0;
        for (size_t n = 0; n < chances.size(); ++n) {
          const bool is_right = uniform(random) < chances[n];
          controller.RecordCheck(0, n, is_right, n < n_read, shares[n]);
          if (!is_right) break;
          if (n < n_read) ++right;
        }
        time += drafting + seconds;
        n_tokens += 1 + static_cast<double>(right);
      }
      return n_tokens / time;
    });
    double best = 0, tokens = 1, reached = 1;  // for fixed numbers, with 0.725 of the drafts right
    for (size_t n = 0; n < kMaxDrafts; ++n) {
      best = std::max(best, tokens / (pass(1 + n) + kDraft * static_cast<double>(n)));
      tokens += reached *= 0.7 * 0.95 + 0.3 * 0.2;
    }
    EXPECT_GT(rate, (lies ? 0.95 : 1.06) * best) << lies;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, DraftControllerTest, testing::ValuesIn(Worlds()),
                         [](const auto& tested) { return test::TestName(tested.param.name); });

}  // namespace
}  // namespace engine
