// pronk bench: tokens per second, held against what the machine can do, and against earlier runs.
#include "cli/bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/bench/machine.h"
#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/number_list.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/stopwatch.h"
#include "gguf/output_file.h"
#include "kernels/machine/cpu.h"
#include "kernels/machine/default_threads.h"
#include "kernels/machine/team.h"

namespace cli {
namespace {

constexpr size_t kMaxBatch = 4096;  // as pronk run's

// Lists of numbers are read when all flags are there.
struct BenchOptions {
  std::vector<std::string> models;
  std::string cpu;
  std::vector<std::string> prompts = {"512"};
  std::vector<std::string> gens = {"128"};
  std::vector<std::string> prompt_gens;  // "512,128"
  std::vector<std::string> passes = {"1"};
  std::vector<std::string> depths = {"0"};
  std::vector<std::string> batches = {"2048"};
  std::vector<std::string> ubatches = {"512"};
  std::vector<std::string> threads;
  std::vector<std::string> keys, values;  // types of the cache
  int repetitions = 5;
  int delay = 0;  // seconds
  std::string output = "md";
  std::string output_err = "none";
  std::string plot;
  std::string baseline;
  std::string sysfs = "/sys";
};

// The types that a list of them names.
std::vector<std::string> ParseTypes(const std::vector<std::string>& texts) {
  std::vector<std::string> types;
  for (std::string text : texts) {
    for (text += ','; !text.empty(); text.erase(0, text.find(',') + 1)) {
      types.push_back(text.substr(0, text.find(',')));
      if (!ModelOptions::IsKvType(types.back())) {
        throw UsageError("-ctk, -ctv: expected f16, f32 or q8_0, found " + types.back());
      }
    }
  }
  return types;
}

std::vector<std::string> CacheTypes(const BenchOptions& options) {
  const std::vector<std::string> keys = ParseTypes(options.keys);
  const std::vector<std::string> values = ParseTypes(options.values);
  if (!keys.empty() && !values.empty() && keys != values) {
    throw UsageError(
        "-ctk and -ctv: keys and values have one type, so give one of the flags, or "
        "both the same");
  }
  if (keys.empty() && values.empty()) return {"f16"};
  return keys.empty() ? values : keys;
}

// Tokens of prompts and of generation: -p, -n, -pg.
std::vector<std::pair<size_t, size_t>> Works(const BenchOptions& options) {
  std::vector<std::pair<size_t, size_t>> works;
  for (const size_t n : ParseNumbers("-p", options.prompts, 0, kMaxTokens)) works.push_back({n, 0});
  for (const size_t n : ParseNumbers("-n", options.gens, 0, kMaxTokens)) works.push_back({0, n});
  for (const std::string& text : options.prompt_gens) {
    const std::vector<size_t> pair = ParseNumbers("-pg", {text}, 0, kMaxTokens);
    if (pair.size() != 2) throw UsageError("-pg: expected two numbers such as 512,128");
    works.push_back({pair[0], pair[1]});
  }
  std::erase(works, std::pair<size_t, size_t>(0, 0));
  if (works.empty()) throw UsageError("nothing to measure: -p, -n and -pg name no tokens");
  return works;
}

// The tests of one work: one for each size of a pass, where tokens are generated alone.
void AddByPasses(const std::vector<size_t>& passes, BenchTest test, std::vector<BenchTest>& plan) {
  const bool generates_alone = test.n_prompt == 0;
  for (const size_t n_pass : generates_alone ? passes : std::vector<size_t>{1}) {
    test.n_pass = n_pass;
    plan.push_back(test);
  }
}

// All tests of one model, in the order in which they are measured.
std::vector<BenchTest> PlanFor(const BenchOptions& options) {
  const auto works = Works(options);
  const std::vector<std::string> types = CacheTypes(options);
  const auto numbers = [](const char* flag, const std::vector<std::string>& texts, size_t low,
                          size_t high) { return ParseNumbers(flag, texts, low, high); };
  const std::vector<size_t> batches = numbers("-b", options.batches, 1, kMaxTokens);
  const std::vector<size_t> ubatches = numbers("-ub", options.ubatches, 1, kMaxBatch);
  const std::vector<size_t> depths = numbers("-d", options.depths, 0, kMaxTokens);
  const std::vector<size_t> passes = numbers("--draft", options.passes, 1, engine::kMaxPassTokens);
  std::vector<size_t> threads = numbers("-t", options.threads, 1, kMaxThreads);
  if (threads.empty()) threads = {static_cast<size_t>(kernels::DefaultThreads())};
  std::vector<BenchTest> plan;
  BenchTest test;
  for (const std::string& kv : types) {
    for (const size_t n_batch : batches) {
      for (const size_t n_ubatch : ubatches) {
        for (const size_t n_threads : threads) {
          for (const size_t n_depth : depths) {
            for (const auto& [n_prompt, n_gen] : works) {
              test.kv = kv;
              test.n_batch = n_batch;
              test.n_ubatch = n_ubatch;
              test.n_threads = static_cast<int>(n_threads);
              test.n_depth = n_depth;
              test.n_prompt = n_prompt;
              test.n_gen = n_gen;
              AddByPasses(passes, test, plan);
            }
          }
        }
      }
    }
  }
  return plan;
}

std::string TypeOfModel(const engine::Model& model, uint64_t n_params) {
  const double n = static_cast<double>(n_params);
  const std::string size = n >= 1e9 ? Format("%.2fB", n / 1e9) : Format("%.1fM", n / 1e6);
  return model.config.architecture + " " + size + " " +
         std::string(gguf::Info(engine::MainType(model.file)).name);
}

// What is known of a model when it is open, and how fast it was ready.
BenchModel Examine(const engine::Model& model, double load_seconds) {
  BenchModel result;
  const engine::Stopwatch watch;
  engine::SessionOptions options;
  options.context = 16;
  engine::Session session(model, options);
  const std::vector<tokenizer::TokenId> prompt(8, 0);
  session.Prefill(prompt);
  session.Sample();
  result.load_ms = load_seconds * 1e3;
  result.first_token_ms = (load_seconds + watch.Seconds()) * 1e3;
  result.file = model.file.path();
  result.size = model.file.tensor_bytes();
  for (const gguf::TensorView& tensor : model.file.tensors()) result.n_params += tensor.elements();
  result.type = TypeOfModel(model, result.n_params);
  return result;
}

// Where results go: standard output and, if it is asked for, standard error.
class Outputs {
 public:
  Outputs(const BenchOptions& options, const BenchSetting& setting)
      : out_(MakeBenchFormat(options.output, setting)),
        err_(options.output_err == "none" ? nullptr
                                          : MakeBenchFormat(options.output_err, setting)) {}

  // Once: with the first row, so that a test that cannot be done leaves its message alone.
  void Begin(const std::vector<BenchTest>& plan) {
    if (!std::exchange(begun_, true)) {
      Write([&](BenchFormat& format) { return format.Begin(plan); });
    }
  }
  // False where nobody reads any more.
  bool Row(const BenchTest& test) {
    return Write([&](BenchFormat& format) { return format.Row(test); });
  }
  void End(const std::vector<BenchTest>& done) {
    Write([&](BenchFormat& format) { return format.End(done); });
  }

  // On a terminal that shows nothing else.
  void Progress(const BenchTest& test, size_t number, size_t total) const {
    if (err_ || !HasEscapes(STDERR_FILENO)) return;
    std::fprintf(stderr, "\r\033[K%zu of %zu: %s, %d threads ...", number, total,
                 test.Name().c_str(), test.n_threads);
  }

 private:
  template <class Text>
  bool Write(Text text) {
    if (err_) {
      std::fputs(text(*err_).c_str(), stderr);
    } else if (HasEscapes(STDERR_FILENO)) {
      std::fputs("\r\033[K", stderr);
    }
    return open_ = WriteOut(text(*out_)) && open_;
  }

  std::unique_ptr<BenchFormat> out_, err_;
  bool begun_ = false, open_ = true;
};

// Waits between two tests, so that a machine can cool; Ctrl-C ends it.
void Wait(int seconds) {
  const engine::Stopwatch watch;
  while (watch.Seconds() < seconds && !Interrupted()) usleep(50'000);
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options) {
    ModelOptions machine;
    machine.cpu = options.cpu;
    session_ = machine.Session();  // applies --cpu
    const std::vector<BenchTest> tests = PlanFor(options);
    if (!options.baseline.empty()) baseline_.emplace(options.baseline);
    OpenModels();
    // Opened now: nobody wants to measure for minutes in vain.
    if (!options.plot.empty()) plot_.emplace(options.plot, ids_);
    for (const BenchModel& model : models_) {
      for (BenchTest test : tests) {
        test.model = &model;
        plan_.push_back(test);
      }
    }
    const auto has_before = [&](const BenchTest& test) { return baseline_->Has(test); };
    if (baseline_ && std::none_of(plan_.begin(), plan_.end(), has_before)) {
      throw engine::Error(options.baseline + ": has none of the tests that were asked for");
    }
    setting_ = {PRONK_VERSION,   BuildCommit(),        DateNow(),
                CpuName(),       kernels::CpuTarget(), EnergyMeter(options.sysfs).Works(),
                options.baseline};
  }

  int Run() {
    CatchInterrupts();
    Outputs outputs(options_, setting_);
    std::optional<engine::Model> model;
    for (BenchTest& test : plan_) {
      if (!done_.empty()) Wait(options_.delay);
      if (Interrupted()) break;
      if (!model || model->file.path() != test.model->file) {
        model.reset();
        model.emplace(engine::Model::From(OpenFile(test.model->file)));
      }
      outputs.Progress(test, done_.size() + 1, plan_.size());
      if (!RunTest(*model, test)) break;
      test.single_ts = SingleSpeed(test);
      outputs.Begin(plan_);
      done_.push_back(test);
      // Nobody reads any more, and there is nothing else to show.
      if (!outputs.Row(test) && !plot_) return kExitDone;
    }
    outputs.Begin(plan_);
    outputs.End(done_);
    if (plot_ && !done_.empty()) {
      const std::string svg = BenchSvg(setting_, done_);
      plot_->Write(std::as_bytes(std::span(svg)));
      plot_->Commit();
    }
    return Status();
  }

 private:
  // All of them are looked at before the first is measured: one that is broken is known at once.
  void OpenModels() {
    std::vector<std::string> names = options_.models;
    if (names.empty()) names.emplace_back();
    for (const std::string& name : names) {
      ModelOptions which;
      which.model = name;
      const engine::Stopwatch watch;
      const engine::Model model = engine::Model::From(OpenFile(which.ModelPath()));
      models_.push_back(Examine(model, watch.Seconds()));
      const auto ids = model.file.ids();
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    }
  }

  bool RunTest(const engine::Model& model, BenchTest& test) {
    ModelOptions machine;
    machine.kv = test.kv;
    machine.cpu = options_.cpu;
    test.bytes_per_token = static_cast<double>(model.BytesPerToken());
    test.operations_per_token = model.OperationsPerToken();
    if (!Measure(model, machine.Session(), options_.repetitions, options_.sysfs, test))
      return false;
    if (baseline_) test.comparison = baseline_->Compare(test);
    return true;
  }

  // What the same test with passes of one token has shown, itself or one before it.
  double SingleSpeed(const BenchTest& test) const {
    if (test.n_pass == 1) return test.Median();
    for (auto before = done_.rbegin(); before != done_.rend(); ++before) {
      if (before->n_pass == 1 && before->model == test.model && before->n_gen == test.n_gen &&
          before->n_depth == test.n_depth && before->n_threads == test.n_threads &&
          before->n_prompt == 0 && before->kv == test.kv) {
        return before->Median();
      }
    }
    return 0;
  }

  int Status() const {
    const auto count = [&](auto is) { return std::count_if(done_.begin(), done_.end(), is); };
    if (done_.size() < plan_.size()) {
      throw engine::Error(
          Format("interrupted: %zu of %zu tests are done", done_.size(), plan_.size()));
    }
    if (!baseline_) return kExitDone;
    const auto compared = count([](const BenchTest& test) { return test.comparison.has_value(); });
    const auto slower =
        count([](const BenchTest& test) { return test.comparison && test.comparison->IsSlower(); });
    Complain(Format("%td of %zu tests compared with ", compared, done_.size()) + options_.baseline +
             Format(", %td slower by more than the spread", slower));
    return slower > 0 ? kExitDiffers : kExitDone;
  }

  const BenchOptions& options_;
  engine::SessionOptions session_;
  std::optional<Baseline> baseline_;
  std::vector<BenchModel> models_;  // not changed once the plan points into it
  std::vector<gguf::FileId> ids_;
  std::optional<gguf::OutputFile> plot_;
  std::vector<BenchTest> plan_, done_;
  BenchSetting setting_;
};

void AddWhatIsMeasured(Command& command, BenchOptions& options) {
  const auto list = [&](const char* flag, auto& values, const char* what) {
    command.Add(flag, values, what).Type("N,...");
  };
  command.Add("-m,--model,MODEL MODEL", options.models,
              "A file or a name, repeatable (default: $PRONK_MODEL, else the one that ships)");
  list("-p,--n-prompt", options.prompts, "Tokens of prompt to read (default: 512)");
  list("-n,--n-gen", options.gens, "Tokens to generate (default: 128)");
  command.Add("--prompt-gen P,N", options.prompt_gens,
              "Also -pg: read so many tokens, then generate so many (repeatable)");
  list("--draft", options.passes,
       "With -n: tokens read in one pass, as if all guesses were right (1-16; default: 1)");
  list("-d,--n-depth", options.depths, "Tokens already in the cache (default: 0)");
  list("-t,--threads", options.threads, "Threads (default: performance cores)");
  list("-b,--batch-size", options.batches,
       "Tokens of a prompt handed over at a time (default: 2048)");
  list("--ubatch-size", options.ubatches, "Also -ub: tokens computed at a time (default: 512)");
  command.Add("--kv,--cache-type-k TYPE,...", options.keys,
              "Also -ctk: types of the cache: f16 (default), f32, q8_0");
  command.Add("--cache-type-v TYPE,...", options.values,
              "Also -ctv: the same; keys and values have one type");
}

}  // namespace

void AddBench(CommandLine& line) {
  Command& command =
      line.Add("bench", "Measure tokens per second and the share of the machine's limits");
  const auto options = std::make_shared<BenchOptions>();
  AddWhatIsMeasured(command, *options);
  command.Add("-r,--repetitions N", options->repetitions, "Repetitions of each test")
      .Between(1, 1000)
      .ShowDefault();
  command.Add("--delay N", options->delay, "Seconds to wait between tests")
      .Between(0, 3600)
      .ShowDefault();
  command.Add("-o,--output", options->output, "How the results are written")
      .OneOf({"md", "csv", "json", "jsonl"})
      .ShowDefault();
  command.Add("--output-err", options->output_err, "Also -oe: how they are written to stderr, too")
      .OneOf({"none", "md", "csv", "json", "jsonl"})
      .ShowDefault();
  command.Add("--plot FILE.svg", options->plot, "Draw the results against the limits");
  command.Add("--baseline FILE", options->baseline,
              "Compare with what -o json wrote earlier; status 3 if something is slower");
  command.Add("--cpu NAME", options->cpu,
              "Limit the instruction set (a wrong name lists the right ones)");
  command.Add("--sysfs FOLDER", options->sysfs, "Where the system tells energy and temperature")
      .ShowDefault();
  command.Does([options] { return Bench(*options).Run(); });
}

}  // namespace cli
