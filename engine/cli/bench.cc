// pronk bench: tokens per second, held against what the machine can do.
#include "engine/cli/bench.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/loading.h"
#include "engine/cli/model_options.h"
#include "engine/cli/signals.h"
#include "engine/cli/terminal.h"
#include "engine/error.h"
#include "engine/model.h"
#include "engine/session.h"
#include "engine/stopwatch.h"
#include "gguf/output_file.h"
#include "kernels/ceiling.h"
#include "kernels/cpu.h"

namespace cli {
namespace {

using tokenizer::TokenId;

struct BenchOptions {
  ModelOptions model;
  std::vector<size_t> prompts = {512};
  std::vector<size_t> gens = {128};
  std::vector<size_t> depths = {0};
  std::vector<int> threads;
  int repetitions = 5;
  std::string output = "md";
  std::string plot;
};

std::vector<TokenId> RandomTokens(size_t n, size_t vocab_size) {
  std::mt19937 random(1);
  std::vector<TokenId> ids(n);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % vocab_size);
  return ids;
}

// One test in a session of its own: warm-up, then the repetitions.
void RunTest(const engine::Model& model, engine::SessionOptions options, int repetitions,
             BenchTest& test) {
  const size_t n = test.n_prompt + test.n_gen;
  options.context = test.n_depth + n;
  options.n_threads = options.n_threads_batch = test.n_threads;
  engine::Session session(model, options);
  const std::vector<TokenId> ids = RandomTokens(options.context, model.tokenizer->vocab().size());
  const std::span<const TokenId> depth = std::span(ids).first(test.n_depth);
  const std::span<const TokenId> work = std::span(ids).subspan(test.n_depth);
  session.Prefill(depth);
  for (int i = -1; i < repetitions; ++i) {  // the first is the warm-up
    if (Interrupted()) throw engine::Error("interrupted");
    session.Prefill(depth.subspan(session.Rewind(test.n_depth)));
    const engine::Stopwatch watch;
    if (test.n_prompt > 0) {
      session.Prefill(work);
    } else {
      for (const TokenId id : work) session.Decode(id);
    }
    if (i >= 0) test.samples_ts.push_back(static_cast<double>(n) / watch.Seconds());
  }
}

std::string TypeOfModel(const engine::Model& model, uint64_t n_params) {
  std::array<char, 48> size;
  const double n = static_cast<double>(n_params);
  n >= 1e9 ? std::snprintf(size.data(), size.size(), "%.2fB", n / 1e9)
           : std::snprintf(size.data(), size.size(), "%.1fM", n / 1e6);
  return model.config.architecture + " " + size.data() + " " +
         std::string(gguf::Info(engine::MainType(model.file)).name);
}

int Bench(const BenchOptions& options) {
  const engine::Stopwatch watch;
  const engine::SessionOptions session_options = options.model.Session();
  const engine::Model model = engine::Model::From(OpenFile(options.model.ModelPath()));
  BenchReport report;
  report.load_ms = watch.Seconds() * 1e3;
  std::optional<gguf::OutputFile> plot;  // opened now: nobody wants to measure for minutes in vain
  if (!options.plot.empty()) plot.emplace(options.plot, model.file.ids());
  {
    engine::SessionOptions first = session_options;
    first.context = 16;
    engine::Session session(model, first);
    session.Prefill(RandomTokens(8, model.tokenizer->vocab().size()));
    session.Sample();
    report.first_token_ms = watch.Seconds() * 1e3;
  }
  CatchInterrupts();
  report.model_file = model.file.path();
  report.model_size = model.file.tensor_bytes();
  for (const gguf::TensorView& tensor : model.file.tensors())
    report.model_n_params += tensor.elements();
  report.model_type = TypeOfModel(model, report.model_n_params);
  report.cpu_target = kernels::CpuTarget();

  std::vector<int> threads = options.threads;
  if (threads.empty()) {
    threads = {session_options.n_threads > 0 ? session_options.n_threads
                                             : kernels::DefaultThreads()};
  }
  const std::span<const std::byte> weights = model.LargestStretch();
  for (const int n_threads : threads) {
    kernels::Team team(n_threads);
    const double read = kernels::ReadCeiling(team, weights);
    const double dot = kernels::DotCeiling(team);
    for (const size_t depth : options.depths) {
      const auto add = [&](size_t n_prompt, size_t n_gen) {
        if (n_prompt + n_gen == 0) return;
        BenchTest test{n_prompt, n_gen, depth, n_threads, {}, 0, 0};
        if (IsTerminal(2))
          std::fprintf(stderr, "\r\033[K%s, %d threads ...", test.Name().c_str(), n_threads);
        RunTest(model, session_options, options.repetitions, test);
        test.ceiling = n_gen > 0 ? read : dot;
        test.work_per_token =
            n_gen > 0 ? static_cast<double>(model.BytesPerToken()) : model.OperationsPerToken();
        report.tests.push_back(std::move(test));
      };
      for (const size_t n : options.prompts) add(n, 0);
      for (const size_t n : options.gens) add(0, n);
    }
  }
  if (IsTerminal(2)) std::fputs("\r\033[K", stderr);

  WriteOut(options.output == "json"  ? BenchJson(report)
           : options.output == "csv" ? BenchCsv(report)
                                     : BenchMarkdown(report));
  if (plot) {
    const std::string svg = BenchSvg(report);
    plot->Write(std::as_bytes(std::span(svg)));
    plot->Commit();
  }
  return kExitDone;
}

}  // namespace

void AddBench(CommandLine& line) {
  Command command =
      line.Add("bench", "Measure tokens per second and the share of the machine's limits");
  const auto options = std::make_shared<BenchOptions>();
  const auto list = [&](const char* flag, auto& values, int low, int high, const char* what) {
    command.Add(flag, values, what).Between(low, high).ShowDefault().Type("N,...");
  };
  list("-p,--n-prompt", options->prompts, 0, kMaxTokens, "Tokens of prompt to read");
  list("-n,--n-gen", options->gens, 0, kMaxTokens, "Tokens to generate");
  list("-d,--n-depth", options->depths, 0, kMaxTokens, "Tokens already in the cache");
  list("-t,--threads", options->threads, 1, kMaxThreads, "Threads (default: performance cores)");
  command.Add("-r,--repetitions", options->repetitions, "Repetitions of each test")
      .Between(1, 1000)
      .ShowDefault()
      .Type("N");
  command.Add("-o,--output", options->output, "How the results are written")
      .OneOf({"md", "csv", "json"})
      .ShowDefault();
  command.Add("--plot", options->plot, "Draw the results against the limits").Type("FILE.svg");
  options->model.AddModelFlag(command).Once();  // other lists here are measured one by one
  options->model.AddMachineFlags(command);
  command.Does([options] { return Bench(*options); });
}

}  // namespace cli
