// pronk trace: follows one token through the model, one operation per line, and shows its numbers.
#include "engine/pass/trace.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/machine.h"
#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/text_options.h"
#include "cli/terminal/terminal.h"
#include "cli/trace/trace_report.h"
#include "cli/trace/trace_values.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/output_file.h"
#include "kernels/matmul/matmul.h"
#include "kernels/threads/thread_pool.h"

namespace cli {
namespace {

using tokenizer::TokenId;

struct TraceOptions {
  ModelOptions model;
  TextOptions text;
  size_t token = 0;  // counted from 1; 0: the last one
  size_t depth = 0;
  bool all = false, values = false, heads = false, json = false, plain = false;
  int n_predict = -1;         // tokens after the text, with --plain; -1: not given
  int layer = -1, head = -1;  // -1: not given
  std::string plot, html;
  // The page and the JSON have every token's values.
  bool ShowsAllTokens() const { return !html.empty() || (json && values); }
};

// The most tokens of a page, whose attention maps grow with their square, and of the plain pass,
// which keeps every token's logits and attention.
constexpr int kMaxShown = 256;

// The text's tokens up to the traced one. Later ones would change nothing.
std::vector<TokenId> Tokens(const TraceOptions& options, const engine::Model& model) {
  const bool has_text = options.text.is_given();
  if (!has_text && !options.plain) return {};
  const std::string text = has_text ? options.text.Read() : "Once upon a time";
  std::vector<TokenId> ids = model.tokenizer->Encode(text);
  if (ids.empty()) throw UsageError("-p: expected a text of at least one token");
  if (options.token > ids.size()) {
    throw UsageError("--token ", options.token, ": the text has ", ids.size(), " tokens");
  }
  if (options.token != 0) ids.resize(options.token);
  const std::string flag = options.plain              ? "--plain"
                           : options.head >= 0        ? "--head"
                           : !options.html.empty()    ? "--html"
                           : options.ShowsAllTokens() ? "--json --values"
                                                      : "";
  if (!flag.empty() && ids.size() > kMaxShown) {
    throw UsageError(flag, ": expected a text of at most ", kMaxShown, " tokens, not of ",
                     ids.size(), "; --token ", kMaxShown, " leaves out the rest");
  }
  return ids;
}

void GoTo(engine::Session& session, std::span<const TokenId> tokens, size_t position) {
  session.Prefill(tokens.first(position).subspan(session.Rewind(position)));
}

// Reads the tokens from `begin` on several times and takes each operation's median time.
engine::Trace MedianTrace(engine::Session& session, std::span<const TokenId> tokens, size_t begin,
                          size_t repetitions) {
  std::vector<engine::Trace> traces(repetitions);
  for (engine::Trace& trace : traces) {
    GoTo(session, tokens, begin);
    session.TraceTo(&trace);
    session.Prefill(tokens.subspan(begin));
    session.TraceTo(nullptr);
  }
  engine::Trace result = traces[0];
  for (size_t i = 0; i < result.operations.size(); ++i) {
    std::vector<double> seconds;
    for (const engine::Trace& trace : traces) seconds.push_back(trace.operations[i].seconds);
    result.operations[i].seconds = MedianOf(seconds);
  }
  return result;
}

// The times of a token and, unless it has a depth instead, of the whole prompt. The limits are
// measured before and after, and the higher ones go into the report.
void MeasureTimes(const TraceOptions& options, engine::Session& session,
                  std::span<const TokenId> tokens, TraceReport& report) {
  constexpr size_t kTokenRepetitions = 9, kPromptRepetitions = 3;  // a prompt takes longer
  kernels::ThreadPool pool(static_cast<int>(session.n_threads()));
  const BenchLimits before = MeasureLimits(pool, session.model());
  report.token = MedianTrace(session, tokens, tokens.size() - 1, kTokenRepetitions);
  if (tokens.size() > 1 && options.depth == 0)
    report.prompt = MedianTrace(session, tokens, 0, kPromptRepetitions);
  const BenchLimits after = MeasureLimits(pool, session.model());
  report.read_ceiling = std::max(before.read, after.read);
  report.dot_ceiling = std::max(before.dot, after.dot);
}

TraceReport MeasureToken(const TraceOptions& options, const engine::Model& model,
                         engine::Session& session, const std::vector<TokenId>& tokens) {
  TraceReport report = {.model = model,
                        .tokens = tokens,
                        .n_threads = session.n_threads(),
                        .reads_from = ReadsFrom(model.LargestStretch().size())};
  session.Prefill(tokens);  // warms up, too
  const bool has_times = !options.values || options.ShowsAllTokens() || !options.plot.empty();
  if (has_times) MeasureTimes(options, session, tokens, report);
  if (options.values || options.ShowsAllTokens()) {
    const size_t begin = options.ShowsAllTokens() ? 0 : tokens.size() - 1;
    GoTo(session, tokens, begin);
    report.values = WatchTokens(session, std::span(tokens).subspan(begin));
  }
  return report;
}

// Refuses flags without effect.
void CheckUsage(const TraceOptions& options) {
  const auto refuse = [](bool given, const char* why) {
    if (given) throw UsageError(why);
  };
  const bool page = !options.html.empty(), plot = !options.plot.empty(), head = options.head >= 0;
  const bool has_text = options.text.is_given();
  const bool other = options.heads || options.json || plot || page;
  const bool table = !options.values && !options.plain && !head && !other;
  refuse(options.depth != 0 && (has_text || options.plain), "-d: not together with -p or --plain");
  refuse(options.token != 0 && !has_text, "--token: only with -p");
  refuse(options.values && !has_text, "--values: expected a text (-p)");
  refuse(options.heads && !options.values, "--heads: only with --values");
  refuse(page && !has_text, "--html: expected a text (-p)");
  refuse(page && plot, "--plot: not together with --html, which has the plot");
  refuse(options.all && !table, "--all: only for the table of operations");
  refuse(head && !has_text, "--head: expected a text (-p)");
  refuse(head && options.layer < 0, "--head: expected a --layer, too");
  refuse(!head && options.layer >= 0, "--layer: only with --head");
  refuse(options.n_predict >= 0 && !options.plain, "-n: only with --plain");
  refuse(options.plain && (other || options.values),
         "--plain: not together with --values, --json, --plot or --html");
  refuse(head && (other || options.values),
         "--head: not together with --values, --json, --plot or --html");
}

int RunTrace(const TraceOptions& options) {
  CheckUsage(options);  // before anything is read
  engine::SessionOptions session_options = options.model.ForSession();
  const engine::Model model = ReadModel(options.model);
  std::vector<TokenId> tokens = Tokens(options, model);
  if (options.head >= 0) {
    WriteOut(HeadTable(model, tokens, static_cast<size_t>(options.layer),
                       static_cast<size_t>(options.head)));
    return kExitDone;
  }
  const size_t n_predict = options.n_predict < 0 ? 32 : static_cast<size_t>(options.n_predict);
  session_options.context =
      options.depth + std::max<size_t>(tokens.size(), 1) + (options.plain ? n_predict : 0);
  if (options.plain)
    session_options.batch = kernels::kMaxInvariantTokens;  // computed as single tokens
  engine::Session session(model, session_options);         // checks that there is memory for them
  if (options.plain) {
    WriteOut(PlainTable(session, tokens, n_predict));
    return kExitDone;
  }
  tokens.resize(session_options.context);
  const std::string& path = options.html.empty() ? options.plot : options.html;
  std::optional<gguf::OutputFile> file;
  if (!path.empty()) {
    CheckNoModelIsLost(path);
    file.emplace(path, Inputs());
  }

  const TraceReport report = MeasureToken(options, model, session, tokens);
  if (file) {
    file->Write(options.html.empty() ? TraceSvg(report) : TraceHtml(report));
    file->Commit();
  }
  if (options.json) {
    WriteOut(TraceJson(report));
  } else if (options.values) {
    WriteOut(ValuesText(report, options.heads));
  } else if (!file) {
    WriteOut(TraceTable(report, options.all));
  } else if (!path.starts_with("/dev/")) {  // else the file may be the output itself
    WriteOut(gguf::PrintablePath(path) + "\n");
  }
  return kExitDone;
}

}  // namespace

void AddTrace(CommandLine& line) {
  Command& command =
      line.Add("trace", "Follow one token through the model, operation by operation");
  TraceOptions& options = command.Does(RunTrace);
  options.model.AddModelFlag(command);
  options.text.AddFlags(command, "The text; its last token is followed",
                        "A file (- for stdin) with the text (repeatable: joined by empty lines)");
  command.Add("--token N", options.token, {1, kMaxTokens},
              "Follow this token of the text, counted from 1");
  command.Add("--all", options.all,
              "Show every layer; without it, layers with the same operations are shown once");
  command.Add(
      "--values", options.values,
      "Instead of times, show which tokens attention weights most, and each layer's prediction");
  command.Add("--heads", options.heads, "With --values: show each attention head, too");
  command.Add("--layer N", options.layer, {0, kMaxTokens},
              "With --head: its layer, counted from 0");
  command.Add("--head N", options.head, {0, kMaxTokens},
              "Show the numbers of this head's attention in --layer, counted from 0");
  command.Add("--plain", options.plain,
              "Continue the text by the plain pass (engine/plain.cc), and compare its logits");
  command.Add("-n,--n-predict N", options.n_predict, {0, kMaxShown},
              "With --plain: tokens to write (default: 32)");
  command
      .Add("--plot FILE", options.plot,
           "Draw the roofline with every operation on it; print only the file's name")
      .Writes();
  command
      .Add("--html FILE", options.html,
           "Write a page for a browser: attention of every head, each layer's prediction, times")
      .Writes();
  command.Add("--json", options.json,
              "Print one JSON object; with --values, everything that the page of --html shows");
  options.model.AddThreadsFlag(command);
  options.model.AddMachineFlags(command);
  options.model.AddOverrideFlag(command);
  command
      .Add("-d,--n-depth N", options.depth, {0, kMaxTokens},
           "Without a text: tokens already in the cache")
      .ShowDefault();
}

}  // namespace cli
