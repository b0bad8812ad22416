#include "cli/options/other_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "gguf/error.h"

namespace cli {
namespace {

// Other programs' words for one of ours, separated by spaces.
struct Synonyms {
  std::string_view meaning, words;
};

// llama.cpp's flags, by our long names for the same.
constexpr Synonyms kLongNames[] = {
    {"--threads-batch", "-tb"},
    {"--ubatch-size", "-ub"},
    {"--cache-type-k", "-ctk"},
    {"--cache-type-v", "-ctv"},
    {"--system", "-sys"},
    {"--special", "-sp"},
    {"--json-schema", "-jf"},
    {"--single-turn", "-st"},
    {"--conversation", "-cnv -i --interactive"},
    {"--no-conversation", "-no-cnv"},
    {"--prompt-gen", "-pg"},
    {"--output-err", "-oe"},
    {"--parallel", "-np"},
    {"--model-draft", "-md"},
    {"--draft-max", "--draft-n-max"},
    {"--model", "-hf -hfr --hf-repo"},  // found if it was downloaded before
};

enum class Takes { kNone, kOne, kMaybe };  // kMaybe: yes or no, in some of llama.cpp's programs

// llama.cpp's flags that would change nothing here, by reason. Scripts that give them go on.
struct Idle {
  std::string_view why;
  Takes takes;
  std::string_view words;
};

constexpr Idle kIdle[] = {
    {"CPU only", Takes::kOne,
     "-ngl --gpu-layers --n-gpu-layers -dev --device -sm --split-mode -ts --tensor-split -mg "
     "--main-gpu -ncmoe --n-cpu-moe -ot --override-tensor"},
    {"CPU only", Takes::kMaybe,
     "-nkvo --no-kv-offload -kvo --kv-offload -cmoe --cpu-moe -nopo --no-op-offload --no-host"},
    {"always so", Takes::kMaybe, "-fa --flash-attn"},
    {"always so", Takes::kNone,
     "--jinja --no-escape --no-context-shift --allow-requantize --no-mmproj --offline"},
    {"the file is mapped", Takes::kMaybe, "--mmap --no-mmap -mmp -dio --direct-io -nr --no-repack"},
    {"run has none, bench needs one", Takes::kNone, "--warmup --no-warmup"},
    {"no log is kept", Takes::kNone, "--log-disable --log-prefix --log-timestamps"},
    {"no log is kept", Takes::kOne, "-lv --verbosity --log-verbosity"},
    {"as the terminal has it", Takes::kMaybe, "-co --color --log-colors"},
    {"without a terminal it is always so", Takes::kNone, "--simple-io"},
    {"-v prints timings", Takes::kNone, "--perf --no-perf"},
    {"nice does that", Takes::kOne, "--prio"},
    {"taskset does that", Takes::kOne, "-C --cpu-mask -Cr --cpu-range --cpu-strict"},
    {"threads spin a little, then sleep", Takes::kOne, "--poll"},
};

// Other programs' names of our subcommands.
constexpr Synonyms kOtherCommands[] = {{"list", "ls"},
                                       {"inspect", "show info"},
                                       {"run", "generate complete"},
                                       {"completion", "completions"},
                                       {"man", "manual"},
                                       {"--version", "version"}};

constexpr std::string_view kNoDownloads =
    "pronk downloads nothing: -m takes a file, or a name that 'pronk list' shows";

// Ollama's subcommands without an equivalent here, by reason.
constexpr Synonyms kForeignCommands[] = {
    {kNoDownloads, "pull"},
    {"pronk opens no network connection", "push"},
    {"pronk is no server, and a model is in memory only while a command runs; pronk.h is for "
     "programs",
     "serve ps stop"},
    {"'pronk convert' and 'pronk quantize' make models", "create"},
    {"only ./pronk, in a checkout, does that", "test fuzz clean"},
    {"models are files: cp copies them", "cp"},
    {"models are files: 'pronk list' shows where they are, and rm removes them", "rm"},
};

// llama.cpp's flags without an equivalent here, by reason.
constexpr Synonyms kForeign[] = {
    {kNoDownloads, "-hff --hf-file -mu --model-url"},
    {"this subcommand does not keep the weights in memory; run and chat do", "--mlock"},
    {"pronk reads no adapters: merge them into the model", "--lora --lora-scaled --control-vector"},
    {"pronk chat converses, and pronk run completes a text", "-no-cnv --no-conversation"},
    {"pronk reads text only", "-mm --mmproj --image --audio"},
    {"pronk uses one model at a time", "-md --model-draft"},
    {"how many tokens are guessed follows from what it gains; --draft N sets the number",
     "--draft-min --draft-n-min --draft-p-min"},
    {"pronk keeps no log; -v says what was chosen and why", "--log-file"},
    {"numactl places a program on the nodes of a machine", "--numa"},
    {"the context does not shift: run ends where it is full, chat forgets the oldest messages",
     "--context-shift --keep"},
    {"--save-logits FILE keeps predictions, and --kl FILE compares with them",
     "--kl-divergence --kl-divergence-base"},
    {"--template takes a file", "--chat-template"},
    {"--template does that", "--chat-template-file"},
    {"--template-var NAME=JSON does that", "--chat-template-kwargs"},
};

// The row that has the word; nullptr if none has.
template <class Rows>
auto RowOf(const Rows& table, const std::string& word) -> decltype(std::data(table)) {
  if (word.find(' ') != std::string::npos) return nullptr;
  for (const auto& row : table) {
    const std::string words = " " + std::string(row.words) + " ";
    if (words.find(" " + word + " ") != std::string::npos) return &row;
  }
  return nullptr;
}

// "" if no row has the word.
std::string Find(std::span<const Synonyms> table, const std::string& word) {
  const Synonyms* const row = RowOf(table, word);
  return row != nullptr ? std::string(row->meaning) : "";
}

// "on", or "0,1" as llama-bench has it.
bool IsYesOrNo(const std::string& text) {
  constexpr auto kWords = std::to_array<std::string_view>({"on", "off", "auto", "true", "false"});
  return std::ranges::find(kWords, text) != kWords.end() ||
         (!text.empty() && text.find_first_not_of("01,") == std::string::npos);
}

// The edit distance: letters to change, add or remove to turn one word into the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j] ? 1 : 0);
      diagonal = std::exchange(row[j + 1], std::min({row[j], row[j + 1]}) + 1);
      row[j + 1] = std::min(row[j + 1], changed);
    }
  }
  return row.back();
}

// ": did you mean WORD? " if one of them is close, else ": ".
std::string Guess(std::string_view typed, const std::vector<std::string>& words) {
  constexpr size_t kLongest = 40;  // letters; longer words are no typos, and comparing takes time
  const std::string* best = nullptr;
  size_t least = std::clamp<size_t>(typed.size() / 3, 2, 3) + 1;
  for (const std::string& word : words) {
    if (typed.size() > kLongest || word.size() < 3) continue;  // one letter is like any other
    const size_t distance = word.starts_with(typed) ? 1 : Distance(typed, word);
    if (distance < std::min(least, typed.size())) {
      least = distance;
      best = &word;
    }
  }
  return best != nullptr ? ": did you mean " + *best + "? " : ": ";
}

}  // namespace

std::string OurFlag(const std::string& name) {
  const std::string ours = Find(kLongNames, name);
  return ours.empty() ? name : ours;
}

std::string OurCommand(std::span<const std::string> args) {
  const auto converses = [](const auto& arg) { return OurFlag(arg) == "--conversation"; };
  return args[0] == "run" && std::ranges::any_of(args, converses) ? "chat" : args[0];
}

bool IsImplied(const Command& command, const std::string& flag) {
  return (command.name == "chat" && flag == "--conversation") ||
         (command.name == "run" && flag == "--no-conversation");
}

size_t TakeIdleFlag(std::span<const std::string> args, Command& command) {
  const std::string name = args[0].substr(0, args[0].find('='));
  const Idle* const idle = RowOf(kIdle, name);
  if (idle == nullptr || command.Find("--model") == nullptr) return 0;
  command.idle.push_back(name + " (" + std::string(idle->why) + ")");
  const bool is_apart = name == args[0] && args.size() > 1;
  const bool has_value = is_apart && (idle->takes == Takes::kOne ||
                                      (idle->takes == Takes::kMaybe && IsYesOrNo(args[1])));
  return has_value ? 2 : 1;
}

void RefuseFlag(const Command& command, const std::string& name) {
  const std::string why = Find(kForeign, name);
  if (!why.empty()) throw UsageError(name, ": ", why);
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  throw UsageError("pronk ", command.name, " has no flag ", gguf::Quoted(name), Guess(name, names),
                   "'pronk ", command.name, " --help' lists them");
}

void RefuseCommand(const CommandLine& line, const std::string& name) {
  const std::string ours = Find(kOtherCommands, name), why = Find(kForeignCommands, name);
  if (!why.empty()) throw UsageError(name, ": ", why);
  std::vector<std::string> names = {"help"};
  for (const Command& command : line.commands()) names.push_back(command.name);
  throw UsageError("there is no subcommand ", gguf::Quoted(name),
                   (ours.empty() ? Guess(name, names) : ": did you mean " + ours + "? "),
                   "'pronk --help' lists them");
}

}  // namespace cli
