#include "cli/options/arguments.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

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
    {"--single-turn", "-st"},
    {"--conversation", "-cnv -i --interactive"},
    {"--no-conversation", "-no-cnv"},
    {"--prompt-gen", "-pg"},
    {"--output-err", "-oe"},
    {"--model-draft", "-md"},
    {"--draft-max", "--draft-n-max"},
};

// Other programs' names of our subcommands.
constexpr Synonyms kOtherCommands[] = {{"list", "ls"},
                                       {"inspect", "show info"},
                                       {"run", "generate complete"},
                                       {"completion", "completions"}};

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
    {"models are files: cp copies them", "cp"},
    {"models are files: 'pronk list' shows where they are, and rm removes them", "rm"},
};

// llama.cpp's flags without an equivalent here, by reason.
constexpr Synonyms kForeign[] = {
    {"pronk computes on the CPU only, so there is nothing to set",
     "-ngl --gpu-layers --n-gpu-layers -dev --device -sm --split-mode -ts --tensor-split -mg "
     "--main-gpu -ncmoe -ot"},
    {kNoDownloads, "-hf -hfr --hf-repo -hff --hf-file -mu --model-url"},
    {"that is always so here", "-fa --flash-attn --allow-requantize --jinja"},
    {"pronk always maps the file; --mlock keeps it in memory", "--mmap --no-mmap"},
    {"this subcommand does not keep the weights in memory; run and chat do", "--mlock"},
    {"nothing is computed before the prompt", "--no-warmup"},
    {"colour is used where the terminal has it; NO_COLOR=1 turns it off", "-co --color"},
    {"pronk reads no adapters: merge them into the model", "--lora --lora-scaled --control-vector"},
    {"pronk reads text only", "-mm --mmproj --image --audio"},
    {"pronk uses one model at a time", "-md --model-draft"},
    {"how many tokens are guessed follows from what it gains; --draft N sets the number",
     "--draft-min --draft-n-min --draft-p-min"},
    {"pronk keeps no log; -v says what was chosen and why", "--log-disable --log-file -lv"},
    {"without a terminal, input and output are plain", "--simple-io"},
    {"numactl places a program on the nodes of a machine", "--numa"},
    {"nice sets a program's priority", "--prio"},
    {"the context does not shift: run ends where it is full, chat forgets the oldest messages",
     "--context-shift --no-context-shift --keep"},
    {"--template takes a file", "--chat-template"},
    {"--template does that", "--chat-template-file"},
    {"--template-var NAME=JSON does that", "--chat-template-kwargs"},
    {"--no-think turns thinking off where the template can", "--reasoning-budget"},
};

// "" if no row has the word.
std::string Find(std::span<const Synonyms> table, const std::string& word) {
  if (word.find(' ') != std::string::npos) return "";
  for (const Synonyms& row : table) {
    const std::string words = " " + std::string(row.words) + " ";
    if (words.find(" " + word + " ") != std::string::npos) return std::string(row.meaning);
  }
  return "";
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
  size_t least = std::min<size_t>(typed.size() / 3 + 1, 3) + 1;
  for (const std::string& word : words) {
    if (typed.size() > kLongest) break;
    const bool begins = typed.size() > 2 && word.starts_with(typed);
    const size_t distance = begins ? 1 : Distance(typed, word);
    if (distance < std::min(least, typed.size())) {
      least = distance;
      best = &word;
    }
  }
  return best != nullptr ? ": did you mean " + *best + "? " : ": ";
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A flag, not a text, a number or the dash for stdin.
bool IsFlag(const std::string& arg) {
  return arg.size() > 1 && arg[0] == '-' && !IsDigit(arg[1]) && arg[1] != '.';
}

// Several words, and not a file name.
bool IsText(const std::string& word) {
  return word.find_first_of(" \n") != std::string::npos && !std::ifstream(word);
}

const Command& FindCommand(const std::string& name, const CommandLine& line) {
  std::vector<std::string> names;
  for (const Command& command : line.commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string ours = Find(kOtherCommands, name), why = Find(kForeignCommands, name);
  if (!why.empty()) throw UsageError(name + ": " + why);
  throw UsageError("there is no subcommand " + gguf::Quoted(name) +
                   (ours.empty() ? Guess(name, names) : ": did you mean " + ours + "? ") +
                   "'pronk --help' lists them");
}

// llama-cli both completes and converses; here these are two subcommands.
const Command& ChosenCommand(const std::vector<std::string>& args, const CommandLine& line) {
  const Command& command = FindCommand(args[0], line);
  const auto converses = [](const std::string& arg) {
    return arg == "--conversation" || Find(kLongNames, arg) == "--conversation";
  };
  const bool is_chat = command.name == "run" && std::ranges::any_of(args, converses);
  return is_chat ? FindCommand("chat", line) : command;
}

// True if the flag chooses between run and chat and agrees with the subcommand.
bool IsChoice(const Command& command, const std::string& name) {
  const bool is_chat = command.name == "chat";
  if (is_chat && name == "--no-conversation") {
    throw UsageError(name + ": pronk chat converses, and pronk run completes a text");
  }
  return (is_chat && name == "--conversation") ||
         (command.name == "run" && name == "--no-conversation");
}

[[noreturn]] void Refuse(const Command& command, const std::string& name) {
  const std::string why = Find(kForeign, name);
  if (!why.empty()) throw UsageError(name + ": " + why);
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  throw UsageError("pronk " + command.name + " has no flag " + gguf::Quoted(name) +
                   Guess(name, names) + "'pronk " + command.name + " --help' lists them");
}

// Takes the flag at args[at] with its value. Returns the number of arguments taken.
size_t TakeFlag(const std::vector<std::string>& args, size_t at, GivenArguments& given) {
  const Command& command = *given.command;
  const std::string& arg = args[at];
  const size_t equals = arg.find('=');
  std::string name = arg.substr(0, equals);
  std::optional<std::string> value;
  if (equals != std::string::npos) value = arg.substr(equals + 1);
  if (const std::string ours = Find(kLongNames, name); !ours.empty()) name = ours;
  if (IsChoice(command, name)) return 1;
  const Flag* flag = command.Find(name);
  if (flag == nullptr && arg[1] != '-' && arg.size() > 2 && IsDigit(arg[2])) {  // -n128
    flag = command.Find(arg.substr(0, 2));
    if (flag != nullptr && flag->is_switch()) flag = nullptr;
    value = arg.substr(2);
  }
  if (flag == nullptr) Refuse(command, arg.substr(0, equals));
  const std::string* const next = at + 1 < args.size() ? &args[at + 1] : nullptr;
  const auto add = [&](const std::string& text, size_t n_args) {
    given.values.emplace_back(flag, text);
    return n_args;
  };
  if (value) return add(*value, 1);
  if (flag->is_switch()) return add("", 1);
  if (flag->may_be_alone) {  // --think low, or --think followed by something else
    const auto& choices = flag->choices;
    const bool is_one = next != nullptr && std::ranges::find(choices, *next) != choices.end();
    return is_one ? add(*next, 2) : add(choices[0], 1);
  }
  if (next != nullptr) return add(*next, 2);
  throw UsageError(name + ": expected " + flag->type + " behind it: 'pronk " + command.name +
                   " --help' tells more");
}

// Words without a flag fill the places that no flag has filled, in order.
void TakeWords(const std::vector<std::string>& words, GivenArguments& given) {
  const Command& command = *given.command;
  const Flag* const model = command.Find("-m");
  // pronk run "Once upon a time": a text for the default model.
  if (command.name == "run" && words.size() == 1 && IsText(words[0]) && !given.Has(*model)) {
    given.values.emplace_back(model, "");
  }
  size_t n_taken = 0;
  for (const Flag& flag : command.flags) {
    if (flag.place.empty() || (given.Has(flag) && !flag.is_repeatable())) continue;
    const size_t most = flag.is_repeatable() ? words.size() : 1;
    for (size_t i = 0; i < most && n_taken < words.size(); ++i) {
      given.values.emplace_back(&flag, words[n_taken++]);
    }
  }
  if (n_taken == words.size()) return;
  throw UsageError("pronk " + command.name + " has no use for " + gguf::Quoted(words[n_taken]) +
                   ": 'pronk " + command.name + " --help' shows what it takes");
}

}  // namespace

bool GivenArguments::Has(const Flag& flag) const {
  return std::ranges::any_of(values, [&](const auto& value) { return value.first == &flag; });
}

GivenArguments CutArguments(const std::vector<std::string>& args, const CommandLine& line) {
  GivenArguments given;
  given.command = &line.program();
  if (args.empty()) return given;
  if (args[0] == "help" || line.program().Find(args[0]) != nullptr) {
    const bool is_version = args[0] == "--version";
    if (!is_version && args.size() > 1 && !IsFlag(args[1]) && args[1] != "help") {
      given.command = &FindCommand(args[1], line);
    }
    given.values.emplace_back(given.command->Find(is_version ? args[0] : "--help"), "");
    return given;
  }
  if (IsFlag(args[0])) {
    throw UsageError("a subcommand stands before " + gguf::Quoted(args[0]) +
                     ": 'pronk --help' lists them, and 'pronk run' completes a text");
  }
  given.command = &ChosenCommand(args, line);
  std::vector<std::string> words;
  for (size_t i = 1; i < args.size();) {
    if (args[i] == "--") {
      words.insert(words.end(), args.begin() + static_cast<ptrdiff_t>(i) + 1, args.end());
      break;
    }
    if (IsFlag(args[i])) {
      i += TakeFlag(args, i, given);
    } else {
      words.push_back(args[i++]);
    }
  }
  TakeWords(words, given);
  return given;
}

}  // namespace cli
