// Measures a test in turns with another program, so that the machine's changes, which are larger
// than the difference in question, affect both alike.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/bench/machine.h"
#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"

namespace cli {
namespace {

// Runs one test of a program and returns its output; its messages go to our stderr.
JsonView Turn(const std::string& program, const std::string& flags) {
  if (Interrupted()) return ParseJson("{}", program);
  const bool is_llama_bench = std::filesystem::path(program).stem() == "llama-bench";
  // The shell would look elsewhere for a name without a slash. A dumb terminal shows no progress.
  const std::string path = std::filesystem::absolute(program);
  const std::string command =
      "TERM=dumb exec " + ShellQuoted(path) + (is_llama_bench ? "" : " bench") + flags;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw engine::Error(program, ": cannot be started");
  std::string text;
  std::array<char, 4096> part;
  for (size_t n = 1; n > 0 && text.size() <= kMaxDocumentBytes;) {
    n = std::fread(part.data(), 1, part.size(), pipe);
    text.append(part.data(), n);
  }
  if (pclose(pipe) != 0 && !Interrupted()) {
    throw engine::Error(program, ": cannot measure this test");
  }
  return ParseJson(Interrupted() ? "{}" : std::move(text), program);
}

// The result's median speed.
double Speed(const JsonView& result, const std::string& program) {
  std::vector<double> speeds;
  for (const auto& item : result["samples_ts"]) speeds.push_back(item.value.Number());
  if (speeds.empty() || std::ranges::min(speeds) <= 0)
    throw engine::Error(program, ": its output has no speeds (samples_ts)");
  return MedianOf(speeds);
}

}  // namespace

bool MeasurePairs(const std::string& other, int repetitions, const std::string& cpu, Gate gate,
                  const std::function<void(const std::string&)>& say, BenchResult& result) {
  const BenchTest& test = result.test;
  if (access(other.c_str(), F_OK) != 0) throw engine::Error(other, ": there is no such program");
  if (access(other.c_str(), X_OK) != 0 || std::filesystem::is_directory(other))
    throw engine::Error(other, ": is not executable");
  const auto flag = [](const char* name, auto value) {
    return std::string(" ") + name + " " + std::to_string(value);
  };
  std::string flags = " -o jsonl -m " + ShellQuoted(test.model->opened.file.path()) +
                      flag("-t", test.n_threads) + flag("-b", test.n_batch) +
                      flag("-ub", test.n_ubatch) + flag("-r", repetitions);
  const bool both = test.n_prompt > 0 && test.n_gen > 0;
  flags += flag("-p", both ? 0 : test.n_prompt) + flag("-n", both ? 0 : test.n_gen);
  if (both) flags += flag("-pg", test.n_prompt) + "," + std::to_string(test.n_gen);
  if (test.n_depth > 0) flags += flag("-d", test.n_depth);
  if (test.n_pass > 1) flags += flag("--draft", test.n_pass);
  if (test.n_texts > 1) flags += flag("--parallel", test.n_texts);
  const auto kv = ModelOptions::KeysAndValues(test.kv);
  if (test.kv != BenchTest().kv) flags += " -ctk " + kv.first + " -ctv " + kv.second;
  const std::string own = ProgramPath();
  const std::string own_flags = cpu.empty() ? flags : flags + " --cpu " + ShellQuoted(cpu);
  BenchConditions& conditions = result.conditions;
  conditions.date = DateNow();
  std::vector<double> others;
  Comparison& comparison = result.comparison.emplace();
  const auto compare = [&](double error) {
    const Comparison found = ComparePairs(others, result.Speeds(), error);
    say(Counted(others.size(), "pair") + ": " + found.Text());
    return found;
  };
  do {
    // The program that runs first changes with each pair.
    const bool begins = others.size() % 2 == 1;
    const JsonView first = begins ? Turn(own, own_flags) : Turn(other, flags);
    const JsonView second = begins ? Turn(other, flags) : Turn(own, own_flags);
    if (Interrupted()) return false;
    const JsonView &mine = begins ? first : second, &theirs = begins ? second : first;
    others.push_back(Speed(theirs, other));
    const auto number = [&](const char* key) {
      return mine[key].IsNumber() ? mine[key].Number() : 0;
    };
    result.samples.push_back({test.Tokens() / Speed(mine, own),
                              {number("read_limit"), number("dot_limit")},
                              number("first_token_ms") / 1e3});
    if (others.size() == 1) conditions.clock_before = number("clock_before_ghz");
    conditions.clock_after = number("clock_after_ghz");
    conditions.peak_bytes = std::max(conditions.peak_bytes, number("peak_bytes"));
    conditions.cache_bytes = number("cache_bytes");
  } while (gate.WantsMore(others.size(), compare, comparison));
  return true;
}

}  // namespace cli
