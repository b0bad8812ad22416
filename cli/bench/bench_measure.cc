// Measures one test of a benchmark and computes the statistics.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/bench/machine.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "convert/quantize_plan.h"
#include "engine/pass/sequence_state.h"
#include "engine/session/batch.h"
#include "engine/session/memory.h"
#include "engine/stopwatch.h"
#include "kernels/matmul/ceiling.h"
#include "kernels/threads/cpu.h"
#include "kernels/threads/default_threads.h"
#include "kernels/threads/thread_pool.h"

namespace cli {
namespace {

using tokenizer::TokenId;

// Time to measure a limit: a shorter one is unreliable, a longer one would dominate a small model's
// benchmark.
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

// The median of three: a short slowdown of the machine spoils one of them, a short boost another.
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
  std::optional<size_t> FindDrafts(std::span<const TokenId>) override { return 0; }
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
    const size_t n_texts = test.n_texts;
    if (n_texts > 1) batch_.emplace(model, options.n_threads);
    engine::Memory memory = engine::MachineMemory();
    memory.available /= n_texts;  // each text gets a part
    sessions_.reserve(n_texts);
    while (sessions_.size() < n_texts) {
      sessions_.push_back(std::make_unique<engine::Session>(model, options, memory));
    }
    ids_ = RandomTokens(n_texts * length_, model.tokenizer->vocab().size());
    script_->text = ids_;
    Rewind();
  }

  // Returns to the test's start; not part of the measured time.
  void Rewind() {
    for (size_t i = 0; i < sessions_.size(); ++i)
      Read(i, sessions_[i]->Rewind(test_.n_depth), test_.n_depth);
  }

  void Do() {
    const engine::Stopwatch watch;
    const size_t begin = test_.n_depth + test_.n_prompt;
    for (size_t i = 0; i < sessions_.size(); ++i) Read(i, test_.n_depth, begin);
    seconds_ = first_token_seconds_ = watch.Seconds();
    std::vector<engine::Session::SessionAndToken> next;
    next.reserve(sessions_.size());
    for (size_t at = begin; at < length_; ++at) {
      if (Interrupted()) return;
      next.clear();
      for (size_t i = 0; i < sessions_.size(); ++i) next.push_back({*sessions_[i], Ids(i)[at]});
      batch_ ? batch_->Decode(next) : sessions_[0]->Decode(next[0].id);
      const double now = watch.Seconds();
      token_seconds_.push_back(now - std::exchange(seconds_, now));
    }
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

  // Seconds of the last run: in total, until the end of the prompt, and between tokens (of all runs
  // since the last call).
  double seconds() const { return seconds_; }
  double first_token_seconds() const { return first_token_seconds_; }
  std::vector<double> TakeTokenSeconds() { return std::exchange(token_seconds_, {}); }

 private:
  static engine::SessionOptions Options(engine::SessionOptions options, const BenchTest& test,
                                        const std::shared_ptr<Script>& script) {
    options.context = test.n_depth + test.n_prompt + test.n_gen;
    options.batch = std::min(test.n_ubatch, test.n_batch);
    options.n_threads = options.n_threads_batch = static_cast<int>(test.n_threads);
    if (test.n_pass > 1) {
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
    if (batch_) sessions_[text]->ReleaseScratch();  // each session plans with its own memory
  }

  const BenchTest& test_;
  size_t length_ = 0;  // tokens of a text
  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  std::vector<std::unique_ptr<engine::Session>> sessions_;
  std::optional<engine::Batch> batch_;  // runs several texts together
  std::vector<TokenId> ids_;            // [texts][length]
  double seconds_ = 0, first_token_seconds_ = 0;
  std::vector<double> token_seconds_;
};

// Of(sample) for each repetition.
template <class Of>
std::vector<double> Each(const BenchResult& result, Of of) {
  std::vector<double> all;
  for (const BenchSample& sample : result.samples) all.push_back(of(sample));
  return all;
}

// The bytes of a text's cache after so many of its generated tokens.
double CacheBytes(const BenchTest& test, kernels::KvTypes type, size_t n_generated) {
  const auto bytes = [&](size_t capacity) {
    return engine::SequenceState::BytesFor(test.model->opened.config,
                                           {.capacity = capacity, .kv_type = type});
  };
  return bytes(test.n_depth + test.n_prompt + n_generated) - bytes(0);
}

}  // namespace

BenchCost CostOf(const BenchTest& test, kernels::KvTypes kv_type) {
  const engine::Model& model = test.model->opened;
  return {static_cast<double>(model.BytesPerToken()), CacheBytes(test, kv_type, test.n_gen / 2),
          model.OperationsPerToken()};
}

BenchLimits MeasureLimits(kernels::ThreadPool& pool, const engine::Model& model) {
  if (Interrupted()) return {};
  const std::span<const std::byte> weights = model.LargestStretch();
  // A small model is read several times, a model of several hundred megabytes once.
  const int repeats = static_cast<int>(kReadBytes / std::max<size_t>(weights.size(), 1)) + 1;
  const auto read = [&] { return kernels::ReadCeiling(pool, weights, repeats); };
  const auto dot = [&] { return kernels::DotCeiling(pool); };
  return {MeasureLimit(read), MeasureLimit(dot)};
}

bool Measure(const engine::SessionOptions& options, BenchResult& result, const WantsMore& more) {
  const BenchTest& test = result.test;
  const engine::Model& model = test.model->opened;
  BenchConditions& conditions = result.conditions;
  result.cost = CostOf(test, options.kv_type);
  conditions.date = DateNow();
  conditions.cache_bytes =
      CacheBytes(test, options.kv_type, test.n_gen) * static_cast<double>(test.n_texts);
  conditions.n_cores =
      static_cast<size_t>(std::min(UsableHardwareThreads(), kernels::CoresOfControlGroups("/")));
  ResetPeakMemory();
  InstructionMeter instructions;
  Work work(model, options, test);
  work.Do();  // the warm-up
  kernels::ThreadPool pool(static_cast<int>(test.n_threads));
  conditions.clock_before = MeasureClock();
  BenchLimits before = MeasureLimits(pool, model);
  CoreTime core_time;
  double seconds = 0;
  for (int i = 1;; ++i) {
    work.FindPace();
    work.Rewind();
    work.TakeTokenSeconds();
    instructions.Start();
    core_time.Start();
    work.Do();
    core_time.Stop();
    instructions.Stop();
    seconds += work.seconds();
    const BenchLimits after = MeasureLimits(pool, model);
    if (Interrupted()) return false;
    for (const double of_token : work.TakeTokenSeconds()) result.token_seconds.push_back(of_token);
    result.samples.push_back({work.seconds(),
                              {std::max(before.read, after.read), std::max(before.dot, after.dot)},
                              test.n_prompt > 0 ? work.first_token_seconds() : 0});
    before = after;
    conditions.share_of_cores = core_time.Share(seconds, i, static_cast<double>(test.n_threads));
    if (!more(result)) break;
  }
  conditions.clock_after = MeasureClock();
  conditions.peak_bytes = PeakMemory();
  conditions.instructions_per_cycle = instructions.PerCycle();
  return true;
}

std::string BenchTest::Name() const {
  std::string name;
  if (n_prompt > 0) name = Format("pp%zu", n_prompt);
  if (n_gen > 0) name += Format(name.empty() ? "tg%zu" : "+tg%zu", n_gen);
  if (n_texts > 1) name = Format("%zu x ", n_texts) + name;
  if (n_pass > 1) name += Format(" by %zu", n_pass);
  return n_depth > 0 ? name + Format(" @ d%zu", n_depth) : name;
}

bool BenchTest::DiffersIn(size_t BenchTest::*number, const BenchTest& other) const {
  using Test = BenchTest;
  for (const auto each : {&Test::n_prompt, &Test::n_gen, &Test::n_depth, &Test::n_texts,
                          &Test::n_pass, &Test::n_threads, &Test::n_batch, &Test::n_ubatch}) {
    if (each != number && this->*each != other.*each) return false;
  }
  return model == other.model && kv == other.kv;
}

double QuantileOf(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at), above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double MedianOf(const std::vector<double>& values) { return QuantileOf(values, 0.5); }

double MeanOf(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double SquaredDeviations(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

double DeviationOf(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  return std::sqrt(SquaredDeviations(values) / static_cast<double>(values.size() - 1));
}

BenchModel DescribeModel(engine::Model opened, double load_seconds) {
  BenchModel result = {.opened = std::move(opened), .load_ms = load_seconds * 1e3};
  const gguf::File& file = result.opened.file;
  const auto n = static_cast<double>(file.elements());
  result.type = result.opened.config.architecture +
                (n >= 1e9 ? Format(" %.2fB ", n / 1e9) : Format(" %.1fM ", n / 1e6)) +
                convert::FileTypeName(file);
  return result;
}

BenchSetting ThisSetting(const std::string& other) {
  return {PRONK_VERSION,        BuildCommit(), DateNow(),           CpuName(),
          kernels::CpuTarget(), other,         MachineLines("/sys")};
}

std::vector<double> BenchResult::Speeds() const {
  return Each(*this, [&](const auto& sample) { return test.Tokens() / sample.seconds; });
}

double BenchResult::Speed(double quantile) const { return QuantileOf(Speeds(), quantile); }

// A prompt takes the time of its operations, at least the time to read the weights once; so does
// each pass of generated tokens, which also reads the cache.
double BenchResult::LimitOf(const BenchSample& sample) const {
  const BenchLimits& limit = sample.limits;
  const auto prompt = static_cast<double>(test.n_prompt * test.n_texts);
  const auto pass = [&](size_t n) {  // seconds of a pass of n tokens of each text
    const auto tokens = static_cast<double>(n * test.n_texts);
    const double reads = BytesOfPass() / limit.read;
    return tokens > 1 ? std::max(tokens * cost.operations / limit.dot, reads) : reads;
  };
  const size_t last = test.n_gen % test.n_pass;  // tokens of a pass that is not full
  double seconds = static_cast<double>(test.n_gen / test.n_pass) * pass(test.n_pass);
  if (last > 0) seconds += pass(last);
  if (prompt > 0)
    seconds += std::max(prompt * cost.operations / limit.dot,
                        static_cast<double>(test.n_texts) * cost.weights / limit.read);
  return test.Tokens() / seconds;
}

double BenchResult::Limit() const {
  return MedianOf(Each(*this, [&](const auto& sample) { return LimitOf(sample); }));
}

double BenchResult::MedianLimit(double BenchLimits::*which) const {
  return MedianOf(Each(*this, [&](const auto& sample) { return sample.limits.*which; }));
}

double BenchResult::Share() const {
  return MedianOf(Each(
      *this, [&](const auto& sample) { return test.Tokens() / sample.seconds / LimitOf(sample); }));
}

double BenchResult::FirstTokenSeconds() const {
  return MedianOf(Each(*this, [](const auto& sample) { return sample.first_token_seconds; }));
}

double BenchResult::ReadsPerSecond() const {
  if (test.n_prompt > 0) return 0;
  return Speed() / test.Tokens() * static_cast<double>(test.Passes()) * BytesOfPass();
}

double BenchResult::OperationsPerSecond() const {
  return test.n_gen == 0 ? Speed() * cost.operations : 0;
}

std::vector<std::string> BenchResult::Notes() const {
  const BenchConditions& now = conditions;
  std::vector<std::string> notes;
  if (Share() > 1)
    notes.emplace_back("above the limit: the machine was faster than when that was measured");
  // More than the noise of the measurement, less than one step down of a CPU that is too hot.
  constexpr double kSlowed = 0.95;
  if (now.clock_after < kSlowed * now.clock_before) {
    notes.push_back(Format("slowed down: %.2f to %.2f GHz", now.clock_before, now.clock_after));
  }
  const std::vector<double> all = Each(*this, [&](const auto& sample) { return LimitOf(sample); });
  const double least = QuantileOf(all, 0), most = QuantileOf(all, 1);
  if (most > kMoved * least) notes.push_back(Format("limit moved: %.0f to %.0f", least, most));
  if (now.n_cores > 0 && test.n_threads > now.n_cores) {
    notes.push_back(Counted(test.n_threads, "thread") + " on " + Counted(now.n_cores, "core"));
  } else if (now.share_of_cores < 0.9) {
    notes.push_back(Format("cores taken: had %.0f%% of its time", 100 * now.share_of_cores));
  }
  if (comparison) notes.push_back(comparison->Word());
  return notes;
}

}  // namespace cli
