// pronk bench: measures tokens per second and compares them with the machine's limits.
#include "cli/bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "cli/bench/machine.h"
#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/number_list.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/number.h"
#include "gguf/output_file.h"
#include "kernels/threads/default_threads.h"

namespace cli {
namespace {

constexpr size_t kMaxBatch = 4096;  // the limit of pronk run

// Lists of numbers are parsed once all flags are read.
struct BenchOptions {
  Command* command = nullptr;  // tells which flags were given
  std::vector<std::string> models;
  ModelOptions model;
  std::vector<std::string> prompts, gens, depths;  // none: the defaults
  std::vector<std::string> prompt_gens;            // "512,128"
  bool progress = false;
  std::vector<std::string> passes, parallel;  // at most one is given
  std::vector<std::string> batches = {"2048"};
  std::vector<std::string> ubatches = {"512"};
  std::vector<std::string> threads;
  std::vector<std::string> kv, keys, values;  // cache types
  int repetitions = 0;                        // 5, or 1 a turn
  int delay = 0;                              // seconds
  std::string output = "md";
  std::string output_err = "none";
  std::string plot;
  std::string baseline, against, diff;
  std::string detect = "5%";
  int max_time = 300;  // seconds
};

// The types named in a list.
std::vector<std::string> ParseTypes(const std::vector<std::string>& texts) {
  std::vector<std::string> types;
  for (std::string text : texts) {
    for (text += ','; !text.empty(); text.erase(0, text.find(',') + 1)) {
      types.push_back(text.substr(0, text.find(',')));
      if (std::ranges::count(ModelOptions::KvTypeNames(), types.back()) == 0) {
        throw UsageError("--kv, -ctk, -ctv: expected f16, f32, q8_0 or q4_0, found ", types.back());
      }
    }
  }
  return types;
}

using Texts = std::vector<std::string>;
Texts Or(const Texts& given, const Texts& fallback) { return given.empty() ? fallback : given; }

std::vector<std::string> CacheTypes(const BenchOptions& options) {
  if (options.keys.empty() && options.values.empty()) return Or(ParseTypes(options.kv), {"f16"});
  if (!options.kv.empty()) throw UsageError("--kv: not with -ctk or -ctv");
  std::vector<std::string> types;
  for (const std::string& k : Or(ParseTypes(options.keys), {"f16"})) {
    for (const std::string& v : Or(ParseTypes(options.values), {"f16"})) {
      types.push_back(k == v ? k : k + ',' + v);
    }
  }
  return types;
}

// Tokens of prompts and of generation: -p, -n, -pg.
std::vector<std::pair<size_t, size_t>> Works(const BenchOptions& options) {
  std::vector<std::pair<size_t, size_t>> works;
  const auto prompts = Or(options.prompts, {"512"});
  for (const size_t n : ParseNumbers("-p", prompts, 0, kMaxTokens)) works.push_back({n, 0});
  const auto gens = Or(options.gens, {"128"});
  for (const size_t n : ParseNumbers("-n", gens, 0, kMaxTokens)) works.push_back({0, n});
  for (const std::string& text : options.prompt_gens) {
    const std::vector<size_t> pair = ParseNumbers("-pg", {text}, 0, kMaxTokens);
    if (pair.size() != 2) throw UsageError("-pg: expected two numbers such as 512,128");
    works.push_back({pair[0], pair[1]});
  }
  std::erase(works, std::pair<size_t, size_t>(0, 0));
  if (works.empty()) throw UsageError("nothing to measure: -p, -n and -pg name no tokens");
  return works;
}

// Each test of the plan with each of the values.
template <class T, class Set>
void Multiply(std::vector<BenchTest>& plan, const std::vector<T>& values, Set set) {
  constexpr size_t kMaxTests = 10'000;
  if (plan.size() * values.size() > kMaxTests) {
    throw UsageError(Format("expected at most %zu tests, found more", kMaxTests));
  }
  for (const BenchTest& test : std::exchange(plan, {})) {
    for (const T& value : values) set(plan.emplace_back(test), value);
  }
}

// "5%" or "5": 0.05.
double ParseShare(const std::string& flag, const std::string& text) {
  const std::string number = text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  const double percent = gguf::NumberIn<double>(number).value_or(0);
  if (!(percent >= 0.1 && percent <= 50)) {
    throw UsageError(flag, ": expected from 0.1% to 50%, found ", text);
  }
  return percent / 100;
}

// All tests of one model, in the order in which they are measured.
std::vector<BenchTest> PlanFor(const BenchOptions& options) {
  std::vector<BenchTest> plan(1);
  const auto each = [&](size_t BenchTest::*member, const std::vector<size_t>& numbers) {
    Multiply(plan, numbers, [=](BenchTest& test, size_t n) { test.*member = n; });
  };
  const auto works = Works(options);
  Multiply(plan, CacheTypes(options), [](BenchTest& test, const auto& kv) { test.kv = kv; });
  each(&BenchTest::n_batch, ParseNumbers("-b", options.batches, 1, kMaxTokens));
  each(&BenchTest::n_ubatch, ParseNumbers("-ub", options.ubatches, 1, kMaxBatch));
  std::vector<size_t> threads = ParseNumbers("-t", options.threads, 1, kMaxThreads);
  if (threads.empty()) threads = {0};  // as many as the test needs, see below
  each(&BenchTest::n_threads, threads);
  each(&BenchTest::n_depth, ParseNumbers("-d", Or(options.depths, {"0"}), 0, kMaxTokens));
  Multiply(plan, works,
           [](BenchTest& test, const auto& work) { std::tie(test.n_prompt, test.n_gen) = work; });
  if (!options.parallel.empty() && !options.passes.empty())
    throw UsageError("--draft and --parallel: give one of them");
  each(&BenchTest::n_texts,
       ParseNumbers("--parallel", Or(options.parallel, {"1"}), 1, engine::kMaxDecodeTokens));
  // Passes of several tokens of a text are for tests that only generate.
  const auto passes =
      ParseNumbers("--draft", Or(options.passes, {"1"}), 1, engine::kMaxDecodeTokens);
  const std::vector<size_t> one = {1};
  const auto generates = [](const BenchTest& test) { return test.n_prompt == 0; };
  if (!options.passes.empty() && std::ranges::none_of(plan, generates))
    throw UsageError("--draft: expected tests that only generate (-n)");
  for (const BenchTest& test : std::exchange(plan, {})) {
    for (const size_t n : generates(test) ? passes : one) plan.emplace_back(test).n_pass = n;
  }
  const kernels::ThreadCounts counts = kernels::DefaultThreads();
  for (BenchTest& test : plan) {
    if (test.n_threads > 0) continue;
    test.n_threads = static_cast<size_t>(test.n_gen > 0 ? counts.generating : counts.prompt);
  }
  return plan;
}

// A number in proportion to the seconds that a repetition takes. A prompt's tokens cost less.
double EffortOf(const BenchTest& test) {
  const size_t passes = test.n_gen / test.n_pass + test.n_texts * test.n_prompt / 10 + 1;
  return static_cast<double>(test.model->opened.BytesPerToken() * passes);
}

// Where results go: standard output and, on request, standard error.
class Outputs {
 public:
  Outputs(const BenchOptions& options, const BenchSetting& setting,
          const std::vector<BenchTest>& plan)
      : plan_(plan),
        progress_(options.progress),
        out_(MakeBenchFormat(options.output, setting)),
        err_(options.output_err == "none" ? nullptr
                                          : MakeBenchFormat(options.output_err, setting)) {}

  // False if the reader has closed the pipe.
  bool Row(const BenchResult& result) {
    return Write([&](BenchFormat& format) { return format.Row(result); });
  }
  void End(const std::vector<BenchResult>& done) {
    Write([&](BenchFormat& format) { return format.End(done); });
  }

  // A line that the next one replaces, on a terminal that shows nothing else; elsewhere on request.
  void Progress(const std::string& text) const {
    const bool is_line = !err_ && HasEscapes(STDERR_FILENO);
    if (!is_line && !progress_) return;
    std::fprintf(stderr, "%s%s%s", is_line ? "\r\033[K" : "", text.c_str(), is_line ? "" : "\n");
  }

 private:
  // The head is written with the first row, so that a test that fails prints only its message.
  template <class Text>
  bool Write(Text text) {
    const bool first = !std::exchange(begun_, true);
    const auto whole = [&](BenchFormat& format) {
      const std::string head = first ? format.Begin(plan_) : "";
      return head + text(format);
    };
    if (err_) {
      std::fputs(whole(*err_).c_str(), stderr);
    } else if (HasEscapes(STDERR_FILENO)) {
      std::fputs("\r\033[K", stderr);
    }
    open_ = WriteOut(whole(*out_)) && open_;
    return open_ || err_ != nullptr;
  }

  const std::vector<BenchTest>& plan_;
  bool progress_;
  std::unique_ptr<BenchFormat> out_, err_;
  bool begun_ = false, open_ = true;
};

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options) {
    options.model.ForSession();  // applies --cpu
    const std::vector<BenchTest> tests = PlanFor(options);
    detect_ = ParseShare("--detect", options.detect);
    if (!options.baseline.empty() && !options.against.empty()) {
      throw UsageError("--baseline and --against are two ways to compare: give one of them");
    }
    const auto is_given = [&](const char* name) {
      return !options.command->Find(name)->given.empty();
    };
    if (is_given("--detect") && options.baseline.empty() && options.against.empty())
      throw UsageError("--detect: only with --against, --baseline or --diff");
    if (is_given("--max-time") && options.against.empty())
      throw UsageError("--max-time: only with --against");
    if (!options.against.empty() && !options.model.override_kv.empty())
      throw UsageError("--override-kv: not with --against, whose program would not know of it");
    if (!options.baseline.empty()) baseline_.emplace(options.baseline);
    OpenModels();
    // Opened now, so that a bad path fails before minutes of measuring.
    if (!options.plot.empty()) {
      CheckNoModelIsLost(options.plot);
      plot_.emplace(options.plot, Inputs());
    }
    for (const BenchModel& model : models_) {
      for (const BenchTest& test : tests) plan_.emplace_back(test).model = &model;
    }
    setting_ = ThisSetting(options.against);
    if (!baseline_) return;
    std::vector<BenchResult> planned;
    for (const BenchTest& test : plan_) planned.push_back({.test = test});
    baseline_->Expect(Rows(planned), "that were asked for");
    // A ratio of speeds describes the program only if nothing else has changed.
    const std::string machine = baseline_->OtherMachine(Rows(planned)[0]);
    if (machine.empty()) return;
    throw engine::Error(options.baseline, ": was measured on another machine, ", machine,
                        "; bench --diff compares the files of two machines");
  }

  int Run() {
    CatchInterrupts();
    Outputs outputs(options_, setting_, plan_);
    for (const BenchTest& test : plan_) {
      // Lets the machine cool; Ctrl-C ends it.
      const engine::Stopwatch wait;
      while (!done_.empty() && wait.Seconds() < options_.delay && !Interrupted()) usleep(50'000);
      if (Interrupted()) break;
      BenchResult result = {.test = test};
      outputs.Progress(Position(result));
      if (!RunTest(result, outputs)) break;
      done_.push_back(std::move(result));
      // The reader has closed the pipe, and neither a plot nor a verdict was requested.
      if (!outputs.Row(done_.back()) && !plot_ && options_.against.empty() && !baseline_)
        return kExitDone;
    }
    outputs.End(done_);
    if (plot_ && !done_.empty()) {
      plot_->Write(BenchSvg(setting_, done_));
      plot_->Commit();
    }
    return Status();
  }

 private:
  // All models are opened before the first is measured: a broken one is reported at once.
  void OpenModels() {
    const std::vector<std::string> none = {""};
    for (const std::string& name : options_.models.empty() ? none : options_.models) {
      ModelOptions which = options_.model;
      which.model = name;
      const engine::Stopwatch watch;
      engine::Model model = ReadModel(which);
      models_.push_back(DescribeModel(std::move(model), watch.Seconds()));
    }
  }

  std::vector<EarlierResults::Row> Rows(const std::vector<BenchResult>& results) const {
    std::vector<EarlierResults::Row> rows;
    for (const BenchResult& result : results)
      rows.push_back(EarlierResults::RowOf(ResultFields(setting_, result)));
    return rows;
  }

  int Repetitions() const {
    if (options_.repetitions > 0) return options_.repetitions;
    return options_.against.empty() ? 5 : 1;
  }

  // For example "3 of 12: pp512, 2 threads, 0:40 left". The time is missing before the first
  // repetition is measured, and with --against.
  std::string Position(const BenchResult& result) const {
    const double share = static_cast<double>(result.samples.size()) / Repetitions();
    double done = std::min(share, 1.0) * EffortOf(result.test), all = 0;
    for (const BenchTest& test : plan_) all += EffortOf(test);
    for (const BenchResult& before : done_) done += EffortOf(before.test);
    std::string text = Format("%zu of %zu: ", done_.size() + 1, plan_.size()) + result.test.Name() +
                       ", " + Counted(result.test.n_threads, "thread");
    if (done == 0 || !options_.against.empty()) return text + " ...";
    const auto left = static_cast<size_t>(watch_.Seconds() * std::max(all / done - 1, 0.0));
    return text + Format(", %zu:%02zu left", left / 60, left % 60);
  }

  bool RunTest(BenchResult& result, const Outputs& outputs) {
    ModelOptions machine = options_.model;
    machine.kv = result.test.kv;
    if (!options_.against.empty()) {
      // The remaining time is for all remaining tests.
      const double seconds =
          (options_.max_time - watch_.Seconds()) / static_cast<double>(plan_.size() - done_.size());
      constexpr size_t kPairs = 12;  // too few for a verdict on ten tests
      const Gate gate(detect_, plan_.size(), kPairs, seconds);
      const auto say = [&](const std::string& text) {
        outputs.Progress(Position(result) + " " + text);
      };
      result.cost = CostOf(result.test, machine.ForSession().kv_type);
      return MeasurePairs(options_.against, Repetitions(), options_.model.cpu, gate, say, result);
    }
    const auto more = [&](const BenchResult& now) {
      if (HasEscapes(STDERR_FILENO)) outputs.Progress(Position(now));
      return now.samples.size() < static_cast<size_t>(Repetitions());
    };
    return Measure(machine.ForSession(), result, more);
  }

  int Status() const {
    if (done_.size() < plan_.size()) {
      throw engine::Error(
          Format("interrupted: %zu of %zu tests are done", done_.size(), plan_.size()));
    }
    if (baseline_) {
      std::string table;
      const int status = baseline_->Compare(Rows(done_), detect_, table);
      std::fputs(("\nBeside " + options_.baseline + ":\n\n" + table).c_str(), stderr);
      return status;
    }
    if (options_.against.empty()) return kExitDone;
    const auto named = [&](Verdict verdict) {
      std::string names;
      for (const BenchResult& result : done_) {
        if (!result.comparison || result.comparison->verdict != verdict) continue;
        const Comparison& found = *result.comparison;
        names += (names.empty() ? "" : ", ") + result.test.Name() + " " + found.Text();
        names += " after " + Counted(found.other_ts.size(), "pair");
        if (found.seconds_more > 0)
          names += Format(", a decision takes about %.0f s more", std::ceil(found.seconds_more));
      }
      return names;
    };
    const std::string slower = named(Verdict::kSlower), unknown = named(Verdict::kUnknown);
    const auto compared = std::ranges::count_if(
        done_, [](const BenchResult& result) { return result.comparison.has_value(); });
    const bool is_short = std::ranges::any_of(done_, [](const BenchResult& result) {
      return result.comparison && !result.comparison->HasInterval();
    });
    Complain(Format("%td of %zu tests compared with ", compared, done_.size()) + options_.against +
             ": " +
             (!slower.empty() ? "slower: " + slower
              : !unknown.empty()
                  ? std::string("could not tell, ") +
                        (is_short ? "--max-time allows too few pairs: "
                                  : "the machine is too unsteady: ") +
                        unknown
                  : "not slower by " + options_.detect + ": " + named(Verdict::kNotSlower)));
    return !slower.empty() ? kExitDiffers : !unknown.empty() ? kExitUnknown : kExitDone;
  }

  const BenchOptions& options_;
  std::optional<EarlierResults> baseline_;
  std::vector<BenchModel> models_;  // not changed once the plan points to it
  std::optional<gguf::OutputFile> plot_;
  std::vector<BenchTest> plan_;
  std::vector<BenchResult> done_;
  BenchSetting setting_;
  double detect_ = 0;
  engine::Stopwatch watch_;
};

void AddWhatIsMeasured(Command& command, BenchOptions& options) {
  const auto list = [&](const std::string& flag, auto& values, const char* what) {
    command.Add(flag + " N,...", values, what);
  };
  options.model.named_by =
      &command.Add("-m,--model,MODEL MODEL", options.models,
                   "A file or a name, repeatable (default: $PRONK_MODEL, else the included model)");
  list("-p,--n-prompt", options.prompts, "Tokens of prompt to read (default: 512)");
  list("-n,--n-gen", options.gens, "Tokens to generate (default: 128)");
  command.Add("--prompt-gen P,N", options.prompt_gens,
              "Also -pg: read P tokens, then generate N (repeatable)");
  list("--draft", options.passes,
       "With -n: tokens read in one pass, as if all guesses were right (1-16; default: 1)");
  list("--parallel", options.parallel,
       "Also -np, -npl: prompts read one after the other, then a token of each in a pass (1-16; "
       "default: 1)");
  list("-d,--n-depth", options.depths, "Tokens already in the cache (default: 0)");
  list("-t,--threads", options.threads,
       "Threads (default: one per core; slow cores only for prompts)");
  list("-b,--batch-size", options.batches,
       "Tokens of a prompt given to the model at a time (default: 2048)");
  list("--ubatch-size", options.ubatches, "Also -ub: tokens computed at a time (default: 512)");
  command.Add("--kv TYPE,...", options.kv,
              "Types of keys and values: f16 (default), f32, q8_0, q4_0");
  command.Add("--cache-type-k TYPE,...", options.keys,
              "Also -ctk: types of keys, each with all of -ctv");
  command.Add("--cache-type-v TYPE,...", options.values, "Also -ctv: types of values");
}

int RunBench(const BenchOptions& options) {
  if (options.diff.empty()) return Bench(options).Run();
  constexpr std::array<std::string_view, 3> kOfDiff = {"--model", "--diff", "--detect"};
  for (const Flag& flag : options.command->flags) {
    if (flag.given.empty() || std::ranges::count(kOfDiff, flag.names.back()) > 0) continue;
    throw UsageError(flag.Title(), ": not with --diff, which measures nothing");
  }
  if (options.models.size() != 1) throw UsageError("--diff: expected two files, A.json B.json");
  const EarlierResults before(options.diff), now(options.models[0]);
  before.Expect(now.rows(), "of " + options.models[0]);
  std::string table;
  const int status = before.Compare(now.rows(), ParseShare("--detect", options.detect), table);
  WriteOut(table);
  return status;
}

}  // namespace

void AddBench(CommandLine& line) {
  Command& command =
      line.Add("bench", "Measure tokens per second, and compare them with the machine's limits");
  BenchOptions& options = command.Does(RunBench);
  options.command = &command;
  AddWhatIsMeasured(command, options);
  command.Add("-r,--repetitions N", options.repetitions, {1, 1000},
              "Repetitions of each test (default: 5; with --against 1 in each turn)");
  command.Add("--delay N", options.delay, {0, 3600}, "Seconds to wait between tests").ShowDefault();
  command.Add("-o,--output", options.output, "How the results are written")
      .OneOf({"md", "csv", "json", "jsonl", "sql"})
      .ShowDefault();
  command
      .Add("--output-err", options.output_err, "Also -oe: how a second copy is written to stderr")
      .OneOf({"none", "md", "csv", "json", "jsonl", "sql"})
      .ShowDefault();
  command.Add("--progress", options.progress, "Report on stderr what is being measured");
  command.Add("--plot FILE.svg", options.plot, "Draw the results against the limits").Writes();
  command.Add("--baseline FILE", options.baseline,
              "Compare with what -o json wrote earlier, in a table on stderr: exit status 3 if a "
              "test is slower, 5 if that is uncertain");
  command.Add(
      "--against FILE", options.against,
      "Compare with another program, a pronk or a llama-bench, which takes turns with this one");
  command.Add("--diff FILE", options.diff,
              "bench --diff A.json B.json: measure nothing, and compare two files of -o json");
  command.Add("--detect PERCENT", options.detect, "The smallest change of speed to look for")
      .ShowDefault();
  command
      .Add("--max-time N", options.max_time, {1, 86400},
           "With --against: begin no more pairs after this many seconds")
      .ShowDefault();
  options.model.AddCpuFlag(command);
  options.model.AddOverrideFlag(command);
}

}  // namespace cli
