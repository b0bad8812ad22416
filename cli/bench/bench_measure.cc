// Measures one test of a benchmark and computes the statistics.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <span>

#include "cli/bench/bench.h"
#include "cli/bench/machine.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "engine/pass/sequence_state.h"
#include "engine/session/batch.h"
#include "engine/session/memory.h"
#include "engine/stopwatch.h"
#include "kernels/machine/cpu.h"
#include "kernels/machine/default_threads.h"
#include "kernels/machine/team.h"
#include "kernels/matmul/ceiling.h"

namespace cli {
namespace {

using tokenizer::TokenId;

// Time to measure a limit: less makes it luck, more would dominate a small model's benchmark.
constexpr double kLimitSeconds = 0.03;
constexpr double kMoved = 1.2;  // limits further apart are not the same
constexpr size_t kReadBytes = 200'000'000;

std::vector<TokenId> RandomTokens(size_t n, size_t vocab_size) {
  std::mt19937 random(1);
  std::vector<TokenId> ids(n);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % vocab_size);
  return ids;
}

double SecondsOf(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The share of their working time in which threads had a core, summed over repetitions.
class CoreTime {
 public:
  void Start() { Add(-1); }
  void Stop() { Add(1); }
  // The calling thread's CPU time is known to the nanosecond, other threads' only to the last tick,
  // 1 to 10 milliseconds ago: in repetitions not much longer only the caller counts.
  double Share(double seconds, int repetitions, double n_threads) const {
    constexpr double kManyTicks = 0.1;
    const double share = caller_ / seconds;
    return seconds < kManyTicks * repetitions ? share : std::min(share, all_ / seconds / n_threads);
  }

 private:
  void Add(double sign) {
    caller_ += sign * SecondsOf(CLOCK_THREAD_CPUTIME_ID);
    all_ += sign * SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
  }

  double caller_ = 0, all_ = 0;  // seconds
};

// The rate of all threads together, the median of short tries: the lasting rate, not the best one.
double IntegerRate(kernels::Team& team) {
  constexpr int kTries = 40;
  std::vector<double> rates;
  team.Run([&] {
    for (int i = 0; i < kTries; ++i) {
      const engine::Stopwatch watch;
      team.For(team.size(), 1, [](size_t begin, size_t end, size_t) {
        for (size_t k = begin; k < end; ++k) DoIntegerOperations();
      });
      rates.push_back(kIntegerOperations / watch.Seconds());
    }
  });
  return MedianOf(rates) * static_cast<double>(team.size());
}

// The middle of three: a short pause of the machine spoils one of them, a short sprint another.
template <class Try>
double MeasureLimit(Try once) {
  std::vector<double> best(3);
  for (double& of_try : best) {
    const engine::Stopwatch watch;
    do {
      of_try = std::max(of_try, once());
    } while (watch.Seconds() < kLimitSeconds / 3 && !Interrupted());
  }
  return MedianOf(best);
}

// A drafter that is always right: it knows the text.
class Script : public engine::Drafter {
 public:
  std::optional<size_t> Look(std::span<const TokenId>) override { return 0; }
  void Draft(std::span<const TokenId> read, size_t n, std::vector<TokenId>& drafts) override {
    const std::span<const TokenId> rest = std::span(text).subspan(read.size());
    const auto next = rest.first(std::min(n, rest.size()));
    drafts.insert(drafts.end(), next.begin(), next.end());
  }

  std::vector<TokenId> text;
};

// The work of a test: to read a text, to generate one, or both; or to generate several together.
class Work {
 public:
  Work(const engine::Model& model, engine::SessionOptions options, const BenchTest& test)
      : test_(test) {
    options = Options(options, test, script_);
    length_ = options.context;
    const size_t n_texts = test.n_texts();
    if (n_texts > 1) batch_.emplace(model, options.n_threads);
    engine::Memory memory = engine::MachineMemory();
    memory.available /= n_texts;  // for each text
    sessions_.reserve(n_texts);
    while (sessions_.size() < n_texts) {
      sessions_.push_back(std::make_unique<engine::Session>(model, options, memory));
    }
    ids_ = RandomTokens(n_texts * length_, model.tokenizer->vocab().size());
    script_->text = ids_;
    Rewind();
  }

  // Goes back to where the test begins; not part of the measured time.
  void Rewind() {
    for (size_t i = 0; i < sessions_.size(); ++i) {
      Read(i, sessions_[i]->Rewind(test_.n_depth), test_.n_depth);
      if (batch_) sessions_[i]->ReleaseScratch();
    }
  }

  void Do() {
    const engine::Stopwatch watch;
    const size_t begin = test_.n_depth + test_.n_prompt;
    Read(0, test_.n_depth, begin);
    std::vector<engine::Session::Next> next;
    next.reserve(sessions_.size());
    for (size_t at = begin; at < length_; ++at) {
      if (Interrupted()) return;
      next.clear();
      for (size_t i = 0; i < sessions_.size(); ++i) next.push_back({*sessions_[i], Ids(i)[at]});
      batch_ ? batch_->Decode(next) : sessions_[0]->Decode(next[0].id);
    }
    seconds_ = watch.Seconds();
  }

  // Measuring limits wakes threads that this test may not use, and fills the caches with other
  // data; until both have settled, a short test would be slower than the program is.
  void FindPace() {
    constexpr double kLong = 0.1, kSettled = 0.05;  // seconds
    const engine::Stopwatch watch;
    while (seconds_ < kLong && watch.Seconds() < kSettled && !Interrupted()) {
      Rewind();
      Do();
    }
  }

  // The passes so far, and those of them that one thread did alone.
  std::pair<size_t, size_t> Passes() const {
    const kernels::Team& team = batch_ ? batch_->team() : sessions_[0]->team();
    return {team.n_runs(), team.n_runs_alone()};
  }

 private:
  static engine::SessionOptions Options(engine::SessionOptions options, const BenchTest& test,
                                        const std::shared_ptr<Script>& script) {
    options.context = test.n_depth + test.n_prompt + test.n_gen;
    options.batch = std::min(test.n_ubatch, test.n_batch);
    options.n_threads = options.n_threads_batch = static_cast<int>(test.n_threads);
    if (test.n_texts() > 1) {  // each is planned with a scratch of its own
      options.batch = std::min(options.batch, engine::kMaxPassTokens);
    } else if (test.n_pass > 1) {
      options.draft.on = true;
      options.draft.fixed = test.n_pass - 1;
      options.draft.lookup = options.draft.nextn = false;
      options.draft.own = script;
    }
    return options;
  }

  std::span<const TokenId> Ids(size_t text) const {
    return std::span(ids_).subspan(text * length_, length_);
  }
  void Read(size_t text, size_t begin, size_t end) {
    for (size_t at = begin; at < end && !Interrupted(); at += test_.n_batch) {
      sessions_[text]->Prefill(Ids(text).subspan(at, std::min(test_.n_batch, end - at)),
                               [](size_t) { return !Interrupted(); });
    }
  }

  const BenchTest& test_;
  size_t length_ = 0;  // of a text
  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  std::vector<std::unique_ptr<engine::Session>> sessions_;
  std::optional<engine::Batch> batch_;  // of several texts
  std::vector<TokenId> ids_;            // [texts][length]
  double seconds_ = 0;                  // of the last run
};

// Of(i) for each of n repetitions.
template <class Of>
std::vector<double> Each(size_t n, Of of) {
  std::vector<double> all;
  for (size_t i = 0; i < n; ++i) all.push_back(of(i));
  return all;
}

// The bytes of a cache half-way through the tokens that a test generates.
double CacheBytes(const engine::Config& config, kernels::KvType type, const BenchTest& test) {
  const auto bytes = [&](size_t capacity) {
    return engine::SequenceState::BytesFor(config, {.capacity = capacity, .kv_type = type});
  };
  return bytes(test.n_depth + test.n_prompt + test.n_gen / 2) - bytes(0);
}

}  // namespace

bool Measure(const engine::Model& model, const engine::SessionOptions& options, int repetitions,
             const std::string& sysfs, BenchTest& test, const WantsMore& more) {
  test.date = DateNow();
  test.cache_bytes = CacheBytes(model.config, options.kv_type, test);
  test.n_cores =
      static_cast<size_t>(std::min(UsableHardwareThreads(), kernels::CoresOfControlGroups("/")));
  Work work(model, options, test);
  work.Do();  // the warm-up
  kernels::Team team(static_cast<int>(test.n_threads));
  const std::span<const std::byte> weights = model.LargestStretch();
  // A small model is read several times, a model of some hundred megabytes once.
  const int repeats = static_cast<int>(kReadBytes / std::max<size_t>(weights.size(), 1)) + 1;
  const auto measure_limits = [&] {
    if (Interrupted()) return BenchLimits();
    const auto read = [&] { return kernels::ReadCeiling(team, weights, repeats); };
    const auto dot = [&] { return kernels::DotCeiling(team); };
    return BenchLimits{MeasureLimit(read),
                       test.n_prompt > 0 || test.n_pass > 1 ? MeasureLimit(dot) : 0,
                       IntegerRate(team)};
  };
  EnergyMeter meter(sysfs);
  test.clock_before = MeasureClock();
  test.celsius_before = Temperature(sysfs);
  BenchLimits before = measure_limits();
  const auto [passes_before, alone_before] = work.Passes();
  CoreTime core_time;
  double seconds = 0;
  for (int i = 1;; ++i) {
    work.FindPace();
    work.Rewind();
    meter.Joules();
    core_time.Start();
    const engine::Stopwatch watch;
    work.Do();
    const double sample_seconds = watch.Seconds();
    test.joules += meter.Joules();
    core_time.Stop();
    seconds += sample_seconds;
    const BenchLimits after = measure_limits();
    if (Interrupted()) return false;
    test.samples_ts.push_back(test.Tokens() / sample_seconds);
    test.limits.push_back({std::max(before.read, after.read), std::max(before.dot, after.dot),
                           (before.integer + after.integer) / 2});
    before = after;
    test.share_of_cores = core_time.Share(seconds, i, static_cast<double>(test.n_threads));
    if (i >= repetitions && !(more && more(test))) break;
  }
  test.clock_after = MeasureClock();
  test.celsius_after = Temperature(sysfs);
  const auto [passes, alone] = work.Passes();
  test.share_alone =
      static_cast<double>(alone - alone_before) / static_cast<double>(passes - passes_before);
  return true;
}

std::string BenchTest::Name() const {
  std::string name;
  if (n_prompt > 0) name = "pp" + std::to_string(n_prompt);
  if (n_gen > 0) name += (name.empty() ? "tg" : "+tg") + std::to_string(n_gen);
  if (n_pass > 1) {
    const std::string n = std::to_string(n_pass);
    name = of_texts ? n + " x " + name : name + " by " + n;
  }
  if (n_depth > 0) name += " @ d" + std::to_string(n_depth);
  if (minutes > 0) name += Format(" for %zu min", minutes);
  return name;
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double SquaredDeviations(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

BenchSetting ThisSetting(const std::string& sysfs, const std::string& other) {
  return {PRONK_VERSION, BuildCommit(),        DateNow(),
          CpuName(),     kernels::CpuTarget(), EnergyMeter(sysfs).Works(),
          other};
}

double BenchTest::Median() const { return MedianOf(samples_ts); }

double BenchTest::Deviation() const {
  if (samples_ts.size() < 2) return 0;
  return std::sqrt(SquaredDeviations(samples_ts) / static_cast<double>(samples_ts.size() - 1));
}

// A prompt takes the time of its operations, at least that of reading the weights once; so does
// each pass of generated tokens, which also reads the cache.
double BenchTest::LimitOf(size_t repetition) const {
  const BenchLimits& limit = limits[repetition];
  const double reading = bytes_per_token / limit.read;
  const double prompt = static_cast<double>(n_prompt), gen = Tokens() - prompt;
  const double in_pass = static_cast<double>(n_pass);
  double pass = BytesOfPass() / limit.read;
  if (in_pass > 1) pass = std::max(in_pass * operations_per_token / limit.dot, pass);
  double seconds = std::ceil(gen / in_pass) * pass;
  if (n_prompt > 0) seconds += std::max(prompt * operations_per_token / limit.dot, reading);
  return Tokens() / seconds;
}

double BenchTest::Limit() const {
  return MedianOf(Each(limits.size(), [&](size_t i) { return LimitOf(i); }));
}

double BenchTest::MedianLimit(double BenchLimits::*which) const {
  return MedianOf(Each(limits.size(), [&](size_t i) { return limits[i].*which; }));
}

double BenchTest::Share() const {
  return MedianOf(Each(limits.size(), [&](size_t i) { return samples_ts[i] / LimitOf(i); }));
}

bool BenchTest::DiffersIn(size_t BenchTest::*number, const BenchTest& other) const {
  using Test = BenchTest;
  for (const auto each : {&Test::n_prompt, &Test::n_gen, &Test::n_depth, &Test::n_pass,
                          &Test::n_threads, &Test::n_batch, &Test::n_ubatch, &Test::minutes}) {
    if (each != number && this->*each != other.*each) return false;
  }
  return model == other.model && kv == other.kv && of_texts == other.of_texts;
}

void BenchTest::CompareLimits(const std::vector<BenchTest>& earlier) {
  for (const BenchTest& other : earlier) {
    if (other.model != model || other.n_threads != n_threads) continue;
    for (const bool reads : {true, false}) {
      const auto which = reads ? &BenchLimits::read : &BenchLimits::dot;
      const double then = other.MedianLimit(which), now = MedianLimit(which);
      if (std::min(then, now) <= 0 || std::max(then / now, now / then) < kMoved) continue;
      const double unit = reads ? 1e9 : 1e12;
      moved = "limit moved since " + other.Name() + ": " + Figures(then / unit, 3) + " to " +
              Figures(now / unit, 3) + (reads ? " GB/s" : " TOPS");
    }
  }
}

double BenchTest::PassCost() const { return single_ts * static_cast<double>(n_pass) / Median(); }

double BenchTest::JoulesPerToken() const {
  return joules / static_cast<double>(samples_ts.size()) / Tokens();
}

double BenchTest::Watts() const {
  double seconds_per_token = 0;
  for (const double ts : samples_ts) seconds_per_token += 1 / ts;
  return joules / seconds_per_token / Tokens();
}

std::vector<std::string> BenchTest::Notes() const {
  std::vector<std::string> notes;
  if (n_prompt > 0 && n_prompt <= 64 && n_gen == 0) {  // a turn of a chat: what people feel
    notes.push_back("first token after " +
                    Figures(1e3 * static_cast<double>(n_prompt) / Median(), 3) + " ms");
  }
  if (Share() > 1)
    notes.emplace_back("above the limit: the machine was faster than when that was measured");
  // More than the noise of the measurement, less than one step down of a CPU that is too hot.
  constexpr double kSlowed = 0.95;
  if (clock_after < kSlowed * clock_before) {
    notes.push_back(Format("slowed down: %.2f to %.2f GHz", clock_before, clock_after));
  }
  const auto limit = [&](size_t i) { return LimitOf(i); };
  const std::vector<double> all = Each(limits.size(), limit);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  if (*most > kMoved * *least) notes.push_back(Format("limit moved: %.0f to %.0f", *least, *most));
  if (!moved.empty()) notes.push_back(moved);
  if (minutes > 0) {
    const auto median = [&](size_t begin, size_t end) {
      const auto samples = std::span(samples_ts).subspan(begin, end - begin);
      return Figures(MedianOf({samples.begin(), samples.end()}), 4) + " t/s";
    };
    notes.push_back("minute 1: " + median(0, first_end) + ", minute " + std::to_string(minutes) +
                    ": " + median(last_begin, samples_ts.size()));
  }
  if (n_cores > 0 && n_threads > n_cores) {
    notes.push_back(Counted(n_threads, "thread") + " on " + Counted(n_cores, "core"));
  } else if (share_alone > 0.05) {
    notes.push_back(Format("one thread did %.0f%% of the passes alone", 100 * share_alone));
  } else if (share_of_cores < 0.9) {
    notes.push_back(Format("cores taken: had %.0f%% of its time", 100 * share_of_cores));
  }
  if (comparison) {
    const bool is_faster = comparison->low > 1;
    notes.emplace_back(is_faster                                    ? "faster"
                       : comparison->verdict == Verdict::kSlower    ? "slower"
                       : comparison->verdict == Verdict::kNotSlower ? "not slower"
                                                                    : "could not tell");
  }
  return notes;
}

}  // namespace cli
