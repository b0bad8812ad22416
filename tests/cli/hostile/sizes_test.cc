// Sizes are checked before they cost memory or time: every flag with a size, at its largest value,
// by the command line's own table.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/options/model_options.h"
#include "tests/cli/command_text.h"
#include "tests/cli/pronk.h"
#include "tests/support/hf_folder.h"
#include "tests/support/memory_is_ours.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

using cli::Flag;

// Further flags that the flag needs to have an effect, and flags that make the command short.
const std::map<std::string, std::string> kRest = {
    {"run", " -n 1 -p x"},
    {"run --n-predict", " -p x"},
    {"run --draft-max", " -n 1 -p x --draft auto"},
    {"chat", " -n 1"},
    {"chat --n-predict", ""},
    {"bench", " -p 1 -n 0 -r 1"},
    {"bench --n-prompt", " -n 0 -r 1"},
    {"bench --n-gen", " -p 0 -r 1"},
    {"bench --draft", " -p 0 -n 1 -r 1"},
    {"bench --parallel", " -p 0 -n 1 -r 1"},
    {"bench --max-time", " -p 1 -n 0 -r 1 --against none"},
    {"compare", " -p 1 -n 0 -r 1"},
    {"compare --n-prompt", " -n 0 -r 1"},
    {"compare --n-gen", " -p 0 -r 1"},
    {"compare --ctx-size", " -p 0 -n 0 -f \"$TEXT\""},
    {"compare --chunks", " -p 0 -n 0 -f \"$TEXT\" -c 64"},
    {"embed", " --pooling mean x"},
    {"perplexity", " -f \"$TEXT\" -c 64"},
    {"inspect", " --check"},
    {"trace --token", " -p x"},
    {"trace --layer", " -p x --head 0"},
    {"trace --head", " -p x --layer 0"},
    {"trace --n-predict", " --plain -p x"}};

class Sizes : public testing::TestWithParam<std::string> {};

TEST_P(Sizes, AreAskedAboutBeforeTheyAreTaken) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "sanitizers take memory of their own";
  constexpr double kMaxSeconds = 1;
  constexpr size_t kMaxBytes = 64'000'000;
  const TempDir dir;
  const std::vector<std::string> environment = {
      "TEXT=" + dir.Write("text", std::string(3000, 'a')), "JSON=" + dir.Write("json", "[]"),
      "DIR=" + HfLlama().Write(dir, "model"), "NEW=" + dir.Path("new")};
  const CommandTable table;
  const auto& commands = table.line.commands();
  const auto command = std::ranges::find(commands, GetParam(), &cli::Command::name);
  for (const Flag& flag : command->flags) {
    const bool is_list = flag.type == "N,...";
    // Flags that chat and run share are tried with run.
    const bool is_shared = command->name == "chat" && flag.group != "Options";
    if ((std::isinf(flag.range.high) && !is_list) || is_shared) continue;
    const std::string& name = flag.names.back();
    double largest = is_list ? cli::kMaxTokens : flag.range.high;
    if (is_list && name == "--threads") largest = cli::kMaxThreads;
    auto rest = kRest.find(command->name + " " + name);
    if (rest == kRest.end()) rest = kRest.find(command->name);
    const std::string line =
        CommandText(*command, {{&flag, std::to_string(static_cast<int64_t>(largest))}},
                    rest == kRest.end() ? "" : rest->second);
    SCOPED_TRACE(line);
    // How long it takes is what these ask for; what memory follows has followed by then.
    const bool takes_time =
        name.starts_with("--threads") || name == "--repetitions" || name == "--minutes";
    const Finished run =
        Shell(std::string("exec timeout --preserve-status ") + (takes_time ? "0.4 " : "60 ") + line,
              environment);
    EXPECT_TRUE(run.status <= 2 || (takes_time && run.status == 128 + SIGTERM)) << run.err;
    EXPECT_LT(run.peak_bytes, kMaxBytes);
    EXPECT_TRUE(takes_time || run.seconds < kMaxSeconds) << run.seconds;
  }
}

std::vector<std::string> Names() {
  const CommandTable table;
  std::vector<std::string> names;
  for (const cli::Command& command : table.line.commands()) names.push_back(command.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, Sizes, testing::ValuesIn(Names()),
                         [](const auto& command) { return command.param; });

}  // namespace
}  // namespace test
